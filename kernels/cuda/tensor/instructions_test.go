package tensor_test

import (
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/cuda"
	executor "github.com/pce-engine/pce/kernels/cuda/tensor"
	"github.com/pce-engine/pce/kernels/cuda/tensor/plan"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/kerneltest"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/layers"
)

// countedStep is a circuit whose step is counted.
type countedStep struct {
	name       string
	graph      func() (*circuit.Graph, error)
	rows       int
	mixed      bool
	processors int // 1: wide tiles wherever there are any
	block      int // units of a block of the program; 0: what the compiler takes
}

func categories(n int) func(int) circuit.Leaf {
	return func(int) circuit.Leaf { return circuit.Categorical{Categories: n} }
}

func hclt(latents, codes int) func() (*circuit.Graph, error) {
	return func() (*circuit.Graph, error) {
		tree, err := structures.GridTree(2, 3, 3)
		if err != nil {
			return nil, err
		}
		return structures.HCLT(tree, structures.HCLTOptions{Latents: latents, Leaf: categories(codes)})
	}
}

func hmm(length, latents, codes int) func() (*circuit.Graph, error) {
	return func() (*circuit.Graph, error) {
		return structures.HMM(structures.HMMOptions{Length: length, Latents: latents, Tied: true, Leaf: categories(codes)})
	}
}

func rat(latents, depth int, leaf func(int) circuit.Leaf) func() (*circuit.Graph, error) {
	return func() (*circuit.Graph, error) {
		o := structures.DefaultRATSPN()
		o.Vars, o.Depth, o.Latents, o.Leaf = 16, depth, latents, leaf
		return structures.RATSPN(o)
	}
}

func pd(latents int) func() (*circuit.Graph, error) {
	return func() (*circuit.Graph, error) {
		o := structures.DefaultPD()
		o.Shape, o.SplitInterval, o.Latents, o.Leaf = [3]int{6, 6, 1}, 2, latents, categories(5)
		return structures.PD(o)
	}
}

var countedSteps = []countedStep{
	{"hclt", hclt(64, 5), 128, true, 132, 0},
	{"hclt in float32", hclt(64, 5), 128, false, 132, 0},
	{"hclt of many codes", hclt(64, 200), 192, true, 132, 0},
	{"narrow hclt", hclt(32, 5), 256, true, 132, 0},
	{"wide hclt", hclt(192, 5), 128, true, 1, 0},
	{"wide hclt in float32", hclt(192, 5), 128, false, 1, 0},
	{"hmm", hmm(4, 64, 5), 128, true, 132, 0},
	{"hmm of many codes", hmm(3, 64, 9000), 128, true, 132, 0},
	{"wide hmm", hmm(3, 544, 5), 128, true, 1, 0},
	{"wide hmm in float32", hmm(3, 544, 5), 128, false, 1, 0},
	{"products of four factors", rat(64, 2, categories(5)), 128, true, 132, 0},
	{"gaussian leaves", rat(64, 2, func(int) circuit.Leaf { return circuit.Gaussian{} }), 128, true, 132, 0},
	{"pd", pd(64), 128, true, 132, 0},
	{"wide pd", pd(128), 128, true, 1, 0},
	{"blocks of eight units", hclt(128, 5), 128, true, 132, 8},
	{"hmm with blocks of eight units", hmm(5, 64, 5), 128, true, 132, 8},
}

// issued runs a training step of a circuit on the emulator and returns the instructions
// that warps issued, by kernel, with its program.
func (s *countedStep) issued(t *testing.T) (map[string]int64, layers.Module) {
	g, err := s.graph()
	if err != nil {
		t.Fatal(err)
	}
	start, err := reference.Init(g, 5, nil)
	if err != nil {
		t.Fatal(err)
	}
	batch := reference.Batch(reference.Schema(g), reference.RandomRows(g, rand.New(rand.NewPCG(5, 6)), s.rows, 0))
	e := emulator.New(emulator.Options{Multiprocessors: s.processors})
	dev, err := executor.Open("emulator", func() (cuda.Driver, error) { return e, nil })
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	o := compile.DefaultOptions()
	o.BlockSize = s.block
	m := kerneltest.Build(t, dev, g, start, o, engine.Options{Rows: s.rows, Train: true, Mixed: s.mixed})
	e.ResetCounts()
	if err := m.Engine.Step(t.Context(), batch, 0, s.rows, tensor.Rule{Step: 0.5}, make([]float64, s.rows)); err != nil {
		t.Fatal(err)
	}
	return e.Instructions(), layers.Module{Program: m.Result.Program, Rows: s.rows, Train: true, Mixed: s.mixed}
}

// TestInstructions compares the instructions that the model has for each kernel with those
// that the emulator counts. Where a kernel has changed, its weights in plan/issue.go want new
// numbers: those that bring the ratios that this prints to 1.
func TestInstructions(t *testing.T) {
	if testing.Short() {
		t.Skip("sixteen circuits on the emulator; without -short")
	}
	kernels := map[string]bool{}
	for _, s := range countedSteps {
		t.Run(s.name, func(t *testing.T) {
			issued, m := s.issued(t)
			rates, _ := plan.RatesOf("h200")
			rates.Processors = s.processors
			costs, step, err := plan.Predict(m, s.rows, rates)
			if err != nil {
				t.Fatal(err)
			}
			if len(costs) == 0 {
				t.Fatal("no kernels")
			}
			for _, c := range costs {
				n := float64(issued[c.Kernel+".issued"])
				if int64(c.Launches) != issued[c.Kernel+".launches"] {
					t.Errorf("%s: %d launches, the emulator has run %d", c.Kernel, c.Launches, issued[c.Kernel+".launches"])
				}
				kernels[c.Kernel] = true
				allowed := 0.15
				switch c.Kernel {
				case "root", "coefficients", "badrows_list", "norms_write": // short, and some of their warps have no units or rows
					allowed = 0.5
				case "leaf_move": // goes through codes by warps, and rows by codes
					allowed = 0.3
				}
				if m.Program.BlockSize < 16 {
					allowed += 0.1
				}
				if ratio := c.Text / n; !(ratio >= 1-allowed && ratio <= 1+allowed) {
					t.Errorf("%s: %.0f instructions in the model, %.0f on the emulator: %.2f times; want within %.0f %%", c.Kernel, c.Text, n, ratio, 100*allowed)
				}
			}
			if ratio := step.Text / float64(issued["issued"]); !(ratio > 0.9 && ratio < 1.1) {
				t.Errorf("the step: %.0f instructions in the model, %d on the emulator: %.2f times", step.Text, issued["issued"], ratio)
			}
		})
	}
	for _, kernel := range []string{
		"forward", "forward_resident", "forward_wide", "fit", "backward", "backward_wide", "gather", "move", "move_wide", "normalise", "norms_write",
		"leaf", "leaf_gather", "leaf_move",
	} {
		if !kernels[kernel] {
			t.Errorf("no circuit launches %s", kernel)
		}
	}
}
