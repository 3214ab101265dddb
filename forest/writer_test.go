package forest

import (
	"errors"
	"math"
	"strings"
	"testing"
)

// TestWriter writes numbers in the shortest form of their type, classes by labels where there
// are some, and leaves as whole numbers.
func TestWriter(t *testing.T) {
	third := float64(float32(1) / 3)
	for _, c := range []struct {
		forest Forest
		what   What
		row    []float64
		want   string
	}{
		{Forest{}, Prediction, []float64{third, -1, math.NaN()}, "0.33333334,-1,NaN"},
		{Forest{Output: Float64}, Prediction, []float64{third}, "0.3333333432674408"},
		{Forest{Sum: Float64}, Margin, []float64{third}, "0.3333333432674408"},
		{Forest{Sum: Float64}, Prediction, []float64{third}, "0.33333334"},
		{Forest{}, Leaves, []float64{0, 1 << 24}, "0,16777216"},
		{Forest{Classes: 2}, Class, []float64{1}, "1"},
		{Forest{Classes: 2, Labels: []string{"dry", `a "wet", day`}}, Class, []float64{1}, `"a ""wet"", day"`},
		{Forest{Classes: 2, Labels: []string{"dry", "wet"}}, Prediction, []float64{1}, "1"},
		{Forest{Classes: 2, Labels: []string{"dry", "wet; cold"}}, Class, []float64{1}, `"wet; cold"`},
		{Forest{Classes: 2, Labels: []string{"dry", " wet"}}, Class, []float64{1}, `" wet"`},
		{Forest{Classes: 2, Labels: []string{"dry", ""}}, Class, []float64{1}, `""`},
		{Forest{Classes: 2, Labels: []string{"dry", "\ufeffwet"}}, Class, []float64{1}, "\"\ufeffwet\""},
		{Forest{Classes: 2, Labels: []string{"dry", "\x1f\x8b"}}, Class, []float64{1}, "\"\x1f\x8b\""},
	} {
		var out strings.Builder
		w := NewWriter(&out, &c.forest, c.what)
		if err := errors.Join(w.Write(c.row), w.Write(c.row), w.Close()); err != nil || out.String() != c.want+"\n"+c.want+"\n" {
			t.Errorf("%s %v: %q, %v; want %q twice", c.what, c.row, out.String(), err, c.want)
		}
	}
}

// TestParseWhat reads the names of all results, and refuses others.
func TestParseWhat(t *testing.T) {
	for what := range Class + 1 {
		if got, err := ParseWhat(what.String()); got != what || err != nil {
			t.Errorf("%s is %s, %v", what, got, err)
		}
	}
	if got := (Class + 1).String(); got != "unknown" {
		t.Errorf("a number beyond the last is %q", got)
	}
	if _, err := ParseWhat("margins"); !errors.Is(err, ErrRequest) || !strings.Contains(err.Error(), "prediction, margin, leaf, class") {
		t.Errorf("margins: %v", err)
	}
}
