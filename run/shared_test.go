package run

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/compile"
)

// TestTiedStart wants units of leaves that columns share to start from the numbers of all of these: those of the last step, which owns
// the parameters of a tied hidden Markov model, may be far from all others, or there may be none.
func TestTiedStart(t *testing.T) {
	rng := rand.New(rand.NewPCG(14, 14))
	var text strings.Builder
	text.WriteString("a,b,c,d\n")
	for range 200 {
		fmt.Fprintf(&text, "%d,%d,%d,?\n", 10+rng.IntN(7), 1000+rng.IntN(60), 2000+rng.IntN(90))
	}
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, leaf := range []string{"gaussian", "poisson"} {
		s := DefaultStructure()
		s.Kind, s.Latents, s.Leaf.Type = "hmm", 16, leaf
		b, err := Build(t.Context(), s, Files(path), compile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		for i := range b.Graph.Nodes {
			id := circuit.NodeID(i)
			if b.Graph.Nodes[i].Kind != circuit.Input || !b.Graph.OwnsParams(id) {
				continue
			}
			p := make([]float32, b.Graph.NumParams(id))
			if err := b.params(id, p); err != nil {
				t.Fatal(err)
			}
			least, largest := math.Inf(1), math.Inf(-1)
			for u := 0; u < len(p); u += len(p) / 16 {
				least, largest = min(least, float64(p[u])), max(largest, float64(p[u]))
			}
			if !(least < 800 && largest > 1200) {
				t.Errorf("%s: units start from %v to %v, and columns have 10 to 2000", leaf, least, largest)
			}
		}
	}
}

// TestLogNormalStart wants units of log-normal leaves to start around the median of their column, also where the mean is far above it.
func TestLogNormalStart(t *testing.T) {
	rng := rand.New(rand.NewPCG(15, 15))
	var text strings.Builder
	text.WriteString("a,b\n")
	for range 400 {
		fmt.Fprintf(&text, "%v,%v\n", math.Exp(7+2*rng.NormFloat64()), math.Exp(7+2*rng.NormFloat64()))
	}
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	s := DefaultStructure()
	s.Latents, s.Leaf.Type = 256, "log-normal"
	b, err := Build(t.Context(), s, Files(path), compile.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	for i := range b.Graph.Nodes {
		if n := &b.Graph.Nodes[i]; n.Kind == circuit.Input {
			p := make([]float32, b.Graph.NumParams(circuit.NodeID(i)))
			if err := b.params(circuit.NodeID(i), p); err != nil {
				t.Fatal(err)
			}
			mean, c := 0.0, &b.Schema.Columns[n.Var]
			for u := 0; u < len(p); u += 2 {
				mean += float64(p[u]) / float64(n.Units)
			}
			if mean += math.Log(c.Scale); !(math.Abs(mean-7) < 0.5) { // of which a tenth is the standard error
				t.Errorf("column %d: units start around %v, its median is 7", n.Var, mean)
			}
		}
	}
}

// TestFarCountStart wants leaves of counts to start among those of a column, of which one is far from all others: not near that one, nor all
// above the others, which the least of them would get together.
func TestFarCountStart(t *testing.T) {
	for _, tc := range []struct {
		leaf, far string
		count     float32 // of a parameter of 1
	}{
		{"poisson", "4000,90000,1000000", 1}, {"binomial", "4000,4000,4000", 4000},
	} {
		rng := rand.New(rand.NewPCG(16, 16))
		var text strings.Builder
		fmt.Fprintf(&text, "a,b,c\n%s\n", tc.far)
		for range 400 {
			fmt.Fprintf(&text, "%d,%d,%d\n", rng.IntN(20), 3000+rng.IntN(4), rng.IntN(20))
		}
		path := filepath.Join(t.TempDir(), "rows.csv")
		if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
			t.Fatal(err)
		}
		s := DefaultStructure()
		s.Latents, s.Leaf.Type = 64, tc.leaf
		b, err := Build(t.Context(), s, Files(path), compile.Options{})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		for i := range b.Graph.Nodes {
			if n := &b.Graph.Nodes[i]; n.Kind == circuit.Input {
				p := make([]float32, n.Units)
				if err := b.params(circuit.NodeID(i), p); err != nil {
					t.Fatal(err)
				}
				least, most := tc.count*slices.Min(p), tc.count*slices.Max(p)
				if !(least < []float32{9, 3000, 9}[n.Var] && most < []float32{100, 3200, 100}[n.Var]) {
					t.Errorf("%s, column %d: units start from %v to %v, and counts but one are from 0 to 19, or 3000 to 3003", tc.leaf, n.Var, least, most)
				}
			}
		}
	}
}
