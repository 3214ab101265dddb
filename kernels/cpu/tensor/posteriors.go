package tensor

import (
	"fmt"
	"math"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// posteriors is what a call of that name writes.
type posteriors struct {
	out    []float32 // [rows, width]
	width  int
	far    bool   // out is more than caches hold
	at     []int  // by column, then by column for its units: its first place in a row, -1 for what is not asked for
	before []int  // by input: units of the column's inputs before it
	need   []bool // by task: whether inputs that are asked for are below
}

// farBytes is from what size on distributions are written past the caches.
const farBytes = 32 << 20

// posteriors sends one count for each row from the root down, as backward does, and
// mixes the inputs that it comes to. It replaces the values that forward left.
//
// An input that one product reads, and that no other input shares its column with, is
// mixed as soon as its flows are there. The flows of others are kept until all
// of the column's have come.
func (x *executor) posteriors(rows int, a *tensor.PosteriorsArgs) error {
	if err := x.begin(rows, a.Params, a.Codes, a.Values); err != nil {
		return err
	}
	q, err := x.newPosteriors(rows, a)
	if err != nil {
		return err
	}
	x.needValues()
	var lost []int // rows that values, once they are ratios, do not tell
	for r := range rows {
		if math.IsInf(x.logValue(x.prog.Root, r, 0), -1) {
			lost = append(lost, r)
		}
	}
	x.call.frozen, x.call.query = true, q
	defer func() { x.call.query = nil }()
	x.run(&x.backwardPlan, func(w *worker, t *task) {
		if !q.need[x.taskOf[t.vec]] {
			return
		}
		switch t.kind {
		case layers.SumVector:
			x.backwardSum(w, t)
		case layers.StoredVector:
			x.backwardStored(w, t)
		}
	})
	x.mixKept(q)
	nan := float32(math.NaN())
	for _, r := range lost {
		for i := range q.row(r) {
			q.row(r)[i] = nan
		}
	}
	return nil
}

func (x *executor) newPosteriors(rows int, a *tensor.PosteriorsArgs) (*posteriors, error) {
	p := x.prog
	places, err := p.PosteriorOffsets(a.Of)
	if err != nil {
		return nil, fmt.Errorf("%w: cpu: Posteriors: %w", kernels.ErrDevice, err)
	}
	q := &posteriors{width: places[len(a.Of)], at: make([]int, 2*len(p.Columns)), before: make([]int, len(p.Inputs)), need: make([]bool, len(x.tasks))}
	if q.out, err = argument[float32](x.dev, "posteriors", a.Out, int64(rows)*int64(q.width)); err != nil {
		return nil, err
	}
	q.far = int64(rows)*int64(q.width)*4 > farBytes
	for c := range q.at {
		q.at[c] = -1
	}
	for i, c := range a.Of {
		q.at[c] = places[i]
	}
	units := make([]int, len(p.Columns))
	for i := range p.Inputs {
		in := &p.Inputs[i]
		q.before[i] = units[in.Column]
		units[in.Column] += int(p.Vectors[in.Vector].Units)
	}
	for i := range x.tasks {
		for _, e := range x.tasks[i].elems {
			for _, f := range e.factors {
				if v := &p.Vectors[f.vec]; v.Kind == layers.InputVector {
					q.need[i] = q.need[i] || q.asked(p.Inputs[v.Def].Column)
				} else {
					q.need[i] = q.need[i] || q.need[x.taskOf[f.vec]]
				}
			}
		}
	}
	return q, nil
}

// asked reports whether anything of a column is asked for.
func (q *posteriors) asked(column int32) bool { return q.at[column] >= 0 || q.unitsAt(column) >= 0 }

// unitsAt is the first place of the units of a column with codes, -1 if they are not asked for.
func (q *posteriors) unitsAt(column int32) int { return q.at[len(q.at)/2+int(column)] }

// row returns the places of a row.
func (q *posteriors) row(r int) []float32 { return q.out[r*q.width : (r+1)*q.width] }

// mixOwn mixes the inputs that a task alone reads, in the rows whose flows a worker
// has in w.fp.
func (x *executor) mixOwn(w *worker, t *task) {
	lo, hi := x.rowsOf(w)
	if lo == hi {
		return
	}
	for i := range t.elems {
		e := &t.elems[i]
		for k := range e.factors {
			if f := &e.factors[k]; f.alone {
				in := x.prog.Vectors[f.vec].Def
				x.mix(w, x.prog.Inputs[in].Column, []inputFlow{{in, [][]float32{w.fp[e.col:]}, t.cols}}, lo, hi)
			}
		}
	}
}

// mixKept mixes the columns whose flows were kept. Threads take a column each, or share
// the rows where there are fewer columns.
func (x *executor) mixKept(q *posteriors) {
	p := x.prog
	inputs := make([][]inputFlow, len(p.Columns))
	var columns []int32
	for i := range p.Inputs {
		in := &p.Inputs[i]
		if !q.asked(in.Column) || x.alone[in.Vector] {
			continue
		}
		f := inputFlow{input: int32(i), row: p.Width(in.Vector)}
		for _, e := range x.usersOf[in.Vector] {
			f.flows = append(f.flows, x.kept[x.keptAt[e]:])
		}
		if len(inputs[in.Column]) == 0 {
			columns = append(columns, in.Column)
		}
		inputs[in.Column] = append(inputs[in.Column], f)
	}
	parts := 1
	if len(columns) < x.threads {
		parts = x.threads
	}
	x.share(len(columns)*parts, func(w *worker, i int) {
		c := columns[i/parts]
		if lo, hi := split(x.call.rows, mixRows, i%parts, parts); lo < hi {
			x.mix(w, c, inputs[c], lo, hi)
		}
	})
}
