package layers

// Wide returns, by element, whether its product is to be formed with an exponent
// for each unit, and by vector, whether it is a leaf whose units have exponents of
// their own: float32 numbers under one exponent would lose units that another factor
// brings back.
//
// A product is wide if it has more than bare factors, or if one of them has exponents
// of its own. These are the leaves whose tables have exponents, and functions that a
// wide product reads.
func (p *Program) Wide(bare int) (elements, leaves []bool) {
	elements, leaves = make([]bool, len(p.Elements)), make([]bool, len(p.Vectors))
	users := make([][]int32, len(p.Vectors))
	var queue []int32
	widen := func(e int32) {
		if !elements[e] {
			elements[e] = true
			queue = append(queue, e)
		}
	}
	for e := range p.Elements {
		factors := p.ElementFactors(int32(e))
		for _, f := range factors {
			if p.Vectors[f].Kind == InputVector {
				users[f] = append(users[f], int32(e))
			}
		}
		if len(factors) > bare {
			widen(int32(e))
		}
	}
	open := func(v int32) {
		if !leaves[v] {
			leaves[v] = true
			for _, e := range users[v] {
				widen(e)
			}
		}
	}
	for i := range p.Inputs {
		if p.Inputs[i].Exps >= 0 {
			open(p.Inputs[i].Vector)
		}
	}
	for len(queue) > 0 {
		e := queue[len(queue)-1]
		queue = queue[:len(queue)-1]
		for _, f := range p.ElementFactors(e) {
			if v := &p.Vectors[f]; v.Kind == InputVector && p.Inputs[v.Def].Codes == 0 {
				open(f)
			}
		}
	}
	return elements, leaves
}
