package cluster

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// Spec describes a run to workers: data only, never code.
type Spec struct {
	Run   string `json:"run"`
	Model string `json:"model"` // digest of what the model compiles to, in hexadecimal
	// Path is the kernel path that all members have; "": each takes its best, and
	// bits are equal only between members of a kind.
	Path string `json:"path,omitempty"`
	// Body is what the Loader reads.
	Body json.RawMessage `json:"body"`
}

// same reports whether a session of one will do for the other. None is the same as nil.
func (s *Spec) same(o *Spec) bool {
	return s != nil && o != nil && s.Run == o.Run && s.Model == o.Model && s.Path == o.Path && bytes.Equal(s.Body, o.Body)
}

// sum tells descriptions apart. It is the same wherever a description has travelled to.
func (s *Spec) sum() uint64 {
	if s == nil {
		return 0
	}
	text, err := json.Marshal(s)
	if err != nil {
		panic(fmt.Sprintf("BUG: cluster: description of a run: %v", err))
	}
	sum := sha256.Sum256(text)
	return binary.LittleEndian.Uint64(sum[:])
}

// Loader makes sessions from the description of a run. Contents come from blobs
// or from files under the worker's roots. An error that matches ErrJob says that
// no worker can load the run, any other that this one cannot.
type Loader interface {
	Load(ctx context.Context, spec Spec, blobs Blobs) (Session, error)
	// Paths lists the worker's kernel paths, best first.
	Paths() []string
}

// Session is a run on a worker: a model on a device, and rows. One goroutine
// uses it.
type Session interface {
	// Layout is where parameters and flows stand.
	Layout() Layout
	Info() SessionInfo
	// Prepare says which shard comes after the next one, so that its rows can be
	// read meanwhile. It does not wait.
	Prepare(step Step, shard dataset.Span)
	// Accumulate adds the flows of a shard of a step to those that the session
	// holds. Sum is that of em.StepResult, for the shard's rows.
	Accumulate(ctx context.Context, step Step, shard dataset.Span) (em.StepResult, error)
	// LogLikelihood adds up the log-likelihoods of rows of a named source.
	LogLikelihood(ctx context.Context, source string, rows dataset.Span) (em.Evaluation, error)
	// Query answers a request of the run's kind. An error that matches ErrJob says that
	// no worker can.
	Query(ctx context.Context, request []byte) ([]byte, error)
	// ReadFlows and WriteFlows copy flows that the session holds. Writing zeros
	// everywhere takes shards back.
	ReadFlows(ctx context.Context, offset int64, flows []int64) error
	WriteFlows(ctx context.Context, offset int64, flows []int64) error
	// Apply moves the parameters of owners lo to hi-1 of the layout by the flows
	// held for them, and clears these. Nothing else changes.
	Apply(ctx context.Context, rule tensor.Rule, lo, hi int) error
	// ReadState and WriteState copy the parameters, and behind them the averages
	// of Anemone where the run keeps any.
	ReadState(ctx context.Context, offset int64, state []float32) error
	WriteState(ctx context.Context, offset int64, state []float32) error
	Close() error
}

// Step is a step of a plan.
type Step struct {
	Schedule dataset.Schedule `json:"schedule"`
	At       dataset.Cursor   `json:"at"`
}

// Layout says where parameters and flows stand, and which of them move together.
type Layout struct {
	Params   int64 // floats
	Averages int64 // floats behind the parameters in the state; 0: none are kept
	Flows    int64
	Owners   []layers.Owner
}

// SessionInfo describes a session.
type SessionInfo struct {
	Device    string `json:"device"`
	Path      string `json:"path"`
	Precision string `json:"precision"`
}
