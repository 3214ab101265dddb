package em

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
)

// linesOf returns the lines of epochs.
func linesOf(epochs ...int) string {
	text := ""
	for _, e := range epochs {
		text += string(metricsText(Metrics{Epoch: e, Step: int64(10 * e), TrainLL: -float64(e) / 3, ValidLL: math.NaN()}))
	}
	return text
}

// TestMend damages the lines of five epochs, of which the checkpoint has the last
// three.
func TestMend(t *testing.T) {
	whole, tail := linesOf(1, 2, 3, 4, 5), linesOf(3, 4, 5)
	empty := func(epoch int) string {
		return string(metricsText(Metrics{Epoch: epoch, TrainLL: math.NaN(), ValidLL: math.NaN(), StepSize: math.NaN()}))
	}
	flip := func(epoch int) string { // still a line of the epoch
		return strings.Replace(whole, fmt.Sprintf(`"step":%d0`, epoch), fmt.Sprintf(`"step":%d1`, epoch), 1)
	}
	for _, tc := range []struct {
		name, file   string
		want         string // "": whole
		mended, lost []int
	}{
		{name: "whole", file: whole},
		{name: "longer", file: whole + linesOf(6, 7)},
		{name: "half a line more", file: whole + `{"epoch":6`},
		{name: "no file", want: empty(1) + empty(2) + tail, mended: []int{3, 4, 5}, lost: []int{1, 2}},
		{name: "cut", file: whole[:len(whole)-3], mended: []int{5}},
		{name: "a number of the tail", file: flip(4), mended: []int{4}},
		{name: "a number before it", file: flip(2), want: flip(2)}, // nothing tells that it is wrong
		{name: "a line of the tail is missing", file: linesOf(1, 2, 3, 5), mended: []int{4}},
		{name: "a line before it is missing", file: linesOf(1, 3, 4, 5), want: linesOf(1) + empty(2) + tail, lost: []int{2}},
		{name: "a line that is none", file: strings.Replace(whole, `"epoch":2`, `"epoch"2`, 1), want: linesOf(1) + empty(2) + tail, lost: []int{2}},
		{name: "a line too many", file: "garbage\n" + linesOf(1, 2) + "\n" + tail},
		{name: "a line twice", file: linesOf(1, 1, 2, 3, 3, 4, 5)},
		{name: "in another order", file: linesOf(5, 1, 4, 2, 3)},
		{name: "zeros", file: strings.Repeat("\x00", len(whole)), want: empty(1) + empty(2) + tail, mended: []int{3, 4, 5}, lost: []int{1, 2}},
		{name: "no line ends", file: strings.ReplaceAll(whole, "\n", " "), want: empty(1) + empty(2) + tail, mended: []int{3, 4, 5}, lost: []int{1, 2}},
		{name: "a long line", file: linesOf(1) + strings.Repeat(" ", maxLine) + linesOf(2) + tail, want: linesOf(1) + empty(2) + tail, lost: []int{2}},
	} {
		want := tc.want
		if want == "" {
			want = whole
		}
		text, mended, lost := mend([]byte(tc.file), 5, []byte(tail))
		if string(text) != want || !slices.Equal(mended, tc.mended) || !slices.Equal(lost, tc.lost) {
			t.Errorf("%s:\n%s%v, %v; want\n%s%v, %v", tc.name, text, mended, lost, want, tc.mended, tc.lost)
		}
		again, mended, lost := mend(text, 5, []byte(tail))
		if !bytes.Equal(again, text) || mended != nil || lost != nil && tc.lost == nil {
			t.Errorf("%s: mended once more: %s%v, %v", tc.name, again, mended, lost)
		}
	}
	// Tails that no checkpoint has.
	for _, tail := range []string{"", "garbage\n", linesOf(4), linesOf(4, 6), linesOf(0, 1, 2, 3, 4, 5), linesOf(5) + `{"epoch":6`} {
		if text, _, _ := mend([]byte(whole), 5, []byte(tail)); string(text) != whole {
			t.Errorf("tail %q: %s", tail, text)
		}
	}
}

// TestKeepTail keeps whole lines on both sides of the bound.
func TestKeepTail(t *testing.T) {
	line := strings.Repeat("x", 99) + "\n"
	for _, n := range []int{0, 1, maxTail / 100, maxTail/100 + 1, maxTail/100 + 2, 3 * maxTail / 100} {
		text := []byte(strings.Repeat(line, n))
		got := keepTail(text)
		if len(got)%100 != 0 || !bytes.HasSuffix(text, got) || len(got) > maxTail || len(got) < min(len(text), maxTail-99) {
			t.Errorf("%d of %d bytes", len(got), len(text))
		}
	}
	exact := []byte("y\n" + strings.Repeat("x", maxTail-1) + "\n")
	if got := keepTail(exact); len(got) != maxTail {
		t.Errorf("%d bytes of a last line of %d", len(got), maxTail)
	}
}

// FuzzMend mends hostile files: what comes out are the lines of all epochs, and
// nothing that needs to be mended again.
func FuzzMend(f *testing.F) {
	f.Add(linesOf(1, 2, 3), 3, linesOf(3))
	f.Add(linesOf(1, 3), 3, "")
	f.Add(strings.Repeat(" ", 5000)+linesOf(1), 2, linesOf(1, 2))
	f.Fuzz(func(t *testing.T, file string, epochs int, tail string) {
		epochs = min(max(epochs, 0), 50)
		text, _, _ := mend([]byte(file), epochs, []byte(tail))
		epoch := 0
		for line := range bytes.Lines(text) {
			if epoch++; !isLine(line, epoch) {
				t.Fatalf("line %d is %q", epoch, line)
			}
		}
		if epoch != epochs {
			t.Fatalf("%d lines of %d epochs", epoch, epochs)
		}
		if again, mended, _ := mend(text, epochs, []byte(tail)); !bytes.Equal(again, text) || mended != nil {
			t.Fatalf("%q becomes %q", text, again)
		}
	})
}
