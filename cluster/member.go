package cluster

import "fmt"

// Member is what a worker says of itself in MembersBucket.
type Member struct {
	ID      string     `json:"id"`
	Version string     `json:"version"`         // of the protocol
	Build   string     `json:"build,omitempty"` // which sources the program was made of; "": unknown
	Host    string     `json:"host"`
	PID     int        `json:"pid"`
	Inbox   string     `json:"inbox"` // address on the bus, of this life of the worker
	Peers   []Endpoint `json:"peers"` // one for each transport it has
	Device  string     `json:"device"`
	Paths   []string   `json:"paths"` // kernel paths, best first
	Threads int        `json:"threads"`
	Roots   []string   `json:"roots,omitempty"` // directories that runs may read from
	Fence   uint64     `json:"fence"`           // the highest it has seen
	// Trouble says why it obeys no coordinator now: its disk does not take a new fence.
	Trouble string `json:"trouble,omitempty"`
	// Ways says how it reaches those that it has sent bulk data to.
	Ways     map[string]string `json:"ways,omitempty"`
	Stopping bool              `json:"stopping,omitempty"` // it finishes what it is at, and leaves
}

// Refused says why a worker takes no part in runs that a program of some build leads, or returns "". Programs of other sources may
// compute other numbers from the same orders, which nothing else would tell, as parts of one result come from all workers.
func (m *Member) Refused(build string) string {
	switch {
	case m.Version == "" && m.Trouble != "": // its record could not be read
		return m.Trouble
	case m.Version != Protocol:
		return fmt.Sprintf("it speaks version %s of the protocol, this is %s; give all members the same version of pce", m.Version, Protocol)
	case m.Build != "" && build != "" && m.Build != build:
		return fmt.Sprintf("it is pce %s, this is %s; give all members the same version of pce", m.Build, build)
	}
	return ""
}

// Holder is the coordinator that has the lead.
type Holder struct {
	ID    string `json:"id"`
	Inbox string `json:"inbox"`
	Run   string `json:"run"`
	Host  string `json:"host"`
	PID   int    `json:"pid"`
}

// States of a run that is not led. Others are what its coordinator says.
const (
	StateInterrupted = "interrupted" // its coordinator has left it unfinished, for the next one
	StateDone        = "done"
	StateFailed      = "failed"
	StateCancelled   = "cancelled"
)

// Ended reports whether nothing more will happen to the run.
func (s *RunStatus) Ended() bool {
	return s.State == StateDone || s.State == StateFailed || s.State == StateCancelled
}

// RunStatus is what the coordinator of a run says of it in RunsBucket.
type RunStatus struct {
	Run    string `json:"run"`
	Name   string `json:"name"`
	Kind   string `json:"kind"`  // train, eval, loglik or sample
	State  string `json:"state"` // queued, running, done, failed, cancelled or interrupted
	Error  string `json:"error,omitempty"`
	Epoch  int    `json:"epoch"`
	Epochs int    `json:"epochs"`
	Step   int64  `json:"step"`
	Rows   int64  `json:"rows"` // done, of jobs over rows
	// Log-likelihoods are means in nats: of the training rows as they were before the
	// steps of the epoch, of the validation rows after the last whole epoch, and of
	// the test rows at the end. nil: unknown or infinite.
	TrainLL       *float64       `json:"train_ll,omitempty"`
	ValidLL       *float64       `json:"valid_ll,omitempty"`
	TestLL        *float64       `json:"test_ll,omitempty"`
	RowsPerSecond *float64       `json:"rows_per_second,omitempty"`
	SecondsLeft   *float64       `json:"seconds_left,omitempty"` // evaluations included, if nothing ends the run early; nil: unknown
	Term          Term           `json:"term"`
	Transport     string         `json:"transport"`
	SameBits      bool           `json:"same_bits"` // all members have one kind of device
	Shards        map[string]int `json:"shards"`    // worker → shards that counted
	// Unfit says of workers why they take no part, until they do or leave.
	Unfit map[string]string `json:"unfit,omitempty"`
	Out   string            `json:"out"`
	Lead  string            `json:"lead,omitempty"` // the coordinator that leads it, or led it last
}
