package equations

import (
	"slices"
	"strings"

	"github.com/pce-engine/pce/compile/reduction"
)

// level is one of the sums that a += is made of, the outer sums first: a weight, which
// is a distribution over the dimensions that it adds to the known ones.
type level struct {
	weight *factor
	dims   []string
	summed []bool // which indices of the weight have one of dims
}

// layer divides the sum of a += into levels: each takes the weight that adds the fewest
// dimensions. A weight that adds none scales its sum, which is then not normalised.
func (r *rule) layer() error {
	if r.Op != reduction.Add {
		return nil
	}
	known := r.known()
	left := make([]*factor, len(r.weights))
	for k := range r.weights {
		left[k] = &r.weights[k]
	}
	for len(left) > 0 {
		best, fewest := 0, len(r.Dims)+1
		for k, w := range left {
			added := r.added(w, known)
			if len(added) == 0 {
				return refuse(w.Pos, "the sum is not normalised: %s does not depend on a dimension that is summed and that no other weight is over", reduction.Text(w.Read))
			}
			if len(added) < fewest {
				best, fewest = k, len(added)
			}
		}
		w := left[best]
		left = slices.Delete(left, best, best+1)
		l := level{weight: w, dims: r.added(w, known), summed: make([]bool, len(w.index))}
		for k := range w.index {
			l.summed[k] = slices.ContainsFunc(l.dims, func(d string) bool { return mentions(&w.index[k], d) })
		}
		for _, d := range l.dims {
			known[d] = true
		}
		r.levels = append(r.levels, l)
	}
	return nil
}

// known returns the dimensions that the element on the left fixes: by themselves in an
// index, or by an equation of the domain with others that are known.
func (r *rule) known() map[string]bool {
	known := map[string]bool{}
	fix := func(names []string) {
		var open []string
		for _, d := range names {
			if slices.Contains(r.Dims, d) && !known[d] && !slices.Contains(open, d) {
				open = append(open, d)
			}
		}
		if len(open) == 1 {
			known[open[0]] = true
		}
	}
	names := func(list ...reduction.Affine) (out []string) {
		for i := range list {
			for _, t := range list[i].Terms {
				out = append(out, t.Name)
			}
		}
		return out
	}
	for range r.Dims { // each turn that fixes anything fixes at least one
		for _, a := range r.Index {
			fix(names(a))
		}
		for _, c := range r.Domain {
			for k, rel := range c.Relations {
				if rel == reduction.Equal {
					fix(names(c.Terms[k], c.Terms[k+1]))
				}
			}
		}
	}
	return known
}

// added returns the dimensions of w that are not known.
func (r *rule) added(w *factor, known map[string]bool) (dims []string) {
	for _, d := range r.Dims {
		if !known[d] && w.uses(d) {
			dims = append(dims, d)
		}
	}
	return dims
}

// checkSummed wants each array of weights to be a distribution over the same indices
// wherever it is read.
func (m *model) checkSummed() error {
	first := map[string]*level{}
	for _, r := range m.rules {
		for k := range r.levels {
			l := &r.levels[k]
			f := first[l.weight.Array]
			if f == nil {
				first[l.weight.Array] = l
			} else if !slices.Equal(f.summed, l.summed) {
				return refuse(l.weight.Pos, "%s is summed over %s here and over %s at %d:%d; use two inputs of weights",
					l.weight.Array, numbered(l.summed), numbered(f.summed), f.weight.Line, f.weight.Column)
			}
		}
	}
	return nil
}

func numbered(summed []bool) string {
	var list []string
	for k, s := range summed {
		if s {
			list = append(list, "index "+string(rune('1'+k)))
		}
	}
	return strings.Join(list, " and ")
}
