package simplify

import (
	"strings"
	"testing"
)

// TestParts wants counts that are among those of another array to be read there, and not where an element that the other has
// is 0, the guards or what is counted differ, or an element counts a part of the points.
func TestParts(t *testing.T) {
	const head = `param W, D, A : W >= 1, D >= 2, A >= 2; input int doc[W] in [0,D), word[W] in [0,A); input float x[A];
array int own[D,A]; array float n[A,D], r[D], l[D]; output r, l;
own[i,b] += 1 : { [i,b,w] : 0 <= i < D, 0 <= b < A, 0 <= w < W } if doc[w] == i and word[w] == b;
l[i]  max= own[i,b]*x[b] : { [i,b] : 0 <= i < D, 0 <= b < A };
`
	const reads = "\nr[i]  max= n[b,i]*x[b] : { [i,b] : 1 <= i < D, 0 <= b < A };"
	for _, tc := range []struct{ name, source, want string }{
		{"a part, other order", "n[a,d] += 1 : { [a,w,d] : 0 <= a < A, 1 <= d < D, 0 <= w < W } if word[w] == a and d == doc[w];" + reads, "n is a part of own"},
		{"an element that is 0 is read", "n[a,d] += 1 : { [a,w,d] : 0 <= a < A, 2 <= d < D, 0 <= w < W } if word[w] == a and d == doc[w];" + reads, ""},
		{"fewer points", "n[a,d] += 1 : { [a,w,d] : 0 <= a < A, 1 <= d < D, 1 <= w < W } if word[w] == a and d == doc[w];" + reads, ""},
		{"another guard", "n[a,d] += 1 : { [a,w,d] : 0 <= a < A, 1 <= d < D, 0 <= w < W } if word[w] == a and d == word[w];" + reads, ""},
		{"twice as much", "n[a,d] += 2 : { [a,w,d] : 0 <= a < A, 1 <= d < D, 0 <= w < W } if word[w] == a and d == doc[w];" + reads, ""},
		{"another statement", "n[a,d] += 1 : { [a,w,d] : 0 <= a < A, 1 <= d < D, 0 <= w < W } if word[w] == a and d == doc[w];\nn[a,d] += x[a] : { [a,d] : 0 <= a < A, 0 <= d < D };" + reads, ""},
	} {
		p := parse(t, head+tc.source)
		q, r, err := Simplify(p)
		if err != nil {
			t.Fatal(tc.name, err)
		}
		var list []string
		for _, s := range r.Steps {
			if s.Kind == Merge {
				list = append(list, s.Text)
			}
		}
		if got := strings.Join(list, ", "); got != tc.want {
			t.Errorf("%s: %q; want %q\n%v", tc.name, got, tc.want, q)
		}
		for seed := range uint64(5) {
			if err := same(p, q, map[string]int64{"W": int64(1 + 2*seed), "D": 2 + int64(seed)%3, "A": 2 + int64(seed)%2}, seed, 0); err != nil {
				t.Errorf("%s: %v\n%v", tc.name, err, q)
			}
		}
	}
}

// TestCounts wants counts of what is to come to start from the whole and be taken down, so that they are in place, where the
// sums of numbers are copied.
func TestCounts(t *testing.T) {
	const source = `param N, K : N >= 2, K >= 1; input int old[N] in [0,K); input float x[N];
array float left[N,K], rest[N,K], l[N]; output l;
left[i,k] += 1 : { [i,k,j] : 0 <= i < N, 0 <= k < K, i < j < N } if old[j] == k;
rest[i,k] += x[j] : { [i,k,j] : 0 <= i < N, 0 <= k < K, i < j < N } if old[j] == k;
l[i] += left[i,k]*rest[i,k]*x[i] : { [i,k] : i = 0, 0 <= k < K };
l[i] += left[i,k]*l[i-1] + rest[i,k] : { [i,k] : 1 <= i < N, 0 <= k < K };
`
	p := parse(t, source)
	q, r, err := Simplify(p)
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range r.Steps {
		if s.Kind == Reuse && s.Subtracts != (s.Array == "left") {
			t.Errorf("%s: subtracts: %v\n%v", s.Text, s.Subtracts, q)
		}
	}
	if q.Array("left").Fold == nil || q.Array("rest").Fold != nil {
		t.Errorf("left is to be in place, rest not:\n%v", q)
	}
	for seed := range uint64(6) {
		if err := same(p, q, map[string]int64{"N": int64(2 + seed), "K": 1 + int64(seed)%3}, seed, 1e-12); err != nil {
			t.Errorf("%v\n%v", err, q)
		}
	}
}
