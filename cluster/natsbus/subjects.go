package natsbus

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/cluster"
)

// Streams. KV_ streams are buckets.
const (
	membersStream = "KV_pce_members"
	leadStream    = "KV_pce_lead"
	runsStream    = "KV_pce_runs"
	takesStream   = "KV_pce_takes" // job → who works on it
	jobsStream    = "PCE_JOBS"
	deadStream    = "PCE_DEAD"
	eventsStream  = "PCE_EVENTS"
	blobsStream   = "PCE_BLOBS"
	takers        = "takers" // consumer of jobsStream
)

// Subjects.
const (
	apiPrefix   = "$JS.API."
	ackPrefix   = "$JS.ACK."
	inboxPrefix = "pce.inbox."
	dataPrefix  = "pce.data." // <receiver>.<sender>
	jobPrefix   = "pce.job."
	deadSubject = "pce.dead"
	eventPrefix = "pce.event."
	toldPrefix  = "pce.told." // says that an event has been stored
	blobPrefix  = "pce.blob."
)

// maxToken bounds addresses, keys and identifiers.
const maxToken = 200

// checkToken refuses what is not letters, digits, - and _.
func checkToken(what, s string) error {
	if s == "" || len(s) > maxToken {
		return fmt.Errorf("%w: %s of %d characters: 1 to %d are allowed", cluster.ErrCluster, what, len(s), maxToken)
	}
	for i := range len(s) {
		switch c := s[i]; {
		case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		default:
			return fmt.Errorf("%w: %s %q: only letters, digits, - and _ are allowed", cluster.ErrCluster, what, s)
		}
	}
	return nil
}

// addressSubject turns c-ab12 into pce.inbox.c.ab12: permissions go by whole
// tokens, and are given to all addresses that begin alike up to a -. No address
// has a =, which stands for nothing between two of them.
func addressSubject(address string) (string, error) {
	if err := checkToken("address", address); err != nil {
		return "", err
	}
	return inboxPrefix + tokens(address), nil
}

func tokens(address string) string {
	parts := strings.Split(address, "-")
	for i, p := range parts {
		if p == "" {
			parts[i] = "="
		}
	}
	return strings.Join(parts, ".")
}

// DataSubject is the subject of bulk data from one member to another.
func DataSubject(receiver, sender string) (string, error) {
	if err := checkToken("member", receiver); err != nil {
		return "", err
	}
	if err := checkToken("member", sender); err != nil {
		return "", err
	}
	return dataPrefix + receiver + "." + sender, nil
}

// bucketSubjects is where the keys of a bucket's stream begin.
func bucketSubjects(stream string) string {
	return "$KV." + strings.TrimPrefix(stream, "KV_") + "."
}

// chunkSubject is where a chunk of a blob lies. What lies there depends on
// nothing else, so any Put may write it again.
func chunkSubject(digest string, chunk, i int64) string {
	return blobPrefix + digest + "." + strconv.FormatInt(chunk, 10) + "." + strconv.FormatInt(i, 10)
}
