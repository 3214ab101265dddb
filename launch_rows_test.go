package pce

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/kernels"
)

// longHMM is a model of the given number of steps with 8 states, each with weights of its own.
func longHMM(t *testing.T, steps int, o Options) (*Model, error) {
	t.Helper()
	leaf := func(int) circuit.Leaf { return circuit.Categorical{Categories: 4} }
	g, err := structures.HMM(structures.HMMOptions{Length: steps, Latents: 8, Leaf: leaf})
	if err != nil {
		t.Fatal(err)
	}
	m, err := New(t.Context(), g, start(t, g), o)
	if err == nil {
		t.Cleanup(func() { m.Close() })
	}
	return m, err
}

func start(t *testing.T, g *circuit.Graph) circuit.ParamFunc {
	t.Helper()
	p, err := reference.Init(g, 3, nil)
	if err != nil {
		t.Fatal(err)
	}
	return p.Read
}

// idleRows is the launch rows of a model's idle engine.
func idleRows(m *Model) int {
	e := <-m.idle
	m.idle <- e
	return e.Rows()
}

// TestLaunchRows wants the rows that a call asks for, in powers of two, as far as
// memory allows.
func TestLaunchRows(t *testing.T) {
	for _, tc := range []struct {
		r           launchRows
		asked, want int
	}{
		{launchRows{4, 512}, 0, 4}, {launchRows{4, 512}, 1, 4}, {launchRows{4, 512}, 4, 4}, {launchRows{4, 512}, 5, 8},
		{launchRows{4, 512}, 256, 256}, {launchRows{4, 512}, 257, 512}, {launchRows{4, 512}, 512, 512}, {launchRows{4, 512}, 1 << 20, 512},
		{launchRows{4, 16}, 17, 16}, {launchRows{1, 1}, 100, 1}, {launchRows{512, 512}, 1, 512}, {launchRows{7, 7}, 9, 7},
	} {
		if got := tc.r.of(tc.asked); got != tc.want {
			t.Errorf("%+v: %d rows for %d, want %d", tc.r, got, tc.asked, tc.want)
		}
	}
	for _, tc := range []struct {
		bytes, one, all int64
		full, want      int
	}{
		{100, 10, 10 + 511*10, 512, 8}, {89, 10, 10 + 511*10, 512, 8}, {79, 10, 10 + 511*10, 512, 4},
		{5, 10, 10 + 511*10, 512, 1}, {1 << 40, 10, 10 + 511*10, 512, 256}, {100, 10, 20, 1, 1}, {100, 10, 20, 2, 1},
	} {
		if got := rowsWithin(tc.bytes, tc.one, tc.all, tc.full); got != tc.want {
			t.Errorf("%d bytes where one row takes %d and %d take %d: %d rows, want %d", tc.bytes, tc.one, tc.full, tc.all, got, tc.want)
		}
	}
}

// TestQueryMemory asks a long chain for one row, then for many: the first engine
// takes little, a later one what the call asks for, within MaxMemory.
func TestQueryMemory(t *testing.T) {
	const steps = 4000
	for _, device := range []string{"cpu", "emulator"} {
		m, err := longHMM(t, steps, Options{Device: device, Engines: 1})
		if err != nil {
			t.Fatal(err)
		}
		plan := func(rows int) MemoryPlan {
			p, err := m.plan.Memory(Load{Options: Options{Device: device, Rows: rows}})
			if err != nil {
				t.Fatal(err)
			}
			return p
		}
		first := idleRows(m)
		p, next := plan(first), plan(2*first)
		if p.Values+p.Flows+p.Scratch > 64<<20 || next.Values+next.Flows+next.Scratch <= 64<<20 || m.rows.most != 512 {
			t.Errorf("%s: %+v rows, which take %+v", device, m.rows, p)
		}
		if device == "emulator" {
			continue // runs of 4,000 levels take long
		}
		row := make([]float64, steps)
		for i := range row {
			row[i] = float64(i * 7 % 4)
		}
		one, err := m.LogLikelihood(t.Context(), [][]float64{row})
		if err != nil || idleRows(m) != first {
			t.Fatalf("%v: an engine for %d rows, want %d", err, idleRows(m), first)
		}
		many, err := m.LogLikelihood(t.Context(), slices.Repeat([][]float64{row}, first+1))
		if err != nil || idleRows(m) != 2*first || math.Float64bits(many[first]) != math.Float64bits(one[0]) {
			t.Fatalf("%v: an engine for %d rows, want %d; %v and %v", err, idleRows(m), 2*first, one[0], many[first])
		}
		limit := plan(2).Total
		small, err := longHMM(t, steps, Options{Device: device, Engines: 1, MaxMemory: limit})
		if err != nil || small.rows != (launchRows{2, 2}) {
			t.Fatalf("%v: %+v with room for 2 rows", err, small.rows)
		}
		few, err := small.LogLikelihood(t.Context(), slices.Repeat([][]float64{row}, 5))
		if err != nil || math.Float64bits(few[4]) != math.Float64bits(one[0]) {
			t.Errorf("%v: %v in launches of 2 rows, want %v", err, few, one[0])
		}
		if _, err := longHMM(t, steps, Options{Device: device, Engines: 1, MaxMemory: plan(1).Total - 1}); !errors.Is(err, kernels.ErrMemory) {
			t.Errorf("room for no row: %v, want ErrMemory", err)
		}
	}
}

// TestRowsOfALaunch wants the same bits of log-likelihoods and samples whatever
// the rows of a launch, on every kernel path and on the emulator.
func TestRowsOfALaunch(t *testing.T) {
	places := []Options{{Device: "emulator"}}
	for _, path := range KernelPaths() {
		places = append(places, Options{Device: "cpu", KernelPath: path})
	}
	for _, o := range places {
		for seed := range uint64(4) {
			ro := reference.RandomOptions{MaxNodes: 20, MaxUnits: 1 + int(seed)*20}
			g := reference.Random(rand.New(rand.NewPCG(seed, 30)), ro)
			rows := reference.RandomRows(g, rand.New(rand.NewPCG(seed, 31)), 70, 0.4)
			var lls [][]float64
			var drawn [][][]float64
			launches := []int{512, 64, 33, 1}
			if o.Device == "emulator" {
				launches = []int{128, 64, 9}
			}
			for _, n := range launches {
				o.Rows = n
				m, err := New(t.Context(), g, start(t, g), o)
				if err != nil {
					t.Fatal(err)
				}
				ll, err := m.LogLikelihood(t.Context(), rows)
				if err != nil {
					t.Fatal(err)
				}
				s, err := m.SampleGiven(t.Context(), rows, seed)
				if err != nil {
					t.Fatal(err)
				}
				if err := m.Close(); err != nil {
					t.Fatal(err)
				}
				lls, drawn = append(lls, ll), append(drawn, s)
			}
			for k, n := range launches[1:] {
				for r := range rows {
					if a, b := lls[0][r], lls[k+1][r]; math.Float64bits(a) != math.Float64bits(b) {
						t.Fatalf("%+v, seed %d, row %d: %v in launches of %d rows, %v of %d", o, seed, r, a, launches[0], b, n)
					}
					if !slices.EqualFunc(drawn[0][r], drawn[k+1][r], func(a, b float64) bool { return math.Float64bits(a) == math.Float64bits(b) }) {
						t.Fatalf("%+v, seed %d, row %d: other samples in launches of %d rows than of %d", o, seed, r, n, launches[0])
					}
				}
			}
		}
	}
}
