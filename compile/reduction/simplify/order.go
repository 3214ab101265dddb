package simplify

import (
	"encoding/binary"
	"errors"

	"github.com/pce-engine/pce/compile/reduction/polyhedron"
	"github.com/pce-engine/pce/compile/reduction/schedule"
)

// orders has what schedule.Any has answered. The steps are tried with and without histograms, and with turned directions,
// and most of what they ask is the same each time.
type orders map[string]order

type order struct {
	times *schedule.Schedule
	err   error
}

// anyOrder is schedule.Any for the program.
func (w *worker) anyOrder(deps []*schedule.Dependence) (*schedule.Schedule, error) {
	key := w.question(deps)
	if o, ok := w.orders[key]; ok {
		return o.times, o.err
	}
	times, err := schedule.Any(w.prog, deps)
	if err == nil || errors.Is(err, schedule.ErrCycle) {
		w.orders[key] = order{times, err}
	}
	return times, err
}

// question is a text of all that schedule.Any looks at: the arrays and the dependences.
func (w *worker) question(deps []*schedule.Dependence) string {
	var b []byte
	number := func(n int64) { b = binary.AppendVarint(b, n) }
	text := func(s string) {
		number(int64(len(s)))
		b = append(b, s...)
	}
	rows := func(list []polyhedron.Row) {
		number(int64(len(list)))
		for _, r := range list {
			for _, x := range r {
				number(x)
			}
		}
	}
	for _, a := range w.prog.Arrays {
		if !a.Input {
			text(a.Name)
			number(int64(len(a.Extents)))
		}
	}
	for _, d := range deps {
		text(d.Target)
		text(d.Source)
		number(int64(d.Set.Vars))
		rows(d.Set.Zero)
		rows(d.Set.Positive)
		rows(d.To)
		rows(d.From)
	}
	return string(b)
}
