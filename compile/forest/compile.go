package forest

import (
	"math"

	"github.com/pce-engine/pce/compile/forest/hir"
	"github.com/pce-engine/pce/compile/forest/ir"
	"github.com/pce-engine/pce/compile/forest/schedule"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/kernels/nest"
)

// Code is a forest in each form on its way to kernels.
type Code struct {
	Nest *schedule.Nest
	HIR  *hir.Ensemble
	MIR  *ir.Func
	// LIR and Module are nil of a schedule that represents the forest sliced: Lower has its module.
	LIR    *ir.Func
	Module *nest.Module

	emit func(*ir.Func) (*nest.Module, error)
}

// Leaves are the walks of a schedule as code that finds the leaf of each tree, and adds none.
type Leaves struct {
	Module *nest.Module
	ids    []int32 // of the leaves of all trees, tree by tree as they are walked
	place  []int   // of each tree that is walked: where the model has it
}

// Compile makes code for CPUs of a forest that has passed Check, under a schedule. hits counts how many rows of a
// profile visit each node of each tree, as hir.Profile does; nil if there is none. An error says whether the schedule
// is illegal, the forest has no code, or a CPU cannot do what the schedule says; Code then has the forms up to there.
func Compile(f *forest.Forest, s *schedule.Schedule, hits [][]int64) (*Code, error) {
	return compile(f, s, hits, ir.Emit)
}

// CompileCard is Compile for cards: what the schedule says of them is honoured, or an error. The module has no loops over
// rows.
func CompileCard(f *forest.Forest, s *schedule.Schedule, hits [][]int64) (*Code, error) {
	return compile(f, s, hits, ir.EmitCard)
}

func compile(f *forest.Forest, s *schedule.Schedule, hits [][]int64, emit func(*ir.Func) (*nest.Module, error)) (*Code, error) {
	n, err := s.Nest()
	if err != nil {
		return nil, err
	}
	c := &Code{Nest: n, emit: emit}
	e, err := hir.Build(f, hits)
	if err != nil {
		return c, err
	}
	if err := e.Apply(n, hits != nil); err != nil {
		return c, err
	}
	c.HIR = e
	if c.MIR, err = ir.Build(e, n); err != nil || n.Represent == schedule.Sliced {
		return c, err
	}
	if c.LIR, err = ir.Lower(c.MIR, false); err != nil {
		return c, err
	}
	c.Module, err = emit(c.LIR)
	return c, err
}

// Leaves makes code of the same walks that finds leaves, of a forest that has trees. Code must have a Module. Nothing is
// added, so reductions of the schedule have no meaning here and change nothing.
func (c *Code) Leaves() (*Leaves, error) {
	lir, err := ir.Lower(c.MIR, true)
	if err != nil {
		return nil, err
	}
	l := &Leaves{}
	for i := range c.HIR.Trees {
		t := &c.HIR.Trees[i]
		l.ids, l.place = append(l.ids, t.IDs...), append(l.place, t.Model)
	}
	l.Module, err = c.emit(lir)
	return l, err
}

// Number writes the library's numbers of leaves, [row][tree of the model], for the words that the module kept, [row][tree].
func (l *Leaves) Number(words []int32, out []float64) {
	n := len(l.place)
	for i, w := range words {
		out[i/n*n+l.place[i%n]] = float64(l.ids[^w])
	}
}

// Text returns the text of a form, "hir", "mir", "lir" or "simt", which is that of the kernels; ok is false if the
// code does not have it. It may be called for what Compile returns beside an error.
func (c *Code) Text(form string) (text string, ok bool) {
	switch {
	case c == nil:
	case form == "hir" && c.HIR != nil:
		return c.HIR.Text(), true
	case form == "mir" && c.MIR != nil:
		return c.MIR.Text(), true
	case form == "lir" && c.LIR != nil:
		return c.LIR.Text(), true
	case form == "simt" && c.Module != nil:
		c.Module.Kernels(func(k *nest.Kernel) { text += k.Code.Text() })
		return text, true
	}
	return "", false
}

// Bound returns how far a score under the schedule may be from that of the plain evaluator: 0 unless the schedule adds
// trees in another order, and then what rounding of each addition can make, of leaves as large as they come.
func (c *Code) Bound(f *forest.Forest) float64 {
	if !c.Nest.Reassociates() {
		return 0
	}
	sum := 0.0
	for _, b := range f.Base {
		sum = max(sum, math.Abs(b))
	}
	for i := range f.Trees {
		t := &f.Trees[i]
		most := 0.0
		for _, v := range t.Values {
			most = max(most, math.Abs(v.Value*t.Weight))
		}
		sum += most
	}
	epsilon := 0x1p-52
	if f.Sum == forest.Float32 {
		epsilon = 0x1p-23
	}
	return sum * epsilon * float64(len(f.Trees)+2)
}
