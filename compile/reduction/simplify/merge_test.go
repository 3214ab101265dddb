package simplify

import (
	"strings"
	"testing"
)

// TestMerge wants arrays of equal elements to become one, also those that need themselves, and others not.
func TestMerge(t *testing.T) {
	const source = `param N, K : N >= 2, K >= 1; input float x[N]; array float a[N,K], b[N], c[N], d[N], e[N], f[N,K], g[N]; output d, f, g;
a[i,k] += x[j]*a[i-1,k] : { [i,k,j] : 1 <= i < N, 0 <= k < K, 0 <= j <= i, j < N };
a[i,k] += 1 : { [i,k] : 0 <= i < N, 0 <= k < K };
b[n]   += x[m]*b[n-1] : { [n,m] : 1 <= n < N, 0 <= m, m <= n };
b[n]   += 1 : { [n] : 0 <= n < N };
c[i]   += x[j]*c[i-1] : { [i,j] : 1 <= i < N, 0 <= j < i };
c[i]   += 1 : { [i] : 0 <= i < N };
e[i]    = c[i] : { [i] : 0 <= i < N };
d[i]    = c[i] : { [i] : 0 <= i < N };
g[i]    = c[i] : { [i] : 0 <= i < N };
f[i,k]  = a[i,k] + b[i] + e[i] : { [i,k] : 0 <= i < N, 0 <= k < K };
`
	p := parse(t, source)
	q, r, err := Simplify(p)
	if err != nil {
		t.Fatal(err)
	}
	var merged []string
	for _, s := range r.Steps {
		if s.Kind == Merge {
			merged = append(merged, s.Text)
		}
	}
	if got := strings.Join(merged, ", "); got != "b is a, e is d" { // g is an output, and c has other sums
		t.Errorf("merged: %s\n%v", got, q)
	}
	for seed := range uint64(4) {
		if err := same(p, q, map[string]int64{"N": int64(2 + seed), "K": 2}, seed, 1e-12); err != nil {
			t.Error(err)
		}
	}
}
