package plan_test

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda/tensor/plan"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// mixture compiles a sum over a product of inputs with a leaf each.
func mixture(t *testing.T, leaves ...circuit.Leaf) *layers.Program {
	t.Helper()
	const units = 2
	g := &circuit.Graph{NumVars: len(leaves)}
	var factors []circuit.NodeID
	for v, leaf := range leaves {
		g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Var: v, Leaf: leaf, Units: units})
		factors = append(factors, circuit.NodeID(v))
	}
	g.Nodes = append(g.Nodes,
		circuit.Node{Kind: circuit.Product, Units: units, Children: factors},
		circuit.Node{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{circuit.NodeID(len(leaves))}})
	g.Root = circuit.NodeID(len(leaves) + 1)
	r, err := compile.Compile(g, compile.DefaultOptions())
	if err != nil {
		t.Fatal(err)
	}
	return r.Program
}

func repeat(n int, leaf circuit.Leaf) []circuit.Leaf {
	list := make([]circuit.Leaf, n)
	for i := range list {
		list[i] = leaf
	}
	return list
}

// refused wants an error of one line with some words in it, or none of a module.
func refused(t *testing.T, m layers.Module, words ...string) {
	t.Helper()
	_, err := plan.MemoryOf(m)
	if len(words) == 0 {
		if err != nil {
			t.Errorf("%d rows: %v", m.Rows, err)
		}
		return
	}
	if !errors.Is(err, kernels.ErrDevice) || strings.Contains(err.Error(), "\n") {
		t.Fatalf("%d rows: error %v; want one line that matches ErrDevice", m.Rows, err)
	}
	for _, w := range words {
		if !strings.Contains(err.Error(), w) {
			t.Errorf("%d rows: error %q does not say %q", m.Rows, err, w)
		}
	}
}

// TestIndices asks for one place more than kernels can index, and for as many as they can.
func TestIndices(t *testing.T) {
	if testing.Short() {
		t.Skip("programs as large as indices allow; without -short")
	}
	coin, normal := circuit.Categorical{Categories: 2}, circuit.Gaussian{MinSigma: 0.01}
	many := mixture(t, repeat(5000, coin)...)
	n := len(many.Vectors)
	most := 1 << 32 / n
	refused(t, layers.Module{Program: many, Rows: most})
	refused(t, layers.Module{Program: many, Rows: most, Train: true})
	refused(t, layers.Module{Program: many, Rows: most + 1}, "vectors", "take at most", " 4294967296;")
	// The error's advice holds.
	refused(t, layers.Module{Program: many, Rows: 1 << 20}, fmt.Sprintf("take at most %d rows", most))

	// Values with exponents of their own: a span of 2^32 numbers would be told as 0.
	far := mixture(t, append(repeat(tensor.BareFactors+2, coin), normal)...)
	in := &far.Inputs[far.Functions()[0]]
	wide := int32(8192 / far.BlockSize)
	far.Vectors[in.Vector].Count = wide
	refused(t, layers.Module{Program: far, Rows: 1<<19 - 1})
	refused(t, layers.Module{Program: far, Rows: 1 << 19}, "units of a continuous leaf", "take at most 524287 rows")

	// Of the program alone: a Gaussian has three residues for each unit, and a table of
	// more than 4096 codes is shared by 16 blocks of threads, which have a sum each.
	for _, c := range []struct {
		name string
		leaf circuit.Leaf
		last int64 // that is not refused
		set  func(p *layers.Program, in *layers.Input, n int64)
	}{
		{"residues", normal, 1 << 32 / 3, func(p *layers.Program, in *layers.Input, n int64) { p.Vectors[in.Vector].Count = int32(n) }},
		{"units of nodes", circuit.Categorical{Categories: 5000}, 255, func(p *layers.Program, _ *layers.Input, n int64) {
			p.BlockSize, p.NodeBlocks = 1<<20, int32(n)
		}},
		{"exponents", coin, 1<<32 - 1, func(_ *layers.Program, in *layers.Input, n int64) { in.Exps = in.Table + n }},
	} {
		p := mixture(t, c.leaf)
		if p.BlockSize != 1 {
			t.Fatalf("blocks of %d units; the limits are tried with 1", p.BlockSize)
		}
		c.set(p, &p.Inputs[0], c.last)
		refused(t, layers.Module{Program: p, Rows: 1})
		c.set(p, &p.Inputs[0], c.last+1)
		refused(t, layers.Module{Program: p, Rows: 1}, c.name, "; use fewer latents")
	}
}

// TestQueryIndices asks for one word of modes more than kernels can index, and for as many as
// they can, and for a row of posteriors that is too long.
func TestQueryIndices(t *testing.T) {
	normals := mixture(t, circuit.Gaussian{MinSigma: 0.01}, circuit.Gaussian{MinSigma: 0.01})
	for _, f := range normals.Functions() {
		normals.Vectors[normals.Inputs[f].Vector].Units = 1 << 30
	}
	refused(t, layers.Module{Program: normals, Rows: 1, Queries: true})
	normals.Vectors[normals.Inputs[0].Vector].Units++
	refused(t, layers.Module{Program: normals, Rows: 1, Queries: true}, "words of modes", "; use fewer latents")
	refused(t, layers.Module{Program: normals, Rows: 1})

	coins := mixture(t, repeat(256, circuit.Categorical{Categories: 2})...)
	for i := range coins.Columns {
		coins.Columns[i].Codes = layers.MaxCodes
	}
	refused(t, layers.Module{Program: coins, Rows: 1, Queries: true}, "elements of a row of posteriors", "; use fewer latents")
}

// TestLaunchRows wants launches of 1 to 2^20 rows.
func TestLaunchRows(t *testing.T) {
	p := mixture(t, circuit.Categorical{Categories: 2})
	for _, rows := range []int{1, 1 << 20} {
		refused(t, layers.Module{Program: p, Rows: rows})
	}
	for _, rows := range []int{-1, 0, 1<<20 + 1} {
		refused(t, layers.Module{Program: p, Rows: rows}, "want 1..1048576")
	}
}
