package xgboost

import (
	"bytes"
	"encoding/binary"
	"slices"
	"testing"
)

// TestBinaryBestTrees: attributes behind the trees of an old binary file say what those of JSON do; of what cannot be read there the
// trees are still right.
func TestBinaryBestTrees(t *testing.T) {
	f := plain()
	for len(f.Trees) < 24 {
		f.Trees = append(f.Trees, f.Trees[0])
	}
	text := func(b []byte, s string) []byte {
		return append(binary.LittleEndian.AppendUint64(b, uint64(len(s))), s...)
	}
	for _, tt := range []struct {
		attributes []string
		parallel   uint32
		cut        int
		want       int
	}{
		{[]string{"best_iteration", "4", "best_score", "0.5"}, 1, 0, 5}, {[]string{"best_score", "0.5", "best_iteration", "4"}, 0, 0, 5}, {[]string{"best_iteration", "4"}, 3, 0, 15},
		{[]string{"best_score", "0.5", "count_poisson_max_delta_step", "0.7", "metrics", "rmse;", "objective", "{}"}, 1, 0, 0},
		{[]string{"best_iteration", "4", "best_ntree_limit", "20"}, 1, 0, 20}, {[]string{"best_iteration", "24"}, 1, 0, 0}, {[]string{"best_score", "4"}, 1, 0, 0},
		{[]string{"best_iteration", "4"}, 1, 1, 0}, {nil, 1, 0, 0}, {nil, 1, 8, 0},
	} {
		file := oldBinary(f, "gbtree", 0.5, 1)
		flags := bytes.Clone(file)
		binary.LittleEndian.PutUint32(flags[12:], 1)
		binary.LittleEndian.PutUint32(flags[bytes.Index(file, []byte("gbtree"))+6+4:], tt.parallel)
		b := binary.LittleEndian.AppendUint64(flags, uint64(len(tt.attributes)/2))
		for _, s := range tt.attributes {
			b = text(b, s)
		}
		got, err := Binary.Decode(b[:len(b)-tt.cut])
		if got != nil && tt.cut == 0 && slices.Contains(tt.attributes, "best_score") != (got.Attributes["best_score"] != "") || got != nil && len(got.Attributes) > 1 {
			t.Errorf("%q: kept %q", tt.attributes, got.Attributes)
		}
		if err != nil || got.BestTrees != tt.want || len(got.Trees) != len(f.Trees) {
			t.Errorf("%q of %d trees at a time, %d bytes less: %v; want %d", tt.attributes, tt.parallel, tt.cut, err, tt.want)
		}
		if got, err := Binary.Decode(append(file, b[len(file):]...)); err != nil || got.BestTrees != 0 {
			t.Errorf("%q without the flag: %v", tt.attributes, err)
		}
	}
}

// TestBinaryRecognised: an old binary file is told by the name of its objective, also by one that is refused later, and not by numbers
// that have a colon's byte where the name would be.
func TestBinaryRecognised(t *testing.T) {
	for name, want := range map[string]bool{
		"binary:logistic": true, "gpu:reg:linear": true, "mine:of_5-b": true,
		"$:\x00\x00": false, "a:": false, ":b": false, "a::b": false, "a:b\x00": false, "a:é": false, "linear": false, ":": false,
	} {
		file := binary.LittleEndian.AppendUint64(make([]byte, learnerBytes), uint64(len(name)))
		file = append(file, name...)
		if got := isBinary(file); got != want {
			t.Errorf("%q: %v, want %v", name, got, want)
		}
		if got := isBinary(append([]byte("binf"), file...)); got != want {
			t.Errorf("binf and %q: %v, want %v", name, got, want)
		}
	}
}
