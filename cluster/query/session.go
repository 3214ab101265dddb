package query

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/blocks"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/forest"
	forests "github.com/pce-engine/pce/forest/format"
	"github.com/pce-engine/pce/run"
)

// model is a model on a worker, ready for queries.
type model struct {
	plan  *run.Blueprint
	pool  *engine.Pool[engine.Runner]
	info  cluster.SessionInfo
	batch dataset.Batch
}

// howOf is how the lead and all workers compile the circuit of a job, whatever devices they have: their programs must be
// the same.
func howOf(k circuitKind, soft bool) (run.How, error) {
	return run.Options{Device: "cpu", Only: k.asks(), Soft: soft}.How()
}

// openModel opens the model of a run of queries of a kind on a worker's device. A model that cannot be
// read or has another digest than the run's is the job's fault; a device that lacks the memory
// for it is not.
func openModel(ctx context.Context, in *job.Loading, k circuitKind) (*model, *querySettings, error) {
	var d querySettings
	if err := in.Decode(&d); err != nil {
		return nil, nil, err
	}
	if d.Model == (job.FileRef{}) {
		return nil, nil, job.Bad(in.Run, "it has no model")
	}
	path, err := in.Open(ctx, d.Model)
	if err != nil {
		return nil, nil, err
	}
	o := in.Options
	o.Engines, o.Soft = 1, d.Soft
	how, err := howOf(k, d.Soft)
	if err != nil {
		return nil, nil, job.Bad(in.Run, "%w", err)
	}
	m := &model{}
	if m.plan, err = run.OpenModelFor(how, path, o.Compile()); err != nil {
		return nil, nil, badModel(in, err)
	}
	if err := in.Check(m.plan.Digest()); err != nil {
		m.plan.Close()
		return nil, nil, err
	}
	if m.pool, err = m.plan.Pool(ctx, o); err != nil {
		m.plan.Close()
		return nil, nil, badModel(in, run.InFile(path, err))
	}
	err = m.pool.Do(ctx, 0, func(r engine.Runner) error {
		info := r.Info().Device
		m.info = cluster.SessionInfo{Device: info.Name, Path: info.KernelPath, Precision: "fp32"}
		return nil
	})
	if err != nil {
		m.Close()
		return nil, nil, err
	}
	return m, &d, nil
}

// badModel says that a run is to blame for a model that cannot be read.
func badModel(in *job.Loading, err error) error {
	faults := []error{format.ErrModel, format.ErrNoParams, forests.ErrModel, forest.ErrForest, forest.ErrRequest}
	if slices.ContainsFunc(faults, func(class error) bool { return errors.Is(err, class) }) {
		return job.Bad(in.Run, "%w", err)
	}
	return err
}

// Info describes the device.
func (m *model) Info() cluster.SessionInfo { return m.info }

// Close frees the model.
func (m *model) Close() error { return errors.Join(m.pool.Close(), m.plan.Close()) }

// ask calls do with a runner. What the rows of a query say and the model does not compute with is the fault of the job, which
// other workers would find, too.
func (m *model) ask(ctx context.Context, rows int, do func(r engine.Runner) error) error {
	err := m.pool.Do(ctx, rows, do)
	if errors.Is(err, dataset.ErrSetting) {
		return fmt.Errorf("%w: %w", cluster.ErrJob, err)
	}
	return err
}

// numbersAnswerer gives the numbers that a query has for the rows of a block.
type numbersAnswerer struct {
	*model
	query *run.Query
}

func (m numbersAnswerer) Answer(ctx context.Context, request []byte) ([]byte, error) {
	if err := dataset.DecodeBlock(m.plan.Schema, request, &m.batch); err != nil {
		return nil, err
	}
	width := m.query.Width(m.plan.Schema)
	if m.batch.Rows > blocks.MaxBytes/(8*width) {
		return nil, fmt.Errorf("%w: request of %d rows, of which each has %d numbers", cluster.ErrJob, m.batch.Rows, width)
	}
	all := make([]float64, m.batch.Rows*width)
	if err := m.ask(ctx, m.batch.Rows, func(r engine.Runner) error { return run.Answer(ctx, r, m.query, &m.batch, all) }); err != nil {
		return nil, err
	}
	return appendFloats(make([]byte, 0, 8*len(all)), all), nil
}

// appendFloats appends float64 numbers, little-endian, as answers have them.
func appendFloats(dst []byte, all []float64) []byte {
	for _, x := range all {
		dst = binary.LittleEndian.AppendUint64(dst, math.Float64bits(x))
	}
	return dst
}

// sampleAnswerer gives rows that a seed draws, as a block.
type sampleAnswerer struct{ *model }

// Answer draws the rows of a request, which are those that one machine draws at these numbers.
// A request out of bounds is refused before memory is taken for it.
func (m sampleAnswerer) Answer(ctx context.Context, request []byte) ([]byte, error) {
	schema := m.plan.Schema
	var r sampleRequest
	if err := job.ReadJSON(request, &r); err != nil {
		return nil, fmt.Errorf("%w: request: %v", cluster.ErrJob, err)
	}
	if r.First < 0 || r.Rows < 1 || r.Rows > blocks.MaxRows || r.First > math.MaxInt-r.Rows || schema.BlockBytes(r.Rows) > blocks.MaxBytes {
		return nil, fmt.Errorf("%w: request of %d rows from row %d on", cluster.ErrJob, r.Rows, r.First)
	}
	m.batch.Resize(schema, r.Rows)
	if err := m.ask(ctx, r.Rows, func(by engine.Runner) error {
		e, err := run.Tensor(ctx, by)
		if err != nil {
			return err
		}
		return e.Sample(ctx, &m.batch, r.Seed, r.First)
	}); err != nil {
		return nil, err
	}
	return dataset.AppendBlock(nil, schema, &m.batch)
}

// mpeAnswerer completes the rows of a block.
type mpeAnswerer struct {
	*model
	how   run.MPEOptions
	exact bool
}

// Answer completes the rows of a request, a block after the number of its first row, on which
// the draws depend. The answer is what mpeAnswers has.
func (m *mpeAnswerer) Answer(ctx context.Context, request []byte) ([]byte, error) {
	if len(request) < 8 {
		return nil, fmt.Errorf("%w: request of %d bytes", cluster.ErrJob, len(request))
	}
	first := binary.LittleEndian.Uint64(request)
	if err := dataset.DecodeBlock(m.plan.Schema, request[8:], &m.batch); err != nil {
		return nil, err
	}
	rows := m.batch.Rows
	if first > math.MaxInt64/uint64(1+m.how.Candidates)-uint64(rows) {
		return nil, fmt.Errorf("%w: request of %d rows from row %d on", cluster.ErrJob, rows, first)
	}
	ll, bound := make([]float64, rows), make([]float64, rows)
	err := m.ask(ctx, rows, func(r engine.Runner) error {
		e, err := run.Tensor(ctx, r)
		if err != nil {
			return err
		}
		return run.MPE(ctx, e, m.exact, m.how, int(first), &m.batch, ll, bound)
	})
	if err != nil {
		return nil, err
	}
	block, err := dataset.AppendBlock(nil, m.plan.Schema, &m.batch)
	if err != nil {
		return nil, err
	}
	return appendFloats(appendFloats(blocks.AppendPart(nil, block), ll), bound), nil
}
