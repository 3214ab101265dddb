package equations

import (
	"errors"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/structures"
	"github.com/pce-engine/pce/compile/reduction"
)

// head declares what the programs of TestRefusals have in common; it has four lines.
const head = `param T, S, C : T >= 1, S >= 1, C >= 1;
input int x[T] in [0,C); input float e[S,C], a[S,S], a0[S], c[S];
output out;
array float out[], `

// TestRefusals wants the place, the statement, a point and the cure of programs that are
// not circuits.
func TestRefusals(t *testing.T) {
	// f[t,s] is what becomes of the columns from t on.
	const chain = "f[T+1,S];\nf[t,r] += 1 : { [t,r] : t = T, 0 <= r < S };\n"
	const out = "\nout[] += a0[s]*f[0,s] : { [s] : 0 <= s < S };"
	for name, tc := range map[string]struct{ source, want string }{
		"syntax": {head + "f[S", "4:23: the end, want ']'"},
		"no row": {"param T : T >= 1;\ninput float e[T];\narray float out[];\noutput out;\nout[] += e[t] : { [t] : 0 <= t < T };",
			"no input of type int; declare the row, such as 'input int x[T] in [0,C);'"},
		"row of rows": {"param T : T >= 1;\ninput int x[T,T];\narray float out[];\noutput out;\nout[] += 1 : { [] : };",
			"2:11: x has 2 indices; the row has one"},
		"two rows": {"param T : T >= 1;\ninput int x[T], y[T];\narray float out[];\noutput out;\nout[] += 1 : { [] : };",
			"2:17: y is a second input of type int, after x; a circuit has one, the row"},
		"two outputs":   {"output f;\n" + head + chain + out, "2 outputs; a circuit has one"},
		"wide output":   {"param T : T >= 1;\ninput int x[T];\narray float f[T];\noutput f;\nf[t] = 1 : { [t] : 0 <= t < T };", "3:13: output f has 1 indices; want none: it is the probability of the row"},
		"integer array": {head + "g[S];\narray int n[];\nn[] = 1 : { [] : };\ng[s] = 1 : { [s] : 0 <= s < S };\nout[] = 1 : { [] : };", "5:11: n is of type int; the arrays of a circuit are of type float"},
		"maximum":       {head + "f[S];\nf[s] max= e[s,x[0]] : { [s] : 0 <= s < S };\nout[] += a0[s]*f[s] : { [s] : 0 <= s < S };", "5:1: f is written with max=, which a circuit cannot compute; want =, += or *="},
		"guard":         {head + "f[S];\nf[s] = e[s,x[0]] : { [s] : 0 <= s < S };\nout[] += a0[s]*f[s] : { [s] : 0 <= s < S } if x[0] == 1;", "6:52: a guard depends on data; say in the domain which points there are"},
		"sum in a body": {head + "f[S];\nf[s] = e[s,x[0]]+1.0 : { [s] : 0 <= s < S };\nout[] += a0[s]*f[s] : { [s] : 0 <= s < S };", "5:17: e[s,x[0]] + 1.0 in a circuit; a body is a product of arrays, inputs and weights, and a sum is written with +="},
		"constant":      {head + "f[S];\nf[s] = 0.5*e[s,x[0]] : { [s] : 0 <= s < S };\nout[] += a0[s]*f[s] : { [s] : 0 <= s < S };", "5:8: a factor of 0.5; a circuit has no constants but 1, make it an input of weights"},
		"category as a value": {head + "f[S];\nf[s] = x[0]*e[s,x[0]] : { [s] : 0 <= s < S };\nout[] += a0[s]*f[s] : { [s] : 0 <= s < S };",
			"5:8: x[0] is a category, not a probability; read it as an index, such as e[s,x[0]]"},
		"weight in a product": {head + "f[S];\nf[s] = c[s]*e[s,x[0]] : { [s] : 0 <= s < S };\nout[] += a0[s]*f[s] : { [s] : 0 <= s < S };",
			"5:8: c[s] is a weight in a product; write a sum over its last index, with +="},
		"table without a category": {head + "f[S];\nf[s] = e[s,x[0]] : { [s] : 0 <= s < S };\nout[] += e[s,0]*f[s] : { [s] : 0 <= s < S };",
			"6:10: e is read without a category here and with one elsewhere; use two inputs"},
		"weight that is not summed": {head + chain + "f[t,r] += c[r]*a[r,s]*e[s,x[t]]*f[t+1,s] : { [t,r,s] : 0 <= t < T, 0 <= r < S, 0 <= s < S };" + out,
			"6:11: the sum is not normalised: c[r] does not depend on a dimension that is summed and that no other weight is over"},
		"one weight twice": {head + chain + "f[t,r] += a[r,s]*a[r,s]*e[s,x[t]]*f[t+1,s] : { [t,r,s] : 0 <= t < T, 0 <= r < S, 0 <= s < S };" + out,
			"6:18: the sum is not normalised: a[r,s] does not depend on a dimension that is summed and that no other weight is over"},
		"no weight": {head + chain + "f[t,r] += e[s,x[t]]*f[t+1,s] : { [t,r,s] : 0 <= t < T, 0 <= r < S, 0 <= s < S };" + out,
			"6:1: f at [t,r,s] = [0,0,1] is not normalised: it is one of 2 terms with the same weight; give the sum a weight for each"},
		"a part of the weights": {head + chain + "f[t,r] += a[r,s]*e[s,x[t]]*f[t+1,s] : { [t,r,s] : 0 <= t < T, 0 <= r < S, 0 <= s < S-1 };" + out,
			"6:1: f at [t,r,s] = [1,0,0] is not normalised: the sum takes 1 of the 2 weights of a[r,s] over its summed indices; let the domain take all, as they sum to 1"},
		"half of the weights": {head + chain + "f[t,r] += a[r,s]*e[s,x[t]]*f[t+1,s] : { [t,r,s] : 0 <= t < T, 0 <= r < S, 0 <= 2*s < S };" + out,
			"6:1: f at [t,r,s] = [1,0,0] is not normalised: the sum takes 1 of the 2 weights of a[r,s] over its summed indices; let the domain take all, as they sum to 1"},
		"a weight for several terms": {head + chain + "f[t,r] += a[r,s]*e[s,x[t]]*f[t+1,q] : { [t,r,s,q] : 0 <= t < T, 0 <= r < S, 0 <= s < S, 0 <= q < S };" + out,
			"6:1: f at [t,r,s,q] = [0,0,0,1] is not normalised: it is one of 2 terms with the same weight; give the sum a weight for each"},
		"summed over two indices": {head + chain + "f[t,r] += a[s,r]*e[s,x[t]]*f[t+1,s] : { [t,r,s] : 1 <= t < T, 0 <= r < S, 0 <= s < S };\nf[t,r] += a[r,s]*e[s,x[t]]*f[t+1,s] : { [t,r,s] : t = 0, 0 <= r < S, 0 <= s < S };" + out,
			"7:11: a is summed over index 2 here and over index 1 at 6:11; use two inputs of weights"},
		"not decomposable": {head + chain + "f[t,r] += a[r,s]*e[s,x[t]]*e[s,x[0]]*f[t+1,s] : { [t,r,s] : 0 <= t < T, 0 <= r < S, 0 <= s < S };" + out,
			"6:1: f at [t,r,s] = [0,0,0] is not decomposable: one factor has the variables [0] and another [0]; no two share one"},
		"not smooth": {head + chain + "f[t,r] += a[r,s]*e[s,x[t]]*g[t,s] : { [t,r,s] : 0 <= t < T, 0 <= r < S, 0 <= s < S };\narray float g[T,S];\n" +
			"g[t,s] = f[t+1,s] : { [t,s] : 0 <= t < T, 0 <= s < S-1 };\ng[t,s] = 1 : { [t,s] : 0 <= t < T, s = S-1 };" + out,
			"6:1: f at [t,r,s] = [0,0,0] is not smooth: one term of the sum has the variables [0 1] and another [0]; all have the same"},
		"smooth but for a 1": {head + "f[S];\nf[s] = e[s,x[0]] : { [s] : 0 <= s < S-1 };\nf[s] = 1 : { [s] : s = S-1 };\nout[] += a0[s]*f[s] : { [s] : 0 <= s < S };",
			"7:1: out at [s] = [1] is not smooth: this term of the sum is 1 and another has variables; all have the same variables"},
		"a column that is not read": {head + "f[S];\nf[s] = e[s,x[0]] : { [s] : 0 <= s < S };\nout[] += a0[s]*f[s] : { [s] : 0 <= s < S };",
			"4:13: out does not depend on x[1]; every element of the row is read by an input"},
		"nothing": {head + "f[S];\nf[s] = 1 : { [s] : 0 <= s < S };\nout[] += a0[s]*f[s] : { [s] : 0 <= s < S };",
			"4:13: out does not depend on x[0]; every element of the row is read by an input"},
		"zero": {head + "f[T+1,S];\nf[t,r] += a[r,s]*e[s,x[t]]*f[t+1,s] : { [t,r,s] : 0 <= t < T, 0 <= r < S, 0 <= s < S };" + out,
			"5:28: f[2] is 0, as no point of a statement writes it; a circuit adds up distributions"},
		"cycle": {head + chain + "f[t,r] += a[r,s]*e[s,x[t]]*f[t,s] : { [t,r,s] : 0 <= t < T, 0 <= r < S, 0 <= s < S };" + out,
			"6:28: f[0] needs itself"},
		"two statements": {head + chain + "f[t,r] += a[r,s]*e[s,x[t]]*f[t+1,s] : { [t,r,s] : 0 <= t <= T-1, 0 <= r < S, 0 <= s < S };\nf[t,r] += 1 : { [t,r] : t = 0, 0 <= r < S };" + out,
			"6:1: f at [t,r,s] = [0,0,0] writes an element that 7:1 writes as well; write it with one statement"},
		"a fixed length": {strings.Replace(head, "x[T]", "x[3]", 1) + "f[S];\nf[s] *= e[s,x[t]] : { [t,s] : 0 <= t < 3, 0 <= s < S };\nout[] += a0[s]*f[s] : { [s] : 0 <= s < S };",
			"2:11: 3 elements of x, and 2 columns of the data; 3 has to be the number of columns, so leave its size out or give the data that it fits"},
		"fixed categories": {strings.Replace(head, "[0,C)", "[0,5)", 1) + chain + "f[t,r] += a[r,s]*e[s,x[t]]*f[t+1,s] : { [t,r,s] : 0 <= t < T, 0 <= r < S, 0 <= s < S };" + out,
			"2:11: 5 categories of x, and 3 in the data; 5 has to be the number of categories, so leave its size out or give the data that it fits"},
		"categories from 1": {strings.Replace(head, "[0,C)", "[1,C)", 1) + chain + "f[t,r] += a[r,s]*e[s,x[t]]*f[t+1,s] : { [t,r,s] : 0 <= t < T, 0 <= r < S, 0 <= s < S };" + out,
			"2:11: the range of x begins at 1; categories begin at 0"},
		"what is known": {strings.Replace(head, "S >= 1", "S >= 7", 1) + chain + "f[t,r] += a[r,s]*e[s,x[t]]*f[t+1,s] : { [t,r,s] : 0 <= t < T, 0 <= r < S, 0 <= s < S };" + out,
			"1:25: S >= 7 does not hold: they are 2 and 7; change a size, or the latents"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := Build(Options{Name: "a.red", Source: tc.source, Vars: 2, Latents: 2, Leaf: categorical(3)})
			if !errors.Is(err, reduction.ErrProgram) {
				t.Fatalf("%v does not match ErrProgram", err)
			}
			if got := strings.TrimPrefix(strings.TrimPrefix(err.Error(), "a.red:"), " "); got != tc.want {
				t.Errorf("\n got %s\nwant %s", got, tc.want)
			}
		})
	}
}

// TestOutside refuses an index that is outside of its array where package reduction does not see it: the only whole numbers among the sizes
// that are allowed are far from the corner, and from 0.
func TestOutside(t *testing.T) {
	const source = `param T, U, S, C : 1001*T = 1000*U + 10210, U >= 0, S >= 1, C >= 1;
size U = 200;
input int x[T] in [0,C); input float e[S,C], a[S];
array float out[], f[S];
output out;
f[s]  *= e[s,x[t+1]] : { [t,s] : 0 <= t < T, 0 <= s < S };
out[] += a[s]*f[s]   : { [s] : 0 <= s < S };
`
	const want = "a.red:6:1: f at [t,s] = [209,0] reads x at index 1, which is 210; want 0 to 209"
	if _, err := Build(Options{Name: "a.red", Source: source, Vars: 210, Latents: 2, Leaf: categorical(3)}); err == nil || err.Error() != want {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
}

// TestLongChain refuses a recursion over more elements than are in hand at one time, which would take the stack of the process.
func TestLongChain(t *testing.T) {
	if testing.Short() {
		t.Skip("a chain of 131,072 elements takes a second; run without -short")
	}
	const want = "the end of a chain of 131072 elements that each need the next; choose smaller sizes"
	if _, err := Build(options(t, "hmm.red", maxChain, 1, 2, 0)); err == nil || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("\n got %v\nwant %s", err, want)
	}
}

// TestSizes wants the cure of sizes and leaves that do not fit the equations.
func TestSizes(t *testing.T) {
	mixed := func(v int) circuit.Leaf { return circuit.Categorical{Categories: 2 + v} }
	for name, tc := range map[string]struct {
		change func(o *Options)
		want   string
	}{
		"unknown parameter": {func(o *Options) { o.Sizes = map[string]int64{"Q": 1} }, "structures: bad options: a size is given for Q, which is not a parameter of hsmm.red"},
		"latents":           {func(o *Options) { o.Sizes = map[string]int64{"S": 1} }, "structures: bad options: a size is given for S, which is the number of latents; set that instead"},
		"columns":           {func(o *Options) { o.Sizes = map[string]int64{"T": 9} }, "hsmm.red:7:11: 9 elements of x, and 4 columns of the data; T has to be the number of columns, so leave its size out or give the data that it fits"},
		"no duration":       {func(o *Options) { o.Sizes = map[string]int64{"D": 0} }, "hsmm.red:4:"},
		"huge":              {func(o *Options) { o.Sizes = map[string]int64{"D": 1 << 40} }, "hsmm.red:4:"},
		"no size":           {func(o *Options) { o.Sizes = nil; o.Source = strings.Replace(o.Source, "size ", "# ", 1) }, "hsmm.red:4:"},
		"no leaf":           {func(o *Options) { o.Leaf = nil }, "structures: bad options: hsmm.red has no leaf distribution; set Leaf"},
		"other leaf":        {func(o *Options) { o.Leaf = func(int) circuit.Leaf { return circuit.Gaussian{} } }, "structures: bad options: the leaf of column 1 is not categorical, as the inputs of equations are; make the column discrete and choose leaf type auto"},
		"other categories":  {func(o *Options) { o.Leaf = mixed }, "structures: bad options: column 2 has 3 categories and column 1 has 2, and equations treat them alike; give all columns the same categories"},
	} {
		t.Run(name, func(t *testing.T) {
			o := options(t, "hsmm.red", 4, 2, 3, 2)
			tc.change(&o)
			_, err := Build(o)
			if err == nil || !strings.HasPrefix(err.Error(), tc.want) {
				t.Fatalf("\n got %v\nwant %s", err, tc.want)
			}
			if !errors.Is(err, reduction.ErrProgram) && !errors.Is(err, structures.ErrOptions) {
				t.Errorf("%v matches no error of the package", err)
			}
			t.Log(err)
		})
	}
}
