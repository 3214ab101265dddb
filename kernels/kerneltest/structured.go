package kerneltest

import (
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
)

// structure is a circuit over the 4×4 grid of variables.
type structure struct {
	name  string
	graph *circuit.Graph
}

// structured returns an HCLT, a tied HMM, a Poon-Domingos circuit and a RAT-SPN
// over 16 variables with the given codes.
func structured(t testing.TB, latents, codes int) []structure {
	t.Helper()
	return structuredOver(t, latents, circuit.Categorical{Categories: codes})
}

// structuredOver is structured with leaves of a family.
func structuredOver(t testing.TB, latents int, family circuit.Leaf) []structure {
	t.Helper()
	leaf := func(int) circuit.Leaf { return family }
	tree, err := structures.GridTree(4, 4, 3)
	if err != nil {
		t.Fatal(err)
	}
	pd := structures.DefaultPD()
	pd.Shape, pd.SplitInterval, pd.Latents, pd.Leaf = [3]int{4, 4, 1}, 2, latents, leaf
	rat := structures.DefaultRATSPN()
	rat.Vars, rat.Depth, rat.Latents, rat.Leaf = 16, 2, latents, leaf
	var list []structure
	add := func(name string, g *circuit.Graph, err error) {
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, structure{name, g})
	}
	g, err := structures.HCLT(tree, structures.HCLTOptions{Latents: latents, Leaf: leaf})
	add("hclt", g, err)
	g, err = structures.HMM(structures.HMMOptions{Length: 16, Latents: latents, Tied: true, Leaf: leaf})
	add("hmm", g, err)
	g, err = structures.PD(pd)
	add("pd", g, err)
	g, err = structures.RATSPN(rat)
	add("rat-spn", g, err)
	return list
}

// correlatedRows draws rows from a few prototypes with noise, so that there is
// something to learn.
func correlatedRows(rng *rand.Rand, vars, codes, n int) [][]float64 {
	prototypes := make([][]int, 5)
	for i := range prototypes {
		prototypes[i] = make([]int, vars)
		for v := range prototypes[i] {
			prototypes[i][v] = rng.IntN(codes)
		}
	}
	rows := make([][]float64, n)
	for r := range rows {
		proto := prototypes[rng.IntN(len(prototypes))]
		rows[r] = make([]float64, vars)
		for v := range rows[r] {
			rows[r][v] = float64(proto[v])
			if rng.IntN(10) == 0 {
				rows[r][v] = float64(rng.IntN(codes))
			}
		}
	}
	return rows
}

func initial(t testing.TB, g *circuit.Graph) reference.Params {
	t.Helper()
	p, err := reference.Init(g, 11, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p
}
