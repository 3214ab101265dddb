package run

import (
	"encoding/hex"
	"fmt"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format/native"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
)

// Info describes a circuit and its program.
type Info struct {
	Variables  int   `json:"variables"`
	Nodes      int64 `json:"nodes"` // input and sum units
	Edges      int64 `json:"edges"` // sum and product edges
	Parameters int64 `json:"parameters"`
	SumEdges   int64 `json:"sum_edges"`
	Depth      int   `json:"depth"`
	// PublishedNodes and PublishedEdges count a pd circuit as PyJuice's paper
	// does; 0 for other structures.
	PublishedNodes int64 `json:"published_nodes,omitempty"`
	PublishedEdges int64 `json:"published_edges,omitempty"`

	Leaves     map[string]int  `json:"leaves"` // input nodes by family
	Properties map[string]bool `json:"properties"`
	Queries    []QueryInfo     `json:"queries"`

	Structure      string         `json:"structure_digest"` // of the graph
	Program        string         `json:"program_digest"`
	CompileSeconds float64        `json:"compile_seconds"`
	BlockSize      int            `json:"block_size"`
	PaddingWaste   float64        `json:"padding_waste"` // share of the multiplied weights that is padding
	Compile        compile.Report `json:"compile"`
	Memory         MemoryPlan     `json:"memory"`
}

// QueryInfo says how a circuit answers a query.
type QueryInfo struct {
	Name    string `json:"name"` // the command: pce query NAME
	Allowed bool   `json:"allowed"`
	Exact   bool   `json:"exact"` // but for the rounding of float32
	Needs   string `json:"needs"` // what an exact answer needs of the circuit
}

// MaxStates is the most complete rows that are evaluated for an expectation in place of
// drawn ones.
const MaxStates = 1 << 16

// States is the number of complete rows of a schema; 0 if it is not finite or beyond
// MaxStates².
func States(s *dataset.Schema) int {
	n := 1
	for i := range s.Columns {
		c := &s.Columns[i]
		if c.Kind != dataset.Discrete || n > MaxStates*MaxStates/c.Categories {
			return 0
		}
		n *= c.Categories
	}
	return n
}

// Queries says how the circuit answers each of the queries that there are.
func (b *Blueprint) Queries() []QueryInfo { return b.queries(circuit.Properties(b.Graph)) }

func (b *Blueprint) queries(p circuit.Props) []QueryInfo {
	tractable := p.Smooth && p.Decomposable
	states := States(b.Schema)
	few := tractable && states > 0 && states <= MaxStates
	const both = "smooth and decomposable"
	certain := "deterministic"
	if b.binned() {
		certain = "without bins of values, whose probabilities are not densities"
	}
	finite := fmt.Sprintf("of at most %d complete rows", MaxStates)
	return []QueryInfo{
		{QueryClass, tractable, tractable, both},
		{QueryConditional, tractable, tractable, both},
		{"entropy", tractable, few, finite},
		{"kl", tractable, few, finite},
		{QueryLogLikelihood, tractable, tractable, both},
		{QueryMoments, tractable, tractable, both},
		{QueryMPE, tractable, tractable && b.mpeExact(p), certain},
		{"sample", tractable, tractable, both},
	}
}

func (b *Blueprint) sizes() circuit.Stats { return circuit.Count(b.Graph) }

// Info describes the circuit, and what it takes to run it as l says.
func (b *Blueprint) Info(l Load) (*Info, error) {
	s, p := b.sizes(), circuit.Properties(b.Graph)
	memory, err := b.Memory(l)
	if err != nil {
		return nil, err
	}
	structure, err := native.Digest(b.Graph)
	if err != nil {
		return nil, err
	}
	program := b.Program.Digest()
	i := &Info{
		Variables:  b.Graph.NumVars,
		Nodes:      s.Nodes(),
		Edges:      s.Edges(),
		Parameters: s.Params(),
		SumEdges:   s.SumEdges,
		Depth:      s.Depth,
		Leaves:     map[string]int{},
		Properties: map[string]bool{
			"smooth":                  p.Smooth,
			"decomposable":            p.Decomposable,
			"total_scope":             p.TotalScope,
			"deterministic":           p.Deterministic,
			"structured_decomposable": p.StructuredDecomposable,
		},
		Structure:      hex.EncodeToString(structure[:]),
		Program:        hex.EncodeToString(program[:]),
		CompileSeconds: b.CompileTime.Seconds(),
		BlockSize:      b.Program.BlockSize,
		Compile:        b.Report,
		Memory:         memory,
		Queries:        b.queries(p),
	}
	if b.Report.PaddedEdges > 0 {
		i.PaddingWaste = 1 - float64(b.Report.Edges)/float64(b.Report.PaddedEdges)
	}
	for k := range b.Graph.Nodes {
		if n := &b.Graph.Nodes[k]; n.Kind == circuit.Input {
			i.Leaves[n.Leaf.Name()]++
		}
	}
	if b.pd != nil {
		o, err := b.pd.pd(b.Schema)
		if err != nil {
			return nil, err
		}
		if i.PublishedNodes, i.PublishedEdges, err = structures.PublishedPDSize(o); err != nil {
			return nil, err
		}
	}
	return i, nil
}
