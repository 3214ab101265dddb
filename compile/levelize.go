package compile

import "fmt"

// levelize gives each vector its depth: one more than its deepest operand. A
// product reads vectors of any lower depth, so nothing is passed through.
func levelize(s *state) (string, error) {
	deepest := int32(0)
	for i := range s.nodes {
		n := &s.nodes[i]
		for _, f := range s.factors[s.cuts[n.lo]:s.cuts[n.hi]] {
			n.depth = max(n.depth, s.nodes[f].depth+1)
		}
		deepest = max(deepest, n.depth)
	}
	return fmt.Sprintf("%d layers above the inputs", deepest), nil
}
