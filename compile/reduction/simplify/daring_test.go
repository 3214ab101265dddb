package simplify

import (
	"slices"
	"testing"
)

// TestGuardedData wants what a guard keeps within an array to stay behind the guard: sums are divided, and have bins, where the range of
// the data that is the index is within the array, and where it is not they stay whole.
func TestGuardedData(t *testing.T) {
	const head = "param N, K, C, M : N >= 2, K >= 1, C >= 1, M >= 2; size N = 30, K = 40, C = 20, M = 50; input float x[N], y[K,C], v[M], n; input int h[N] in [0,4); "
	for _, tc := range []struct{ name, source, kind string }{
		{"an index of the first half", `input int w[C] in [0,2*N); array float s[K]; output s;
s[k] += x[w[c]+m]*y[k,c] : { [k,c,m] : 0 <= k < K, 0 <= c < C, 0 <= m < M } if w[c] <= N-M;`, ""},
		{"an index of the other half", `input int w[C] in [0,2*N); array float s[K]; output s;
s[k] += x[w[c]]*y[k,c]*v[m] : { [k,c,m] : 0 <= k < K, 0 <= c < C, 0 <= m < M } if w[c]+m < N;`, ""},
		{"floors of the other half", `array float s[K]; output s;
s[k] += floor(1/y[0,c])*y[k,c]*v[m] : { [k,c,m] : 0 <= k < K, 0 <= c < C, 0 <= m < M } if y[0,c]*v[m] > 0;`, ""},
		{"an index with a range", `input int w[C] in [0,N); array float s[K]; output s;
s[k] += x[w[c]]*y[k,c]*v[m] : { [k,c,m] : 0 <= k < K, 0 <= c < C, 0 <= m < M } if w[c]+m < N;`, Decompose},
		{"an index with a range, moved", `input int w[C] in [2,N+2); array float s[K]; output s;
s[k] += x[M-1+w[c]-M-1]*y[k,c]*v[m] : { [k,c,m] : 0 <= k < K, 0 <= c < C, 0 <= m < M } if w[c]+m < N;`, Decompose},
		{"an index with a range, moved too far up", `input int w[C] in [2,N+2); array float s[K]; output s;
s[k] += x[w[c]-1]*y[k,c]*v[m] : { [k,c,m] : 0 <= k < K, 0 <= c < C, 0 <= m < M } if w[c]+m < N;`, ""},
		{"an index with a range, moved too far down", `input int w[C] in [2,N+2); array float s[K]; output s;
s[k] += x[w[c]-3]*y[k,c]*v[m] : { [k,c,m] : 0 <= k < K, 0 <= c < C, 0 <= m < M } if w[c]+m < N and w[c] > 2;`, ""},
		{"a value of bins", `input int w[K] in [0,2*M), q[M] in [0,4); array float s[K,N]; output s;
s[k,t] += x[i] : { [k,t,i] : 0 <= k < K, 0 <= t < N, 0 <= i < t } if w[k]+t < M and h[i] == q[w[k]+t];`, ""},
		{"an index behind the guard of bins", `input int w[N] in [0,2*M), q[M] in [1,M); array float s[N]; output s;
s[t] += v[w[i]] : { [t,i] : 0 <= t < N, 0 <= i < t, N <= M } if w[i] == q[t];`, ""},
		{"an index with a range behind the guard of bins", `input int w[N] in [0,M), q[N] in [1,M); array float s[N]; output s;
s[t] += v[w[i]] : { [t,i] : 0 <= t < N, 0 <= i < t } if w[i] == q[t];`, Histogram},
	} {
		p := parse(t, head+tc.source)
		q, r, err := Simplify(p)
		if err != nil {
			t.Fatal(tc.name, err)
		}
		kinds := []string{}
		for _, s := range r.Steps {
			if s.Kind == Decompose || s.Kind == Histogram {
				kinds = append(kinds, s.Kind)
			}
		}
		if tc.kind != "" && !slices.Contains(kinds, tc.kind) || tc.kind == "" && len(kinds) > 0 {
			t.Errorf("%s: steps %q; want %q\n%v", tc.name, kinds, tc.kind, q)
		}
		for seed := range uint64(5) {
			if err := same(p, q, map[string]int64{"N": int64(2 + seed), "K": 3, "C": 4, "M": 3 + int64(seed)}, seed, 1e-12); err != nil {
				t.Errorf("%s: %v\n%v", tc.name, err, q)
			}
		}
	}
}

// TestDrawnIndex leaves a draw as it is from which an index could be dropped, but whose domain != divides: each part would draw.
func TestDrawnIndex(t *testing.T) {
	p := parse(t, `param N, K : N >= 2, K >= 1; size N = 3, K = 2; input float u[N], w[N]; array int d[K,N], z[K]; output z;
d[k,i] draw(u[i])= w[j] : { [k,i,j] : 0 <= k < K, 0 <= i < N, 0 <= j < N, j != i };
z[k] += d[k,i] : { [k,i] : 0 <= k < K, 0 <= i < N };`)
	q, _, err := Simplify(p)
	if err != nil {
		t.Fatal(err)
	}
	for seed := range uint64(4) {
		if err := same(p, q, map[string]int64{"N": int64(2 + seed), "K": 2}, seed, 0); err != nil {
			t.Error(err)
		}
	}
}
