package run_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/engine"
	"github.com/pce-engine/pce/kernels/cuda"
	executor "github.com/pce-engine/pce/kernels/cuda/tensor"
	"github.com/pce-engine/pce/kernels/cuda/tensor/plan"
	"github.com/pce-engine/pce/kernels/emulator"
	"github.com/pce-engine/pce/kernels/kerneltest"
	"github.com/pce-engine/pce/layers"
	"github.com/pce-engine/pce/run"
)

// stepLLs trains a circuit on a device and returns the mean
// log-likelihood of the rows of each step, before it moves the parameters, and the
// final ones of the validation rows.
func stepLLs(t *testing.T, o run.TrainOptions, device string) (lls []float64, valid float64) {
	t.Helper()
	o.Options.Device, o.Dir = device, t.TempDir()
	sum, rows := 0.0, 0
	o.EM.OnStep = func(p em.Progress) {
		if p.Step == 1 {
			sum, rows = 0, 0
		}
		rows += p.Rows
		total := p.LL * float64(rows) // LL is the mean of the epoch so far
		lls = append(lls, (total-sum)/float64(p.Rows))
		sum = total
	}
	r, err := run.Train(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	if r.Device != device || r.PrecisionUsed != "fp32" {
		t.Fatalf("trained on %s in %s, want %s in fp32", r.Device, r.PrecisionUsed, device)
	}
	return lls, r.ValidLL
}

// measurements is a file of rows with four continuous columns, in two groups.
func measurements(t *testing.T) run.Rows {
	rng := rand.New(rand.NewPCG(3, 4))
	var b strings.Builder
	b.WriteString("a,b,c,d\n")
	for range 300 {
		centre := float64(rng.IntN(2))
		fmt.Fprintf(&b, "%.3f,%.3f,%.3f,%.3f\n", 3*centre+rng.NormFloat64(), 10-centre+rng.NormFloat64(), centre*rng.NormFloat64(), rng.NormFloat64())
	}
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return run.Files(path)
}

// TestTrainDevices trains each structure on the CPU and on the emulated card: the
// log-likelihoods of all 20 steps agree as those of one evaluation do, 1e-5 of
// their size. EM forgets: a step's roundings do not add up over the steps.
func TestTrainDevices(t *testing.T) {
	const bound = 1e-5
	epochs, steps := 4, 20
	if testing.Short() {
		epochs, steps = 1, 5
	}
	for _, kind := range []string{"hclt", "hmm", "pd", "rat-spn", "gaussian"} {
		t.Run(kind, func(t *testing.T) {
			if testing.Short() && kind != "hclt" && kind != "gaussian" {
				t.Skip("one discrete circuit is enough for a short test; run without -short")
			}
			o := small(t, kind)
			if kind == "gaussian" {
				o = small(t, "hclt")
				o.Train, o.Valid, o.Test, o.Samples = measurements(t), measurements(t), nil, 0
			}
			o.EM.Phases = []em.Phase{{
				Rule: em.MiniBatch, Epochs: epochs, BatchRows: 64, Pseudocount: 0.1,
				StepSize: em.Schedule{{Shape: em.Linear, Length: 1, From: 0.9, To: 0.1}},
			}}
			want, wantValid := stepLLs(t, o, "cpu")
			got, valid := stepLLs(t, o, "emulator")
			if len(got) != steps || len(want) != steps {
				t.Fatalf("%d steps on the CPU, %d on the card, want %d", len(want), len(got), steps)
			}
			for i := range want {
				if !(math.Abs(got[i]-want[i]) <= bound*max(1, math.Abs(want[i]))) {
					t.Errorf("step %d: log-likelihood %v, on the CPU %v", i+1, got[i], want[i])
				}
			}
			if !(math.Abs(valid-wantValid) <= bound*max(1, math.Abs(wantValid))) {
				t.Errorf("validation log-likelihood %v, on the CPU %v", valid, wantValid)
			}
			if !(want[steps-1] > want[0]) {
				t.Errorf("training took the log-likelihood from %v to %v; it has learnt nothing", want[0], want[steps-1])
			}
		})
	}
}

// witness is an emulator that counts what its user asks for.
type witness struct {
	*emulator.Emulator
	bytes    int64 // allocated
	captures int
	graphs   int // launched
}

func (w *witness) Alloc(bytes int64) (cuda.Ptr, error) {
	w.bytes += bytes
	return w.Emulator.Alloc(bytes)
}

func (w *witness) Capture(s cuda.Stream) error {
	w.captures++
	return w.Emulator.Capture(s)
}

func (w *witness) LaunchGraph(g cuda.Graph, s cuda.Stream) error {
	w.graphs++
	return w.Emulator.LaunchGraph(g, s)
}

// TestStepIsOneGraph trains a circuit without shared parameters, a shard a step: a
// step launches one graph, which is recorded once for each of the two places of its
// rows, nothing outside it, and no memory is taken for flows of parameters.
func TestStepIsOneGraph(t *testing.T) {
	const batch, steps = 64, 3
	tree, err := structures.GridTree(3, 3, 1)
	if err != nil {
		t.Fatal(err)
	}
	leaf := func(int) circuit.Leaf { return circuit.Categorical{Categories: 4} }
	g, err := structures.HCLT(tree, structures.HCLTOptions{Latents: 16, Leaf: leaf})
	if err != nil {
		t.Fatal(err)
	}
	params, err := reference.Init(g, 1, nil)
	if err != nil {
		t.Fatal(err)
	}
	card := &witness{Emulator: emulator.New(emulator.Options{Strict: true})}
	dev, err := executor.Open("emulator", func() (cuda.Driver, error) { return card, nil })
	if err != nil {
		t.Fatal(err)
	}
	defer dev.Close()
	m := kerneltest.Build(t, dev, g, params, compile.DefaultOptions(), engine.Options{Rows: batch, Train: true})
	if card.graphs != 0 {
		t.Fatalf("%d graphs were launched before the first step", card.graphs)
	}
	loaded := card.bytes

	schema := reference.Schema(g)
	rows := reference.RandomRows(g, rand.New(rand.NewPCG(1, 2)), batch*steps, 0.1)
	table, err := dataset.NewTable(schema, len(rows))
	if err != nil {
		t.Fatal(err)
	}
	if err := table.Append(reference.Batch(schema, rows)); err != nil {
		t.Fatal(err)
	}
	local := em.NewLocal(m.Engine, table)
	defer local.Close()
	var launched []int // kernels, of each step
	before := 0
	o := em.Options{
		Phases: []em.Phase{{Rule: em.MiniBatch, Epochs: 1, BatchRows: batch, Pseudocount: 0.1, StepSize: em.Schedule{{Shape: em.Linear, Length: 1, From: 0.9, To: 0.5}}}},
		OnStep: func(p em.Progress) {
			if card.graphs != p.Step {
				t.Errorf("%d graphs were launched in %d steps, want one a step", card.graphs, p.Step)
			}
			log := card.Log()
			launched = append(launched, len(log)-before)
			before = len(log)
		},
	}
	tr, err := em.New(local, o)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Run(t.Context()); err != nil {
		t.Fatal(err)
	}
	if len(launched) != steps || card.graphs != steps || card.captures != 2 {
		t.Errorf("%d steps launched %d graphs, recorded %d times; want %d, one a step, recorded twice", len(launched), card.graphs, card.captures, steps)
	}
	for i, n := range launched {
		if n == 0 || n != launched[0] {
			t.Errorf("step %d launched %d kernels, the first %d", i+1, n, launched[0])
		}
	}
	for _, r := range card.Log() {
		if !r.Graph {
			t.Errorf("kernel %s was launched outside a graph", r.Kernel)
		}
	}

	p := m.Result.Program
	mod := layers.Module{Program: p, Rows: batch, Train: true}
	work, err := plan.MemoryOf(mod)
	if err != nil {
		t.Fatal(err)
	}
	planned := work.Values + work.Flows + work.Scratch + work.Program + 4*p.NumParams + 2*mod.RowBytes()
	const empties = 64 // bytes that buffers and tables of no elements take at most
	if !(planned <= loaded && loaded <= planned+empties) || 8*p.FlowLen() < 100*empties {
		t.Errorf("%d bytes were allocated, want the %d of the plan; flows of parameters would take %d", loaded, planned, 8*p.FlowLen())
	}
	if card.bytes != loaded {
		t.Errorf("%d steps allocated %d bytes, want none", steps, card.bytes-loaded)
	}
	if err := m.Engine.Accumulate(t.Context(), reference.Batch(schema, rows), 0, batch, make([]float64, batch)); err != nil {
		t.Fatal(err)
	}
	if got := card.bytes - loaded; got != 8*p.FlowLen() {
		t.Errorf("adding flows up takes %d bytes more, want %d", got, 8*p.FlowLen())
	}
}
