package reduction

import (
	"errors"

	"github.com/pce-engine/pce/compile/reduction/polyhedron"
)

// domain returns the points of a statement as disjoint sets in the parameters and
// dimensions: != splits a set in two, below and above. With sizes the parameters
// are replaced by numbers, and the sets are in the dimensions alone.
func (p *Program) domain(s *Statement, sizes map[string]int64) ([]*polyhedron.Set, error) {
	v := newVariables(p, sizes, nil, s.Dims)
	sets := []*polyhedron.Set{{Vars: v.count()}}
	chains := s.Domain
	if sizes == nil {
		chains = append(append([]Chain{}, p.Context...), chains...)
	}
	for _, c := range chains {
		for k, r := range c.Relations {
			var err error
			if sets, err = v.constrain(sets, &c.Terms[k], r, &c.Terms[k+1]); err != nil {
				return nil, err
			}
		}
	}
	for _, set := range sets {
		if len(set.Positive)+2*len(set.Zero) > MaxRows {
			return nil, errorf(s.Pos, "a domain of %d constraints; want at most %d", len(set.Positive)+2*len(set.Zero), MaxRows)
		}
	}
	return sets, nil
}

// variables gives names their places in rows: parameters, unless sizes replace
// them, then extra variables, then dimensions.
type variables struct {
	sizes map[string]int64
	place map[string]int
	n     int
}

// newVariables makes room for as many extra variables as extra has names.
func newVariables(p *Program, sizes map[string]int64, extra, dims []string) *variables {
	v := &variables{sizes: sizes, place: map[string]int{}}
	if sizes == nil {
		for _, q := range p.Params {
			v.put(q.Name)
		}
	}
	for _, name := range extra {
		v.put(name)
	}
	for _, name := range dims {
		v.put(name)
	}
	return v
}

func (v *variables) put(name string) {
	v.place[name] = v.n
	v.n++
}

func (v *variables) count() int { return v.n }

// row returns a as a row.
func (v *variables) row(a *Affine) (polyhedron.Row, error) {
	r := make(polyhedron.Row, v.n+1)
	constants := Affine{Constant: a.Constant}
	for _, t := range a.Terms {
		if k, ok := v.place[t.Name]; ok {
			r[k] += t.Coefficient
		} else {
			constants.Terms = append(constants.Terms, t)
		}
	}
	c, ok := constants.value(func(name string) int64 { return v.sizes[name] })
	if !ok || absolute(c) > 1<<61 {
		return nil, errorf(a.Pos, "%s is beyond 2^61 at these sizes", a)
	}
	r[v.n] = c
	return r, nil
}

// maxPieces bounds the sets that != makes of a domain.
const maxPieces = 64

// constrain adds x r y to each of sets.
func (v *variables) constrain(sets []*polyhedron.Set, x *Affine, r Relation, y *Affine) ([]*polyhedron.Set, error) {
	a, err := v.row(x)
	if err != nil {
		return nil, err
	}
	b, err := v.row(y)
	if err != nil {
		return nil, err
	}
	difference := func(p, q polyhedron.Row, constant int64) polyhedron.Row { // p - q + constant
		d := make(polyhedron.Row, len(p))
		for i := range p {
			d[i] = p[i] - q[i]
		}
		d[len(d)-1] += constant
		return d
	}
	var above [][]polyhedron.Row // alternatives
	switch r {
	case Less:
		above = [][]polyhedron.Row{{difference(b, a, -1)}}
	case LessEqual:
		above = [][]polyhedron.Row{{difference(b, a, 0)}}
	case Greater:
		above = [][]polyhedron.Row{{difference(a, b, -1)}}
	case GreaterEqual:
		above = [][]polyhedron.Row{{difference(a, b, 0)}}
	case Equal:
		for _, s := range sets {
			s.Zero = append(s.Zero, difference(a, b, 0))
		}
		return sets, nil
	case NotEqual:
		above = [][]polyhedron.Row{{difference(b, a, -1)}, {difference(a, b, -1)}}
	}
	if len(sets)*len(above) > maxPieces {
		return nil, errorf(x.Pos, "!= splits the domain into more than %d pieces", maxPieces)
	}
	var out []*polyhedron.Set
	for _, s := range sets {
		for _, rows := range above {
			c := s.Clone()
			c.Positive = append(c.Positive, rows...)
			out = append(out, c)
		}
	}
	return out, nil
}

func asUnbounded(err error, target **polyhedron.UnboundedError) bool {
	return errors.As(err, target)
}

func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}
