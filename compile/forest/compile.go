package forest

import (
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
}

// Compile makes code for CPUs of a forest that has passed Check, under a schedule. hits counts how many rows of a
// profile visit each node of each tree, as hir.Profile does; nil if there is none. An error says whether the schedule
// is illegal, the forest has no code, or a CPU cannot do what the schedule says; Code then has the forms up to there.
func Compile(f *forest.Forest, s *schedule.Schedule, hits [][]int64) (*Code, error) {
	n, err := s.Nest()
	if err != nil {
		return nil, err
	}
	c := &Code{Nest: n}
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
	if c.LIR, err = ir.Lower(c.MIR); err != nil {
		return c, err
	}
	c.Module, err = ir.Emit(c.LIR)
	return c, err
}
