package schedule

// components returns the strongly connected components of the arrays, each after the ones that
// it needs. needs[x] lists what x needs. Tarjan's algorithm.
func components(arrays []string, needs map[string][]string) [][]string {
	number, low := map[string]int{}, map[string]int{}
	onStack := map[string]bool{}
	var stack []string
	var out [][]string
	var visit func(x string)
	visit = func(x string) {
		number[x] = len(number) + 1
		low[x] = number[x]
		stack = append(stack, x)
		onStack[x] = true
		for _, y := range needs[x] {
			switch {
			case number[y] == 0:
				visit(y)
				low[x] = min(low[x], low[y])
			case onStack[y]:
				low[x] = min(low[x], number[y])
			}
		}
		if low[x] != number[x] {
			return
		}
		var c []string
		for {
			y := stack[len(stack)-1]
			stack = stack[:len(stack)-1]
			onStack[y] = false
			c = append(c, y)
			if y == x {
				break
			}
		}
		out = append(out, c)
	}
	for _, x := range arrays {
		if number[x] == 0 {
			visit(x)
		}
	}
	return out
}

// Recursive returns the arrays that need themselves, directly or through others.
func Recursive(deps []*Dependence) map[string]bool {
	needs := map[string][]string{}
	var arrays []string
	for _, d := range deps {
		needs[d.Target] = append(needs[d.Target], d.Source)
		arrays = append(arrays, d.Target)
	}
	out := map[string]bool{}
	for _, c := range components(arrays, needs) {
		for _, a := range c {
			for _, b := range needs[a] {
				for _, x := range c {
					if x == b {
						out[a] = true
					}
				}
			}
		}
	}
	return out
}
