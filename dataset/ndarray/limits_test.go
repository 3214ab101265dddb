package ndarray

import (
	"bytes"
	"strings"
	"testing"
)

// TestShapeLimits opens arrays on both sides of each bound on their shape.
func TestShapeLimits(t *testing.T) {
	for _, tc := range []struct {
		shape, order, want string // want: part of the error, "" for none
	}{
		{"(0, 1048576)", "False", ""},
		{"(0, 1048577)", "False", "has no rows of 1 to 1048576 numbers"},
		{"(0, 1024, 1024)", "False", ""},
		{"(0, 1024, 1025)", "False", "has no rows of 1 to 1048576 numbers"},
		{"(0, 0)", "False", "has no rows of 1 to 1048576 numbers"},
		{"(2147483647, 1)", "False", "ends after 0 of the 2147483647 rows"},
		{"(2147483648, 1)", "False", "axis 0 has 2147483648 elements"},
		{"(1073741824, 4)", "True", "ends after 0 of the 1073741824 rows"}, // 4 GiB
		{"(6700417, 641)", "True", "array of 4294967297 bytes in Fortran order"},
	} {
		r, err := OpenNPY(bytes.NewReader(npy(header("|u1", tc.order, tc.shape))))
		if err == nil {
			_, err = rows(r)
		}
		if (err == nil) != (tc.want == "") || err != nil && !strings.Contains(err.Error(), tc.want) {
			t.Errorf("shape %s, Fortran order %s: %v, want %q", tc.shape, tc.order, err, tc.want)
		}
	}
}

// TestIDXAxes opens idx files of as many axes as they may have, of more and of none.
func TestIDXAxes(t *testing.T) {
	for axes, ok := range map[int]bool{0: false, 1: true, 8: true, 9: false} {
		in := "\x00\x00\x08" + string(rune(axes)) + strings.Repeat("\x00\x00\x00\x01", axes) + "\x07"
		r, err := OpenIDX(strings.NewReader(in))
		if (err == nil) != ok {
			t.Errorf("%d axes: %v, want it to open: %v", axes, err, ok)
			continue
		}
		if err != nil {
			continue
		}
		if got, err := rows(r); err != nil || got != "[7]" {
			t.Errorf("%d axes: %s (%v), want [7]", axes, got, err)
		}
	}
}
