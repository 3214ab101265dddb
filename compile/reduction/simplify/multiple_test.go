package simplify

import (
	"strings"
	"testing"
)

// TestMultiples wants maxima and minima to take a value once that a dimension repeats, also where the dimension bounds others,
// and sums and products all of them.
func TestMultiples(t *testing.T) {
	const source = `param N : N >= 1; input float x[N]; input int v[N] in [0,N);
array float a[N], b[N], c[N], d[N], e[N]; output a, b, c, d, e;
a[i] max= x[j] : { [i,j,k] : 0 <= i < N, 0 <= j <= i, j < N, 0 <= k < N };
b[i] min= x[j] : { [i,j,k] : 0 <= i < N, 0 <= k <= i, 0 <= j <= k };
c[i] max= x[j]*k : { [i,j,k] : 0 <= i < N, 0 <= j <= i, 0 <= k < N } if v[k] == i;
d[i]   += x[j] : { [i,j,k] : 0 <= i < N, 0 <= j <= i, 0 <= k <= i };
e[i] max= x[j] : { [i,j,k] : 0 <= i < N, 0 <= j < N, 0 <= k < N } if v[k] == j;
`
	p := parse(t, source)
	q, r, err := Simplify(p)
	if err != nil {
		t.Fatal(err)
	}
	var list []string
	for _, s := range r.Steps {
		if s.Kind == Multiple {
			list = append(list, s.Text)
		}
	}
	want := "a takes values once, which it has for every k, b takes values once, which it has for every k"
	if got := strings.Join(list, ", "); got != want {
		t.Errorf("%s; want %s\n%v", got, want, q)
	}
	for seed := range uint64(6) {
		if err := same(p, q, map[string]int64{"N": int64(1 + seed)}, seed, 1e-12); err != nil {
			t.Errorf("%v\n%v", err, q)
		}
	}
}
