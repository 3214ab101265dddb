package equations

import (
	"fmt"
	"maps"
	"math"
	"slices"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile/reduction"
)

// latents is the parameter whose value is Options.Latents.
const latents = "S"

// maxSize bounds the value of a parameter.
const maxSize = 1 << 31

// bind gives the parameters their values and checks that they fit the data.
func (m *model) bind(o *Options) error {
	m.sizes = map[string]int64{}
	for _, name := range slices.Sorted(maps.Keys(o.Sizes)) {
		switch {
		case !m.isParam(name):
			return fmt.Errorf("%w: a size is given for %s, which is not a parameter of %s", structures.ErrOptions, name, o.Name)
		case name == latents:
			return fmt.Errorf("%w: a size is given for %s, which is the number of latents; set that instead", structures.ErrOptions, name)
		}
		m.sizes[name] = o.Sizes[name]
	}
	if m.isParam(latents) {
		m.sizes[latents] = int64(o.Latents)
	}
	if err := m.equate(&m.row.Extents[0], int64(o.Vars), m.row.Pos, "elements of "+m.row.Name, "columns of the data", "the number of columns"); err != nil {
		return err
	}
	if err := m.bindCategories(o); err != nil {
		return err
	}
	for _, q := range m.prog.Params {
		if _, ok := m.sizes[q.Name]; !ok {
			n, ok := m.prog.Sizes[q.Name]
			if !ok {
				return refuse(q.Pos, "parameter %s has no size; write 'size %s = 4;', or give it with the settings of the structure", q.Name, q.Name)
			}
			m.sizes[q.Name] = n
		}
		if n := m.sizes[q.Name]; n < -maxSize || n > maxSize {
			return refuse(q.Pos, "%s is %d; want at most %d", q.Name, n, maxSize)
		}
	}
	return m.checkContext()
}

func (m *model) isParam(name string) bool {
	return slices.ContainsFunc(m.prog.Params, func(q reduction.Param) bool { return q.Name == name })
}

// bindCategories holds the tables to the categories of the variables' leaves.
func (m *model) bindCategories(o *Options) error {
	if o.Leaf == nil {
		return fmt.Errorf("%w: %s has no leaf distribution; set Leaf", structures.ErrOptions, o.Name)
	}
	var codes int
	for v := range o.Vars {
		l, ok := o.Leaf(v).(circuit.Categorical)
		switch {
		case !ok:
			return fmt.Errorf("%w: the leaf of column %d is not categorical, as the inputs of equations are; make the column discrete and choose leaf type auto", structures.ErrOptions, v+1)
		case v > 0 && l.Categories != codes:
			return fmt.Errorf("%w: column %d has %d categories and column 1 has %d, and equations treat them alike; give all columns the same categories",
				structures.ErrOptions, v+1, l.Categories, codes)
		}
		codes = l.Categories
	}
	const cure = "the number of categories"
	if r := m.row.Range; r != nil {
		if err := m.equate(&r.High, int64(codes), m.row.Pos, "categories of "+m.row.Name, "in the data", cure); err != nil {
			return err
		}
		if low, err := m.eval(&r.Low, nil); err != nil || low != 0 {
			return refuse(m.row.Pos, "the range of %s begins at %v; categories begin at 0", m.row.Name, &r.Low)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(m.tables)) {
		a := m.prog.Array(name)
		if err := m.equate(&a.Extents[m.tables[name]], int64(codes), a.Pos, "categories of "+name, "in the data", cure); err != nil {
			return err
		}
	}
	return nil
}

// equate makes an extent equal to a number: a parameter by itself that has no value yet
// gets it, another extent has to have it.
func (m *model) equate(a *reduction.Affine, n int64, at reduction.Pos, what, data, cure string) error {
	if name := plain(a); name != "" {
		if _, ok := m.sizes[name]; !ok {
			m.sizes[name] = n
			return nil
		}
	}
	for _, t := range a.Terms {
		if _, ok := m.sizes[t.Name]; !ok {
			if size, ok := m.prog.Sizes[t.Name]; ok {
				m.sizes[t.Name] = size
			}
		}
	}
	got, err := m.eval(a, nil)
	if err != nil {
		return err
	}
	if got != n {
		return refuse(at, "%d %s, and %d %s; %v has to be %s, so leave its size out or give the data that it fits", got, what, n, data, a, cure)
	}
	return nil
}

// eval evaluates an affine expression where point has the dimensions' values.
func (m *model) eval(a *reduction.Affine, point func(name string) int64) (int64, error) {
	sum, rough := a.Constant, float64(a.Constant)
	for _, t := range a.Terms {
		x, ok := m.sizes[t.Name]
		if !ok {
			if point == nil {
				return 0, refuse(a.Pos, "parameter %s has no size", t.Name)
			}
			x = point(t.Name)
		}
		sum, rough = sum+t.Coefficient*x, rough+math.Abs(float64(t.Coefficient)*float64(x))
	}
	if rough > 1<<61 {
		return 0, refuse(a.Pos, "%v is beyond 2^61 at these sizes", a)
	}
	return sum, nil
}

// checkContext holds the sizes to what the program knows of its parameters, and its
// extents to numbers that nodes can have.
func (m *model) checkContext() error {
	for _, c := range m.prog.Context {
		for k, r := range c.Relations {
			x, err := m.eval(&c.Terms[k], nil)
			if err != nil {
				return err
			}
			y, err := m.eval(&c.Terms[k+1], nil)
			if err != nil {
				return err
			}
			if !holds(r, x, y) {
				return refuse(c.Pos, "%v %v %v does not hold: they are %d and %d; change a size, or the latents", &c.Terms[k], r, &c.Terms[k+1], x, y)
			}
		}
	}
	for _, a := range m.prog.Arrays {
		for k := range a.Extents {
			if n, err := m.eval(&a.Extents[k], nil); err != nil {
				return err
			} else if n < 0 || n > maxSize {
				return refuse(a.Pos, "%s has an extent of %d; want 0 to %d", a.Name, n, maxSize)
			}
		}
	}
	return nil
}

func holds(r reduction.Relation, x, y int64) bool {
	switch r {
	case reduction.Less:
		return x < y
	case reduction.LessEqual:
		return x <= y
	case reduction.Greater:
		return x > y
	case reduction.GreaterEqual:
		return x >= y
	case reduction.Equal:
		return x == y
	}
	return x != y
}

// extent returns the size of index k of an array, which bind has checked.
func (m *model) extent(a *reduction.Array, k int) int {
	n, err := m.eval(&a.Extents[k], nil)
	if err != nil {
		panic("BUG: equations: an extent was not checked: " + err.Error())
	}
	return int(n)
}
