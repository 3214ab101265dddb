package tensor_test

import (
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/kernels/cuda/tensor/plan"
	"github.com/pce-engine/pce/kernels/ptx/tensor"
	"github.com/pce-engine/pce/layers"
)

// TestPredict checks what must hold of a model whatever its rates: the operations of a
// step are six for each sum edge and row, its launches those of the schedule,
// nothing takes less than its floor, and a card of twice the speed takes half the time.
func TestPredict(t *testing.T) {
	leaf := func(int) circuit.Leaf { return circuit.Categorical{Categories: 5} }
	tree, err := structures.GridTree(4, 4, 3)
	if err != nil {
		t.Fatal(err)
	}
	rat := structures.DefaultRATSPN() // its leaf regions have products of eight factors
	rat.Vars, rat.Depth, rat.Latents, rat.Leaf = 16, 1, 160, leaf
	hclt, err := structures.HCLT(tree, structures.HCLTOptions{Latents: 64, Leaf: leaf})
	if err != nil {
		t.Fatal(err)
	}
	hmm, err := structures.HMM(structures.HMMOptions{Length: 4, Latents: 2048, Tied: true, Leaf: leaf})
	if err != nil {
		t.Fatal(err)
	}
	regions, err := structures.RATSPN(rat)
	if err != nil {
		t.Fatal(err)
	}
	const rows = 512
	for name, g := range map[string]*circuit.Graph{"hclt": hclt, "hmm": hmm, "rat-spn": regions} {
		t.Run(name, func(t *testing.T) {
			res, err := compile.Compile(g, compile.DefaultOptions())
			if err != nil {
				t.Fatal(err)
			}
			m := layers.Module{Program: res.Program, Rows: rows, Train: true, Mixed: true}
			tables, err := plan.NewTables(m)
			if err != nil {
				t.Fatal(err)
			}
			s := plan.NewSchedule(tables, true)
			launches := map[string]int{}
			for _, part := range [][]plan.Work{s.Forward, s.Backward, s.Move} {
				for _, w := range part {
					launches[w.Kernel]++
				}
			}
			if _, wide := launches[tensor.KernelForwardWide]; wide != (name == "hmm") {
				t.Errorf("wide tiles in the forward pass: %v", wide)
			}
			for _, card := range plan.Cards() {
				rates, ok := plan.RatesOf(card)
				if named, again := plan.RatesOf(rates.Name); !ok || !again || named != rates {
					t.Fatalf("no rates of %s", card)
				}
				costs, step, err := plan.Predict(m, rows, rates)
				if err != nil {
					t.Fatal(err)
				}
				if want := 6 * rows * float64(circuit.Count(g).SumEdges); step.Flop < want || step.Flop > 1.1*want { // the root's block is padded
					t.Errorf("%v operations, want %v and some of padding", step.Flop, want)
				}
				if len(costs) != len(launches) {
					t.Errorf("%d kernels, want %d", len(costs), len(launches))
				}
				total := 0
				for _, c := range append(costs, step) {
					if !(c.Instructions > 0) {
						t.Errorf("%s has no instructions in the model", c.Kernel)
					}
					if !(c.Floor <= c.Expected) || c.Bound == "" || c.Launches < 1 {
						t.Errorf("%s: %d launches, floor %v, expected %v, bound by %q", c.Kernel, c.Launches, c.Floor, c.Expected, c.Bound)
					}
					if c.Kernel != "step" {
						total += c.Launches
						if c.Launches != launches[c.Kernel] {
							t.Errorf("%s: %d launches, the schedule has %d", c.Kernel, c.Launches, launches[c.Kernel])
						}
					}
				}
				// Weights and tables are read three times, and written, at least.
				if least := 12 * float64(res.Program.NumParams); total != step.Launches || step.Bytes < least || step.Floor < least/rates.Memory {
					t.Errorf("%d launches of %d, %v bytes in %v s at least", total, step.Launches, step.Bytes, step.Floor)
				}
				twice := rates // of everything: every term is a half
				for _, x := range []*float64{&twice.Clock, &twice.Memory, &twice.Cache, &twice.Shared, &twice.TF32, &twice.F16} {
					*x *= 2
				}
				for _, x := range []*float64{&twice.Load, &twice.Launch, &twice.Wait} {
					*x /= 2
				}
				if _, fast, err := plan.Predict(m, rows, twice); err != nil || fast.Expected != step.Expected/2 || fast.Floor != step.Floor/2 {
					t.Errorf("at twice the rates %v s, floor %v; before %v, %v (%v)", fast.Expected, fast.Floor, step.Expected, step.Floor, err)
				}
				terms := step.Terms
				for name, x := range map[string]float64{
					"issue": terms.Issue, "tensor": terms.Tensor, "memory": terms.Memory, "cache": terms.Cache, "shared": terms.Shared,
					"latency": terms.Latency, "gaps": terms.Gaps, "host": terms.Host,
				} {
					if !(x > 0 && x < step.Expected) {
						t.Errorf("%s takes %v s of a step of %v", name, x, step.Expected)
					}
				}
			}
		})
	}
	if _, ok := plan.RatesOf("abacus"); ok {
		t.Error("an abacus has rates")
	}
}
