package tensor_test

import (
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
)

// sketch builds a circuit by hand.
type sketch struct {
	circuit.Graph
	units int
}

func (s *sketch) add(n circuit.Node) circuit.NodeID {
	if n.Units == 0 {
		n.Units = s.units
	}
	s.Nodes = append(s.Nodes, n)
	s.Root = circuit.NodeID(len(s.Nodes) - 1)
	return s.Root
}

// input adds leaves of a new variable.
func (s *sketch) input(l circuit.Leaf) circuit.NodeID {
	s.NumVars++
	return s.add(circuit.Node{Kind: circuit.Input, Var: s.NumVars - 1, Leaf: l})
}

func (s *sketch) product(children ...circuit.NodeID) circuit.NodeID {
	return s.add(circuit.Node{Kind: circuit.Product, Children: children})
}

func (s *sketch) sum(children ...circuit.NodeID) circuit.NodeID {
	return s.add(circuit.Node{Kind: circuit.Sum, Children: children})
}

// root adds a sum of one unit.
func (s *sketch) root(children ...circuit.NodeID) *circuit.Graph {
	s.add(circuit.Node{Kind: circuit.Sum, Units: 1, Children: children})
	return &s.Graph
}

// leaves is a circuit with leaves of every family, with tables of any size and
// without, each with others that share their parameters.
func leaves(units int) *circuit.Graph {
	s := &sketch{units: units}
	first := s.input(circuit.Indicator{Domain: 3, Value: 1})
	second := s.add(circuit.Node{Kind: circuit.Input, Var: 0, Leaf: circuit.Categorical{Categories: 3}})
	var list []circuit.NodeID
	bins := []int{0, 2, 3, 4, 8, 12, 13, 20, 21, 30}
	for _, l := range []circuit.Leaf{
		circuit.Categorical{Categories: 41}, circuit.Binomial{Trials: 42}, circuit.Histogram{Edges: append(bins, 43)},
		circuit.DiscretisedLogistic{Domain: 44}, circuit.Gaussian{MinSigma: 0.125}, circuit.Poisson{},
		circuit.LogNormal{MinSigma: 0.125}, circuit.Categorical{Categories: 5},
		circuit.Categorical{Categories: 270}, circuit.DiscretisedLogistic{Domain: 271},
		circuit.Histogram{Edges: append(bins, 270)}, circuit.Binomial{Trials: 270},
	} {
		at, twin := s.input(l), s.input(l)
		s.Nodes[twin].Tie = circuit.TieTo(at)
		list = append(list, s.product(at, twin))
	}
	last := len(list) - 1
	all := []circuit.NodeID{list[0], list[last]}
	for i := 1; i < last; i += 2 {
		all = append(all, s.sum(s.product(list[i], list[i+1])))
	}
	return s.root(s.product(append(all, first)...), s.product(append(all, second)...))
}

// vocabulary is a circuit with a table so large that several blocks of threads share
// its counts, and with a leaf that shares it.
func vocabulary() *circuit.Graph {
	s := &sketch{units: 3}
	at := s.input(circuit.Categorical{Categories: tensor.PartedCodes + 7})
	twin := s.input(circuit.Categorical{Categories: tensor.PartedCodes + 7})
	s.Nodes[twin].Tie = circuit.TieTo(at)
	return s.root(s.product(at, s.sum(twin)))
}

// halves is a circuit of two halves that share their parameters: with a stored
// product, sums of several elements and of some blocks, weights that a mask
// leaves out, vectors with several users, and products of many factors.
func halves(units int) *circuit.Graph {
	s := &sketch{units: units}
	side := units / 3 // of blocks
	edges := &circuit.Edges{Rows: side, Cols: side}
	for r := range int32(3) {
		for c := range r + 1 {
			edges.Pairs = append(edges.Pairs, [2]int32{r, c})
		}
	}
	weights := len(edges.Pairs) * side * side
	edges.Mask = make([]uint64, (weights+63)/64)
	for i := range weights {
		if i%3 != 1 {
			edges.Mask[i/64] |= 1 << (i % 64)
		}
	}
	half := func() (dense, sparse circuit.NodeID) {
		var five []circuit.NodeID
		for range 5 {
			five = append(five, s.input(circuit.Categorical{Categories: 3}))
		}
		stored := s.product(five...)
		a, b := s.sum(stored), s.sum(stored)
		s.Nodes[b].Edges = edges
		x, y, z := s.input(circuit.Gaussian{}), s.input(circuit.Categorical{Categories: 5}), s.input(circuit.Categorical{Categories: 2})
		first, second := s.product(a, x, y, z), s.product(s.product(b, x), s.sum(s.product(y, z)))
		dense, sparse = s.sum(first, second), s.sum(first)
		s.Nodes[sparse].Edges = edges
		return dense, sparse
	}
	a, b := half()
	n := circuit.NodeID(len(s.Nodes))
	c, d := half()
	for i := n; i < 2*n; i++ {
		if s.Nodes[i].Kind != circuit.Product {
			s.Nodes[i].Tie = circuit.TieTo(i - n)
		}
	}
	return s.root(s.product(a, c), s.product(b, d), s.product(a, d))
}

// elements is a circuit of products of one to five factors, tabulated leaves and
// other vectors in every place, some of them stored. A sum of outputs units has all.
func elements(units, outputs int) *circuit.Graph {
	s := &sketch{units: units}
	var leaf, vector []circuit.NodeID
	for v := range 5 {
		leaf = append(leaf, s.input(circuit.Categorical{Categories: 3}))
		vector = append(vector, s.sum(leaf[v]))
	}
	// pick takes the leaf of a variable for a 0 and the sum for a 1.
	pick := func(from int, kinds ...int) (list []circuit.NodeID) {
		for i, k := range kinds {
			list = append(list, [2]circuit.NodeID{leaf[from+i], vector[from+i]}[k])
		}
		return list
	}
	five := func(kinds ...int) circuit.NodeID { return s.product(pick(0, kinds...)...) }
	two := s.sum(s.product(pick(1, 1, 0)...), s.product(pick(1, 0, 1)...))
	last := s.sum(s.product(pick(3, 0, 0)...), s.product(pick(3, 1, 1)...))
	four := s.sum(s.product(two, last), s.product(pick(1, 0, 1, 0, 1)...), s.product(pick(1, 1, 0, 1, 0)...))
	stored := []circuit.NodeID{five(0, 1, 0, 1, 0), five(1, 0, 1, 0, 1)}
	all := []circuit.NodeID{
		s.sum(stored...), s.product(leaf[0], four), s.product(four, leaf[0]), s.product(vector[0], four),
		s.product(leaf[0], two, last), s.product(two, leaf[0], last), s.product(two, last, leaf[0]), s.product(two, vector[0], last),
		s.product(leaf[0], leaf[1], s.sum(s.product(leaf[2], last))),
		s.product(vector[0], two, leaf[3], vector[4]), s.product(leaf[0], two, vector[3], leaf[4]),
		five(0, 0, 0, 0, 0), five(1, 1, 1, 1, 1), five(0, 1, 1, 0, 1), five(1, 0, 0, 1, 0),
	}
	other := s.sum(stored...)
	s.units = outputs
	return s.root(s.sum(all...), other)
}

// sharp leaves are far apart in a harsh circuit.
var sharp = circuit.Gaussian{MinSigma: 1e-4}

// wide is a circuit with more columns, and more units, than a block of threads does
// at once; tall has many units of few columns.
func wide() *circuit.Graph { return layer(260, 70) }
func tall() *circuit.Graph { return layer(40, 260) }

// broad has more columns than stay in shared memory.
func broad() *circuit.Graph { return layer(520, 70) }

func layer(columns, units int) *circuit.Graph {
	s := &sketch{units: columns}
	both := s.product(s.input(circuit.Categorical{Categories: 3}), s.input(sharp))
	s.units = units
	return s.root(s.sum(both))
}

// many is a circuit with more sums in a level, and more factors in a product, than
// a block of threads looks at once.
func many() *circuit.Graph {
	s := &sketch{units: 2}
	var all []circuit.NodeID
	for range 260 {
		all = append(all, s.sum(s.input(circuit.Categorical{Categories: 2})))
	}
	return s.root(s.product(all...))
}

// band is a circuit of a sum whose blocks each read two of their own: with more groups
// than a warp looks at once.
func band(block int) *circuit.Graph {
	const blocks = 40
	s := &sketch{units: blocks * block}
	edges := &circuit.Edges{Rows: block, Cols: block}
	for r := range int32(blocks) {
		edges.Pairs = append(edges.Pairs, [2]int32{r, min(r, blocks-2)}, [2]int32{r, min(r, blocks-2) + 1})
	}
	both := s.sum(s.input(circuit.Categorical{Categories: 3}))
	s.Nodes[both].Edges = edges
	return s.root(s.product(both, s.input(circuit.Categorical{Categories: 3})))
}

// notched is a circuit of a sum of products of five factors whose four row blocks read
// four column blocks, and one of their own: nobody forms its products for all of them.
func notched(block int) *circuit.Graph {
	s := &sketch{units: 8 * block}
	var five []circuit.NodeID
	for i := range 5 {
		five = append(five, s.input(circuit.Categorical{Categories: 2 + i}))
	}
	both := s.product(five...)
	s.units = 4 * block
	at := s.sum(both)
	s.Nodes[at].Edges = &circuit.Edges{Rows: block, Cols: block}
	for r := range int32(4) {
		s.Nodes[at].Edges.Pairs = append(s.Nodes[at].Edges.Pairs, [2]int32{r, 0}, [2]int32{r, 1}, [2]int32{r, 2}, [2]int32{r, 3}, [2]int32{r, 4 + r})
	}
	return s.root(at)
}

// far is a circuit of two halves, each with two units that are too small beside the
// other two even for float64.
func far() *circuit.Graph {
	s := &sketch{units: 4}
	half := func() circuit.NodeID {
		var list []circuit.NodeID
		for range farLeaves {
			list = append(list, s.input(distant))
		}
		list = append(list, s.input(circuit.Categorical{Categories: 3})) // tells like units apart
		at := s.sum(s.product(list...))
		s.Nodes[at].Edges = &circuit.Edges{Rows: 2, Cols: 2, Pairs: [][2]int32{{0, 0}, {1, 1}}}
		return at
	}
	return s.root(s.product(half(), half()))
}

// distant leaves are those of far, of which each half has farLeaves.
var distant = circuit.Categorical{Categories: 6}

const farLeaves = 24

// top is a circuit whose root is a leaf, or a product: of tabulated leaves for a 0,
// of sums for a 1, of other leaves for a 2.
func top(kinds ...int) *circuit.Graph {
	s := &sketch{units: 1}
	var list []circuit.NodeID
	for _, k := range kinds {
		at := s.input(circuit.Categorical{Categories: 3})
		switch k {
		case 1:
			at = s.sum(at)
		case 2:
			s.Nodes[at].Leaf = circuit.Gaussian{}
		}
		list = append(list, at)
	}
	if len(list) > 1 {
		s.product(list...)
	}
	return &s.Graph
}

// alphabets is a circuit of variables of which each has more codes than the one before.
func alphabets(units int) *circuit.Graph {
	s := &sketch{units: units}
	var sums []circuit.NodeID
	for _, codes := range []int{7, 12, 24, 40, 70} {
		sums = append(sums, s.sum(s.input(circuit.Categorical{Categories: codes})))
	}
	return s.root(s.product(s.sum(s.product(sums[:3]...)), s.sum(s.product(sums[3:]...))))
}

// trio is a circuit of three variables.
func trio(units int) *circuit.Graph {
	s := &sketch{units: units}
	x, y, z := s.input(circuit.Categorical{Categories: 3}), s.input(circuit.Gaussian{}), s.input(circuit.Poisson{})
	return s.root(s.product(x, s.sum(y), z), s.product(s.sum(x), y, z))
}
