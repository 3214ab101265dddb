package equations

import (
	"github.com/pce-engine/pce/compile/reduction"
)

// model is a program read as a circuit: what its arrays are, and its statements as
// sums and products.
type model struct {
	prog   *reduction.Program
	row    *reduction.Array // the variables
	tables map[string]int   // inputs of type float that hold inputs' parameters: which index is the category
	rules  []*rule
	sizes  map[string]int64 // of the parameters
	units  map[string]int   // which index of an array is its units; arrays that are left out have one unit
}

// rule is a statement whose body is a product.
type rule struct {
	*reduction.Statement
	values  []factor // elements of computed arrays, and inputs
	weights []factor
	levels  []level // sums, the outermost first; of += alone
}

// factor is a read of an array.
type factor struct {
	*reduction.Read
	array *reduction.Array
	index []reduction.Affine // that of a category is the index into the row
	code  int                // which index is the category, -1 for none
}

// plain returns the dimension that index k is by itself, or "".
func (f *factor) plain(k int) string {
	if k == f.code {
		return ""
	}
	return plain(&f.index[k])
}

func plain(a *reduction.Affine) string {
	if a.Constant == 0 && len(a.Terms) == 1 && a.Terms[0].Coefficient == 1 {
		return a.Terms[0].Name
	}
	return ""
}

// uses reports whether an index of f has the dimension d.
func (f *factor) uses(d string) bool {
	for k := range f.index {
		if mentions(&f.index[k], d) {
			return true
		}
	}
	return false
}

func mentions(a *reduction.Affine, d string) bool {
	for _, t := range a.Terms {
		if t.Name == d {
			return true
		}
	}
	return false
}

// read finds the row and reads the statements.
func (m *model) read() error {
	for _, a := range m.prog.Arrays {
		switch {
		case !a.Input && a.Type == reduction.Int:
			return refuse(a.Pos, "%s is of type int; the arrays of a circuit are of type float", a.Name)
		case !a.Input || a.Type == reduction.Float:
		case m.row != nil:
			return refuse(a.Pos, "%s is a second input of type int, after %s; a circuit has one, the row", a.Name, m.row.Name)
		case len(a.Extents) != 1:
			return refuse(a.Pos, "%s has %d indices; the row has one", a.Name, len(a.Extents))
		default:
			m.row = a
		}
	}
	if m.row == nil {
		return refuse(reduction.Pos{}, "no input of type int; declare the row, such as 'input int x[T] in [0,C);'")
	}
	if n := len(m.prog.Outputs); n != 1 {
		return refuse(reduction.Pos{}, "%d outputs; a circuit has one", n)
	}
	if out := m.prog.Array(m.prog.Outputs[0]); len(out.Extents) != 0 {
		return refuse(out.Pos, "output %s has %d indices; want none: it is the probability of the row", out.Name, len(out.Extents))
	}
	for _, s := range m.prog.Statements {
		r := &rule{Statement: s}
		switch s.Op {
		case reduction.Assign, reduction.Add, reduction.Multiply:
		default:
			return refuse(s.Pos, "%s is written with %v, which a circuit cannot compute; want =, += or *=", s.Array, s.Op)
		}
		if len(s.Guards) > 0 {
			return refuse(s.Guards[0].Position(), "a guard depends on data; say in the domain which points there are")
		}
		if err := m.factors(r, s.Body); err != nil {
			return err
		}
		m.rules = append(m.rules, r)
	}
	for _, r := range m.rules {
		for k := range r.weights {
			if w := &r.weights[k]; m.isTable(w.array) {
				return refuse(w.Pos, "%s is read without a category here and with one elsewhere; use two inputs", w.Array)
			}
		}
		if len(r.weights) > 0 && r.Op != reduction.Add {
			return refuse(r.weights[0].Pos, "%s is a weight in a product; write a sum over its last index, with +=", reduction.Text(r.weights[0].Read))
		}
		if err := r.layer(); err != nil {
			return err
		}
	}
	return m.checkSummed()
}

func (m *model) isTable(a *reduction.Array) bool {
	_, ok := m.tables[a.Name]
	return ok
}

// factors reads e as a product.
func (m *model) factors(r *rule, e reduction.Expr) error {
	switch e := e.(type) {
	case *reduction.Binary:
		if e.Op == "*" {
			if err := m.factors(r, e.X); err != nil {
				return err
			}
			return m.factors(r, e.Y)
		}
	case *reduction.Number:
		if e.Integer && e.I == 1 || !e.Integer && e.F == 1 {
			return nil
		}
		return refuse(e.Pos, "a factor of %s; a circuit has no constants but 1, make it an input of weights", reduction.Text(e))
	case *reduction.Read:
		f := factor{Read: e, array: m.prog.Array(e.Array), code: -1}
		if f.array == m.row {
			return refuse(e.Pos, "%s is a category, not a probability; read it as an index, such as e[s,%s]", reduction.Text(e), reduction.Text(e))
		}
		for k, x := range e.Index {
			if at, ok := x.(*reduction.Read); ok && at.Array == m.row.Name && f.array.Input && f.code < 0 {
				f.code = k
				x = at.Index[0]
			}
			a, err := reduction.AffineOf(x)
			if err != nil {
				return err
			}
			f.index = append(f.index, a)
		}
		switch {
		case !f.array.Input || f.code >= 0:
			r.values = append(r.values, f)
		default:
			r.weights = append(r.weights, f)
		}
		if f.code >= 0 {
			if first, ok := m.tables[e.Array]; ok && first != f.code {
				return refuse(e.Pos, "the category is index %d of %s here and index %d elsewhere; use one", f.code+1, e.Array, first+1)
			}
			m.tables[e.Array] = f.code
		}
		return nil
	}
	return refuse(e.Position(), "%s in a circuit; a body is a product of arrays, inputs and weights, and a sum is written with +=", reduction.Text(e))
}
