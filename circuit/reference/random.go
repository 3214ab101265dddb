package reference

import (
	"math/rand/v2"
	"slices"

	"github.com/pce-engine/pce/circuit"
)

// RandomOptions bound random circuits; a zero field means its default.
type RandomOptions struct {
	Vars     int     // number of variables; default 1 to 8
	MaxUnits int     // units of one node; default 40
	MaxCodes int     // codes of a discrete variable; default 5
	MaxNodes int     // beyond it only what is needed is added; default 60
	Discrete bool    // finite domains only, so that States works
	Positive bool    // no indicators: every state has positive probability
	Dense    bool    // no block-sparse sums
	Untied   bool    // no tied parameters
	Breaks   bool    // also histograms with breaks of their own
	Reuse    float64 // chance to use an existing node where one fits; default 0.3
}

func (o RandomOptions) withDefaults(rng *rand.Rand) RandomOptions {
	orInt := func(x *int, d int) {
		if *x == 0 {
			*x = d
		}
	}
	orInt(&o.Vars, 1+rng.IntN(8))
	orInt(&o.MaxUnits, 40)
	orInt(&o.MaxCodes, 5)
	orInt(&o.MaxNodes, 60)
	if o.Reuse == 0 {
		o.Reuse = 0.3
	}
	return o
}

// Random returns a random valid circuit over all variables, for tests of whole
// pipelines: leaves of all families, nodes of 1 to MaxUnits units, products of
// one to many children, sums of several children that are inputs, products or
// sums, inputs and products with several parents, dense and block-sparse sums
// with and without mask, and tied inputs and sums. Equal random states and
// options give equal circuits.
func Random(rng *rand.Rand, o RandomOptions) *circuit.Graph {
	o = o.withDefaults(rng)
	b := &randomBuilder{
		rng: rng, o: o,
		g:       &circuit.Graph{NumVars: o.Vars},
		byScope: map[string][]circuit.NodeID{},
	}
	// Few sizes, so that shapes repeat and nodes can be shared and tied.
	for range 1 + rng.IntN(3) {
		b.sizes = append(b.sizes, 1+rng.IntN(o.MaxUnits))
	}
	for v := range o.Vars {
		b.families = append(b.families, b.family(v))
	}
	vars := rng.Perm(o.Vars)
	b.g.Root = b.sum(vars, 1, true)
	return b.g
}

type randomBuilder struct {
	rng      *rand.Rand
	o        RandomOptions
	g        *circuit.Graph
	sizes    []int
	families [][]circuit.Leaf // [variable]: leaves of one domain
	byScope  map[string][]circuit.NodeID
}

func (b *randomBuilder) chance(p float64) bool { return b.rng.Float64() < p }

func (b *randomBuilder) size() int { return b.sizes[b.rng.IntN(len(b.sizes))] }

// family draws the domain of a variable and leaves that share it; often that of
// the variable before, so that inputs can be tied.
func (b *randomBuilder) family(v int) []circuit.Leaf {
	if v > 0 && b.chance(0.5) {
		return b.families[v-1]
	}
	if b.o.Breaks && b.chance(0.5) {
		return b.histograms()
	}
	if !b.o.Discrete && b.chance(0.3) {
		if b.chance(0.3) {
			return []circuit.Leaf{circuit.Poisson{}}
		}
		if b.chance(0.3) {
			return []circuit.Leaf{circuit.LogNormal{}, circuit.LogNormal{MinSigma: 0.125}}
		}
		return []circuit.Leaf{circuit.Gaussian{}, circuit.Gaussian{MinSigma: 0.125}}
	}
	codes := 2
	if b.o.MaxCodes > 2 {
		codes += b.rng.IntN(b.o.MaxCodes - 1)
	}
	edges := []int{0}
	for e := 1; e <= codes; e++ {
		if e == codes || b.chance(0.5) {
			edges = append(edges, e)
		}
	}
	leaves := []circuit.Leaf{
		circuit.Categorical{Categories: codes},
		circuit.Binomial{Trials: codes - 1},
		circuit.Histogram{Edges: edges},
		circuit.DiscretisedLogistic{Domain: codes},
	}
	if codes == 2 {
		leaves = append(leaves, circuit.Bernoulli{})
	}
	// Two of them for each variable, so that equal leaves meet.
	b.rng.Shuffle(len(leaves), func(i, j int) { leaves[i], leaves[j] = leaves[j], leaves[i] })
	return leaves[:2]
}

// histograms draws two leaves with different breaks, which are whole in both or in none.
func (b *randomBuilder) histograms() []circuit.Leaf {
	start, unit := -0.75, 0.375
	if b.chance(0.5) {
		start, unit = -1, 1
	}
	var leaves []circuit.Leaf
	for range 2 {
		breaks := []float64{start + unit*float64(b.rng.IntN(3))}
		for range 1 + b.rng.IntN(3) {
			breaks = append(breaks, breaks[len(breaks)-1]+unit*float64(1+b.rng.IntN(3)))
		}
		leaves = append(leaves, circuit.RealHistogram{Breaks: breaks, Floor: 0x1p-52})
	}
	return leaves
}

func scopeKey(vars []int) string {
	key := make([]byte, 0, 2*len(vars))
	for _, v := range slices.Sorted(slices.Values(vars)) {
		key = append(key, byte(v), byte(v>>8), byte(v>>16), byte(v>>24))
	}
	return string(key)
}

func (b *randomBuilder) add(vars []int, n circuit.Node) circuit.NodeID {
	id := circuit.NodeID(len(b.g.Nodes))
	b.g.Nodes = append(b.g.Nodes, n)
	if !b.o.Untied && n.Kind != circuit.Product && b.chance(0.5) {
		b.tie(id)
	}
	key := scopeKey(vars)
	b.byScope[key] = append(b.byScope[key], id)
	return id
}

// tie ties a new node to the first node of the same shape, if there is one.
func (b *randomBuilder) tie(id circuit.NodeID) {
	n := &b.g.Nodes[id]
	for t := range id {
		m := &b.g.Nodes[t]
		if m.Kind != n.Kind || m.Tie.Node() != circuit.None || m.Units != n.Units || len(m.Children) != len(n.Children) {
			continue
		}
		if n.Kind == circuit.Input && !circuit.SameLeaf(m.Leaf, n.Leaf) {
			continue
		}
		same := true
		for k, c := range n.Children {
			same = same && b.g.Nodes[c].Units == b.g.Nodes[m.Children[k]].Units
		}
		if same {
			n.Tie, n.Edges = circuit.TieTo(t), m.Edges
			return
		}
	}
}

// existing returns a node of the scope that passes fits, or None.
func (b *randomBuilder) existing(vars []int, fits func(n *circuit.Node) bool) circuit.NodeID {
	list := b.byScope[scopeKey(vars)]
	for _, k := range b.rng.Perm(len(list)) {
		if fits(&b.g.Nodes[list[k]]) {
			return list[k]
		}
	}
	return circuit.None
}

// node returns a node of the scope with the given units, of any kind.
func (b *randomBuilder) node(vars []int, units int) circuit.NodeID {
	full := len(b.g.Nodes) >= b.o.MaxNodes
	if full || b.chance(b.o.Reuse) {
		if id := b.existing(vars, func(n *circuit.Node) bool { return n.Units == units }); id != circuit.None {
			return id
		}
	}
	switch {
	case len(vars) == 1 && (full || b.chance(0.7)):
		return b.input(vars[0], units)
	case len(vars) > 1 && (full || b.chance(0.15)):
		return b.product(vars, units)
	}
	return b.sum(vars, units, false)
}

func (b *randomBuilder) input(v, units int) circuit.NodeID {
	leaf := b.families[v][b.rng.IntN(len(b.families[v]))]
	if codes := leaf.Codes(); codes > 0 && !b.o.Positive && b.chance(0.1) {
		leaf = circuit.Indicator{Domain: codes, Value: b.rng.IntN(codes)}
	}
	return b.add([]int{v}, circuit.Node{Kind: circuit.Input, Units: units, Var: v, Leaf: leaf})
}

// product returns a product over vars, which are divided at random; now and then it has one
// child alone, over all of them, as circuits may.
func (b *randomBuilder) product(vars []int, units int) circuit.NodeID {
	parts := 1
	if len(vars) > 1 && !b.chance(0.05) {
		parts = 2
		if b.chance(0.3) {
			parts = 2 + b.rng.IntN(len(vars)-1)
		}
	}
	var children []circuit.NodeID
	vars = slices.Clone(vars)
	b.rng.Shuffle(len(vars), func(i, j int) { vars[i], vars[j] = vars[j], vars[i] })
	for k := range parts {
		from, to := k*len(vars)/parts, (k+1)*len(vars)/parts
		if parts == 1 {
			children = append(children, b.sum(vars, units, true))
		} else {
			children = append(children, b.node(vars[from:to], units))
		}
	}
	return b.add(vars, circuit.Node{Kind: circuit.Product, Units: units, Children: children})
}

// sum adds a sum; with deeper set its children are inputs or products, so that
// the recursion ends.
func (b *randomBuilder) sum(vars []int, units int, deeper bool) circuit.NodeID {
	full := len(b.g.Nodes) >= b.o.MaxNodes
	count := 1
	if !full {
		count += b.rng.IntN(4)
	}
	var children []circuit.NodeID
	for range count {
		size := b.size()
		if b.chance(b.o.Reuse) {
			if id := b.existing(vars, func(*circuit.Node) bool { return true }); id != circuit.None && !slices.Contains(children, id) {
				children = append(children, id)
				continue
			}
		}
		switch {
		case !deeper && !full && b.chance(0.15):
			children = append(children, b.sum(vars, size, true))
		case len(vars) == 1:
			children = append(children, b.input(vars[0], size))
		default:
			children = append(children, b.product(vars, size))
		}
	}
	n := circuit.Node{Kind: circuit.Sum, Units: units, Children: children}
	if !b.o.Dense && b.chance(0.4) {
		n.Edges = b.edges(&n)
	}
	return b.add(vars, n)
}

// edges draws blocks that divide the sum's shape; they may straddle children.
func (b *randomBuilder) edges(n *circuit.Node) *circuit.Edges {
	columns := 0
	for _, c := range n.Children {
		columns += b.g.Nodes[c].Units
	}
	e := &circuit.Edges{Rows: b.divisor(n.Units), Cols: b.divisor(columns)}
	rows, cols := n.Units/e.Rows, columns/e.Cols
	for r := range rows {
		must := b.rng.IntN(cols)
		for c := range cols {
			if c == must || b.chance(0.4) {
				e.Pairs = append(e.Pairs, [2]int32{int32(r), int32(c)})
			}
		}
	}
	if b.chance(0.5) {
		e.Mask = b.mask(e)
	}
	return e
}

func (b *randomBuilder) divisor(n int) int {
	var divisors []int
	for d := 1; d <= n; d++ {
		if n%d == 0 {
			divisors = append(divisors, d)
		}
	}
	return divisors[b.rng.IntN(len(divisors))]
}

// mask keeps one weight of every row of every block, and others by chance.
func (b *randomBuilder) mask(e *circuit.Edges) []uint64 {
	weights := len(e.Pairs) * e.Rows * e.Cols
	mask := make([]uint64, (weights+63)/64)
	for row := 0; row < weights; row += e.Cols {
		must := b.rng.IntN(e.Cols)
		for c := range e.Cols {
			if c == must || b.chance(0.5) {
				mask[(row+c)>>6] |= 1 << (uint(row+c) & 63)
			}
		}
	}
	return mask
}

// Chain returns a deterministic circuit with random parameters: a Markov chain of that many
// variables and codes, in which unit u of a variable's input is certain of code u, so
// that a row has one product of each sum.
func Chain(rng *rand.Rand, vars, codes int) (*circuit.Graph, Params) {
	g, p := &circuit.Graph{NumVars: vars}, Params{}
	add := func(n circuit.Node, params []float64) circuit.NodeID {
		g.Nodes, p = append(g.Nodes, n), append(p, params)
		return circuit.NodeID(len(g.Nodes) - 1)
	}
	for v := range vars {
		certain := make([]float64, codes*codes)
		for u := range codes {
			certain[u*codes+u] = 1
		}
		x := add(circuit.Node{Kind: circuit.Input, Units: codes, Var: v, Leaf: circuit.Categorical{Categories: codes}}, certain)
		if v > 0 {
			x = add(circuit.Node{Kind: circuit.Product, Units: codes, Children: []circuit.NodeID{x, g.Root}}, nil)
		}
		units := codes
		if v == vars-1 {
			units = 1
		}
		weights := make([]float64, units*codes)
		for u := range units {
			total := 0.0
			for c := range codes {
				weights[u*codes+c] = 0.05 + rng.Float64()
				total += weights[u*codes+c]
			}
			for c := range codes {
				weights[u*codes+c] = float64(float32(weights[u*codes+c] / total))
			}
		}
		g.Root = add(circuit.Node{Kind: circuit.Sum, Units: units, Children: []circuit.NodeID{x}}, weights)
	}
	return g, p
}
