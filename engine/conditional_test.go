package engine_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/reference"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/engine"
)

// everyVariable lists the variables of a circuit that some leaf reads.
func everyVariable(g *circuit.Graph) (variables []int) {
	for v, codes := range circuit.Domains(g) {
		if codes >= 0 {
			variables = append(variables, v)
		}
	}
	return variables
}

// checkConditional compares the distributions of all variables at once with those of the
// reference one at a time, and moments with its moments. It returns how many impossible rows
// and numbers it has seen.
func (m *model) checkConditional(t *testing.T, rows [][]float64) (impossible, numbers int) {
	t.Helper()
	ctx, b := context.Background(), m.batch(rows)
	variables := everyVariable(m.graph)
	width, vars := 0, m.graph.NumVars
	for _, v := range variables {
		w, err := m.eng.ConditionalWidth(v)
		if err != nil {
			t.Fatal(err)
		}
		width += w
	}
	got, moments := make([]float64, len(rows)*width), make([]float64, len(rows)*2*vars)
	if err := m.eng.Conditional(ctx, b, variables, got); err != nil {
		t.Fatal(err)
	}
	if err := m.eng.Moments(ctx, b, moments); err != nil {
		t.Fatal(err)
	}
	for r, row := range rows {
		mean, variance, err := m.ref.Moments(row)
		at, of := got[r*width:(r+1)*width], moments[r*2*vars:(r+1)*2*vars]
		if errors.Is(err, reference.ErrRow) {
			impossible++
			for _, x := range append(append([]float64{}, at...), of...) {
				if !math.IsNaN(x) {
					t.Fatalf("row %v is impossible, and has %v, %v", row, at, of)
				}
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		same := func(what string, v int, got, want float64) {
			t.Helper()
			numbers++
			// float32 keeps the weights and parameters of a mixture to 1e-5 of what they make.
			if scale := max(1, math.Abs(mean[v]), variance[v], math.Abs(want)); !near(got, want, 1e-5*scale) {
				t.Errorf("row %v: %s of variable %d: %v, want %v", row, what, v, got, want)
			}
		}
		for _, v := range variables {
			same("mean", v, of[v], mean[v])
			same("variance", v, of[vars+v], variance[v])
			codes := circuit.Domains(m.graph)[v]
			if codes == 0 {
				same("mean of the conditional", v, at[0], mean[v])
				same("variance of the conditional", v, at[1], variance[v])
				at = at[2:]
				continue
			}
			want := make([]float64, codes)
			if x := row[v]; !math.IsNaN(x) {
				want[int(x)] = 1
			} else if want, err = m.ref.Conditional(row, v); err != nil {
				t.Fatal(err)
			}
			for c, p := range want {
				same("probability", v, at[c], p)
			}
			at = at[codes:]
		}
	}
	return impossible, numbers
}

// TestConditionalQueries compares distributions and moments given evidence with the
// reference: structures, random circuits of all leaves with structural zeros, rows with all
// cells, none and some.
func TestConditionalQueries(t *testing.T) {
	structured(t, func(_ string, g *circuit.Graph) {
		m := build(t, g, engine.Options{Rows: 7, Queries: true})
		rows := reference.RandomRows(g, rand.New(rand.NewPCG(1, 2)), 9, 0.5)
		rows = append(rows, reference.MissingRow(g.NumVars), reference.RandomRows(g, rand.New(rand.NewPCG(1, 3)), 1, 0)[0])
		m.checkConditional(t, rows)
	})
	impossible, numbers := 0, 0
	for seed := range uint64(40) {
		rng := rand.New(rand.NewPCG(seed, 52))
		g := reference.Random(rng, reference.RandomOptions{Vars: 1 + rng.IntN(8), MaxUnits: 12, MaxCodes: 5, Discrete: seed%3 == 0})
		m := build(t, g, engine.Options{Rows: 1 + rng.IntN(40), Queries: true})
		rows := append(reference.RandomRows(g, rng, 12, 0.5), reference.MissingRow(g.NumVars))
		i, n := m.checkConditional(t, rows)
		impossible, numbers = impossible+i, numbers+n
	}
	if impossible < 10 || numbers < 2000 {
		t.Errorf("only %d impossible rows and %d numbers were compared", impossible, numbers)
	}
}

// TestConditionalOrder asks for some variables in an order of the user's.
func TestConditionalOrder(t *testing.T) {
	structured(t, func(name string, g *circuit.Graph) {
		m := build(t, g, engine.Options{Rows: 3, Queries: true})
		rows := reference.RandomRows(g, rand.New(rand.NewPCG(1, 4)), 5, 0.5)
		out := make([]float64, len(rows)*6)
		if err := m.eng.Conditional(context.Background(), m.batch(rows), []int{4, 1}, out); err != nil {
			t.Fatal(err)
		}
		for r, row := range rows {
			for i, v := range []int{4, 1} {
				want, err := m.ref.Conditional(without(row, func(w int) bool { return false }), v)
				if err != nil {
					t.Fatal(err)
				}
				if x := row[v]; !math.IsNaN(x) {
					want = make([]float64, 3)
					want[int(x)] = 1
				}
				for c, p := range want {
					if got := out[r*6+i*3+c]; !near(got, p, 1e-5) {
						t.Errorf("%s, row %v: variable %d is %d with %v, want %v", name, row, v, c, got, p)
					}
				}
			}
		}
	})
}

// TestConditionalRefuses wants errors for what cannot be answered, and nothing to happen for
// no rows.
func TestConditionalRefuses(t *testing.T) {
	g := reference.Random(rand.New(rand.NewPCG(3, 51)), reference.RandomOptions{Vars: 3, Discrete: true})
	m := build(t, g, engine.Options{Rows: 4, Queries: true})
	ctx, none, one := context.Background(), m.batch(nil), m.batch([][]float64{reference.MissingRow(3)})
	if err := errors.Join(m.eng.Conditional(ctx, none, []int{0}, nil), m.eng.Moments(ctx, none, nil), m.eng.MPE(ctx, none, engine.MPEOptions{}, nil, nil)); err != nil {
		t.Errorf("no rows: %v", err)
	}
	for _, v := range []int{-1, 3} {
		if err := m.eng.Conditional(ctx, one, []int{v}, make([]float64, 99)); !errors.Is(err, dataset.ErrSetting) {
			t.Errorf("variable %d: %v", v, err)
		}
	}
	if err := m.eng.Conditional(ctx, one, []int{1, 1}, make([]float64, 99)); err == nil {
		t.Error("a variable twice: no error")
	}
	for _, err := range []error{
		m.eng.Conditional(ctx, one, []int{0}, make([]float64, circuit.Domains(g)[0]-1)), m.eng.Moments(ctx, one, make([]float64, 5)),
		m.eng.MPE(ctx, one, engine.MPEOptions{}, nil, make([]float64, 1)), m.eng.MPE(ctx, one, engine.MPEOptions{Candidates: -1}, make([]float64, 1), make([]float64, 1)),
	} {
		if !errors.Is(err, dataset.ErrFormat) {
			t.Errorf("no room: %v", err)
		}
	}
}
