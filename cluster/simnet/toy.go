package simnet

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/layers"
)

// ToySpec is the body of the description of a run of the toy.
type ToySpec struct {
	Params   int    `json:"params"` // a multiple of Owners; one more, the first, has no owner
	Owners   int    `json:"owners"`
	Averages bool   `json:"averages"` // whether there are averages behind the parameters
	Seed     uint64 `json:"seed"`     // of the first parameters
}

// maxToyParams is the most parameters of a toy.
const maxToyParams = 1 << 24

// Spec describes a run of the toy to workers.
func (s ToySpec) Spec(run string) cluster.Spec {
	body, err := json.Marshal(s)
	if err != nil {
		panic("BUG: numbers that JSON does not have: " + err.Error())
	}
	return cluster.Spec{Run: run, Model: fmt.Sprintf("%064x", digest(0, s.Seed, uint64(s.Params), uint64(s.Owners))), Body: body}
}

func (s ToySpec) validate() error {
	if s.Owners < 1 || s.Params < s.Owners || s.Params > maxToyParams || s.Params%s.Owners != 0 {
		return fmt.Errorf("%w: toy of %d parameters and %d owners; want a multiple of the owners, at most %d", cluster.ErrJob, s.Params, s.Owners, maxToyParams)
	}
	return nil
}

// layout divides the parameters among the owners. Each has two ranges of
// parameters, flows at the same places, and a normaliser behind them all; in the
// averages all that again. Place 0 has no owner.
func (s ToySpec) layout() cluster.Layout {
	each, flows := int64(s.Params/s.Owners), int64(1+s.Params+s.Owners)
	l := cluster.Layout{Params: int64(1 + s.Params), Flows: flows}
	if s.Averages {
		l.Averages = flows
	}
	near, far := each/2, each-each/2
	for i := range int64(s.Owners) {
		params := []layers.Range{{Lo: 1 + i*near, Hi: 1 + (i+1)*near}}
		from := 1 + int64(s.Owners)*near + i*far
		params = append(params, layers.Range{Lo: from, Hi: from + far})
		norm := layers.Range{Lo: l.Params + i, Hi: l.Params + i + 1}
		all := append(slices.Clone(params), norm)
		l.Owners = append(l.Owners, layers.Owner{
			Sum: int32(i), Input: -1, Sharers: 1,
			Params: params, Flows: all, Averages: slices.Clone(all),
		})
	}
	return l
}

// Toy is a cluster.Loader of sessions that only pretend to learn: their flows
// and moves are hashes of all that they must depend on, so that a step which was
// not done exactly as Reference does it shows in the state.
type Toy struct {
	Worker string // its name, for Fault and for how fast it is
	Seed   uint64 // of the times that work takes
	// MinTime and MaxTime bound how long a shard, or a query, takes.
	MinTime, MaxTime time.Duration
	KernelPaths      []string // best first; nil: the path toy
	// Fault says what goes wrong with a piece of work; nil: nothing does.
	Fault func(ToyWork) ToyFault
	// LoadError is what Load fails with, if not nil.
	LoadError error
}

// ToyWork is a piece of work of a toy.
type ToyWork struct {
	Worker  string
	At      dataset.Cursor // of Accumulate
	Source  string         // of LogLikelihood
	Request []byte         // of Query
	Rows    dataset.Span   // of Accumulate and LogLikelihood
}

// ToyFault is what goes wrong with a piece of work.
type ToyFault int

// What may go wrong. The last two are of Accumulate alone.
const (
	ToyFine        ToyFault = iota
	ToyFails                // it gives ErrToy after its time
	ToyHangs                // it waits until its context ends
	ToyNaN                  // its log-likelihood is NaN
	ToyNegative             // one of its flows is negative
	ToyUnconserved          // a normaliser says something else than its flows
)

// ErrToy is the error of work that was to fail.
var ErrToy = errors.New("simnet: the toy was told to fail")

// Paths lists the kernel paths.
func (t *Toy) Paths() []string {
	if t.KernelPaths == nil {
		return []string{"toy"}
	}
	return t.KernelPaths
}

// Load makes a session of a spec that ToySpec.Spec has made.
func (t *Toy) Load(ctx context.Context, spec cluster.Spec, _ cluster.Blobs) (cluster.Session, error) {
	if t.LoadError != nil {
		return nil, t.LoadError
	}
	var body ToySpec
	if err := json.Unmarshal(spec.Body, &body); err != nil {
		return nil, fmt.Errorf("%w: body of run %s: %w", cluster.ErrJob, spec.Run, err)
	}
	if err := body.validate(); err != nil {
		return nil, err
	}
	path := spec.Path
	if path == "" {
		path = t.Paths()[0]
	}
	if !slices.Contains(t.Paths(), path) {
		return nil, fmt.Errorf("%w: run %s needs the kernel path %q; this worker has %q", cluster.ErrCluster, spec.Run, path, t.Paths())
	}
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	return &toySession{toy: t, path: path, model: newToyModel(body)}, nil
}

// toyModel is the toy without its time and faults.
type toyModel struct {
	layout cluster.Layout
	state  []float32
	flows  []int64
}

func newToyModel(s ToySpec) *toyModel {
	m := &toyModel{layout: s.layout()}
	m.state = make([]float32, m.layout.Params+m.layout.Averages)
	m.flows = make([]int64, m.layout.Flows)
	for i := range m.layout.Params {
		m.state[i] = fraction(digest(s.Seed, uint64(i)))
	}
	return m
}

// digest mixes numbers into a hash with the finaliser of SplitMix64.
func digest(h uint64, list ...uint64) uint64 {
	for _, x := range list {
		h = (h ^ x) + 0x9e3779b97f4a7c15
		h = (h ^ h>>30) * 0xbf58476d1ce4e5b9
		h = (h ^ h>>27) * 0x94d049bb133111eb
		h ^= h >> 31
	}
	return h
}

// fraction makes a number from 0 to 1, without 1, of a hash.
func fraction(h uint64) float32 { return float32(h>>40) * 0x1p-24 }

func digestText(h uint64, text []byte) uint64 {
	h = digest(h, uint64(len(text)))
	for _, c := range text {
		h = digest(h, uint64(c))
	}
	return h
}

// params hashes the parameters.
func (m *toyModel) params() uint64 {
	h := uint64(1)
	for _, x := range m.state[:m.layout.Params] {
		h = digest(h, uint64(math.Float32bits(x)))
	}
	return h
}
