package compile

import (
	"errors"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format/text"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/layers"
)

// TestEqualInputsGiveEqualPrograms compiles circuits twice, the second time from
// a graph built anew, and at other block sizes.
func TestEqualInputsGiveEqualPrograms(t *testing.T) {
	digests := map[[32]byte]uint64{}
	seeds := uint64(60)
	if testing.Short() {
		seeds = 20
	}
	for seed := range seeds {
		make := func() *circuit.Graph {
			return reference.Random(rand.New(rand.NewPCG(seed, 13)), reference.RandomOptions{})
		}
		bySize := map[[32]byte]int{}
		for _, size := range blockSizes[1:] {
			o := DefaultOptions()
			o.BlockSize = size
			a, b := mustCompile(t, make(), o), mustCompile(t, make(), o)
			if !reflect.DeepEqual(a.Program, b.Program) || !reflect.DeepEqual(a.Report, b.Report) {
				t.Fatalf("seed %d, blocks of %d: two compilations differ", seed, size)
			}
			d := a.Program.Digest()
			if d != b.Program.Digest() {
				t.Fatalf("seed %d, blocks of %d: two digests of equal programs", seed, size)
			}
			if other, ok := bySize[d]; ok {
				t.Errorf("seed %d: blocks of %d and %d have the same digest", seed, size, other)
			}
			bySize[d] = size
			if other, ok := digests[d]; ok {
				t.Errorf("seeds %d and %d have the same digest", seed, other)
			}
			digests[d] = seed
		}
	}
}

// TestDigestReadsEverySetting has pairs of circuits whose tensors are alike and
// whose meaning is not.
func TestDigestReadsEverySetting(t *testing.T) {
	for _, pair := range [][2]circuit.Leaf{
		{circuit.Gaussian{MinSigma: 0.1}, circuit.Gaussian{MinSigma: 0.2}},
		{circuit.Indicator{Domain: 3, Value: 1}, circuit.Indicator{Domain: 3, Value: 2}},
		{circuit.Histogram{Edges: []int{0, 1, 4}}, circuit.Histogram{Edges: []int{0, 2, 4}}},
		{circuit.Bernoulli{}, circuit.Categorical{Categories: 2}},
		{circuit.DiscretisedLogistic{Domain: 4}, circuit.DiscretisedLogistic{Domain: 4, MinScale: 0.5}},
	} {
		var digest [2][32]byte
		for i, leaf := range pair {
			g := &circuit.Graph{NumVars: 1, Nodes: []circuit.Node{{Kind: circuit.Input, Units: 1, Leaf: leaf}}}
			digest[i] = mustCompile(t, g, DefaultOptions()).Program.Digest()
		}
		if digest[0] == digest[1] {
			t.Errorf("%+v and %+v have the same digest", pair[0], pair[1])
		}
	}
}

// TestReportCountsEdges compares the report with the graph.
func TestReportCountsEdges(t *testing.T) {
	for seed := range uint64(60) {
		rng := rand.New(rand.NewPCG(seed, 14))
		g := reference.Random(rng, reference.RandomOptions{})
		for _, size := range blockSizes {
			o := Options{MaxGroups: 1 + rng.IntN(8), PaddingTolerance: rng.Float64(), BlockSize: size}
			r := mustCompile(t, g, o)
			var want int64
			for id := range g.Root + 1 { // Random makes nothing that the root does not reach
				n := &g.Nodes[id]
				if n.Kind != circuit.Sum {
					continue
				}
				weights := g.NumParams(id)
				for i := range weights {
					if n.Edges == nil || n.Edges.Has(i) {
						want++
					}
				}
			}
			if r.Report.Edges != want {
				t.Errorf("seed %d: the report counts %d edges, the circuit has %d", seed, r.Report.Edges, want)
			}
			var padded int64
			for i, l := range r.Report.Layers {
				if len(l.Groups) > o.MaxGroups {
					t.Errorf("seed %d layer %d: %d groups, at most %d were asked for", seed, i, len(l.Groups), o.MaxGroups)
				}
				padded += l.Padded
			}
			sq := int64(r.Program.BlockSize * r.Program.BlockSize)
			if r.Report.PaddedEdges != padded*sq || padded*sq < want {
				t.Errorf("seed %d: %d padded edges for %d blocks and %d edges", seed, r.Report.PaddedEdges, padded, want)
			}
		}
	}
}

// TestStructures compiles every structure and compares units and edges with its
// graph's.
func TestStructures(t *testing.T) {
	bits := func(int) circuit.Leaf { return circuit.Bernoulli{} }
	tree, err := structures.GridTree(4, 4, 1)
	if err != nil {
		t.Fatal(err)
	}
	for name, build := range map[string]func(latents int) (*circuit.Graph, error){
		"hclt": func(m int) (*circuit.Graph, error) {
			return structures.HCLT(tree, structures.HCLTOptions{Latents: m, Leaf: bits})
		},
		"hmm": func(m int) (*circuit.Graph, error) {
			return structures.HMM(structures.HMMOptions{Length: 9, Latents: m, Tied: true, Leaf: bits})
		},
		"pd": func(m int) (*circuit.Graph, error) {
			o := structures.DefaultPD()
			o.Shape, o.SplitInterval, o.Latents, o.Leaf = [3]int{4, 4, 1}, 1, m, bits
			return structures.PD(o)
		},
		"ratspn": func(m int) (*circuit.Graph, error) {
			o := structures.DefaultRATSPN()
			o.Vars, o.Depth, o.Latents, o.Leaf = 16, 3, m, bits
			return structures.RATSPN(o)
		},
	} {
		t.Run(name, func(t *testing.T) {
			for _, m := range []int{1, 3, 7, 32, 64, 100} {
				g, err := build(m)
				if err != nil {
					t.Fatal(err)
				}
				for _, size := range blockSizes {
					r := mustCompile(t, g, Options{MaxGroups: 8, PaddingTolerance: 0.1, BlockSize: size})
					units, want := 0, 0
					for _, v := range r.Program.Vectors {
						if v.Kind != layers.StoredVector {
							units += int(v.Units)
						}
					}
					for i := range g.Nodes {
						if g.Nodes[i].Kind != circuit.Product {
							want += g.Nodes[i].Units
						}
					}
					if units != want {
						t.Errorf("%d latents, blocks of %d: %d units in the program, %d in the circuit", m, size, units, want)
					}
				}
			}
		})
	}
}

// TestTooBig refuses circuits that a short text can ask for and no machine can
// hold, before it takes memory for them.
func TestTooBig(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want error
	}{
		"edges": {"circuit 1\na = input[1048576] x0 bernoulli\ns = sum[1048576] a\nr = sum s\n", ErrOptions},
		"units": {"circuit 1\na = input[16777216] x0 bernoulli\ns = sum" + strings.Repeat(" a", 20) + "\n", circuit.ErrGraph},
	} {
		m, err := text.Parse(tc.text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Compile(m.Graph, Options{MaxGroups: 8, BlockSize: 1}); !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", name, err, tc.want)
		}
	}
}

// FuzzCompile compiles circuits that the bytes draw. What compiles is valid, and
// nothing panics.
func FuzzCompile(f *testing.F) {
	for seed := range uint64(20) {
		f.Add(seed, uint8(seed), uint8(seed%9), 0.1, uint8(seed))
	}
	f.Fuzz(func(t *testing.T, seed uint64, size, groups uint8, tolerance float64, units uint8) {
		rng := rand.New(rand.NewPCG(seed, 15))
		g := reference.Random(rng, reference.RandomOptions{MaxUnits: 1 + int(units)%64, MaxNodes: 30})
		r, err := Compile(g, Options{MaxGroups: int(groups), PaddingTolerance: tolerance, BlockSize: int(size)})
		if err != nil {
			if !errors.Is(err, ErrOptions) {
				t.Fatal(err)
			}
			return
		}
		if err := r.Program.Validate(); err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzCompileText compiles whatever is a circuit.
func FuzzCompileText(f *testing.F) {
	f.Add("circuit 1\na = input[3] x0 bernoulli\ns = sum[2] a edges 1x1 (0,0) (1,2)\nr = sum s\n")
	f.Add("circuit 2\na = input x0 gaussian\nb = input x1 poisson\np = product a b\n")
	f.Add("circuit 2\na = input[2] x0 categorical categories=3\nb = input[2] x1 indicator codes=3 value=1\np = product a b\nq = product p\nr = sum q\n")
	f.Fuzz(func(t *testing.T, input string) {
		m, err := text.Parse(input)
		if err != nil || len(input) > 1<<12 {
			return
		}
		size := 0
		for i := range m.Graph.Nodes {
			size += m.Graph.Nodes[i].Units + m.Graph.NumParams(circuit.NodeID(i))
		}
		if size > 1<<18 { // within the limits, and slow
			return
		}
		if _, err := Compile(m.Graph, DefaultOptions()); err != nil {
			t.Fatal(err)
		}
	})
}
