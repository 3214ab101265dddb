package run

import (
	"encoding/hex"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format/native"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
)

// Info describes a circuit and its program: what pce info prints, with --json as it is here.
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

	Path string    `json:"path"`           // tensor or code
	Code *CodeInfo `json:"code,omitempty"` // on the path of code

	Structure      string         `json:"structure_digest"` // of the graph; empty where it has leaves of another package
	Program        string         `json:"program_digest"`
	CompileSeconds float64        `json:"compile_seconds"`
	BlockSize      int            `json:"block_size"`
	PaddingWaste   float64        `json:"padding_waste"` // share of the multiplied weights that is padding
	Compile        compile.Report `json:"compile"`
	Memory         MemoryPlan     `json:"memory"`
}

// QueryInfo says whether and how exactly a circuit answers a query, and on which properties
// that depends.
type QueryInfo struct {
	Name    string `json:"name"` // the command: pce query NAME
	Allowed bool   `json:"allowed"`
	Exact   bool   `json:"exact"` // but for the rounding of float32
	Needs   string `json:"needs"` // what an exact answer needs of the circuit
	Soft    bool   `json:"soft"`  // evidence may be a range, a set or likelihoods, as of Options.Soft
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

// StatesOf is States without the columns that no leaf reads, whose domains are -1 as circuit.RootDomains has them: rows that differ
// in these alone are one.
func StatesOf(s *dataset.Schema, domains []int) int {
	n := States(s)
	for v, codes := range domains {
		if n > 0 && codes < 0 {
			n /= s.Columns[v].Categories
		}
	}
	return n
}

// Queries says how the circuit answers each of the queries that there are.
func (b *Blueprint) Queries() []QueryInfo { return b.queries(circuit.Properties(b.Graph)) }

// queries says for each kind of query whether the circuit allows it and whether its answer is
// exact, and on what that depends: the properties p, the number of complete rows and the
// leaves. Info and Queries call it; pce info prints it.
func (b *Blueprint) queries(p circuit.Props) []QueryInfo {
	tractable := p.Smooth && p.Decomposable
	states := States(b.Schema)
	few := tractable && states > 0 && states <= MaxStates
	const both = "smooth and decomposable"
	if b.Code != nil && b.tensor == nil {
		const tensor = "on the tensor path"
		list := []QueryInfo{{QueryLogLikelihood, tractable, tractable, both, false}}
		list = append(list, QueryInfo{QueryClass, tractable, tractable, both, false})
		for _, name := range []string{QueryConditional, QueryEntropy, QueryExpect, QueryKL, QueryMoments, QueryMPE, QueryQuantiles, QuerySample} {
			list = append(list, QueryInfo{name, false, false, tensor, false})
		}
		slices.SortFunc(list, func(a, b QueryInfo) int { return strings.Compare(a.Name, b.Name) })
		return list
	}
	certain := "deterministic"
	if b.binned() {
		certain = "deterministic and without leaves over bins of values"
	}
	finite := fmt.Sprintf("small (at most %d complete rows)", MaxStates)
	alike := finite + ", or " + certain + " and of the other's structure"
	return []QueryInfo{
		{QueryClass, tractable, tractable, both, true},
		{QueryConditional, tractable, tractable, both, true},
		{QueryEntropy, tractable, few || tractable && b.mpeExact(p), finite + " or " + certain, false},
		{QueryExpect, tractable, tractable, both, false},
		{QueryKL, tractable, few, alike, false},
		{QueryLogLikelihood, tractable, tractable, both, true},
		{QueryMoments, tractable, tractable, both, true},
		{QueryMPE, tractable, tractable && b.mpeExact(p), certain, true},
		{QueryQuantiles, tractable, tractable, both, false},
		{QuerySample, tractable, tractable, both, true},
	}
}

// deterministic reports whether the circuit is deterministic by its structure or, where leaves read the bins of values, by
// the bins that they exclude: a tree's do. Queries ask the structure alone, and answer by bins in another way.
func (b *Blueprint) deterministic(p circuit.Props) (bool, error) {
	if p.Deterministic || !b.binned() || b.params == nil {
		return p.Deterministic, nil
	}
	return circuit.DeterministicUnder(b.Graph, b.params)
}

func (b *Blueprint) sizes() circuit.Stats { return circuit.Count(b.Graph) }

// Info describes the circuit and what it takes to run it as l says. It computes a digest of
// the whole structure and checks all properties, so it takes longer than the fields of the
// Blueprint do. It fails where l names no device of this machine.
func (b *Blueprint) Info(l Load) (*Info, error) {
	s, p := b.sizes(), circuit.Properties(b.Graph)
	memory, err := b.Memory(l)
	if err != nil {
		return nil, err
	}
	digest := ""
	structure, err := native.Digest(b.Graph)
	switch {
	case err == nil:
		digest = hex.EncodeToString(structure[:])
	case !errors.Is(err, circuit.ErrLeaf): // a leaf of another package answers queries, and files have no name for it
		return nil, err
	}
	deterministic, err := b.deterministic(p)
	if err != nil {
		return nil, err
	}
	program := b.Digest()
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
			"deterministic":           deterministic,
			"structured_decomposable": p.StructuredDecomposable,
		},
		Structure:      digest,
		Program:        hex.EncodeToString(program[:]),
		CompileSeconds: b.CompileTime.Seconds(),
		Path:           string(PathTensor),
		Compile:        b.Report,
		Memory:         memory,
		Queries:        b.queries(p),
	}
	if b.Code != nil {
		i.Path, i.Code = string(PathCode), codeInfo(b.Code)
	} else {
		i.BlockSize = b.Program.BlockSize
	}
	if b.Program != nil {
		i.PaddingWaste = paddingWaste(&b.Report, b.Program.BlockSize)
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

// paddingWaste returns the share of the weights in edge blocks that are padding, 0 where there are none. Kernels multiply whole blocks,
// and pass over what fills the rows of partitions up.
func paddingWaste(r *compile.Report, size int) float64 {
	blocks := int64(0)
	for i := range r.Layers {
		blocks += r.Layers[i].Edges
	}
	if blocks == 0 {
		return 0
	}
	return 1 - float64(r.Edges)/float64(blocks*int64(size)*int64(size))
}

// Comparable reports whether Information can compare the model with another one: both are
// deterministic and differ in parameters alone.
func (b *Blueprint) Comparable(other *Blueprint) (bool, error) {
	if b == other {
		return b.MPEExact(), nil
	}
	p, err := native.Digest(withoutFloors(b.Graph))
	if err != nil {
		return false, err
	}
	q, err := native.Digest(withoutFloors(other.Graph))
	if err != nil || p != q {
		return false, err
	}
	for i := range b.Schema.Columns {
		c, d := &b.Schema.Columns[i], &other.Schema.Columns[i]
		if c.Scale != d.Scale || c.Offset != d.Offset {
			return false, nil // leaves speak of other numbers
		}
		if c.Kind == dataset.Discrete && d.Kind == dataset.Discrete {
			if codes, all := c.CodesIn(d); codes != nil || !all {
				return false, nil // or of other categories
			}
		}
	}
	return b.MPEExact() && other.MPEExact(), nil
}

// withoutFloors returns a graph whose leaves have no floors of their own: these are for training, which chooses them by the rows.
func withoutFloors(g *circuit.Graph) *circuit.Graph {
	c := *g
	c.Nodes = slices.Clone(g.Nodes)
	for i := range c.Nodes {
		switch n := &c.Nodes[i]; n.Leaf.(type) {
		case circuit.Gaussian:
			n.Leaf = circuit.Gaussian{}
		case circuit.LogNormal:
			n.Leaf = circuit.LogNormal{}
		}
	}
	return &c
}

// Information returns entropy, cross-entropy and divergence of a model and another one that
// Comparable has allowed. Continuous columns count by the density of their numbers.
func (b *Blueprint) Information(other *Blueprint) (circuit.Information, error) {
	x, err := circuit.DeterministicInformation(b.Graph, b.params, other.params)
	for v, codes := range circuit.RootDomains(b.Graph) {
		if c := &b.Schema.Columns[v]; codes >= 0 && c.Kind == dataset.Continuous {
			x.Entropy += c.LogScale()
			x.CrossEntropy += c.LogScale()
		}
	}
	return x, err
}
