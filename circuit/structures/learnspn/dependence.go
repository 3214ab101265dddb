package learnspn

import "math/rand/v2"

// dependence returns the test that Options ask for, over places of a slice. It ends with the context: pairs may be millions.
func (l *learner) dependence(s slice, rng *rand.Rand) func(i, j int) bool {
	var test func(i, j int) bool
	if l.opts.Columns == RDC {
		test = rdcTest(s, l.opts.Threshold, rng)
	} else {
		test = gTest(newPairCounter(s), l.opts.Threshold)
	}
	return func(i, j int) bool { return l.ctx.Err() == nil && test(i, j) }
}

// components returns the connected components of n variables of which some pairs are
// dependent, as places ascending, in the order of their first. It asks for no pair that is
// known to be in one component.
func components(n int, dependent func(i, j int) bool) [][]int {
	var parts [][]int
	left := make([]int, n)
	for i := range left {
		left[i] = i
	}
	for len(left) > 0 {
		part := left[:1:1]
		left = left[1:]
		for at := 0; at < len(part) && len(left) > 0; at++ {
			rest := make([]int, 0, len(left))
			for _, j := range left {
				if dependent(min(part[at], j), max(part[at], j)) {
					part = append(part, j)
				} else {
					rest = append(rest, j)
				}
			}
			left = rest
		}
		parts = append(parts, sorted(part))
	}
	return parts
}

// gTestThreshold is the default of Options.Threshold for GTest.
const gTestThreshold = 5

// gTest reports which pairs of a slice's variables are dependent: those whose G statistic,
// 2 Σ n log(n·N / (row·column)), exceeds twice the threshold for each degree of freedom. A
// variable that is constant in the slice is independent of all others.
func gTest(p *pairCounter, threshold float64) func(i, j int) bool {
	var table []float64
	return func(i, j int) bool {
		a, b := p.s.all[p.s.vars[i]].count, p.s.all[p.s.vars[j]].count
		if len(table) < a*b {
			table = make([]float64, a*b)
		}
		nats, total, freedom := information(p.joint(i, j, table), a, b)
		return freedom > 0 && nats*total > threshold*float64(freedom)
	}
}
