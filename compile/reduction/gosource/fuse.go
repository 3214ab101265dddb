package gosource

import (
	"slices"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
	"github.com/pce-engine/pce/compile/reduction/schedule"
)

// group is arrays that are computed in one loop over their next time.
type group struct {
	arrays []string
	fused  bool // by fuse
}

// fuse puts arrays that are computed one after the other into one loop over their next index where each reads of the others
// what has the same index, if that makes one of them brief: with
//
//	b[y,k] += x[y,j]*a[j,k]
//	c[y,k]  = b[y,k]/b[y,0]
//
// in one loop over y, b has memory for one y. groups are in the order of their places; those that are fused are joined.
func (e *emitter) fuse(groups []group) (out []group, err error) {
	if len(e.times) != e.fused { // a loop over time is open
		return groups, nil
	}
	for from := 0; from < len(groups); {
		var run []string
		to := from
		for ; to < len(groups); to++ {
			longer := append(slices.Clone(run), groups[to].arrays...)
			ok, err := e.fusable(longer)
			if err != nil {
				return nil, err
			}
			if !ok {
				break
			}
			run = longer
		}
		if !e.worthFusing(run) {
			out = append(out, groups[from])
			from++
			continue
		}
		for _, name := range run {
			times := e.when[name]
			at := 2 * len(e.times)
			e.when[name] = slices.Insert(slices.Clone(times), at, times[at], schedule.Time{Row: e.leading(name)})
		}
		out = append(out, group{run, true})
		from = to
	}
	return out, nil
}

// leading is the next index of an array that no open loop is over, as a time.
func (e *emitter) leading(name string) polyhedron.Row {
	params := len(e.prog.Params)
	row := make(polyhedron.Row, params+len(e.prog.Array(name).Extents)+1)
	row[params+len(e.times)] = 1
	return row
}

// fusable reports whether arrays may be in one loop over their next index: each reads of the others what has the same index, and the
// loop leaves every statement an innermost loop, the one along which its elements follow in memory.
func (e *emitter) fusable(run []string) (bool, error) {
	level := len(e.times)
	for _, name := range run {
		a := e.prog.Array(name)
		if len(a.Extents) <= level || folded(a, level) {
			return false, nil
		}
		e.rows[name] = append(e.rows[name][:level:level], e.leading(name))
	}
	e.times = append(e.times, "") // as if the loop were open
	defer func() { e.times = e.times[:level] }()
	for _, s := range e.prog.Statements {
		if !slices.Contains(run, s.Array) || e.prog.Carries(s) != nil {
			continue
		}
		if !e.splits(s, level) {
			return false, nil
		}
		for _, r := range schedule.Reads(e.prog, s) {
			if !slices.Contains(run, r.Array) {
				continue
			}
			if ok, err := e.atOnce(s, r); !ok || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// splits reports whether the index of s at a level is a dimension that no guard fixes, and another one is as good
// as the innermost loop.
func (e *emitter) splits(s *reduction.Statement, level int) bool {
	own := map[string]bool{}
	for k := range level + 1 {
		x := &s.Index[k]
		if len(x.Terms) != 1 || x.Terms[0].Coefficient != 1 || x.Constant != 0 || !slices.Contains(s.Dims, x.Terms[0].Name) {
			return false
		}
		own[x.Terms[0].Name] = true
	}
	d := s.Index[level].Terms[0].Name
	_, fixed := e.tests(s)
	if slices.Contains(fixed, d) {
		return false
	}
	return slices.ContainsFunc(s.Dims, func(other string) bool {
		return !own[other] && !slices.Contains(fixed, other) && slices.Compare(e.jumps(s, other), e.jumps(s, d)) <= 0
	})
}

// worthFusing reports whether a loop over the next index of arrays makes one of them brief.
func (e *emitter) worthFusing(run []string) bool {
	for _, name := range run {
		if slices.Contains(e.prog.Outputs, name) || len(e.brief[name]) != len(e.times) {
			continue
		}
		outside := slices.ContainsFunc(e.prog.Statements, func(s *reduction.Statement) bool {
			return e.live[s.Array] && !slices.Contains(run, s.Array) &&
				slices.ContainsFunc(schedule.Reads(e.prog, s), func(r schedule.Read) bool { return r.Array == name })
		})
		if !outside {
			return true
		}
	}
	return false
}
