package simplify

import (
	"strings"
	"testing"
)

// TestRunning wants sums over the index of a running sum to run with it, in both directions and with guards, and to stay as
// they are where that would keep nothing in place.
func TestRunning(t *testing.T) {
	const head = "param N, M : N >= 1, M >= 1; input float x[N], y[N,M]; "
	for _, tc := range []struct{ name, source, want string }{
		{"down", `array float s[N], g[]; output g;
s[i] += x[j] : { [i,j] : 0 <= i < N, i <= j < N };
g[]  += y[i,k]/(s[i] + 1) : { [i,k] : 0 <= i < N, 0 <= k < M } if y[i,k] > 0.2;`, "g is added up in g_1 as i goes down"},
		{"up, and products", `array float s[N,M], g[M]; output g;
s[i,k] max= y[j,k] : { [i,k,j] : 0 <= i < N, 0 <= k < M, 0 <= j <= i, j < N };
g[k] *= s[i,k] + x[i] : { [k,i] : 0 <= k < M, 0 <= i < N };`, "g is added up in g_1 as i goes up"},
		{"from the second to the last but one", `array float s[N+2], g[M]; output g;
s[i] += x[j] : { [i,j] : 0 <= i < N+2, 0 <= j < N, j < i };
g[k] += s[i]*y[i-1,k] : { [k,i] : 0 <= k < M, 1 <= i < N+1 };`, "g is added up in g_1 as i goes up"},
		{"ends that differ", `array float s[N], g[N]; output g;
s[i] += x[j] : { [i,j] : 0 <= i < N, i <= j < N };
g[k] += exp(s[i])*x[k] : { [k,i] : 0 <= k < N, 0 <= i <= k };`, ""},
		{"a domain that may be empty", `array float s[N], g[]; output g;
s[i] += x[j] : { [i,j] : 0 <= i < N, i <= j < N };
g[]  += exp(s[i]) : { [i] : 1 <= i < N };`, ""},
		{"read by another", `array float s[N], g[], h[]; output g, h;
s[i] += x[j] : { [i,j] : 0 <= i < N, i <= j < N };
g[]  += exp(s[i]) : { [i] : 0 <= i < N };
h[] lse= s[i] : { [i] : 0 <= i < N };`, ""},
	} {
		p := parse(t, head+tc.source)
		q, r, err := Simplify(p)
		if err != nil {
			t.Fatal(tc.name, err)
		}
		var list []string
		for _, s := range r.Steps {
			if s.Kind == Running {
				list = append(list, s.Text)
			}
		}
		if got := strings.Join(list, ", "); got != tc.want {
			t.Errorf("%s: %q; want %q\n%v", tc.name, got, tc.want, q)
		}
		for seed := range uint64(5) {
			if err := same(p, q, map[string]int64{"N": int64(1 + seed), "M": 1 + int64(seed)%3}, seed, 1e-12); err != nil {
				t.Errorf("%s: %v\n%v", tc.name, err, q)
			}
		}
	}
}
