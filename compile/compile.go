package compile

import (
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/layers"
)

// pass is one step of compilation: it reads and extends the state and says in
// a few words what it did.
type pass struct {
	name string
	run  func(*state) (string, error)
}

// passes is the whole compiler, in order. A pass is in the file of its name;
// what it does to small circuits is in testdata under the same name.
var passes = []pass{
	{"validate", validate},
	{"canonicalise", canonicalise},
	{"levelize", levelize},
	{"blockify", blockify},
	{"tie", tie},
	{"edges", edges},
	{"partition", partition},
	{"index forward", indexForward},
	{"index backward", indexBackward},
	{"check", check},
}

// PassReport says what one pass did.
type PassReport struct {
	Pass string `json:"pass"`
	Did  string `json:"did"`
}

// LayerReport describes the sum partitions of one layer.
type LayerReport struct {
	Depth       int   `json:"depth"`
	NodeBlocks  int   `json:"node_blocks"`
	ChildCounts []int `json:"child_counts"` // distinct numbers of child blocks, ascending
	Groups      []int `json:"groups"`       // the capacities they are padded to
	Edges       int64 `json:"edges"`        // in blocks
	Padded      int64 `json:"padded"`       // in blocks, padding of the rows included
	// Rounded is the padding, in blocks, that comes from too many distinct
	// counts, which are rounded up before they are grouped.
	Rounded int64 `json:"rounded,omitempty"`
}

// Report says what compilation did.
type Report struct {
	Passes []PassReport  `json:"passes"`
	Layers []LayerReport `json:"layers"`
	// Edges are the weights that exist, PaddedEdges those that the rows of partitions have room for. Kernels multiply the
	// blocks that there are, those of LayerReport.Edges.
	Edges       int64 `json:"edges"`
	PaddedEdges int64 `json:"padded_edges"`
}

// Result is a compiled circuit.
type Result struct {
	Program *layers.Program
	Map     *ParamMap
	Report  Report
}

// state is what the passes read and write.
type state struct {
	graph *circuit.Graph
	opts  Options
	nodes []node // vectors in the making, children before parents
	// The factors of all operands, one operand after another: indices into nodes.
	// Operand k has factors[cuts[k]:cuts[k+1]].
	factors, cuts []int32
	index         []int32 // graph node → nodes, -1 where it is no vector
	prog          *layers.Program
	// columns finds the batch column of a variable and its number of codes;
	// codeSlots and valueSlots count the columns of either sort.
	columns               map[[2]int32]int32
	codeSlots, valueSlots int32
	blks                  [][]edgeBlock // by owning sum: its edge blocks in storage order
	pmap                  *ParamMap
	parts                 []layerParts
	rep                   Report
}

func newState(g *circuit.Graph, opts Options) *state {
	return &state{graph: g, opts: opts, cuts: []int32{0}, columns: make(map[[2]int32]int32)}
}

// Compile turns a graph into a program. Cost is linear in blocks of edges;
// parameters are not touched.
func Compile(g *circuit.Graph, opts Options) (*Result, error) {
	s := newState(g, opts)
	for _, p := range passes {
		did, err := p.run(s)
		if err != nil {
			return nil, err
		}
		s.rep.Passes = append(s.rep.Passes, PassReport{p.name, did})
	}
	return &Result{Program: s.prog, Map: s.pmap, Report: s.rep}, nil
}
