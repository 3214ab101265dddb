package pce

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/internal/parallel"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/run"
)

// Model is a circuit with parameters, ready for queries, or a decision forest, ready
// to predict. It is safe for concurrent use.
type Model struct {
	plan   *run.Blueprint // of a forest: its schema and an empty graph
	opts   Options
	pool   *engine.Pool[engine.Runner] // nil for a forest
	forest *scorer                     // nil for a circuit
	exact  func() bool                 // whether max-product gives most probable completions
	turned parallel.Pace               // of rows into columns
	close  func() error                // does its work once
	number int64                       // of circuits that this process has opened
}

// opened counts circuits.
var opened atomic.Int64

// Info describes a circuit and its program; run.Info lists its fields, which pce info --json
// prints.
type Info = run.Info

// QueryInfo says whether a model answers a query, how exactly, and on which properties of its
// circuit that depends.
type QueryInfo = run.QueryInfo

// Open opens the model file at path, gzip included: a circuit in pce's native format or its
// text, or a file of SPFlow, SPNC or Juice, every parameter of which must be in the file, or a decision
// forest of XGBoost, LightGBM, ONNX-ML or treelite. Close it.
func Open(ctx context.Context, path string, opts Options) (*Model, error) {
	how, err := opts.How()
	if err != nil {
		return nil, err
	}
	b, f, err := run.OpenAnyFor(how, path, opts.Compile())
	if err != nil {
		return nil, err
	}
	if f != nil {
		m, err := newForest(f, opts)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", path, err)
		}
		return m, nil
	}
	m, err := newModel(ctx, b, opts)
	if err != nil {
		return nil, run.InFile(path, err)
	}
	return m, nil
}

// New makes a model of a circuit that the program has built. params gives the parameters of
// each node that owns some, in the order of package circuit; it is called for the first engine
// at once, and again for further ones, so it must stay valid and safe for concurrent use. A
// graph that breaks a rule, or parameters that are none of it, give an error that matches circuit.ErrGraph. The graph must not be
// changed afterwards. Close the model.
func New(ctx context.Context, g *circuit.Graph, params circuit.ParamFunc, opts Options) (*Model, error) {
	how, err := opts.How()
	if err != nil {
		return nil, err
	}
	b, err := run.FromGraph(how, g, params, opts.Compile())
	if err != nil {
		return nil, err
	}
	return newModel(ctx, b, opts)
}

// newModel makes the first engine at once, so that bad parameters show early. It
// closes the Blueprint where it fails.
func newModel(ctx context.Context, b *run.Blueprint, opts Options) (*Model, error) {
	pool, err := b.Pool(ctx, opts)
	if err != nil {
		b.Close()
		return nil, err
	}
	end := sync.OnceValue(func() error { return errors.Join(pool.Close(), b.Close()) })
	return &Model{plan: b, opts: opts, pool: pool, exact: sync.OnceValue(b.MPEExact), close: end, number: opened.Add(1)}, nil
}

// check refuses a batch whose columns are not those of the circuit.
func (m *Model) check(b *dataset.Batch) error {
	if m.forest != nil {
		return errForest
	}
	return b.Check(m.plan.Schema)
}

// do calls use with an engine for a call over that many rows.
func (m *Model) do(ctx context.Context, rows int, use func(*engine.Engine) error) error {
	return m.with(ctx, rows, func(r engine.Runner) error {
		e, err := run.Tensor(ctx, r)
		if err != nil {
			return err
		}
		return use(e)
	})
}

// with is do for what code does too.
func (m *Model) with(ctx context.Context, rows int, use func(engine.Runner) error) error {
	if m.forest != nil {
		return errForest
	}
	err := m.pool.Do(ctx, rows, use)
	if errors.Is(err, engine.ErrClosed) {
		return ErrClosed
	}
	return err
}

// Schema says what a row of the model is: columns, categories, labels. Those of a
// forest are numbers as they are. It must not be changed.
func (m *Model) Schema() *dataset.Schema { return m.plan.Schema }

// Unchecked reports whether the model comes from a file of an earlier version,
// which has no checksum: damage to its parameters need not show.
func (m *Model) Unchecked() bool { return m.plan.Unchecked }

// Coarse says in a line of which column float32, in which cells are kept, is too coarse for the leaves of a circuit that was made
// elsewhere, such as normal distributions of a deviation of 0.001 around 30,000,000: answers are about rounded numbers. Else it says how many
// probabilities float32 has as 0, where answers come from tensors. It is "" where there is none of either, and for a forest.
func (m *Model) Coarse() string {
	if m.forest != nil {
		return ""
	}
	coarse := m.plan.Coarse()
	if coarse == "" && !(m.plan.Code != nil && (m.opts.Path == run.PathCode || m.opts.Only == QueryLogLikelihood)) {
		return m.plan.Faint()
	}
	return coarse
}

// Graph returns the circuit, nil for a forest. It must not be changed.
func (m *Model) Graph() *circuit.Graph {
	if m.forest != nil {
		return nil
	}
	return m.plan.Graph
}

// Info describes a circuit; its memory is that of one of its engines, in launches of as many rows as it may come to have. For a
// forest it fails with ErrKind: Forest has what there is to say.
func (m *Model) Info() (*Info, error) {
	if m.forest != nil {
		return nil, fmt.Errorf("%w: it is a decision forest", ErrKind)
	}
	l, err := m.plan.PoolLoad(m.opts)
	if err != nil {
		return nil, err
	}
	return m.plan.Info(l)
}

// Queries says how the model answers each query: exactly, or not, and what that depends
// on. A forest answers none.
func (m *Model) Queries() []QueryInfo {
	if m.forest != nil {
		return nil
	}
	return m.plan.Queries()
}

// Device describes the device that the model runs on. It waits for an engine that is not in
// use, and may open the first one.
func (m *Model) Device(ctx context.Context) (info kernels.Info, err error) {
	err = m.with(ctx, 0, func(r engine.Runner) error {
		info = r.Info().Device
		return nil
	})
	return info, err
}

// Save writes the model to a native model file at path, which appears whole or not at all.
// Parameters are float32 on the tensor path; a model that runs as code keeps all digits of its
// file. Forests are not saved: the error matches ErrKind.
func (m *Model) Save(ctx context.Context, path string) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	return m.with(ctx, 0, func(r engine.Runner) error {
		if m.plan.Code != nil {
			return m.plan.Save(ctx, path, nil, nil) // code has all digits of the file
		}
		e, err := run.Tensor(ctx, r)
		if err != nil {
			return err
		}
		return m.plan.Save(ctx, path, e, nil)
	})
}

// Close waits for running calls and frees the model's memory. Later calls fail
// with ErrClosed; a second Close does nothing more.
func (m *Model) Close() error { return m.close() }
