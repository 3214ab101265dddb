package reduction

import (
	"math"
	"math/bits"
)

// maxCoefficient bounds the coefficients and constants of affine expressions, so
// that sums of a few of them fit into 64 bits.
const maxCoefficient = 1 << 52

// Affine is a sum of integer multiples of names, each once, and a constant.
type Affine struct {
	Pos
	Terms    []Term
	Constant int64
}

// Term is a multiple of a parameter or dimension.
type Term struct {
	Name        string
	Coefficient int64
}

// constant reports whether a has no names.
func (a *Affine) constant() bool { return len(a.Terms) == 0 }

// value evaluates a where lookup knows the names. It reports false where a number
// does not fit into 64 bits.
func (a *Affine) value(lookup func(name string) int64) (int64, bool) {
	s := a.Constant
	for _, t := range a.Terms {
		hi, lo := bits.Mul64(absolute(t.Coefficient), absolute(lookup(t.Name)))
		if hi != 0 || lo > math.MaxInt64 {
			return 0, false
		}
		p := int64(lo)
		if (t.Coefficient < 0) != (lookup(t.Name) < 0) {
			p = -p
		}
		n := s + p
		if (n > s) != (p > 0) {
			return 0, false
		}
		s = n
	}
	return s, true
}

func absolute(x int64) uint64 {
	if x < 0 {
		return -uint64(x)
	}
	return uint64(x)
}

// affine reads e as an affine expression. An error names the part that is not.
func affine(e Expr) (Affine, error) {
	a := Affine{Pos: e.Position()}
	err := a.gather(e, 1)
	if err != nil {
		return a, err
	}
	kept := a.Terms[:0]
	for _, t := range a.Terms {
		if t.Coefficient != 0 {
			kept = append(kept, t)
		}
		if absolute(t.Coefficient) > maxCoefficient {
			return a, errorf(a.Pos, "a coefficient of %d; want at most %d", t.Coefficient, int64(maxCoefficient))
		}
	}
	a.Terms = kept
	if absolute(a.Constant) > maxCoefficient {
		return a, errorf(a.Pos, "a constant of %d; want at most %d", a.Constant, int64(maxCoefficient))
	}
	return a, nil
}

// gather adds factor times e to a.
func (a *Affine) gather(e Expr, factor int64) error {
	switch e := e.(type) {
	case *Number:
		if !e.Integer {
			return errorf(e.Pos, "%s is not an integer; an index or bound is affine", number(e))
		}
		return a.add("", factor, e.I, e.Pos)
	case *Name:
		return a.add(e.Name, factor, 1, e.Pos)
	case *Negate:
		return a.gather(e.X, -factor)
	case *Binary:
		switch e.Op {
		case "+", "-":
			if err := a.gather(e.X, factor); err != nil {
				return err
			}
			if e.Op == "-" {
				factor = -factor
			}
			return a.gather(e.Y, factor)
		case "*":
			// Each side is read once: to read one again would double the time with every factor of a chain.
			sides := [2]Expr{e.X, e.Y}
			var parts [2]Affine
			var errs [2]error
			for k, side := range sides {
				parts[k], errs[k] = affine(side)
				if _, literal := side.(*Number); literal && errs[k] != nil {
					return errs[k]
				}
			}
			for k := range sides {
				c, scaled := &parts[k], &parts[1-k]
				if errs[k] != nil || !c.constant() {
					continue
				}
				if errs[1-k] != nil {
					return errs[1-k]
				}
				for _, t := range append(scaled.Terms, Term{"", scaled.Constant}) {
					if absolute(t.Coefficient) > maxCoefficient || absolute(c.Constant) > maxCoefficient {
						return errorf(e.Pos, "a coefficient beyond %d", int64(maxCoefficient))
					}
					hi, lo := bits.Mul64(absolute(t.Coefficient), absolute(c.Constant))
					if hi != 0 || lo > maxCoefficient {
						return errorf(e.Pos, "a coefficient beyond %d", int64(maxCoefficient))
					}
					if err := a.add(t.Name, factor, t.Coefficient*c.Constant, e.Pos); err != nil {
						return err
					}
				}
				return nil
			}
		}
	}
	return errorf(e.Position(), "%s is not affine; want a sum of integer multiples of parameters and dimensions", Text(e))
}

// add adds factor times x to the coefficient of a name, or to the constant if the
// name is empty. factor is 1 or -1.
func (a *Affine) add(name string, factor, x int64, at Pos) error {
	if absolute(x) > maxCoefficient {
		return errorf(at, "%d is too large; want at most %d", x, int64(maxCoefficient))
	}
	to := &a.Constant
	if name != "" {
		k := 0
		for k < len(a.Terms) && a.Terms[k].Name != name {
			k++
		}
		if k == len(a.Terms) {
			a.Terms = append(a.Terms, Term{Name: name})
		}
		to = &a.Terms[k].Coefficient
	}
	if *to += factor * x; absolute(*to) > 2*maxCoefficient {
		return errorf(at, "a coefficient beyond %d", int64(maxCoefficient))
	}
	return nil
}
