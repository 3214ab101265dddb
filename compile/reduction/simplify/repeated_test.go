package simplify

import (
	"strings"
	"testing"
)

// TestCommon wants what an array has to be read from it, under other names of dimensions and inside of larger expressions, and
// not where the array lacks elements, has another type, or is read by nothing, nor what is nearly the same.
func TestCommon(t *testing.T) {
	const source = `param N, K : N >= 2, K >= 1; input float x[N,K], y[N]; input int v[N] in [0,9);
array float a[N,K], b[N,K], c[N], d[N], h[N,K], o[N,K], unread[N], f[N], e[N]; array int g[N]; output a, b, c, d, f, g, h, o;
a[i,k]  = exp(x[i,k])/(y[i] + 1) : { [i,k] : 0 <= i < N, 0 <= k < K };
b[n,m]  = 2*log(exp(x[n,m])/(y[n] + 1)) : { [n,m] : 0 <= n < N, 0 <= m < K };
c[j]   += exp(x[j,l])/(y[j] + 1) : { [j,l] : 0 <= j < N, 0 <= l < K } if exp(x[j,l])/(y[j] + 1) > 1;
h[n,m]  = exp(x[n,m])/(y[m] + 1) : { [n,m] : 0 <= n < N, 0 <= m < K, m < N };
h[n,m]  = 0 : { [n,m] : 0 <= n < N, 0 <= m < K, m >= N };
o[i,k]  = exp(x[i,k])*(y[i] + 1) + exp(x[i,k])/(y[i] - 1) + exp(x[i,k])/(y[i] + 2) + sqrt(x[i,k])/(y[i] + 1) + exp(x[i,k])/(x[i,k] + 1) : { [i,k] : 0 <= i < N, 0 <= k < K };
e[i]    = sqrt(y[i]) : { [i] : 1 <= i < N };
d[i]    = sqrt(y[i]) - select(i > 0, 1, 2) : { [i] : 0 <= i < N };
f[i]    = sqrt(y[i]) + e[i] : { [i] : 1 <= i < N };
f[i]    = v[i] + 1 : { [i] : i = 0 };
g[i]    = v[i] + 1 : { [i] : 0 <= i < N };
unread[i] = log(y[i]) : { [i] : 0 <= i < N };
`
	p := parse(t, source)
	q, r, err := Simplify(p)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, s := range r.Steps {
		if s.Kind == Common {
			list = append(list, s.Text)
		}
	}
	want := "b reads a where it computes it again, c reads a where it computes it again, f reads e where it computes it again, f reads g where it computes it again"
	if got := strings.Join(list, ", "); got != want {
		t.Errorf("common: %s; want %s\n%v", got, want, q)
	}
	for _, line := range []string{"b[n,m] = 2*log(a[n,m])", "if a[j,l] > 1", "f[i] = e[i] + e[i]"} {
		if !strings.Contains(q.String(), line) {
			t.Errorf("%q is not in\n%v", line, q)
		}
	}
	for seed := range uint64(4) {
		if err := same(p, q, map[string]int64{"N": int64(2 + seed), "K": 3}, seed, 0); err != nil {
			t.Error(err)
		}
	}
}
