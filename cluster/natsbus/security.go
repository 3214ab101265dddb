package natsbus

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/pce-engine/pce/cluster"
)

// maxSeats bounds the workers of an embedded broker.
const maxSeats = 1000

// Seat is somebody who may connect to a broker, and what for.
type Seat struct {
	Name      string // coordinator, client, or the worker's identifier
	Key       string // public nkey
	File      string // of the seed
	Publish   []string
	Subscribe []string
}

// NewSeats makes the keys of a coordinator, a client and n workers, whose
// identifiers are worker-000, worker-001, ...: NAME.nk in a directory that
// nobody else may read. Keys that are there stay.
//
// A worker may listen at addresses that are its identifier, or begin with it and
// a -, and send to those that begin with c-. It writes no record but its own.
func NewSeats(dir string, n int) ([]Seat, error) {
	if n < 0 || n > maxSeats {
		return nil, fmt.Errorf("%w: %d workers: 0 to %d are possible", cluster.ErrCluster, n, maxSeats)
	}
	if err := privateDir(dir); err != nil {
		return nil, err
	}
	names := []string{"coordinator", "client"}
	for i := range n {
		names = append(names, WorkerName(i))
	}
	seats := make([]Seat, len(names))
	for i, name := range names {
		file := filepath.Join(dir, name+".nk")
		key, err := userKey(file)
		if err != nil {
			return nil, err
		}
		s := Seat{Name: name, Key: key, File: file}
		switch i {
		case 0:
			s.Publish, s.Subscribe = coordinatorPermissions()
		case 1:
			s.Publish, s.Subscribe = clientPermissions()
		default:
			s.Publish, s.Subscribe = workerPermissions(name)
		}
		s.Subscribe = append(s.Subscribe, replyPrefix(key)+".>")
		seats[i] = s
	}
	return seats, nil
}

// WorkerName is the identifier of a worker, and the name of its seat.
func WorkerName(i int) string { return fmt.Sprintf("worker-%03d", i) }

// userKey returns the public key of a seed, which it makes if there is none.
func userKey(file string) (string, error) {
	if _, err := os.Lstat(file); errors.Is(err, os.ErrNotExist) {
		if err := newSeed(file); err != nil {
			return "", fmt.Errorf("%w: key: %w", cluster.ErrCluster, err)
		}
	}
	info, err := os.Stat(file)
	if err != nil {
		return "", fmt.Errorf("%w: key: %w", cluster.ErrCluster, err)
	}
	if info.Mode().Perm()&0o077 != 0 {
		return "", fmt.Errorf("%w: others may read the key %s: chmod 600 it", cluster.ErrCluster, file)
	}
	key, _, err := Options{Credentials: file}.identity()
	return key, err
}

func newSeed(file string) error {
	pair, err := nkeys.CreateUser()
	if err != nil {
		return err
	}
	defer pair.Wipe()
	seed, err := pair.Seed()
	if err != nil {
		return err
	}
	defer clear(seed)
	// A half-written key must not be taken for one after a crash.
	f, err := os.CreateTemp(filepath.Dir(file), ".key-*")
	if err != nil {
		return err
	}
	defer func() { _ = os.Remove(f.Name()) }()
	_, err = f.Write(append(seed, '\n'))
	err = errors.Join(err, f.Chmod(0o600), f.Sync(), f.Close())
	if err != nil {
		return err
	}
	return os.Rename(f.Name(), file)
}

func (s Seat) user() *server.NkeyUser {
	return &server.NkeyUser{Nkey: s.Key, Permissions: &server.Permissions{
		Publish:   &server.SubjectPermission{Allow: s.Publish},
		Subscribe: &server.SubjectPermission{Allow: s.Subscribe},
	}}
}

var (
	buckets    = []string{membersStream, leadStream, runsStream, takesStream}
	allStreams = append(append([]string(nil), buckets...), jobsStream, deadStream, eventsStream, blobsStream)
)

// api lists requests of JetStream about streams.
func api(request string, streams ...string) []string {
	list := make([]string, len(streams))
	for i, s := range streams {
		list[i] = apiPrefix + request + "." + s
	}
	return list
}

func join(lists ...[]string) (all []string) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

func coordinatorPermissions() (publish, subscribe []string) {
	publish = join(
		[]string{
			"pce.>", ackPrefix + ">",
			apiPrefix + "CONSUMER.CREATE." + jobsStream + "." + takers,
			apiPrefix + "CONSUMER.DELETE." + jobsStream + "." + takers,
			apiPrefix + "CONSUMER.MSG.NEXT." + jobsStream + "." + takers,
			apiPrefix + "DIRECT.GET." + blobsStream + ".>",
		},
		api("STREAM.INFO", allStreams...), api("STREAM.CREATE", allStreams...), api("STREAM.UPDATE", allStreams...),
		api("STREAM.MSG.GET", allStreams...), api("STREAM.PURGE", blobsStream), api("STREAM.MSG.DELETE", jobsStream),
	)
	for _, s := range buckets {
		publish = append(publish, bucketSubjects(s)+"*")
	}
	return publish, []string{"pce.>"}
}

func clientPermissions() (publish, subscribe []string) {
	publish = join(
		[]string{
			inboxPrefix + ">", dataPrefix + ">", jobPrefix + "*", eventPrefix + "*", blobPrefix + ">", deadSubject,
			bucketSubjects(leadStream) + "*", bucketSubjects(runsStream) + "*",
			apiPrefix + "DIRECT.GET." + blobsStream + ".>",
		},
		api("STREAM.INFO", allStreams...), api("STREAM.CREATE", allStreams...),
		api("STREAM.MSG.GET", allStreams...), api("STREAM.PURGE", blobsStream),
	)
	return publish, []string{inboxPrefix + "c.>", dataPrefix + ">", toldPrefix + "*"}
}

func workerPermissions(id string) (publish, subscribe []string) {
	inbox := inboxPrefix + tokens(id)
	publish = join(
		[]string{
			bucketSubjects(membersStream) + id,
			inboxPrefix + "c.>", dataPrefix + "*." + id, dataPrefix + "*." + id + ".>", eventPrefix + "*",
			apiPrefix + "DIRECT.GET." + blobsStream + ".>",
		},
		api("STREAM.INFO", allStreams...),
		api("STREAM.MSG.GET", membersStream, leadStream, blobsStream),
	)
	return publish, []string{inbox, inbox + ".>", dataPrefix + id + ".>"}
}
