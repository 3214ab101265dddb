package run_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

const table = "b,k,x,t\n0,0,1.5,red\n1,2,2.5,blue\n0,1,3.5,red\n"

// TestLeaves wants each column's leaf and what the model's schema makes of it.
func TestLeaves(t *testing.T) {
	path := filepath.Join(t.TempDir(), "t.csv")
	if err := os.WriteFile(path, []byte(table), 0o644); err != nil {
		t.Fatal(err)
	}
	onlyNumbers := filepath.Join(t.TempDir(), "n.csv")
	if err := os.WriteFile(onlyNumbers, []byte("0,0\n1,2\n0,1\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		name string
		path string
		leaf run.Leaf
		want []string // by column: family and codes of the domain
		err  error
	}{
		{"auto", path, run.Leaf{Type: "auto"}, []string{"categorical 2", "categorical 3", "gaussian 0", "categorical 2"}, nil},
		{"zero", path, run.Leaf{}, []string{"categorical 2", "categorical 3", "gaussian 0", "categorical 2"}, nil},
		{"more categories", path, run.Leaf{Categories: 5}, []string{"categorical 5", "categorical 5", "gaussian 0", "categorical 2"}, nil},
		{"binomial", onlyNumbers, run.Leaf{Type: "binomial"}, []string{"binomial 2", "binomial 3"}, nil},
		{"histogram", onlyNumbers, run.Leaf{Type: "histogram", Bins: 2}, []string{"histogram 2", "histogram 3"}, nil},
		{"logistic", onlyNumbers, run.Leaf{Type: "discretised-logistic"}, []string{"discretised-logistic 2", "discretised-logistic 3"}, nil},
		{"poisson", onlyNumbers, run.Leaf{Type: "poisson"}, []string{"poisson 0", "poisson 0"}, nil},
		{"gaussian", onlyNumbers, run.Leaf{Type: "gaussian", MinSigma: 0.5}, []string{"gaussian 0", "gaussian 0"}, nil},
		{"fewer categories", path, run.Leaf{Categories: 2}, nil, run.ErrOptions},
		{"bernoulli of 3", onlyNumbers, run.Leaf{Type: "bernoulli"}, nil, run.ErrOptions},
		{"categorical of reals", path, run.Leaf{Type: "categorical"}, nil, run.ErrOptions},
		{"gaussian of texts", path, run.Leaf{Type: "gaussian"}, nil, run.ErrOptions},
		{"no bins", onlyNumbers, run.Leaf{Type: "histogram", Bins: -1}, nil, run.ErrOptions},
		{"unknown", onlyNumbers, run.Leaf{Type: "cauchy"}, nil, run.ErrOptions},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := run.DefaultStructure()
			s.Kind, s.Leaf = "rat-spn", tc.leaf
			b, err := run.Build(t.Context(), s, run.Files(tc.path), compile.Options{})
			if !errors.Is(err, tc.err) {
				t.Fatalf("Build = %v, want %v", err, tc.err)
			}
			if err != nil {
				return
			}
			defer b.Close()
			domains := circuit.Domains(b.Graph)
			for i := range b.Graph.Nodes {
				n := &b.Graph.Nodes[i]
				if n.Kind != circuit.Input {
					continue
				}
				if got := n.Leaf.Name() + " " + string(rune('0'+domains[n.Var])); got != tc.want[n.Var] {
					t.Errorf("column %d has %s, want %s", n.Var, got, tc.want[n.Var])
				}
				if c := b.Schema.Columns[n.Var]; c.Categories != domains[n.Var] {
					t.Errorf("column %d has %d categories and a domain of %d", n.Var, c.Categories, domains[n.Var])
				}
			}
		})
	}
}

// TestPaddingWaste wants the share of the weights in edge blocks that are padding: the units that a block lacks, and not what rows of
// few edge blocks have beside one of many.
func TestPaddingWaste(t *testing.T) {
	share := func(s run.Structure, rows run.Rows, o compile.Options) (waste float64, r compile.Report, size int) {
		t.Helper()
		b, err := run.Build(t.Context(), s, rows, o)
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		i, err := b.Info(run.QueryLoad(run.Options{Device: "cpu"}))
		if err != nil {
			t.Fatal(err)
		}
		return i.PaddingWaste, b.Report, i.BlockSize
	}
	s := run.DefaultStructure()
	s.Kind, s.Latents = "hclt", 5
	waste, r, _ := share(s, run.Files("builtin:random?rows=20&vars=6&categories=3"), compile.DefaultOptions())
	if want := float64(r.PaddedEdges-r.Edges) / float64(r.PaddedEdges); !(want > 0) || math.Abs(waste-want) > 1e-12 {
		t.Errorf("%d edges of %d padded ones: a share of %v, want %v", r.Edges, r.PaddedEdges, waste, want)
	}
	g := &circuit.Graph{NumVars: 2}
	add := func(n circuit.Node) circuit.NodeID {
		g.Nodes = append(g.Nodes, n)
		return circuit.NodeID(len(g.Nodes) - 1)
	}
	var below []circuit.NodeID
	for range 9 {
		below = append(below, add(circuit.Node{Units: 1, Leaf: circuit.Categorical{Categories: 3}}))
	}
	var operands []circuit.NodeID
	for _, few := range [][]circuit.NodeID{below[:1], below} { // one operand, and nine
		leaf := add(circuit.Node{Units: 1, Var: 1, Leaf: circuit.Categorical{Categories: 3}})
		operands = append(operands, add(circuit.Node{Kind: circuit.Product, Units: 1, Children: []circuit.NodeID{leaf, add(circuit.Node{Kind: circuit.Sum, Units: 1, Children: few})}}))
	}
	g.Root = add(circuit.Node{Kind: circuit.Sum, Units: 1, Children: operands})
	waste, r, size := share(run.Structure{Graph: g}, nil, compile.Options{MaxGroups: 1})
	if size != 1 || r.PaddedEdges != 2*9+2 || r.Edges != 12 || waste != 0 {
		t.Errorf("blocks of %d, %d edges of %d padded ones: a share of %v, want 0, as every block is a weight", size, r.Edges, r.PaddedEdges, waste)
	}
}

func TestStructureErrors(t *testing.T) {
	rows := run.Files("builtin:random?rows=20&vars=6&categories=3")
	for _, tc := range []struct {
		name string
		edit func(*run.Structure)
		rows run.Rows
		want error
	}{
		{"valid", func(*run.Structure) {}, rows, nil},
		{"unknown kind", func(s *run.Structure) { s.Kind = "spn" }, rows, run.ErrOptions},
		{"unknown tree", func(s *run.Structure) { s.HCLT.Tree = "oak" }, rows, run.ErrOptions},
		{"no rows", func(*run.Structure) {}, nil, run.ErrOptions},
		{"grid without images", func(s *run.Structure) { s.HCLT.Tree = "grid" }, rows, run.ErrOptions},
		{"random tree", func(s *run.Structure) { s.HCLT.Tree, s.HCLT.Inner = "random", 3 }, rows, nil},
		{"pd without images", func(s *run.Structure) { s.Kind = "pd" }, rows, run.ErrOptions},
		{"pd of another size", func(s *run.Structure) { s.Kind, s.PD.Shape = "pd", [3]int{2, 2, 1} }, rows, run.ErrOptions},
		{"pd", func(s *run.Structure) { s.Kind, s.PD.Shape = "pd", [3]int{2, 3, 1} }, rows, nil},
		{"hmm of another length", func(s *run.Structure) { s.Kind, s.HMM.Length = "hmm", 5 }, rows, run.ErrOptions},
		{"latents by the rows", func(s *run.Structure) { s.Latents = 0 }, rows, nil},
		{"negative latents", func(s *run.Structure) { s.Latents = -1 }, rows, structures.ErrOptions},
		{"too many units", func(s *run.Structure) { s.Kind, s.Latents, s.RATSPN.Repetitions = "rat-spn", 1<<16, 1<<12 }, rows, run.ErrOptions},
		{"negative bins", func(s *run.Structure) { s.Leaf.Bins = -1 }, rows, run.ErrOptions},
		{"most bins", func(s *run.Structure) { s.Leaf.Bins = circuit.MaxCodes }, rows, nil},
		{"a bin more", func(s *run.Structure) { s.Leaf.Bins = circuit.MaxCodes + 1 }, rows, run.ErrOptions},
		{"negative categories", func(s *run.Structure) { s.Leaves = map[string]run.Leaf{"2": {Categories: -1}} }, rows, run.ErrOptions},
		{"a category more", func(s *run.Structure) { s.Leaf.Categories = circuit.MaxCodes + 1 }, rows, run.ErrOptions},
		{"no file", func(s *run.Structure) { s.Kind, s.File = "file", "nowhere" }, rows, os.ErrNotExist},
	} {
		s := run.DefaultStructure()
		tc.edit(&s)
		b, err := run.Build(t.Context(), s, tc.rows, compile.Options{})
		if !errors.Is(err, tc.want) {
			t.Errorf("%s: %v, want %v", tc.name, err, tc.want)
		}
		if b != nil {
			b.Close()
		}
	}
}

// TestInfo compares sizes with DESIGN's formula for the HMM of length 32.
func TestInfo(t *testing.T) {
	const m = 96
	s := run.DefaultStructure()
	s.Kind, s.Latents = "hmm", m
	b, err := run.Build(t.Context(), s, run.Files("builtin:random?rows=9&vars=32&categories=10"), compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	i, err := b.Info(run.Load{Train: true})
	if err != nil {
		t.Fatal(err)
	}
	if i.Nodes != 63*m+1 || i.Edges != 31*m*m+63*m || i.Parameters != m*m+m+10*m {
		t.Errorf("%d nodes, %d edges, %d parameters", i.Nodes, i.Edges, i.Parameters)
	}
	if i.SumEdges != 31*m*m+m || i.Leaves["categorical"] != 32 || !i.Properties["smooth"] || len(i.Queries) == 0 {
		t.Errorf("info %+v", i)
	}
	y := i.Memory
	if sum := y.Parameters + y.Values + y.Flows + y.Scratch + y.Program + y.Data + y.Runtime; sum != y.Total || y.Parameters < 4*i.Parameters {
		t.Errorf("memory %+v", y)
	}
}

// TestLearnedBins learns from a program's rows, whose schema has no bins: the circuit is that of the rows' file, also where a search
// chooses by such rows.
func TestLearnedBins(t *testing.T) {
	rng := rand.New(rand.NewPCG(13, 13))
	row := func() []any {
		hidden := rng.IntN(2)
		return []any{float64(3*hidden) + rng.NormFloat64(), float64(2*hidden) - rng.NormFloat64(), hidden}
	}
	var open [2]func(own bool) run.Rows
	for i, n := range []int{800, 300} {
		path := writeRows(t, "a,b,k", n, row)
		open[i] = func(own bool) run.Rows {
			if !own {
				return run.Files(path)
			}
			src, err := dataset.OpenAll(t.Context(), []string{path}, dataset.Options{})
			if err != nil {
				t.Fatal(err)
			}
			return run.Table(src)
		}
	}
	for _, leaf := range []run.Leaf{{Type: "histogram", Bins: 8}, {Type: "gaussian"}} { // under the second, codes of a program are numbers
		var built [2]*run.Blueprint
		for i, own := range []bool{false, true} {
			s := run.DefaultStructure()
			s.Kind, s.LearnSPN.Search, s.LearnSPN.MinRows, s.Valid = "learnspn", true, 200, open[1](own)
			s.Leaf = leaf
			b, err := run.Build(t.Context(), s, open[0](own), compile.Options{})
			if err != nil {
				t.Fatal(err)
			}
			defer b.Close()
			built[i] = b
		}
		if !reflect.DeepEqual(built[0].Graph, built[1].Graph) {
			t.Errorf("%s: %d nodes are learned from a file, and %d from a program's rows", leaf.Type, len(built[0].Graph.Nodes), len(built[1].Graph.Nodes))
		}
	}
}

// TestSearchFarCells searches settings by validation rows of which one has a sentinel, such as -999999: the cell counts as
// missing, as those of the training rows do, so that the circuit is that of rows without the cell.
func TestSearchFarCells(t *testing.T) {
	rng := rand.New(rand.NewPCG(12, 12))
	row := func() []any {
		hidden := rng.IntN(3)
		return []any{float64(3*hidden) + rng.NormFloat64(), rng.NormFloat64() - float64(2*hidden), 0.5*rng.NormFloat64() + float64(5*(hidden%2))}
	}
	train, rows := writeRows(t, "a,b,c", 800, row), make([][]any, 300)
	for i := range rows {
		rows[i] = row()
	}
	built := map[any]*run.Blueprint{}
	for _, cell := range []any{"?", -999999.5} {
		rows[7][0] = cell
		next := 0
		valid := writeRows(t, "a,b,c", len(rows), func() []any { next++; return rows[next-1] })
		s := run.DefaultStructure()
		s.Kind, s.LearnSPN.Search, s.LearnSPN.MinRows, s.Valid = "learnspn", true, 200, run.Files(valid)
		b, err := run.Build(t.Context(), s, run.Files(train), compile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		built[cell] = b
	}
	if !reflect.DeepEqual(built["?"].Graph, built[-999999.5].Graph) {
		t.Errorf("%d nodes are learned, and %d with a sentinel among the validation rows", len(built["?"].Graph.Nodes), len(built[-999999.5].Graph.Nodes))
	}
}
