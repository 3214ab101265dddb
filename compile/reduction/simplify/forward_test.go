package simplify

import (
	"slices"
	"testing"
)

// TestForward: a copy of which little is read is left out where every element of it is the one it would be read from, also those
// that are not copied.
func TestForward(t *testing.T) {
	const head = `param W, K, D : W >= 3, K >= 2, D >= 2; size W = 400, K = 8, D = 5;
input int doc[W] in [0,D), z[W] in [0,K); input float x[W,K,D]; array float h[W,K,D], a[W,K], lw[W]; output lw;
`
	for _, c := range []struct {
		name, text string
		forward    bool
	}{
		{"a copy", `h[k,t,d] += x[i,t,d] : { [k,t,d,i] : 0 <= k < W, 0 <= t < K, 0 <= d < D, 0 <= i <= k };
a[k,t] += h[k,t,doc[k]] : { [k,t] : 0 <= k < W, 0 <= t < K };`, true},
		{"no elements beside the copies", `h[k,t,d] += x[i,t,d] : { [k,t,d,i] : 1 <= k < W, 0 <= t < K, 0 <= d < D, 0 <= i <= k };
a[k,t] += h[k,t,doc[k]] : { [k,t] : 1 <= k < W, 0 <= t < K };`, true},
		{"elements beside the copies", `h[k,t,d] += x[i,t,d] : { [k,t,d,i] : 0 <= k < W, 0 <= t < K, 0 <= d < D, 0 <= i <= k };
a[k,t] += h[k,t,doc[k]] : { [k,t] : 1 <= k < W, 0 <= t < K };`, false},
		{"more than a copy", `h[k,t,d] += x[i,t,d] : { [k,t,d,i] : 0 <= k < W, 0 <= t < K, 0 <= d < D, 0 <= i <= k };
a[k,t] += h[k,t,doc[k]] : { [k,t] : 0 <= k < W, 0 <= t < K };
a[k,t] += x[k,t,0] : { [k,t] : 0 <= k < W, 0 <= t < K };`, false},
		{"a product of sums", `h[k,t,d] += x[i,t,d] : { [k,t,d,i] : 1 <= k < W, 0 <= t < K, 0 <= d < D, 0 <= i <= k };
a[k,t] *= h[k,t,doc[k]] : { [k,t] : 1 <= k < W, 0 <= t < K };`, false},
	} {
		p := parse(t, head+c.text+"\nlw[k] = a[k,z[k]] : { [k] : 0 <= k < W };\n")
		q, r, err := Simplify(p)
		if err != nil {
			t.Fatal(c.name, err)
		}
		if got := slices.ContainsFunc(r.Steps, func(s Step) bool { return s.Kind == Forward }); got != c.forward {
			t.Errorf("%s: left out is %t, want %t\n%v", c.name, got, c.forward, q)
		}
		for seed := range uint64(3) {
			if err := same(p, q, map[string]int64{"W": int64(5 + seed), "K": 3, "D": 2}, seed, 1e-9); err != nil {
				t.Errorf("%s: %v\n%v", c.name, err, q)
			}
		}
	}
}
