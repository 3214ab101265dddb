package run

import (
	"errors"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset"
)

func polynomialSchema() *dataset.Schema {
	s := &dataset.Schema{}
	for _, name := range []string{"age", "net income", "x.2", "größe", ""} {
		s.Columns = append(s.Columns, dataset.Column{Name: name, Kind: dataset.Continuous})
	}
	return s
}

func term(factor float64, columns ...int) Term { return Term{Factor: factor, Columns: columns} }

// TestParsePolynomial reads what a person may write, and wants one line for what is wrong.
func TestParsePolynomial(t *testing.T) {
	s := polynomialSchema()
	for text, want := range map[string]Polynomial{
		"age":                   {Terms: []Term{term(1, 0)}},
		"-age":                  {Terms: []Term{term(-1, 0)}},
		"1.5e3":                 {Constant: 1500},
		".5 - -2":               {Constant: 2.5},
		"2*age*3":               {Terms: []Term{term(6, 0)}},
		"age ^ 2":               {Terms: []Term{term(1, 0, 0)}},
		"age^2*4":               {Terms: []Term{term(4, 0, 0)}},
		"x.2*age":               {Terms: []Term{term(1, 2, 0)}},
		`"net income"*$5 - 2`:   {Constant: -2, Terms: []Term{term(1, 1, 4)}},
		"größe^2+$1":            {Terms: []Term{term(1, 3, 3), term(1, 0)}},
		"1e-2*age+2E+1*$2":      {Terms: []Term{term(0.01, 0), term(20, 1)}},
		" + age - 2 * 3 + 1 ":   {Constant: -5, Terms: []Term{term(1, 0)}},
		"\tage\n*\u00a0age - 0": {Terms: []Term{term(1, 0, 0)}},
	} {
		if got, err := ParsePolynomial(s, text); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%q is %v, %v; want %v", text, got, err, want)
		}
	}
	for text, say := range map[string]string{
		"": "ends", "age+": "ends", "2*": "ends", "age age": "want +, - or *", "age^3": "want 2 after ^", "age^25": "want 2 after ^",
		"age^2*age": "more than two", "age*age*age": "more than two", "2**age": "want a number or a column", "(age)": "want a number or a column",
		"income": "no column", `"net`: "does not end", `""`: "no column", "$0": "1 to 5", "$6": "1 to 5", "$": "1 to 5", "$99999999999999999999": "1 to 5",
		"1e999": "not a number", "1.2.3": "not a number", "2e": "not a number", "1e308*1e308*age": "beyond the largest",
		"1e308+1e308": "beyond the largest", strings.Repeat("1+", maxPolynomial): "bytes",
		strings.Repeat("n", maxPolynomial): "no column", `"` + strings.Repeat("n", 60000) + `"`: "no column", "$" + strings.Repeat("7", 60000): "1 to 5",
		strings.Repeat("7", 60000): "not a number",
		"größe ? age":              "character 7: want +, - or *", "größe*(2)": "character 7: want a number or a column", "größe^3": "character 7: want 2",
		"größe^2*age*2": "character 9: a term has more than two", "größe*größe*age": "character 13: a term has more than two",
		"größe + 1.2.3": "character 9: \"1.2.3\"", "größe*$9": "character 7: want a number from", `größe*"x`: "character 7: a name begins", "größe*x": "character 7: the model has no",
		"größe*1e308*1e308 + 1": "before character 19 is beyond",
	} {
		_, err := ParsePolynomial(s, text)
		if !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), say) || strings.Contains(err.Error(), "\n") || len(err.Error()) > 400 {
			t.Errorf("%.40q: %v, want it to say %q", text, err, say)
		}
	}
	for n, want := range map[int]bool{0: false, 1: true, maxExpected: true, maxExpected + 1: false} {
		texts := make([]string, n)
		for i := range texts {
			texts[i] = "age"
		}
		if q, err := NewExpectation(s, texts); (err == nil) != want || want && q.Width(s) != n {
			t.Errorf("%d polynomials: %v", n, err)
		}
	}
}

// FuzzPolynomial wants an error or numbers of any text.
func FuzzPolynomial(f *testing.F) {
	for _, seed := range []string{`2*age + 0.5*age*$3 - "net income"^2 + 1e3`, "--+$5*größe", "1e+", `"`, "^2"} {
		f.Add(seed)
	}
	s := polynomialSchema()
	f.Fuzz(func(t *testing.T, text string) {
		p, err := ParsePolynomial(s, text)
		if err != nil {
			if !errors.Is(err, ErrOptions) {
				t.Fatal(err)
			}
			return
		}
		if math.IsInf(p.Constant, 0) || math.IsNaN(p.Constant) {
			t.Fatalf("%q has the constant %v", text, p.Constant)
		}
		for _, term := range p.Terms {
			if math.IsInf(term.Factor, 0) || math.IsNaN(term.Factor) || len(term.Columns) < 1 || len(term.Columns) > 2 {
				t.Fatalf("%q has the term %v", text, term)
			}
		}
	})
}

// TestQueryLimits has queries on both sides of what may be asked at once.
func TestQueryLimits(t *testing.T) {
	s := &dataset.Schema{Columns: make([]dataset.Column, maxCovariance+1)}
	for i := range s.Columns {
		s.Columns[i].Kind = dataset.Continuous
	}
	all := make([]int, len(s.Columns))
	for i := range all {
		all[i] = i
	}
	levels := make([]float64, maxLevels+1)
	for i := range levels {
		levels[i] = 0.5
	}
	expect := func(constant, factor float64, columns ...int) Query {
		return Query{Kind: QueryExpect, Of: []Polynomial{{Constant: constant, Terms: []Term{{Factor: factor, Columns: columns}}}}}
	}
	for _, tc := range []struct {
		q     Query
		width int // 0: refused
	}{
		{Query{Kind: QueryCovariance, Columns: all[:maxCovariance]}, maxCovariance * maxCovariance},
		{Query{Kind: QueryCovariance, Columns: all}, 0},
		{Query{Kind: QueryCovariance}, 0},
		{Query{Kind: QueryMoments}, 2 * len(s.Columns)},
		{Query{Kind: QueryMoments, Columns: all[:1]}, 0},
		{Query{Kind: QueryQuantiles, Columns: all[:2], Levels: levels[:maxLevels]}, 2 * maxLevels},
		{Query{Kind: QueryQuantiles, Columns: all[:2], Levels: levels}, 0},
		{Query{Kind: QueryQuantiles, Columns: all[:2]}, 0},
		{Query{Kind: QueryQuantiles, Levels: levels[:1]}, 0},
		{Query{Kind: QueryQuantiles, Columns: all[:1], Levels: []float64{math.NaN()}}, 0},
		{Query{Kind: QueryQuantiles, Columns: all[:1], Levels: []float64{1}}, 0},
		{Query{Kind: QueryQuantiles, Columns: all[:1], Levels: []float64{math.SmallestNonzeroFloat64, 1 - 0x1p-53}}, 2},
		{Query{Kind: QueryExpect}, 0},
		{expect(1, 2, 0, 1024), 1},
		{expect(1, 2, 1024), 1},
		{expect(1, 2), 0},
		{expect(1, 2, 0, 0, 0), 0},
		{expect(1, 2, -1), 0},
		{expect(1, 2, 0, 1025), 0},
		{expect(1, math.NaN(), 0), 0},
		{expect(1, math.Inf(1), 0), 0},
		{expect(math.NaN(), 2, 0), 0},
		{expect(math.Inf(-1), 2, 0), 0},
	} {
		switch err := tc.q.Check(s); {
		case tc.width == 0 && !errors.Is(err, ErrOptions):
			t.Errorf("%s of %d columns: %v", tc.q.Kind, len(tc.q.Columns), err)
		case tc.width > 0 && (err != nil || tc.q.Width(s) != tc.width):
			t.Errorf("%s of %d columns has %d numbers, want %d: %v", tc.q.Kind, len(tc.q.Columns), tc.q.Width(s), tc.width, err)
		}
	}
}
