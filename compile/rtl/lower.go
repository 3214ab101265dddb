package rtl

// lower makes operators of a network whose root is a form, and finishes the datapath.
func (n *network) lower(root form) {
	d := n.d
	root.scale = n.absorb(root)
	values := make([]int32, len(n.nodes))
	needed := n.readers(root)
	for i := range n.nodes {
		x := &n.nodes[i]
		if needed[i] == 0 {
			continue
		}
		operands := make([]int32, len(x.forms))
		for k, f := range x.forms {
			operands[k] = n.lowerForm(f, values)
		}
		switch x.kind {
		case group:
			values[i] = operands[0]
		case sumNode:
			values[i] = d.reduce(Sum, operands)
		default:
			values[i] = n.lowerSelection(x, operands)
		}
	}
	d.finish(n.lowerForm(root, values))
}

// lowerForm multiplies the tables of a form, packed, its nodes, and a scale that no table took.
func (n *network) lowerForm(f form, values []int32) int32 {
	d := n.d
	var operands []int32
	for k, t := range n.pack(f.tables) {
		if k == 0 && f.scale != 1 {
			t, f.scale = d.scaled(t, f.scale), 1
		}
		operands = append(operands, d.lookup(t))
	}
	for _, a := range f.args {
		operands = append(operands, values[a])
	}
	if f.scale != 1 || len(operands) == 0 {
		operands = append(operands, d.constant(f.scale))
	}
	return d.reduce(Mul, operands)
}

// lowerSelection makes a tree of selections among two: each halves the list of alternatives.
func (n *network) lowerSelection(x *netNode, operands []int32) int32 {
	var pick func(from, to int) int32
	pick = func(from, to int) int32 {
		if to-from == 1 {
			return operands[from]
		}
		half := (from + to) / 2
		a, b := pick(from, half), pick(half, to)
		if a == b {
			return a
		}
		choose := make([]bool, len(x.choose))
		for code, k := range x.choose {
			choose[code] = int(k) >= half
		}
		n.d.Columns[x.column].read = true
		return n.d.add(Op{Kind: Select, A: a, B: b, Column: x.column, Choose: choose})
	}
	return pick(0, len(operands))
}

// readers counts the operands that are each node, among what the root needs.
func (n *network) readers(root form) []int {
	count := make([]int, len(n.nodes))
	for _, a := range root.args {
		count[a]++
	}
	for i := len(n.nodes) - 1; i >= 0; i-- {
		if count[i] == 0 {
			continue
		}
		for _, f := range n.nodes[i].forms {
			for _, a := range f.args {
				count[a]++
			}
		}
	}
	return count
}

// absorb moves scales down until tables take them, and returns what is left of the root's. A
// node takes a scale if it has one reader and all its forms have a table or a node that does.
func (n *network) absorb(root form) float64 {
	readers := n.readers(root)
	takes := make([]bool, len(n.nodes))
	taker := func(f form) int32 {
		for _, a := range f.args {
			if readers[a] == 1 && takes[a] {
				return a
			}
		}
		return -1
	}
	for i := range n.nodes {
		takes[i] = readers[i] > 0
		for _, f := range n.nodes[i].forms {
			number := len(f.tables)+len(f.args) == 0
			takes[i] = takes[i] && (number || len(f.tables) > 0 || taker(f) >= 0)
		}
	}
	push := func(f form) float64 {
		if a := taker(f); f.scale != 1 && len(f.tables) == 0 && a >= 0 {
			for k := range n.nodes[a].forms {
				g := &n.nodes[a].forms[k]
				g.scale = n.d.product(g.scale, f.scale)
			}
			return 1
		}
		return f.scale
	}
	left := push(root)
	for i := len(n.nodes) - 1; i >= 0; i-- {
		if readers[i] == 0 {
			continue
		}
		for k, f := range n.nodes[i].forms {
			n.nodes[i].forms[k].scale = push(f)
		}
	}
	return left
}
