package gosource

import (
	"bytes"
	"errors"
	"fmt"
	"go/format"
	"slices"
	"strings"

	"github.com/pce-engine/pce/compile/reduction"
	"github.com/pce-engine/pce/compile/reduction/polyhedron"
	"github.com/pce-engine/pce/compile/reduction/schedule"
)

// Source returns p as the source of a Go package with a function Compute. Package main also has a main: run as
//
//	PROGRAM -p N=10,K=2 -data DIR -out DIR -max-memory BYTES
//
// it reads the inputs from DIR/NAME.txt, writes the outputs likewise, and prints the seconds that the
// computation took.
func Source(p *reduction.Program, pkg string) (string, error) {
	text, err := source(p, pkg)
	if errors.Is(err, polyhedron.ErrSize) || errors.Is(err, polyhedron.ErrOverflow) {
		err = fmt.Errorf("%w: it is too large to be written as Go (%w); use fewer dimensions in a statement, or smaller coefficients", reduction.ErrProgram, err)
	}
	return text, err
}

func source(p *reduction.Program, pkg string) (string, error) {
	deps, err := schedule.Dependences(p)
	if err != nil {
		return "", err
	}
	e := &emitter{prog: p, params: map[string]bool{}, rows: map[string][]polyhedron.Row{}, brief: map[string][]int{}, when: map[string][]schedule.Time{}, layouts: map[string][]int{}, buckets: map[string]string{}, fixing: map[*reduction.Statement]map[int]string{}}
	order, err := schedule.New(p, deps)
	if err != nil {
		return "", err
	}
	if e.context, err = p.ContextSet(); err != nil {
		return "", err
	}
	for _, q := range p.Params {
		e.params[q.Name] = true
	}
	if e.live, err = e.needed(); err != nil {
		return "", err
	}
	if err = e.partials(); err != nil {
		return "", err
	}
	var arrays []string
	for _, a := range p.Arrays {
		if !a.Input && e.live[a.Name] {
			e.when[a.Name] = order.Times(a.Name)
			arrays = append(arrays, a.Name)
		}
	}
	if err := e.components(arrays); err != nil {
		return "", err
	}
	computation := e.b
	e.b = bytes.Buffer{}
	e.header(pkg)
	e.b.Write(computation.Bytes())
	e.footer(pkg == "main")
	e.b.Write(e.functions.Bytes())
	out, err := format.Source(e.b.Bytes())
	if err != nil {
		return "", fmt.Errorf("gosource: %w", err)
	}
	return string(out), nil
}

// emitter writes a program.
type emitter struct {
	prog     *reduction.Program
	context  *polyhedron.Set
	when     map[string][]schedule.Time // of an array: its times, with those of fused loops
	params   map[string]bool
	live     map[string]bool
	partial  map[string]bool             // arrays of which some element may not be written
	lacks    map[string]bool             // of floats: and such an element, which may be read, is NaN
	whole    map[string]bool             // arrays of which outputs need all elements
	looked   map[string]bool             // partial arrays that these read: each look is for an element that is there
	times    []string                    // variables of the time loops that are open
	fused    int                         // how many of these fuse has made
	rows     map[string][]polyhedron.Row // of an array, for these
	layouts  map[string][]int
	brief    map[string][]int // of an array, the indices without memory: the first loops in which it is brief fix them
	before   bytes.Buffer     // what the outermost time loop that is open needs before it
	inner    *inner           // the loop whose body is written, if it has no loops
	renamed  map[string]string
	b        bytes.Buffer
	buckets  map[string]string // types of the variables of buckets
	variable int

	functions bytes.Buffer                            // that Compute calls
	fixing    map[*reduction.Statement]map[int]string // the dimensions that guards fix
}

func (e *emitter) line(text string, args ...any) {
	fmt.Fprintf(&e.b, text+"\n", args...)
}

func (e *emitter) fresh(name string) string {
	e.variable++
	return fmt.Sprintf("%s%d", name, e.variable)
}

// needed returns the arrays that the outputs need, directly or not: what a statement without points reads is not.
func (e *emitter) needed() (live map[string]bool, err error) {
	live = map[string]bool{}
	list := slices.Clone(e.prog.Outputs)
	for len(list) > 0 {
		name := list[0]
		list = list[1:]
		if live[name] {
			continue
		}
		live[name] = true
		for _, s := range e.prog.Statements {
			if s.Array != name {
				continue
			}
			sets, err := e.pieces(s)
			if err != nil {
				return nil, err
			}
			if len(sets) == 0 {
				continue
			}
			for _, r := range schedule.Reads(e.prog, s) {
				list = append(list, r.Array)
			}
		}
	}
	return live, nil
}

// components writes the computation of arrays that are at one place of the schedule so far: those at a lower place
// first, those at one place together, in a loop over their time.
func (e *emitter) components(arrays []string) error {
	level := 2 * len(e.times)
	place := func(a string) int64 { return e.when[a][level].Place }
	arrays = slices.Clone(arrays)
	slices.SortStableFunc(arrays, func(a, b string) int { return int(place(a) - place(b)) })
	var groups []group
	for from := 0; from < len(arrays); {
		to := from + 1
		for to < len(arrays) && place(arrays[to]) == place(arrays[from]) {
			to++
		}
		groups = append(groups, group{arrays: arrays[from:to]})
		from = to
	}
	groups, err := e.fuse(groups)
	if err != nil {
		return err
	}
	for _, g := range groups {
		switch name := g.arrays[0]; {
		case len(e.when[name]) == level+1:
			e.line("\n// %s", name)
			err = e.elements(name)
		case g.fused:
			e.fused++
			err = e.timeLoop(g.arrays)
			e.fused--
		default:
			err = e.timeLoop(g.arrays)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// timeLoop writes the loop over the next time of arrays that need each other.
func (e *emitter) timeLoop(group []string) error {
	t := e.fresh("t")
	params := len(e.prog.Params)
	var lows, highs []string
	turns, arrays := e.turns(group)
	for _, name := range group {
		a := e.prog.Array(name)
		extents, err := e.prog.ExtentSet(a)
		if err != nil {
			return err
		}
		if empty, err := extents.Empty(); err != nil {
			return err
		} else if empty { // no elements, and no times
			continue
		}
		// Parameters, open times and the new one as a variable, and the indices, which are projected out.
		vars := []string{t}
		var dims []string
		var index []polyhedron.Row
		for k := range a.Extents {
			dims = append(dims, fmt.Sprintf("u%d", k))
			r := make(polyhedron.Row, params+len(a.Extents)+1)
			r[params+k] = 1
			index = append(index, r)
		}
		e.times = append(e.times, t)
		set := e.space(extents, index, name, dims, dims)
		e.times = e.times[:len(e.times)-1]
		for v := set.Vars - 1; v > params+len(e.times); v-- {
			if set, _, err = set.Project(v); err != nil {
				return err
			}
		}
		v := params + len(e.times)
		names := append(append(e.given(), vars...), dims...)
		var lower, upper []polyhedron.Row
		for _, r := range set.Positive {
			if r[v] > 0 {
				lower = append(lower, r)
			} else if r[v] < 0 {
				upper = append(upper, r)
			}
		}
		for _, r := range set.Zero {
			if r[v] != 0 {
				negative := make(polyhedron.Row, len(r))
				for k, c := range r {
					negative[k] = -c
				}
				if r[v] > 0 {
					lower, upper = append(lower, r), append(upper, negative)
				} else {
					lower, upper = append(lower, negative), append(upper, r)
				}
			}
		}
		lows = appendNew(lows, bounds(names, lower, v, "max"))
		highs = appendNew(highs, bounds(names, upper, v, "min"))
	}
	if len(lows) == 0 {
		return nil
	}
	whole := e.b
	if len(e.times) == 0 {
		e.b = bytes.Buffer{}
	}
	last := e.fresh("last")
	e.line("for %s, %s := min(%s), max(%s); %s <= %s; %s++ {", t, last, strings.Join(lows, ", "), strings.Join(highs, ", "), t, last, t)
	e.times = append(e.times, t)
	brief, err := e.briefly(group)
	if err != nil {
		return err
	}
	e.restart(brief)
	for _, turn := range turns {
		if fail := e.components(arrays[turn]); err == nil {
			err = fail
		}
	}
	e.times = e.times[:len(e.times)-1]
	e.line("}")
	if len(e.times) == 0 {
		loop := e.b
		e.b = whole
		e.line("\n// %s", strings.Join(group, ", "))
		e.b.Write(e.before.Bytes())
		e.b.Write(loop.Bytes())
		e.before.Reset()
	}
	return err
}

// turns divides the next times of arrays by what divides the coefficients of all. What remains of the constants, from 0 up,
// says in which turn of a pass of the loop an array is computed: with times 6k+1 and 6k+5, the loop is over k.
func (e *emitter) turns(group []string) (turns []int64, arrays map[int64][]string) {
	level := len(e.times)
	divisor := int64(0)
	for _, name := range group {
		row := e.when[name][2*level+1].Row
		for _, c := range row[:len(row)-1] {
			for c != 0 {
				divisor, c = c, divisor%c
			}
		}
	}
	divisor = max(divisor, -divisor, 1)
	arrays = map[int64][]string{}
	for _, name := range group {
		row := slices.Clone(e.when[name][2*level+1].Row)
		last := len(row) - 1
		turn := (row[last]%divisor + divisor) % divisor
		row[last] -= turn
		for k := range row {
			row[k] /= divisor
		}
		if arrays[turn] == nil {
			turns = append(turns, turn)
		}
		arrays[turn] = append(arrays[turn], name)
		e.rows[name] = append(e.rows[name][:level:level], row)
	}
	slices.Sort(turns)
	return turns, arrays
}

// appendNew appends a text that the list does not have.
func appendNew(list []string, text string) []string {
	if slices.Contains(list, text) {
		return list
	}
	return append(list, text)
}
