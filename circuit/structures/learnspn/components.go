package learnspn

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
