package cluster

import "fmt"

// beatReport says that a worker is alive, and in which state. Leaders expect one
// several times a lease.
type beatReport struct {
	State   workerState `json:"state"`
	Spec    uint64      `json:"spec,omitempty"`  // sum of the description of its run; 0: it has none
	Version Version     `json:"version"`         // of its parameters
	Queue   int         `json:"queue,omitempty"` // leased shards that are not done
	Bytes   int64       `json:"bytes,omitempty"` // received of the exchange under way
	Err     string      `json:"err,omitempty"`   // why it is unfit
	Final   bool        `json:"final,omitempty"` // Err: no other worker will do better
}

// enrolledReport says what a worker holds at the start of a term. The payload are
// the results of the shards whose flows it holds.
type enrolledReport struct {
	Version Version     `json:"version"`
	Info    SessionInfo `json:"info"`
}

// doneReport is results of shards. The payload are the results, or the answer of
// a query.
type doneReport struct {
	Shards runs  `json:"shards"`
	Nanos  int64 `json:"nanos,omitempty"` // that they took; 0: they are told again
}

// failedReport says why a shard could not be computed.
type failedReport struct {
	Shard int    `json:"shard"`
	Err   string `json:"err"`
	Final bool   `json:"final,omitempty"` // no worker can
}

// movedReport says that all parts of the parameters have arrived.
type movedReport struct {
	Version Version           `json:"version"` // after the move
	Sums    map[string]uint32 `json:"sums"`    // ID of a member → checksum of the part that it moved
}

// troubleReport asks for a new term.
type troubleReport struct {
	Err   string `json:"err"`
	Blame string `json:"blame,omitempty"` // ID of the member whose flows were refused
}

// workerState is what a beat says of a worker.
type workerState string

const (
	idle    workerState = "idle"
	loading workerState = "loading"
	ready   workerState = "ready"
	unfit   workerState = "unfit" // it cannot load the run
	leaving workerState = "leaving"
)

func (*beatReport) kind() messageKind     { return beatMsg }
func (*enrolledReport) kind() messageKind { return enrolledMsg }
func (*doneReport) kind() messageKind     { return doneMsg }
func (*failedReport) kind() messageKind   { return failedMsg }
func (*movedReport) kind() messageKind    { return movedMsg }
func (*troubleReport) kind() messageKind  { return troubleMsg }

func (b *beatReport) check(payload []byte) error {
	switch b.State {
	case idle, loading, ready, unfit, leaving:
	default:
		return fmt.Errorf("unknown state %.40q", b.State)
	}
	if err := b.Version.check(0); err != nil {
		return err
	}
	switch {
	case b.Queue < 0 || b.Queue > maxShards:
		return fmt.Errorf("%d queued shards, want 0..%d", b.Queue, maxShards)
	case b.Bytes < 0:
		return fmt.Errorf("%d bytes received, want 0 or more", b.Bytes)
	}
	if err := checkReason(b.Err, 0); err != nil {
		return err
	}
	return noPayload(payload)
}

func (b *enrolledReport) check(payload []byte) error {
	if err := b.Version.check(0); err != nil {
		return err
	}
	if !isName(b.Info.Device) {
		return fmt.Errorf("device %.40q (%d bytes), want 1..%d bytes", b.Info.Device, len(b.Info.Device), maxName)
	}
	if n := max(len(b.Info.Path), len(b.Info.Precision)); n > maxName {
		return fmt.Errorf("path or precision of %d bytes, want 0..%d", n, maxName)
	}
	if n := len(payload); n%shardBytes != 0 || n > maxShards*shardBytes {
		return fmt.Errorf("payload of %d bytes, want up to %d results of %d bytes", n, maxShards, shardBytes)
	}
	return nil
}

func (b *doneReport) check([]byte) error {
	if b.Nanos < 0 {
		return fmt.Errorf("shards that took %d ns, want 0 or more", b.Nanos)
	}
	return b.Shards.check(maxShard, maxShards)
}

func (b *failedReport) check(payload []byte) error {
	if b.Shard < 0 || b.Shard >= maxShard {
		return fmt.Errorf("shard %d, want 0..%d", b.Shard, maxShard-1)
	}
	if err := checkReason(b.Err, 1); err != nil {
		return err
	}
	return noPayload(payload)
}

func (b *movedReport) check(payload []byte) error {
	if err := b.Version.check(1); err != nil {
		return err
	}
	if n := len(b.Sums); n < 1 || n > maxMembers {
		return fmt.Errorf("checksums of %d parts, want 1..%d", n, maxMembers)
	}
	for id := range b.Sums {
		if !isName(id) {
			return fmt.Errorf("checksum of member %.40q (%d bytes), want 1..%d bytes", id, len(id), maxName)
		}
	}
	return noPayload(payload)
}

func (b *troubleReport) check(payload []byte) error {
	if err := checkReason(b.Err, 1); err != nil {
		return err
	}
	if len(b.Blame) > maxName {
		return fmt.Errorf("blame of %d bytes, want 0..%d", len(b.Blame), maxName)
	}
	return noPayload(payload)
}

// checkReason bounds the text of an error.
func checkReason(text string, least int) error {
	if len(text) < least || len(text) > maxReason {
		return fmt.Errorf("error text of %d bytes, want %d..%d", len(text), least, maxReason)
	}
	return nil
}
