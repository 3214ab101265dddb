package cluster

import "testing"

// TestCommonPath wants the kernel path that an earlier part of the run had as long
// as all members have it, and else the best that they share.
func TestCommonPath(t *testing.T) {
	a, b, card := Member{Paths: []string{"avx512", "avx2", "generic"}}, Member{Paths: []string{"avx2", "generic"}}, Member{Paths: []string{"sm_90"}}
	for _, tc := range []struct {
		members []Member
		prefer  string
		want    string
	}{
		{nil, "avx2", ""},
		{[]Member{a}, "", "avx512"},
		{[]Member{a}, "generic", "generic"},
		{[]Member{a, b}, "", "avx2"},
		{[]Member{b, a}, "generic", "generic"},
		{[]Member{a, b}, "avx512", "avx2"},
		{[]Member{a, b}, "mixed", "avx2"},
		{[]Member{a, card}, "avx2", ""},
	} {
		if got := commonPath(tc.members, tc.prefer); got != tc.want {
			t.Errorf("%v, %q: %q, want %q", tc.members, tc.prefer, got, tc.want)
		}
	}
}
