package simplify

import "testing"

// TestApart wants sums of data to have arrays of their own where the other terms of an element need the element before, and
// not where a term reads what the program computes.
func TestApart(t *testing.T) {
	const source = `param N, W, A : N >= 2, W >= 1, A >= 2; input int doc[W] in [0,N), word[W] in [0,A); input float x[W];
array float m[N,A], n[N,A]; output m, n;
m[i,a] += 0.5*m[i-1,a] : { [i,a] : 1 <= i < N, 0 <= a < A };
m[i,a] += x[w] : { [i,a,w] : 0 <= i < N, 0 <= a < A, 0 <= w < W } if doc[w] == i and word[w] == a;
n[i,a] += n[i-1,a]*m[i,a] : { [i,a] : 1 <= i < N, 0 <= a < A };
n[i,a] += m[doc[w],a]*x[w] : { [i,a,w] : 0 <= i < N, 0 <= a < A, 0 <= w < W } if doc[w] == i and word[w] == a;
`
	p := parse(t, source)
	q, r, err := Simplify(p)
	if err != nil {
		t.Fatal(err)
	}
	list := ""
	for _, s := range r.Steps {
		if s.Kind == Apart {
			list += s.Text + "\n"
		}
	}
	if want := "m: what is of data alone is added up in m_1\n"; list != want {
		t.Errorf("%q; want %q\n%v", list, want, q)
	}
	for seed := range uint64(5) {
		if err := same(p, q, map[string]int64{"N": int64(2 + seed), "W": 7, "A": 2}, seed, 1e-12); err != nil {
			t.Errorf("%v\n%v", err, q)
		}
	}
}
