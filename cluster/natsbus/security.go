package natsbus

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/nats-io/nats-server/v2/server"
	"github.com/nats-io/nkeys"

	"github.com/pce-engine/pce/cluster"
)

// maxSeats bounds the workers of an embedded broker.
const maxSeats = 1000

// Seat is a member that may connect to a broker, and what for.
type Seat struct {
	Name      string // coordinator, that of a client, or the worker's identifier
	Client    bool
	Key       string // public nkey
	File      string // of the seed
	Publish   []string
	Subscribe []string
}

// NewSeats makes the keys of a coordinator, a client and n workers, whose
// identifiers are worker-000, worker-001, ...: NAME.nk in a directory that
// no other user may read. Keys that are there stay, and those of more clients are
// taken as well, behind the workers. Where keys of such clients cannot be read, the
// others are returned beside the first error, so that a bad file keeps its own client out alone.
//
// A worker may listen at addresses that are its identifier, or begin with it and
// a -, and send to those that begin with c-. It writes no record but its own.
//
// A client may listen at addresses that begin with c-NAME-, send to workers, and
// write records, jobs and events of runs whose ids end with -NAME. Of bulk data it
// sends and gets what members send whose identifiers begin with c-NAME-.
func NewSeats(dir string, n int) ([]Seat, error) {
	if n < 0 || n > maxSeats {
		return nil, fmt.Errorf("%w: %d workers: 0 to %d are possible", cluster.ErrCluster, n, maxSeats)
	}
	if err := privateDir(dir); err != nil {
		return nil, err
	}
	names := []string{"coordinator", DefaultClient}
	for i := range n {
		names = append(names, WorkerName(i))
	}
	clients, err := clientsIn(dir)
	if err != nil {
		return nil, err
	}
	seats := make([]Seat, 0, len(names)+len(clients))
	var bad error
	for i, name := range append(names, clients...) {
		file := filepath.Join(dir, name+keySuffix)
		key, err := userKey(file)
		if err != nil && i >= len(names) {
			bad = cmp.Or(bad, err)
			continue
		}
		if err != nil {
			return nil, err
		}
		s := Seat{Name: name, Key: key, File: file, Client: i == 1 || i >= len(names)}
		switch {
		case i == 0:
			s.Publish, s.Subscribe = coordinatorPermissions()
		case s.Client:
			s.Publish, s.Subscribe = clientPermissions(name)
		default:
			s.Publish, s.Subscribe = workerPermissions(name)
		}
		s.Subscribe = append(s.Subscribe, replyPrefix(key)+".>")
		seats = append(seats, s)
	}
	return seats, bad
}

// NewClient makes the key of a client, NAME.nk in the directory of NewSeats, unless it
// is there, and returns its file.
func NewClient(dir, name string) (file string, err error) {
	if !isClient(name) {
		return "", fmt.Errorf("%w: %.40q cannot name a client: want 1 to %d lower-case letters and digits, and none of %s", cluster.ErrCluster, name, maxClientName, strings.Join(reserved, ", "))
	}
	if err := privateDir(dir); err != nil {
		return "", err
	}
	file = filepath.Join(dir, name+keySuffix)
	_, err = userKey(file)
	return file, err
}

const (
	// DefaultClient is the name of a client whose credentials do not tell one.
	DefaultClient = "client"
	keySuffix     = ".nk"
	maxClientName = 24
)

// reserved are names that addresses and files of others begin with.
var reserved = []string{"coordinator", "worker", "up", "files", "health", "main"}

func isClient(name string) bool {
	odd := func(r rune) bool { return !(r >= 'a' && r <= 'z' || r >= '0' && r <= '9') }
	return name != "" && len(name) <= maxClientName && !strings.ContainsFunc(name, odd) && !slices.Contains(reserved, name)
}

// ClientName returns the name of the client whose key a file holds: NAME.nk.
func ClientName(file string) string {
	if name := strings.TrimSuffix(filepath.Base(file), keySuffix); isClient(name) {
		return name
	}
	return DefaultClient
}

// clientsIn lists the clients that have keys in a directory, but for the default one.
func clientsIn(dir string) (names []string, err error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("%w: keys: %w", cluster.ErrCluster, err)
	}
	for _, e := range entries {
		name, ok := strings.CutSuffix(e.Name(), keySuffix)
		if ok && isClient(name) && name != DefaultClient {
			names = append(names, name)
		}
	}
	return names, nil
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
		publish = append(publish, bucketSubjects(s)+">")
	}
	return publish, []string{"pce.>"}
}

func clientPermissions(name string) (publish, subscribe []string) {
	publish = join(
		[]string{
			inboxPrefix + "worker.>", inboxPrefix + "c.files", inboxPrefix + "c.health",
			dataPrefix + "*.*.*.c." + name + ".*",
			jobPrefix + name + ".*", eventPrefix + name + ".*", bucketSubjects(runsStream) + name + ".*",
			blobPrefix + ">", deadSubject, bucketSubjects(leadStream) + "*",
			apiPrefix + "DIRECT.GET." + blobsStream + ".>",
		},
		api("STREAM.INFO", allStreams...), api("STREAM.CREATE", allStreams...),
		api("STREAM.MSG.GET", allStreams...), api("STREAM.PURGE", blobsStream),
	)
	return publish, []string{inboxPrefix + "c." + name + ".>", dataPrefix + "c." + name + ".>", toldPrefix + "*.*"}
}

func workerPermissions(id string) (publish, subscribe []string) {
	inbox := inboxPrefix + tokens(id)
	publish = join(
		[]string{
			bucketSubjects(membersStream) + id,
			inboxPrefix + "c.>", dataPrefix + "*.*.*." + memberTokens(id), eventPrefix + "*.*",
			apiPrefix + "DIRECT.GET." + blobsStream + ".>",
		},
		api("STREAM.INFO", allStreams...),
		api("STREAM.MSG.GET", membersStream, leadStream, blobsStream),
	)
	return publish, []string{inbox, inbox + ".>", dataPrefix + memberTokens(id) + ".>"}
}
