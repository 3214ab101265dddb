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
	dataPrefix  = "pce.data." // <receiver>.<sender>, three tokens each
	jobPrefix   = "pce.job."  // an owned subject, as those of events and runs
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
// tokens, and are given to all addresses that begin alike up to a -. A =, which
// no address has, is written for nothing between two of them.
func addressSubject(address string) (string, error) {
	if err := checkToken("address", address); err != nil {
		return "", err
	}
	return inboxPrefix + tokens(address), nil
}

func tokens(address string) string {
	parts := strings.Split(address, "-")
	for i, p := range parts {
		parts[i] = filled(p)
	}
	return strings.Join(parts, ".")
}

// dataSubject is the subject of bulk data from one member to another. The identifier
// of a member is divided at its first two dashes, so that permissions can be given
// to all members of a client.
func dataSubject(receiver, sender string) string {
	return dataPrefix + memberTokens(receiver) + "." + memberTokens(sender)
}

// memberTokens divides an identifier into three tokens: = is an empty one, and ~ one
// that it does not have.
func memberTokens(id string) string {
	parts := strings.SplitN(id, "-", 3)
	for i, p := range parts {
		parts[i] = filled(p)
	}
	for len(parts) < 3 {
		parts = append(parts, "~")
	}
	return strings.Join(parts, ".")
}

// senderOf returns the identifier that the last three tokens of a subject spell.
func senderOf(subject string) string {
	parts := strings.Split(subject, ".")
	parts = parts[max(0, len(parts)-3):]
	for len(parts) > 0 && parts[len(parts)-1] == "~" {
		parts = parts[:len(parts)-1]
	}
	return strings.ReplaceAll(strings.Join(parts, "-"), "=", "")
}

// ownedSubject is where the records, jobs and events of a run lie. The name behind
// the last dash of its id is that of its owner, and comes first: permissions go by
// whole tokens.
func ownedSubject(prefix, id string) string {
	at := strings.LastIndexByte(id, '-')
	rest := "~" // there is no dash
	if at >= 0 {
		rest = filled(id[:at])
	}
	return prefix + filled(id[at+1:]) + "." + rest
}

// ownedID is the inverse of ownedSubject.
func ownedID(prefix, subject string) string {
	owner, rest, _ := strings.Cut(strings.TrimPrefix(subject, prefix), ".")
	if rest == "~" || rest == "" { // as earlier versions wrote it
		return strings.TrimPrefix(owner, "=")
	}
	return strings.TrimPrefix(rest, "=") + "-" + strings.TrimPrefix(owner, "=")
}

// filled returns a token, = for one that would be empty.
func filled(token string) string {
	if token == "" {
		return "="
	}
	return token
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
