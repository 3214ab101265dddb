package simplify

import (
	"errors"
	"fmt"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
	"github.com/pce-engine/pce/compile/reduction/schedule"
)

// Simplify returns a program with the same outputs that does less work, and what it did.
// p stays as it is.
func Simplify(p *reduction.Program) (*reduction.Program, *Report, error) { return simplify(p, false) }

// Elements is Simplify for a caller that makes something of each element, as a circuit has a node for it: what saves memory alone, or is for
// arrays in place, would give it more elements and is not done.
func Elements(p *reduction.Program) (*reduction.Program, *Report, error) { return simplify(p, true) }

func simplify(p *reduction.Program, elements bool) (*reduction.Program, *Report, error) {
	w := &worker{prog: p, elements: elements, orders: orders{}, sums: map[string]string{}, report: &Report{Steps: []Step{}, Refused: []Refusal{}}}
	if err := w.reparse(); err != nil { // a copy
		return nil, nil, err
	}
	for _, pass := range []func() error{w.unfold, w.contract, w.merge, w.common, w.multiples, w.decompose, w.contract, w.parts, w.withHistograms} {
		if err := pass(); errors.Is(err, reduction.ErrProgram) {
			return nil, nil, err
		} else if err != nil {
			return nil, nil, fmt.Errorf("%w: simplify: %v", reduction.ErrProgram, err)
		}
	}
	return w.prog, w.report, nil
}

// worker rewrites a program.
type worker struct {
	prog    *reduction.Program
	context *polyhedron.Set
	report  *Report

	elements bool // each element is to be kept

	all       spaces
	deps      []*schedule.Dependence // also what the steps so far added
	times     *schedule.Schedule     // nil: none was found
	orders    orders
	recursive map[string]bool
	added     []*reduction.Array

	settled []polyhedron.Monomial // of statements that no pass changes
	lacks   map[string]bool       // arrays of which an element may not be there, or need one that is not; nil: not known
	inner   *innerArray           // of the sum that decompose has found last
	sums    map[string]string     // arrays of the sums that steps have made, by their text
	bins    map[string][]string   // arrays of bins: the statements that they were made for
	refused map[string]string     // why statements get no bins, by their text
	moved   map[string]moved      // which part of which statement gave an array the neighbour that it starts from
	turned  map[string][]int64    // by the part: the neighbour whose opposite is wanted
}

// reparse prints the program and reads it again, with all checks.
func (w *worker) reparse() error {
	p, err := reduction.Parse(w.prog.String())
	if err != nil {
		return fmt.Errorf("simplify: the program that a step made is refused: %w", err)
	}
	w.prog = p
	w.context, err = p.ContextSet()
	return err
}

// index returns the indices that s writes as rows.
func (w *worker) index(s *reduction.Statement) ([]polyhedron.Row, error) {
	var out []polyhedron.Row
	for k := range s.Index {
		r, err := w.prog.Row(&s.Index[k], s.Dims)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}
