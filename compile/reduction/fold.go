package reduction

import (
	"fmt"
	"slices"
	"strings"

	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// Fold says that an array is kept in place along an index: there is memory for one value of the index, and what is there
// for a value is updated to what is there for the next. It changes nothing about the values of elements; it says that
// code need not copy them. The first statement of the array has to be the copy, such as
//
//	x[k,b] += x[k-1,b] : { [k,b] : ... }
type Fold struct {
	Index int   // which index has no memory
	Step  int64 // 1 if values of the index go up, -1 if they go down
}

// foldWords are how the steps are written, after the extent of the index.
var foldWords = map[string]int64{"up": 1, "down": -1}

// String returns the word for the direction in the source.
func (f *Fold) String() string {
	if f.Step > 0 {
		return "up"
	}
	return "down"
}

// Carries returns the fold of the array that s writes if s is the copy of elements from their neighbours that the fold
// makes needless: its points cost nothing. Otherwise it returns nil.
func (p *Program) Carries(s *Statement) *Fold {
	a := p.byName[s.Array]
	if a == nil || a.Fold == nil {
		return nil
	}
	if f := CarryOf(s); f != nil && *f == *a.Fold {
		return f
	}
	return nil
}

// CarryOf returns the fold that s would be the copy for: s adds to each element the one whose index number Index is less
// by Step, 1 or -1, and does nothing else. It returns nil for other statements. Sums of logarithms are left out,
// because their terms are not added one by one.
func CarryOf(s *Statement) *Fold {
	r, ok := s.Body.(*Read)
	if !ok || r.Array != s.Array || s.Op == Assign || s.Op == LogSumExp || s.Op.Draws() || len(s.Guards) > 0 || len(s.Dims) != len(s.Index) {
		return nil
	}
	var f *Fold
	var seen []string
	for k := range s.Index {
		to := &s.Index[k]
		if len(to.Terms) != 1 || to.Terms[0].Coefficient != 1 || to.Constant != 0 || !contains(s.Dims, to.Terms[0].Name) || contains(seen, to.Terms[0].Name) {
			return nil
		}
		seen = append(seen, to.Terms[0].Name)
		from, err := affine(r.Index[k])
		if err != nil || !slices.Equal(from.Terms, to.Terms) {
			return nil
		}
		switch step := -from.Constant; {
		case step == 0:
		case f != nil || step != 1 && step != -1:
			return nil
		default:
			f = &Fold{k, step}
		}
	}
	return f
}

// checkFolds reports arrays that cannot be kept in place whatever the order of the elements is.
func checkFolds(p *Program) error {
	for _, a := range p.Arrays {
		if a.Fold == nil {
			continue
		}
		if contains(p.Outputs, a.Name) {
			return errorf(a.Pos, "%s is an output and kept in place, so that only its last values would be left; remove '%v'", a.Name, a.Fold)
		}
		var writers []*Statement
		for _, s := range p.Statements {
			if s.Array == a.Name {
				writers = append(writers, s)
			}
		}
		if len(writers) == 0 || p.Carries(writers[0]) == nil {
			return errorf(a.Pos, "%s is kept in place, and its first statement is not the copy from the neighbour in index %d; want %s, or remove '%v'", a.Name, a.Fold.Index+1, carryText(a), a.Fold)
		}
		for _, s := range writers[1:] {
			if p.Carries(s) != nil {
				return errorf(s.Pos, "%s is kept in place and copied from its neighbour twice; want one such statement", a.Name)
			}
		}
		found, where, err := p.Restarts(a, a.Fold)
		if err != nil {
			return errorf(a.Pos, "%s is kept in place: %v", a.Name, err)
		}
		if found {
			return errorf(a.Pos, "%s is kept in place, and elements that do not start from their neighbour come after ones that are written%s; remove '%v'", a.Name, where, a.Fold)
		}
	}
	return nil
}

// carryText is the copy that a folded array needs, as an example.
func carryText(a *Array) string {
	to, from := a.Name+"[", a.Name+"["
	for k := range a.Extents {
		u := "i" + string(rune('1'+k%9))
		if k > 0 {
			to, from = to+",", from+","
		}
		to, from = to+u, from+u
		if k == a.Fold.Index {
			from += map[int64]string{1: "-1", -1: "+1"}[a.Fold.Step]
		}
	}
	return to + "] += " + from + "]"
}

// Restarts reports whether some element of a keeps f from being right: it is read or written, the copy leaves it out, so that
// its value has to start from nothing, and a statement other than the copy writes an element that has the same memory
// before it. where says at which, if one is found at small sizes.
func (p *Program) Restarts(a *Array, f *Fold) (found bool, where string, err error) {
	whole, err := p.ExtentSet(a)
	if err != nil {
		return false, "", err
	}
	var copied, written, used polyhedron.Union
	for _, s := range p.Statements {
		sets, err := p.Points(s)
		if err != nil {
			return false, "", err
		}
		for _, set := range sets {
			for _, e := range s.Expressions() {
				if used, err = p.readBy(used, s, e, a, set, whole); err != nil {
					return false, "", err
				}
			}
			if s.Array != a.Name {
				continue
			}
			var index []polyhedron.Row
			for k := range s.Index {
				r, err := p.Row(&s.Index[k], s.Dims)
				if err != nil {
					return false, "", err
				}
				index = append(index, r)
			}
			u, _, err := set.Image(index, len(p.Params))
			if err != nil {
				return false, "", err
			}
			if g := CarryOf(s); g != nil && *g == *f {
				copied = append(copied, u) // exact: each index is a dimension
			} else {
				written = append(written, u)
			}
		}
	}
	fresh, err := append(used, written...).Subtract(copied)
	if err != nil {
		return false, "", err
	}
	x, found, err := p.after(a, f, fresh, written)
	if err != nil || x == nil {
		return found, "", err
	}
	params := len(p.Params)
	indices := strings.ReplaceAll(strings.Trim(fmt.Sprint(x[params:len(x)-1]), "[]"), " ", ",")
	return true, fmt.Sprintf(", such as %s[%s]%s", a.Name, indices, p.where(&Statement{}, x[:params])), nil
}

// readBy appends the elements of a that e reads at the points of a part of the domain of s. An index that is not affine may
// be any.
func (p *Program) readBy(used polyhedron.Union, s *Statement, e Expr, a *Array, set, whole *polyhedron.Set) (polyhedron.Union, error) {
	var fail error
	walk(e, func(e Expr) {
		r, ok := e.(*Read)
		if !ok || r.Array != a.Name || fail != nil {
			return
		}
		n := set.Vars + len(r.Index) // a further variable for each index, used where it is not affine
		var index []polyhedron.Row
		for k, x := range r.Index {
			row := make(polyhedron.Row, n+1)
			if b, err := affine(x); err != nil || !inDomain(p, s, &b) {
				row[set.Vars+k] = 1
			} else {
				own, err := p.Row(&b, s.Dims)
				if err != nil {
					fail = err
					return
				}
				copy(row, own[:len(own)-1])
				row[n] = own[len(own)-1]
			}
			index = append(index, row)
		}
		u, _, err := set.Widen(n).Image(index, len(p.Params))
		if err != nil {
			fail = err
			return
		}
		used = append(used, u.Intersect(whole))
	})
	return used, fail
}

// after looks for an element of fresh whose memory an element of written before it shares. x has the parameters, its
// indices and how many steps lie between; it is nil where none was found at small sizes.
func (p *Program) after(a *Array, f *Fold, fresh, written polyhedron.Union) (x []int64, found bool, err error) {
	params := len(p.Params)
	n := params + len(a.Extents) + 1
	var before []polyhedron.Row
	for k := range a.Extents {
		r := make(polyhedron.Row, n+1)
		r[params+k] = 1
		if k == f.Index {
			r[n-1] = -f.Step
		}
		before = append(before, r)
	}
	later := make(polyhedron.Row, n+1)
	later[n-1], later[n] = 1, -1
	for _, u := range fresh {
		for _, v := range written {
			set, err := v.Preimage(before, n, params)
			if err != nil {
				return nil, false, err
			}
			set = set.Intersect(u.Widen(n))
			set.Positive = append(set.Positive, later)
			if !set.Hollow() {
				return offending(set), true, nil
			}
		}
	}
	return nil, false, nil
}
