package dataset

import (
	"bytes"
	"errors"
	"testing"
)

// TestWriteText prints tokens as people read them.
func TestWriteText(t *testing.T) {
	labels := []string{"a", "\n", `\`, "\x1b", "é", "the"}
	for _, tc := range []struct {
		unit   Unit
		labels []string
		want   string
	}{
		{Char, labels, `athe\n\\` + "\n" + `\x1bé\?a` + "\n"},
		{Word, labels, `a the \n \\` + "\n" + `\x1b é \? a` + "\n"},
		{Word, nil, `0 5 1 2` + "\n" + `3 4 \? 0` + "\n"},
	} {
		s := &Schema{Unit: tc.unit}
		for range 4 {
			s.Columns = append(s.Columns, Column{Categories: 6, Labels: tc.labels})
		}
		b := NewBatch(s, 2)
		for i, code := range []int{0, 5, 1, 2, 3, 4, Missing, 0} {
			b.Columns[i%4].Codes.Set(i/4, code)
		}
		if got := string(written(t, "a.txt", s, b)); got != tc.want {
			t.Errorf("%s: %q, want %q", tc.unit, got, tc.want)
		}
		b.Columns[0].Codes.Set(0, 6)
		var out bytes.Buffer
		w, err := NewWriter(&out, "a.txt", s, -1)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.Write(b); !errors.Is(err, ErrSetting) {
			t.Errorf("a code that is too large: %v", err)
		}
	}
}
