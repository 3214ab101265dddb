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

// TestCommonInfo wants what sessions have in common, of those that have said it.
func TestCommonInfo(t *testing.T) {
	cpu := SessionInfo{Device: "cpu", Path: "avx512", Precision: "fp32"}
	half, card := cpu, SessionInfo{Device: "cuda:0", Path: "sm_90", Precision: "mixed"}
	half.Precision = "mixed"
	for _, tc := range []struct {
		members []SessionInfo
		want    SessionInfo
	}{
		{nil, SessionInfo{}},
		{[]SessionInfo{{}}, SessionInfo{}},
		{[]SessionInfo{cpu}, cpu},
		{[]SessionInfo{cpu, {}}, cpu},
		{[]SessionInfo{{}, cpu, {}, cpu}, cpu},
		{[]SessionInfo{cpu, half}, half},
		{[]SessionInfo{half, card, half}, SessionInfo{"mixed", "mixed", "mixed"}},
	} {
		var members []*workerInfo
		for _, info := range tc.members {
			members = append(members, &workerInfo{info: info})
		}
		if got := commonInfo(members); got != tc.want {
			t.Errorf("%+v: %+v, want %+v", tc.members, got, tc.want)
		}
	}
}
