package job

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/run"
)

// Kind is a kind of job.
type Kind interface {
	// Load makes the session in which a worker computes for a run. An error that
	// matches cluster.ErrJob says that no worker can load it.
	Load(ctx context.Context, in *Loading) (cluster.Session, error)
	// Lead sees a job through on its coordinator, from where an earlier attempt left
	// it. When it returns, everything that it started has ended.
	Lead(ctx context.Context, l *Lead, j *Job) error
}

// Kinds are the kinds of jobs that a coordinator or a worker knows, by name. All
// members of a cluster need the same ones.
type Kinds map[string]Kind

// Register adds a kind. A second one of the same name is a bug.
func (k Kinds) Register(name string, kind Kind) {
	if _, twice := k[name]; twice || name == "" || kind == nil {
		panic(fmt.Sprintf("BUG: job: kind %q is registered twice, or is nothing", name))
	}
	k[name] = kind
}

// find returns the kind of a job.
func (k Kinds) find(id, name string) (Kind, error) {
	if kind, ok := k[name]; ok {
		return kind, nil
	}
	return nil, Bad(id, "unknown kind %.40q, want one of %s", name, strings.Join(slices.Sorted(maps.Keys(k)), ", "))
}

// Loading is a run that a worker is to load.
type Loading struct {
	Run      string          // its ID
	Settings json.RawMessage // what Lead.Begin was given
	// Options say how this worker computes, with the kernel path of the run.
	Options run.Options

	Model string // digest that the run's model must have, in hexadecimal
	Files *Files // that the worker has
	Blobs cluster.Blobs
}

// Decode reads the settings, without unknown keys.
func (in *Loading) Decode(settings any) error {
	if err := ReadJSON(in.Settings, settings); err != nil {
		return Bad(in.Run, "its settings: %v", err)
	}
	return nil
}

// Open returns a path under which the contents of a file can be read; they have
// been compared with its digest.
func (in *Loading) Open(ctx context.Context, r FileRef) (string, error) {
	return in.Files.Open(ctx, r, in.Blobs)
}

// Check refuses a model that is not the run's: members that compute with different
// ones would mix their results.
func (in *Loading) Check(model [32]byte) error {
	if have := hexOf(model); have != in.Model {
		return fmt.Errorf("run %s: the circuit compiles to %.12s here, to %.12s where the run was made; give all members the same version of pce",
			in.Run, have, in.Model)
	}
	return nil
}

// Answerer answers the questions of a run on a worker. One goroutine uses it.
type Answerer interface {
	// Answer answers a request. It depends on the request alone: any worker may get it,
	// and another one again.
	Answer(ctx context.Context, request []byte) ([]byte, error)
	Info() cluster.SessionInfo
	Close() error
}

// Answering returns a session that answers questions and does not train.
func Answering(a Answerer) cluster.Session { return answering{a} }

// answering is an Answerer as a session.
type answering struct{ Answerer }

// errNoTraining is what steps get from a session that does none.
var errNoTraining = fmt.Errorf("%w: a step of training in a run of queries", cluster.ErrJob)

// Query answers a request.
func (s answering) Query(ctx context.Context, request []byte) ([]byte, error) {
	return s.Answer(ctx, request)
}

// Layout is empty: nothing moves.
func (answering) Layout() cluster.Layout { return cluster.Layout{} }

// Prepare has nothing to read ahead: requests bring their rows.
func (answering) Prepare(cluster.Step, dataset.Span) {}

// Accumulate refuses.
func (answering) Accumulate(context.Context, cluster.Step, dataset.Span) (em.StepResult, error) {
	return em.StepResult{}, errNoTraining
}

// LogLikelihood refuses.
func (answering) LogLikelihood(context.Context, string, dataset.Span) (em.Evaluation, error) {
	return em.Evaluation{}, errNoTraining
}

// ReadFlows refuses.
func (answering) ReadFlows(context.Context, int64, []int64) error { return errNoTraining }

// WriteFlows refuses.
func (answering) WriteFlows(context.Context, int64, []int64) error { return errNoTraining }

// Apply refuses.
func (answering) Apply(context.Context, tensor.Rule, int, int) error { return errNoTraining }

// ReadState has nothing to copy.
func (answering) ReadState(_ context.Context, _ int64, state []float32) error {
	return noState(len(state))
}

// WriteState has nothing to replace.
func (answering) WriteState(_ context.Context, _ int64, state []float32) error {
	return noState(len(state))
}

func noState(n int) error {
	if n > 0 {
		return errNoTraining
	}
	return nil
}
