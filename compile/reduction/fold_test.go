package reduction

import (
	"context"
	"fmt"
	"strings"
	"testing"
)

// table is a table of running sums that is kept in place: %s is for what a case changes.
const table = `param N, K : N >= 1, K >= 1; size N = 5, K = 2; input float x[N]; input int z[N] in [0,K);
array float h[%s]; array float y[N]; output %s;
%s
y[k] = h[k,z[k]] : { [k] : 0 <= k < N };
`

const (
	carry = "h[k,b] += h[k - 1,b] : { [k,b] : 1 <= k < N, 0 <= b < K };\n"
	bins  = "h[k,b] += x[i] : { [k,b,i] : i = k, 0 <= k < N, 0 <= b < K } if z[i] == b;"
)

// TestFoldErrors wants what is wrong with an array that is to be kept in place.
func TestFoldErrors(t *testing.T) {
	for _, c := range []struct{ extents, output, statements, want string }{
		{"N up,K", "y", carry + bins, ""},
		{"N up,K", "y, h", carry + bins, "2:13: h is an output and kept in place, so that only its last values would be left; remove 'up'"},
		{"N up,K", "y", bins, "2:13: h is kept in place, and its first statement is not the copy from the neighbour in index 1; want h[i1,i2] += h[i1-1,i2], or remove 'up'"},
		{"N up,K", "y", bins + carry, "2:13: h is kept in place, and its first statement is not the copy from the neighbour in index 1; want h[i1,i2] += h[i1-1,i2], or remove 'up'"},
		{"N down,K", "y", carry + bins, "2:13: h is kept in place, and its first statement is not the copy from the neighbour in index 1; want h[i1,i2] += h[i1+1,i2], or remove 'down'"},
		{"N,K up", "y", carry + bins, "2:13: h is kept in place, and its first statement is not the copy from the neighbour in index 2; want h[i1,i2] += h[i1,i2-1], or remove 'up'"},
		{"N up,K", "y", carry + carry + bins, "4:1: h is kept in place and copied from its neighbour twice; want one such statement"},
		{"N up,K down", "y", carry + bins, "2:22: h is kept in place along index 1 already; want one index"},
		{"N up,K", "y", strings.Replace(carry, "1 <= k", "2 <= k", 1) + bins, "2:13: h is kept in place, and elements that do not start from their neighbour come after ones that are written, such as h[1,0], at N = 3, K = 1; remove 'up'"},
		{"N up,K", "y", strings.Replace(carry, "0 <= b", "k != 3, 0 <= b", 1) + bins, "2:13: h is kept in place, and elements that do not start from their neighbour come after ones that are written, such as h[3,0], at N = 5, K = 1; remove 'up'"},
		{"N up,K", "y", strings.Replace(carry, "k < N", "k < N-1", 1) + strings.Replace(bins, "k < N", "k < N-1", 1), "2:13: h is kept in place, and elements that do not start from their neighbour come after ones that are written, such as h[1,0], at N = 2, K = 1; remove 'up'"},
		{"N up,K", "y", strings.Replace(carry, "1 <= k", "2 <= k", 1) + strings.Replace(bins, "0 <= k", "1 <= k", 1), ""},
	} {
		_, err := Parse(fmt.Sprintf(table, c.extents, c.output, c.statements))
		if got := fmt.Sprint(err); err == nil && c.want != "" || err != nil && got != c.want {
			t.Errorf("%s; %s; %s: %v; want %s", c.extents, c.output, c.statements, err, c.want)
		}
	}
	const input = "param N : N >= 1; input float x[N up]; array float y[N]; output y; y[i] = x[i] : { [i] : 0 <= i < N };"
	if _, err := Parse(input); err == nil || err.Error() != "1:35: x is an input; only an array that is computed is kept in place" {
		t.Error(err)
	}
}

// TestFoldMeaning wants a mark to be printed, to leave the values as they are, and to make the copy free.
func TestFoldMeaning(t *testing.T) {
	p := parse(t, fmt.Sprintf(table, "N up,K", "y", carry+bins))
	plain := parse(t, fmt.Sprintf(table, "N,K", "y", carry+bins))
	if q := parse(t, p.String()); q.String() != p.String() || q.Array("h").Fold == nil || *q.Array("h").Fold != (Fold{0, 1}) {
		t.Errorf("%v is printed as %v", p, q)
	}
	data := map[string]*Tensor{}
	if err := p.Synthesise(p.Sizes, 1, data, 1<<20); err != nil {
		t.Fatal(err)
	}
	var out [2]*Outcome
	for k, r := range []*Program{plain, p} {
		var err error
		if out[k], err = Interpret(context.Background(), r, Options{Inputs: data}); err != nil {
			t.Fatal(err)
		}
	}
	if d := out[0].Outputs["y"].Difference(out[1].Outputs["y"]); d != 0 {
		t.Errorf("the values differ by %v", d)
	}
	if a, b := out[0].Points[0], out[1].Points[0]; a == 0 || b != 0 || out[0].Points[1] != out[1].Points[1] {
		t.Errorf("%v points, kept in place %v", out[0].Points, out[1].Points)
	}
	cost, err := p.Cost(true)
	if err != nil {
		t.Fatal(err)
	}
	if d, err := cost.Degree(); err != nil || d.String() != "N" || cost.Points(0, p.Sizes).Sign() != 0 || cost.Points(1, p.Sizes).Int64() != 5 {
		t.Errorf("degree %v, %v; %v points", d, err, cost.Total(p.Sizes))
	}
}
