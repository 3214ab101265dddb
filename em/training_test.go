package em_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels/cpu"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/kernels/tensor"
)

// TestFullBatchNeverFalls is the law of EM: without pseudocount no epoch lowers
// the training log-likelihood.
func TestFullBatchNeverFalls(t *testing.T) {
	for name, g := range structured(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := newModel(t, g, clustered(g, 1, 300, 0.05))
			var lls []float64
			m.run(t, cpu.Options{}, em.Options{
				Phases:    []em.Phase{{Rule: em.FullBatch, Epochs: 50}},
				ShardRows: 128,
				OnEpoch:   func(x em.Metrics) { lls = append(lls, x.TrainLL) },
			})
			if len(lls) != 50 {
				t.Fatalf("%d epochs, want 50", len(lls))
			}
			for i := 1; i < len(lls); i++ {
				if !(lls[i] >= lls[i-1]-1e-6*math.Abs(lls[i-1])) {
					t.Errorf("epoch %d: %v after %v", i+1, lls[i], lls[i-1])
				}
			}
			if !(lls[49] > lls[0]+0.5) {
				t.Errorf("learned nothing: %v to %v", lls[0], lls[49])
			}
		})
	}
}

// stepRows returns the rows of a step of an epoch of batch*5-7 rows in five steps:
// -7 is 3 modulo 5, so the first three have batch-1 rows and the others batch-2.
func stepRows(order []int, batch, step int) []int {
	lo := step * (batch - 1)
	if step > 3 {
		lo--
	}
	hi := lo + batch - 1
	if step >= 3 {
		hi--
	}
	return order[lo:hi]
}

// TestTrajectory compares ten mini-batch steps of two sizes with EM in float64, and the log-likelihoods seen on the way.
func TestTrajectory(t *testing.T) {
	graphs := structured(t)
	rng := rand.New(rand.NewPCG(5, 6))
	for i := range 6 {
		graphs[fmt.Sprintf("random%d", i)] = reference.Random(rng, reference.RandomOptions{Discrete: true, Positive: true, MaxUnits: 9})
	}
	for name, g := range graphs {
		for i, batch := range []int{40, 100} { // one shard a step; several
			if testing.Short() && i != len(g.Nodes)%2 {
				continue // each circuit with one of the two sizes
			}
			t.Run(fmt.Sprintf("%s/batch=%d", name, batch), func(t *testing.T) {
				m := newModel(t, g, clustered(g, 2, batch*5-7, 0.1))
				o := em.Options{
					Phases:    []em.Phase{{Rule: em.MiniBatch, Epochs: 2, BatchRows: batch, StepSize: em.Schedule{{em.Linear, 1, 0.8, 0.1}}, Pseudocount: 0.5}},
					Seed:      9,
					ShardRows: 40,
				}
				var seen []float64
				seconds := 0.0
				o.OnEpoch = func(x em.Metrics) {
					seen, seconds = append(seen, x.TrainLL), seconds+x.Seconds
					if last := float64(5*x.Epoch - 1); !(math.Abs(x.StepSize-(0.8+last/9*(0.1-0.8))) <= 1e-12) {
						t.Errorf("epoch %d: its last step has size %v", x.Epoch, x.StepSize)
					}
					if rows := x.SamplesPerSecond * x.Seconds; !(math.Abs(rows-float64(len(m.rows))) <= 1e-9*rows) {
						t.Errorf("epoch %d: %v rows a second in %v seconds, of %d rows", x.Epoch, x.SamplesPerSecond, x.Seconds, len(m.rows))
					}
				}
				res, got := m.run(t, cpu.Options{}, o)
				if !(math.Abs(seconds-res.Seconds) <= 1e-9*seconds) {
					t.Errorf("epochs of %v seconds in a run of %v", seconds, res.Seconds)
				}

				p := m.start
				for epoch := range 2 {
					order, sum := dataset.Order(9, epoch, len(m.rows)), 0.0
					for step := range 5 {
						var rows [][]float64
						for _, r := range stepRows(order, batch, step) {
							rows = append(rows, m.rows[r])
						}
						ev, err := reference.New(g, p)
						if err != nil {
							t.Fatal(err)
						}
						f, err := ev.Flows(rows)
						if err != nil {
							t.Fatal(err)
						}
						sum += f.LogLikelihood
						k := float64(epoch*5 + step)
						p = ev.EM(f, reference.Step{Size: 0.8 + k/9*(0.1-0.8), Pseudocount: 0.5})
					}
					// float32 values: 1e-5 relative, as DESIGN section 5 promises, over
					// parameters that have drifted as far.
					if want := sum / float64(len(m.rows)); !(math.Abs(seen[epoch]-want) <= 2e-5*max(1, math.Abs(want))) {
						t.Errorf("epoch %d: train_ll %v, want %v", epoch+1, seen[epoch], want)
					}
				}
				// Each step rounds flows to 2^-24 a term, some hundreds of terms, and
				// EM may amplify what the steps before it left; ten steps stay below 1e-4.
				compareParams(t, m, got, p, 1e-4)
			})
		}
	}
}

// compareParams compares a parameter buffer with parameters of the reference.
func compareParams(t *testing.T, m *model, got []float32, want reference.Params, tol float64) {
	t.Helper()
	worst, where := 0.0, ""
	for i := range m.prog.Map.Len() {
		id := m.prog.Map.Node(i)
		at, n := m.prog.Map.Region(i)
		canonical := make([]float32, m.graph.NumParams(id))
		if err := m.prog.Map.Unpack(i, got[at:at+int64(n)], canonical); err != nil {
			t.Fatal(err)
		}
		for k, x := range canonical {
			d := math.Abs(float64(x)-want[id][k]) / max(1, math.Abs(want[id][k]))
			if !(d <= worst) {
				worst, where = d, fmt.Sprintf("%v %d, parameter %d: %v, want %v", m.graph.Nodes[id].Kind, id, k, x, want[id][k])
			}
		}
	}
	if !(worst <= tol) {
		t.Errorf("off by %g: %s", worst, where)
	}
}

// TestShardsInAnyOrder adds the shards of a batch in other orders and groups,
// as the workers of a cluster would, and wants the bits of Local's step.
func TestShardsInAnyOrder(t *testing.T) {
	ctx := context.Background()
	rule := tensor.Rule{Step: 0.3, Pseudocount: 0.2}
	for name, g := range structured(t) {
		m := newModel(t, g, clustered(g, 4, 230, 0.1))
		batch := reference.Batch(reference.Schema(g), m.rows)
		shards := dataset.Shards(len(m.rows), 32)
		ll := make([]float64, 32)

		_, want := m.run(t, cpu.Options{}, em.Options{
			Phases:    []em.Phase{{Rule: em.FullBatch, Epochs: 1, Pseudocount: 0.2}},
			ShardRows: 32,
		})
		local := em.NewLocal(m.engine(t, cpu.Options{}, 32), m.table)
		defer local.Close()
		plan := em.Plan{Schedule: dataset.Schedule{Rows: len(m.rows), BatchRows: len(m.rows), InOrder: true}, ShardRows: 32, Epochs: 1}
		if err := local.Begin(ctx, plan); err != nil {
			t.Fatal(err)
		}
		if _, err := local.Step(ctx, tensor.Rule{Step: 1, Pseudocount: 0.2}); err != nil {
			t.Fatal(err)
		}
		if !sameBits(want, bits(t, local)) {
			t.Errorf("%s: a step and an epoch of one step differ", name)
		}

		want = nil
		for try := range 4 {
			rng := rand.New(rand.NewPCG(uint64(try), 1))
			order := rng.Perm(len(shards))
			// Two engines take the shards in turn; their flows are added as integers.
			one, two := m.engine(t, cpu.Options{}, 32), m.engine(t, cpu.Options{}, 32)
			for k, s := range order {
				eng := one
				if try > 0 && k%(try+1) == 0 {
					eng = two
				}
				if err := eng.Accumulate(ctx, batch, shards[s].Lo, shards[s].Hi, ll); err != nil {
					t.Fatal(err)
				}
			}
			n := one.Program().FlowLen()
			a, b := make([]int64, n), make([]int64, n)
			if err := one.ReadFlows(ctx, 0, a); err != nil {
				t.Fatal(err)
			}
			if err := two.ReadFlows(ctx, 0, b); err != nil {
				t.Fatal(err)
			}
			for i := range a {
				a[i] += b[i]
			}
			if err := one.WriteFlows(ctx, 0, a); err != nil {
				t.Fatal(err)
			}
			if err := one.Apply(ctx, rule); err != nil {
				t.Fatal(err)
			}
			got := make([]float32, one.Program().NumParams)
			if err := one.ReadParams(ctx, 0, got); err != nil {
				t.Fatal(err)
			}
			if want == nil {
				want = got
			} else if !sameBits(want, got) {
				t.Errorf("%s: order %v gives other bits", name, order)
			}
		}
	}
}

// TestFusedStepBits compares the fused step of one shard with its two halves.
func TestFusedStepBits(t *testing.T) {
	ctx := context.Background()
	graphs := structured(t)
	rng := rand.New(rand.NewPCG(11, 12))
	for i := range 8 {
		graphs[fmt.Sprintf("random%d", i)] = reference.Random(rng, reference.RandomOptions{Positive: true, MaxUnits: 20})
	}
	for name, g := range graphs {
		m := newModel(t, g, clustered(g, 5, 64, 0.1))
		batch := reference.Batch(reference.Schema(g), m.rows)
		rule := tensor.Rule{Step: 0.4, Pseudocount: 0.3}
		ll := make([]float64, 64)
		for _, set := range micro.All() {
			dev := cpu.Options{Set: set}
			fused, split := m.engine(t, dev, 64), m.engine(t, dev, 64)
			for step := range 3 {
				if err := fused.Step(ctx, batch, 0, 64, rule, ll); err != nil {
					t.Fatal(err)
				}
				if err := split.Accumulate(ctx, batch, 0, 64, ll); err != nil {
					t.Fatal(err)
				}
				if err := split.Apply(ctx, rule); err != nil {
					t.Fatal(err)
				}
				a, b := make([]float32, m.prog.Program.NumParams), make([]float32, m.prog.Program.NumParams)
				if err := fused.ReadParams(ctx, 0, a); err != nil {
					t.Fatal(err)
				}
				if err := split.ReadParams(ctx, 0, b); err != nil {
					t.Fatal(err)
				}
				if !sameBits(a, b) {
					t.Errorf("%s on %s: step %d differs: %s", name, set.Name, step, firstDifference(a, b))
					break
				}
			}
		}
	}
}

func firstDifference(a, b []float32) string {
	n := 0
	first := ""
	for i := range a {
		if math.Float32bits(a[i]) != math.Float32bits(b[i]) {
			if n++; n == 1 {
				first = fmt.Sprintf("parameter %d is %v and %v", i, a[i], b[i])
			}
		}
	}
	return fmt.Sprintf("%s; %d of %d differ", first, n, len(a))
}

// allPhases uses every kind of step: fused, of several shards, over subsets,
// with averages that go on and that start afresh.
func allPhases() em.Options {
	return em.Options{
		Phases: []em.Phase{
			{Rule: em.MiniBatch, Epochs: 2, BatchRows: 30, StepSize: em.Schedule{{em.Constant, 1, 0.5, 0.5}, {em.Cosine, 2, 0.5, 0.1}}, Pseudocount: 0.1},
			{Rule: em.MiniBatch, Epochs: 1, BatchRows: 75, StepSize: em.Schedule{{em.Linear, 1, 0.5, 0.1}}, Pseudocount: 0.1},
			{Rule: em.Anemone, Epochs: 2, BatchRows: 70, StepSize: em.Schedule{{em.Linear, 1, 0.4, 0.2}}, Momentum: 0.9, Pseudocount: 1e-4},
			{Rule: em.Anemone, Epochs: 1, BatchRows: 120, StepSize: em.Schedule{{em.Constant, 1, 0.2, 0.2}}, Momentum: 0.5, Pseudocount: 1e-4},
			{Rule: em.FullBatch, Epochs: 2, Subsets: 3, Pseudocount: 0.1},
			{Rule: em.FullBatch, Epochs: 1},
		},
		Seed:      3,
		ShardRows: 32,
	}
}

// TestStepsAreEven wants the rows of an epoch spread evenly over its steps under
// every rule: no step is left with the few rows that do not fill a batch.
func TestStepsAreEven(t *testing.T) {
	g := structured(t)["hclt"]
	m := newModel(t, g, clustered(g, 6, 103, 0.1))
	constant := em.Schedule{{em.Constant, 1, 0.5, 0.5}}
	for _, tc := range []struct {
		phase em.Phase
		want  string
	}{
		{em.Phase{Rule: em.MiniBatch, BatchRows: 50, StepSize: constant}, "[35 34 34]"},
		{em.Phase{Rule: em.MiniBatch, BatchRows: 51, StepSize: constant}, "[35 34 34]"},
		{em.Phase{Rule: em.MiniBatch, BatchRows: 52, StepSize: constant}, "[52 51]"},
		{em.Phase{Rule: em.MiniBatch, BatchRows: 102, StepSize: constant}, "[52 51]"},
		{em.Phase{Rule: em.MiniBatch, BatchRows: 103, StepSize: constant}, "[103]"},
		{em.Phase{Rule: em.Anemone, BatchRows: 50, StepSize: constant, Momentum: 0.5, Pseudocount: 1e-6}, "[35 34 34]"},
		{em.Phase{Rule: em.FullBatch}, "[103]"},
		{em.Phase{Rule: em.FullBatch, Subsets: 4}, "[26 26 26 25]"},
		{em.Phase{Rule: em.FullBatch, Subsets: 15}, "[7 7 7 7 7 7 7 7 7 7 7 7 7 6 6]"},
	} {
		tc.phase.Epochs = 2
		var sizes [2][]int
		o := em.Options{Phases: []em.Phase{tc.phase}, Seed: 1, ShardRows: 16}
		o.OnStep = func(p em.Progress) { sizes[p.Epoch-1] = append(sizes[p.Epoch-1], p.Rows) }
		m.run(t, cpu.Options{}, o)
		for epoch, got := range sizes {
			if fmt.Sprint(got) != tc.want {
				t.Errorf("%+v: steps of %v rows in epoch %d, want %s", tc.phase, got, epoch+1, tc.want)
			}
		}
	}
}

// TestThreadsAndSets wants the same bits from any number of threads and from a
// second run, on every set of kernels, and all sets close to each other.
func TestThreadsAndSets(t *testing.T) {
	for name, g := range structured(t) {
		m := newModel(t, g, clustered(g, 6, 200, 0.1))
		var first []float32
		sets := micro.All()
		if testing.Short() {
			sets = sets[:1]
		}
		for _, set := range sets {
			_, one := m.run(t, cpu.Options{Threads: 1, Set: set}, allPhases())
			for _, threads := range []int{1, 2, 3} {
				if _, got := m.run(t, cpu.Options{Threads: threads, Set: set}, allPhases()); !sameBits(one, got) {
					t.Errorf("%s on %s: %d threads give other bits than one: %s", name, set.Name, threads, firstDifference(one, got))
				}
			}
			if first == nil {
				first = one
				continue
			}
			for i := range one {
				// Sets differ by rounding, which a few dozen steps of EM spread.
				if d := math.Abs(float64(one[i]) - float64(first[i])); !(d <= 1e-3*max(1, math.Abs(float64(first[i])))) {
					t.Errorf("%s on %s: parameter %d is %v, on %s %v", name, set.Name, i, one[i], micro.All()[0].Name, first[i])
					break
				}
			}
		}
	}
}

// TestImpossibleRows trains on rows of probability 0: they teach nothing, and
// the run goes on.
func TestImpossibleRows(t *testing.T) {
	g := &circuit.Graph{NumVars: 1, Nodes: []circuit.Node{
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Indicator{Domain: 3, Value: 0}},
		{Kind: circuit.Input, Units: 1, Leaf: circuit.Indicator{Domain: 3, Value: 1}},
		{Kind: circuit.Sum, Units: 1, Children: []circuit.NodeID{0, 1}},
	}, Root: 2}
	m := newModel(t, g, [][]float64{{0}, {0}, {0}, {1}, {2}})
	res, got := m.run(t, cpu.Options{}, em.Options{Phases: []em.Phase{{Rule: em.FullBatch, Epochs: 2}}})
	if !math.IsInf(res.TrainLL, -1) {
		t.Errorf("train_ll %v, want -Inf", res.TrainLL)
	}
	compareParams(t, m, got, reference.Params{nil, nil, {0.75, 0.25}}, 1e-6)
}

// failing is a source that fails at some read.
type failing struct {
	dataset.Source
	left int
}

var errRead = errors.New("read failed")

func (s *failing) Gather(ctx context.Context, b *dataset.Batch, rows []int) error {
	if s.left--; s.left < 0 {
		return errRead
	}
	return s.Source.Gather(ctx, b, rows)
}

// TestBadPlan wants the error of a plan that no run has when it begins.
func TestBadPlan(t *testing.T) {
	g := structured(t)["hclt"]
	m := newModel(t, g, clustered(g, 7, 200, 0.1))
	local := em.NewLocal(m.engine(t, cpu.Options{}, 32), m.table)
	defer local.Close()
	ok := em.Plan{Schedule: dataset.Schedule{Rows: 200, BatchRows: 50}, ShardRows: 32, Epochs: 1}
	if err := local.Begin(t.Context(), ok); err != nil {
		t.Fatal(err)
	}
	for name, edit := range map[string]func(*em.Plan){
		"no rows":            func(p *em.Plan) { p.Rows = 0 },
		"no rows of a step":  func(p *em.Plan) { p.BatchRows = 0 },
		"fewer than 0 steps": func(p *em.Plan) { p.MinSteps = -1 },
	} {
		p := ok
		edit(&p)
		if err := local.Begin(t.Context(), p); err == nil || p.Validate() == nil {
			t.Errorf("%s: a plan %+v begins", name, p)
		}
	}
}

// TestFailingStep wants errors of the data to come through, parameters that are
// those of the last whole step, and a source that can go on from there.
func TestFailingStep(t *testing.T) {
	ctx := context.Background()
	g := structured(t)["hclt"]
	m := newModel(t, g, clustered(g, 7, 200, 0.1))
	_, want := m.run(t, cpu.Options{}, em.Options{Phases: []em.Phase{{Rule: em.FullBatch, Epochs: 1}}, ShardRows: 32})

	src := &failing{m.table, 4}
	local := em.NewLocal(m.engine(t, cpu.Options{}, 32), src)
	defer local.Close()
	before := bits(t, local)
	tr, err := em.New(local, em.Options{Phases: []em.Phase{{Rule: em.FullBatch, Epochs: 1}}, ShardRows: 32})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tr.Run(ctx); !errors.Is(err, errRead) {
		t.Fatalf("error is %v, want that of the source", err)
	}
	if !sameBits(before, bits(t, local)) {
		t.Error("a step that failed has moved the parameters")
	}
	src.left = 100
	if _, err := tr.Run(ctx); err != nil {
		t.Fatal(err)
	}
	if got := bits(t, local); !sameBits(want, got) {
		t.Errorf("flows of the step that failed were kept: %s", firstDifference(want, got))
	}
	if _, err := local.Step(ctx, tensor.Rule{Step: 1}); err == nil {
		t.Error("a step after the end of the plan")
	}
	plan := em.Plan{Schedule: dataset.Schedule{Rows: 200, BatchRows: 200}, ShardRows: 33, Epochs: 1}
	if err := local.Begin(ctx, plan); !errors.Is(err, em.ErrOptions) {
		t.Errorf("shards larger than the engine's rows: %v", err)
	}
}
