package pce_test

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
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
		leaf pce.Leaf
		want []string // by column: family and codes of the domain
		err  error
	}{
		{"auto", path, pce.Leaf{Type: "auto"}, []string{"categorical 2", "categorical 3", "gaussian 0", "categorical 2"}, nil},
		{"zero", path, pce.Leaf{}, []string{"categorical 2", "categorical 3", "gaussian 0", "categorical 2"}, nil},
		{"more categories", path, pce.Leaf{Categories: 5}, []string{"categorical 5", "categorical 5", "gaussian 0", "categorical 2"}, nil},
		{"binomial", onlyNumbers, pce.Leaf{Type: "binomial"}, []string{"binomial 2", "binomial 3"}, nil},
		{"histogram", onlyNumbers, pce.Leaf{Type: "histogram", Bins: 2}, []string{"histogram 2", "histogram 3"}, nil},
		{"logistic", onlyNumbers, pce.Leaf{Type: "discretised-logistic"}, []string{"discretised-logistic 2", "discretised-logistic 3"}, nil},
		{"poisson", onlyNumbers, pce.Leaf{Type: "poisson"}, []string{"poisson 0", "poisson 0"}, nil},
		{"gaussian", onlyNumbers, pce.Leaf{Type: "gaussian", MinSigma: 0.5}, []string{"gaussian 0", "gaussian 0"}, nil},
		{"fewer categories", path, pce.Leaf{Categories: 2}, nil, pce.ErrOptions},
		{"bernoulli of 3", onlyNumbers, pce.Leaf{Type: "bernoulli"}, nil, pce.ErrOptions},
		{"categorical of reals", path, pce.Leaf{Type: "categorical"}, nil, pce.ErrOptions},
		{"gaussian of texts", path, pce.Leaf{Type: "gaussian"}, nil, pce.ErrOptions},
		{"no bins", onlyNumbers, pce.Leaf{Type: "histogram", Bins: -1}, nil, pce.ErrOptions},
		{"unknown", onlyNumbers, pce.Leaf{Type: "cauchy"}, nil, pce.ErrOptions},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := pce.DefaultStructure()
			s.Kind, s.Leaf = "rat-spn", tc.leaf
			b, err := pce.Build(t.Context(), s, pce.Files(tc.path), compile.Options{})
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

func TestStructureErrors(t *testing.T) {
	rows := pce.Files("builtin:random?rows=20&vars=6&categories=3")
	for _, tc := range []struct {
		name string
		edit func(*pce.Structure)
		rows pce.Rows
		want error
	}{
		{"valid", func(*pce.Structure) {}, rows, nil},
		{"unknown kind", func(s *pce.Structure) { s.Kind = "spn" }, rows, pce.ErrOptions},
		{"unknown tree", func(s *pce.Structure) { s.HCLT.Tree = "oak" }, rows, pce.ErrOptions},
		{"no rows", func(*pce.Structure) {}, nil, pce.ErrOptions},
		{"grid without images", func(s *pce.Structure) { s.HCLT.Tree = "grid" }, rows, pce.ErrOptions},
		{"random tree", func(s *pce.Structure) { s.HCLT.Tree, s.HCLT.Inner = "random", 3 }, rows, nil},
		{"pd without images", func(s *pce.Structure) { s.Kind = "pd" }, rows, pce.ErrOptions},
		{"pd of another size", func(s *pce.Structure) { s.Kind, s.PD.Shape = "pd", [3]int{2, 2, 1} }, rows, pce.ErrOptions},
		{"pd", func(s *pce.Structure) { s.Kind, s.PD.Shape = "pd", [3]int{2, 3, 1} }, rows, nil},
		{"hmm of another length", func(s *pce.Structure) { s.Kind, s.HMM.Length = "hmm", 5 }, rows, pce.ErrOptions},
		{"latents by the rows", func(s *pce.Structure) { s.Latents = 0 }, rows, nil},
		{"negative latents", func(s *pce.Structure) { s.Latents = -1 }, rows, structures.ErrOptions},
		{"no file", func(s *pce.Structure) { s.Kind, s.File = "file", "nowhere" }, rows, os.ErrNotExist},
	} {
		s := pce.DefaultStructure()
		tc.edit(&s)
		b, err := pce.Build(t.Context(), s, tc.rows, compile.Options{})
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
	s := pce.DefaultStructure()
	s.Kind, s.Latents = "hmm", m
	b, err := pce.Build(t.Context(), s, pce.Files("builtin:random?rows=9&vars=32&categories=10"), compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	i, err := b.Info(pce.Load{Train: true})
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
