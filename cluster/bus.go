package cluster

import (
	"context"
	"io"
	"time"
)

// Bus is what the members of a cluster share through a broker. It is safe for
// concurrent use. Calls that need the broker wait for it until their context
// ends, over reconnections, and then match ErrUnreachable. So do calls that a broker
// which is there has not carried out for a while, because it cannot store.
type Bus interface {
	// Send gives a message to the listeners at an address: at most once, in no
	// order, maybe never. It does not wait for them. A message above MaxPayload is
	// refused.
	Send(to string, message []byte) error
	// Listen calls handle, one call at a time, for each message to an address.
	Listen(address string, handle func(message []byte)) (stop func(), err error)
	// MaxPayload is the most bytes of a message.
	MaxPayload() int
	// Bucket returns one of the buckets below.
	Bucket(name string) Bucket
	// Jobs is the queue of jobs.
	Jobs() Queue
	// Blobs keeps large immutable contents.
	Blobs() Blobs
	// Events keeps what runs report.
	Events() Events
}

// The buckets. Records of Members and Lead vanish when they have not been
// written for their lease; those of Runs stay.
const (
	MembersBucket = "members" // worker → Member
	LeadBucket    = "lead"    // LeadKey → Holder, and what else one process at a time may do
	RunsBucket    = "runs"    // run → RunStatus
)

// Record is an entry of a bucket. Revisions of a bucket only grow, over all
// keys and over restarts of the broker.
type Record struct {
	Key      string
	Value    []byte
	Revision uint64
}

// Bucket is a small map of keys to values, linearised by the broker. Keys
// consist of letters, digits, - and _.
type Bucket interface {
	// Get matches ErrNoRecord if there is none.
	Get(ctx context.Context, key string) (Record, error)
	// List returns all records, in no order.
	List(ctx context.Context) ([]Record, error)
	// Create adds a record, and matches ErrConflict if there is one.
	Create(ctx context.Context, key string, value []byte) (revision uint64, err error)
	// Update replaces the record of a revision, and matches ErrConflict if the
	// newest is another, or none is left.
	Update(ctx context.Context, key string, value []byte, revision uint64) (uint64, error)
	// Put adds or replaces.
	Put(ctx context.Context, key string, value []byte) (uint64, error)
	// Delete removes the record of a revision if it is the newest; 0: any.
	Delete(ctx context.Context, key string, revision uint64) error
}

// Queue hands each job to one taker at a time, until one says that it is done.
type Queue interface {
	// Submit adds a job under an id; one that is there already is not added again.
	Submit(ctx context.Context, id string, job []byte) error
	// Next waits for a job.
	Next(ctx context.Context) (Delivery, error)
	// Dead returns the jobs and shards that were given up, oldest first.
	Dead(ctx context.Context) ([]DeadLetter, error)
	// Bury adds a dead letter.
	Bury(ctx context.Context, letter DeadLetter) error
}

// Delivery is a job that a taker has. It goes to another taker when it is not
// worked on any more.
type Delivery interface {
	ID() string
	Job() []byte
	Attempt() int // 1 for the first
	// Working says that the taker is alive; call it every few seconds.
	Working(ctx context.Context) error
	// Done removes the job, and returns when the broker has confirmed that.
	Done(ctx context.Context) error
	// Release gives the job back at once.
	Release(ctx context.Context) error
}

// DeadLetter is what was given up: a job, or a shard of a run.
type DeadLetter struct {
	Run    string    `json:"run"`
	Shard  int       `json:"shard"` // -1: the job as a whole
	Reason string    `json:"reason"`
	Time   time.Time `json:"time"`
}

// Blobs keeps contents under their SHA-256, in hexadecimal.
type Blobs interface {
	// Put stores size bytes; contents that are there already are not sent again.
	Put(ctx context.Context, digest string, r io.Reader, size int64) error
	// Get writes the contents to w and fails if they do not have the digest.
	// It matches ErrNoRecord if there are none.
	Get(ctx context.Context, digest string, w io.Writer) error
	// Delete removes contents that no run needs any more.
	Delete(ctx context.Context, digest string) error
}

// Events keeps what runs report, for a bounded time.
type Events interface {
	// Publish adds an event of a run, without waiting for the broker to store it.
	Publish(run string, event []byte) error
	// Read calls handle with the events of a run that are kept when it is called,
	// oldest first, until handle returns false.
	Read(ctx context.Context, run string, handle func(event []byte) bool) error
	// Follow does as Read, and then passes on new events until ctx ends.
	Follow(ctx context.Context, run string, handle func(event []byte) bool) error
}
