package pce_test

import (
	"errors"
	"math"
	"testing"

	"github.com/pce-engine/pce"
)

// TestMomentQueriesOfValues wants covariances, expectations and quantiles in the data's units
// where columns are stored in others or as bins: those of a sum over the densities of values.
func TestMomentQueriesOfValues(t *testing.T) {
	m := histogram(t, pce.Options{}) // size in [0, 1) by bins, height about 500 ± 20
	ctx, nan := t.Context(), math.NaN()
	var rows [][]float64
	const parts, step = 20, 1.0
	for k := range parts {
		for height := 350.0; height < 650; height += step {
			rows = append(rows, []float64{(float64(k) + 0.5) / parts, height})
		}
	}
	ll, err := m.LogLikelihood(ctx, rows)
	if err != nil {
		t.Fatal(err)
	}
	mass, mean, second, below := 0.0, [2]float64{}, [2][2]float64{}, 0.0
	given := [][]float64{{nan, nan}, {0.7, nan}, {nan, 512}}
	levels := []float64{0.1, 0.5, 0.9}
	heights, err := m.Quantiles(ctx, given, 1, levels...)
	if err != nil {
		t.Fatal(err)
	}
	for i, row := range rows {
		p := math.Exp(ll[i]) * step / parts
		mass += p
		for a, x := range row {
			mean[a] += p * x
			for b, y := range row {
				second[a][b] += p * x * y
			}
		}
		switch d := heights[0][1] - row[1]; { // half of the rows around the quantile
		case d > step/2:
			below += p
		case d > -step/2:
			below += p * (d + step/2)
		}
	}
	close := func(what string, got, want, tol float64) {
		t.Helper()
		if !(math.Abs(got-want) <= tol) {
			t.Errorf("%s is %v, want %v", what, got, want)
		}
	}
	// The values of a bin lie at 20 points here, so that squares miss 1/12 of a part's.
	close("the mass", mass, 1, 1e-4)
	cov, err := m.Covariance(ctx, given, 1, 0)
	if err != nil {
		t.Fatal(err)
	}
	close("a covariance", cov[0][0][1], second[0][1]-mean[0]*mean[1], 1e-3)
	close("its mirror", cov[0][1][0], cov[0][0][1], 0)
	close("a variance", cov[0][0][0], second[1][1]-mean[1]*mean[1], 0.1)
	close("the variance of bins", cov[0][1][1], second[0][0]-mean[0]*mean[0]+1.0/12/parts/parts, 1e-4)
	close("a covariance with an observed cell", cov[1][0][1], 0, 0)
	close("the variance of an observed cell", cov[1][1][1], 0, 0)
	if !(cov[1][0][0] > 1) || !(math.Abs(cov[0][0][1]) > 1e-3) {
		t.Errorf("covariances %v say nothing", cov)
	}
	close("the share below the median", below/mass, 0.5, 1e-3)
	sizes, err := m.Quantiles(ctx, given, 0, levels...)
	if err != nil {
		t.Fatal(err)
	}
	for i := range given {
		for k := 1; k < len(levels); k++ {
			if heights[i][k] < heights[i][k-1] || sizes[i][k] < sizes[i][k-1] {
				t.Errorf("row %d: quantiles %v and %v; want them to ascend", i, heights[i], sizes[i])
			}
		}
	}
	close("the quantile of an observed cell", heights[2][0], 512, 1e-4)
	a, B := []float64{2, 0.5}, [][]float64{{1, 0.25}, {-0.75, 0}}
	expected, err := m.ExpectQuadratic(ctx, given, a, B)
	if err != nil {
		t.Fatal(err)
	}
	close("an expectation", expected[0], 2*mean[0]+0.5*mean[1]+second[0][0]+1.0/12/parts/parts-0.5*second[0][1], 0.02)
	q, err := m.NewExpectation("2*size + 0.5*height + size^2 - 0.5*size*$2", "height")
	if err != nil {
		t.Fatal(err)
	}
	if q.Width(m.Schema()) != 2 {
		t.Errorf("%d expectations, want 2", q.Width(m.Schema()))
	}
	linear, err := m.ExpectLinear(ctx, given, []float64{0, 1})
	if err != nil {
		t.Fatal(err)
	}
	close("a linear expectation", linear[0], mean[1], 0.05)
	close("what is observed", linear[2], 512, 1e-4)
}

// TestMomentQueriesRefuse wants errors for what cannot be asked.
func TestMomentQueriesRefuse(t *testing.T) {
	m := openText(t, "circuit 2\na = input x0 bernoulli 0.25\nb = input x1 gaussian 0 1\np = product a b\n")
	ctx, rows, inf := t.Context(), [][]float64{{math.NaN(), math.NaN()}}, math.Inf(1)
	for what, call := range map[string]func() error{
		"no columns":            func() error { _, err := m.Covariance(ctx, rows); return err },
		"a column outside":      func() error { _, err := m.Covariance(ctx, rows, 0, 2); return err },
		"no levels":             func() error { _, err := m.Quantiles(ctx, rows, 0); return err },
		"a level of 1":          func() error { _, err := m.Quantiles(ctx, rows, 0, 1); return err },
		"too few factors":       func() error { _, err := m.ExpectLinear(ctx, rows, []float64{1}); return err },
		"an infinite factor":    func() error { _, err := m.ExpectLinear(ctx, rows, []float64{1, inf}); return err },
		"a ragged matrix":       func() error { _, err := m.ExpectQuadratic(ctx, rows, nil, [][]float64{{1, 2}, {3}}); return err },
		"too small a matrix":    func() error { _, err := m.ExpectQuadratic(ctx, rows, nil, [][]float64{{1, 2}}); return err },
		"no expectation":        func() error { _, err := m.NewExpectation(); return err },
		"an unknown column":     func() error { _, err := m.NewExpectation("income"); return err },
		"the square of a cubic": func() error { _, err := m.NewExpectation("$1*$1^2"); return err },
	} {
		if err := call(); !errors.Is(err, pce.ErrOptions) {
			t.Errorf("%s: %v", what, err)
		}
	}
	if x, err := m.ExpectQuadratic(ctx, rows, nil, nil); err != nil || x[0] != 0 {
		t.Errorf("the expectation of nothing is %v, %v", x, err)
	}
	if x, err := m.ExpectLinear(ctx, nil, []float64{1, 1}); err != nil || len(x) != 0 {
		t.Errorf("no rows: %v, %v", x, err)
	}
}
