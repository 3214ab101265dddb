package kerneltest

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/tensor"
)

// besideModule is the folder of the module's root, wherever in the module the test's package is.
func besideModule(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		up := filepath.Dir(dir)
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return up
		}
		if up == dir {
			t.Fatal("no go.mod above the test's folder")
		}
		dir = up
	}
}

// Images trains binomial leaves of 256 codes on images of MNIST and compares the
// log-likelihoods of rows with the reference's, before, while and after the
// parameters move.
func Images(t *testing.T, open Open, latents, count int) {
	path := filepath.Join(besideModule(t), "shared", "data", "density", "mnist", "t10k-images-idx3-ubyte.gz")
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIPPED: needs %s, density data that is not part of the repository: place the folder shared beside it", path)
	}
	ctx := context.Background()
	table, err := dataset.Open(ctx, path, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	first := dataset.NewBatch(table.Schema(), count)
	rows := make([][]float64, count)
	numbers := make([]int, count)
	for r := range rows {
		rows[r], numbers[r] = make([]float64, len(first.Columns)), r
	}
	if err := table.Gather(ctx, first, numbers); err != nil {
		t.Fatal(err)
	}
	for v, column := range first.Columns {
		for r := range rows {
			rows[r][v] = float64(column.Codes.At(r))
		}
	}
	leaf := func(int) circuit.Leaf { return circuit.Binomial{Trials: 255} }
	tree, err := structures.GridTree(28, 28, 3)
	if err != nil {
		t.Fatal(err)
	}
	pd := structures.DefaultPD()
	pd.Shape, pd.SplitInterval, pd.Latents, pd.Leaf = [3]int{28, 28, 1}, 7, latents, leaf
	rat := structures.DefaultRATSPN()
	rat.Vars, rat.Latents, rat.Leaf = 784, latents, leaf
	for name, build := range map[string]func() (*circuit.Graph, error){
		"hclt": func() (*circuit.Graph, error) {
			return structures.HCLT(tree, structures.HCLTOptions{Latents: latents, Leaf: leaf})
		},
		"rat-spn": func() (*circuit.Graph, error) { return structures.RATSPN(rat) },
		"pd":      func() (*circuit.Graph, error) { return structures.PD(pd) },
	} {
		t.Run(name, func(t *testing.T) {
			g, err := build()
			if err != nil {
				t.Fatal(err)
			}
			dev := open(t)
			defer dev.Close()
			m := Build(t, dev, g, initial(t, g), compile.DefaultOptions(), engine.Options{Rows: count, Train: true})
			batch, ll := reference.Batch(reference.Schema(g), rows), make([]float64, count)
			for range 3 {
				params, err := reference.FromFloat32(g, m.Read(t))
				if err != nil {
					t.Fatal(err)
				}
				ev, err := reference.New(g, params)
				if err != nil {
					t.Fatal(err)
				}
				if err := m.Engine.Step(ctx, batch, 0, count, tensor.Rule{Step: 0.9, Pseudocount: 0.1}, ll); err != nil {
					t.Fatal(err)
				}
				var want []float64
				for _, row := range rows {
					l, err := ev.LogLikelihood(row)
					if err != nil {
						t.Fatal(err)
					}
					want = append(want, l)
				}
				compareLL(t, rows, ll, want)
			}
			if n := m.Engine.Recomputed(); n > 0 {
				t.Errorf("%d values were recomputed in log space; want none in ordinary training", n)
			}
		})
	}
}
