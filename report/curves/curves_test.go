package curves

import (
	"bytes"
	"encoding/xml"
	"errors"
	"image/png"
	"io"
	"math"
	"strings"
	"testing"

	"github.com/pce-engine/pce/report"
)

func at(x float64) *float64 { return &x }

// epochs are some epochs of a run, one without a validation.
func epochs(n int, from float64) (out []report.Epoch) {
	for i := range n {
		e := report.Epoch{Epoch: i + 1, Step: int64(10 * (i + 1)), TrainLL: at(from + float64(i)), ValidLL: at(from - 1/float64(i+1)), StepSize: at(0.5), Seconds: 2, SamplesPerSecond: 100}
		if i == 2 {
			e.ValidLL = nil
		}
		out = append(out, e)
	}
	return out
}

// TestWrite draws runs in both formats, and wants pictures that readers of these take, with
// the names of the runs.
func TestWrite(t *testing.T) {
	runs := []Run{{"a <&>", epochs(5, -9)}, {"b", epochs(1, -8)}, {"c", epochs(300, -7)}}
	for _, measure := range Measures {
		for _, axis := range Axes {
			var out bytes.Buffer
			if err := Write(&out, "svg", measure, axis, runs); err != nil {
				t.Fatalf("%s over %s: %v", measure, axis, err)
			}
			text := svgText(t, out.Bytes())
			for _, want := range []string{"a <&>", "b", "c", axis} {
				if !strings.Contains(text, want) {
					t.Errorf("%s over %s: no %q in %q", measure, axis, want, text)
				}
			}
		}
	}
	var out bytes.Buffer
	if err := Write(&out, "png", LogLikelihood, Epochs, runs); err != nil {
		t.Fatal(err)
	}
	img, err := png.Decode(&out)
	if err != nil {
		t.Fatal(err)
	}
	if size := img.Bounds().Size(); size.X != 768 || size.Y != 480 {
		t.Errorf("size %v", size)
	}
	seen := map[[3]uint32]bool{}
	for x := range 768 {
		for y := range 480 {
			r, g, b, _ := img.At(x, y).RGBA()
			seen[[3]uint32{r >> 8, g >> 8, b >> 8}] = true
		}
	}
	for i := range runs {
		r, g, b, _ := colours[i].RGBA()
		if !seen[[3]uint32{r >> 8, g >> 8, b >> 8}] {
			t.Errorf("run %d has no pixel of its colour", i)
		}
	}
}

// svgText returns the text of a drawing.
func svgText(t *testing.T, data []byte) string {
	t.Helper()
	var b strings.Builder
	d := xml.NewDecoder(bytes.NewReader(data))
	for {
		token, err := d.Token()
		if errors.Is(err, io.EOF) {
			return b.String()
		}
		if err != nil {
			t.Fatal(err)
		}
		if c, ok := token.(xml.CharData); ok {
			b.Write(c)
		}
	}
}

// TestWriteRefuses wants what cannot be drawn to be an error.
func TestWriteRefuses(t *testing.T) {
	good := []Run{{"a", epochs(3, -9)}}
	lost := []report.Epoch{{Epoch: 1, TrainLL: at(math.Inf(-1)), ValidLL: at(math.NaN())}, {Epoch: 2, TrainLL: at(1e301)}}
	for _, tc := range []struct {
		format, measure, axis string
		runs                  []Run
		want                  string
	}{
		{"gif", LogLikelihood, Epochs, good, `format "gif"`},
		{"png", "x", Epochs, good, `measure "x"`},
		{"png", LogLikelihood, "x", good, `axis "x"`},
		{"png", LogLikelihood, Epochs, nil, "0 runs; give 1 to 24"},
		{"png", LogLikelihood, Epochs, make([]Run, mostRuns+1), "25 runs; give 1 to 24"},
		{"png", LogLikelihood, Epochs, []Run{{"a", nil}}, "no finite value"},
		{"png", LogLikelihood, Epochs, []Run{{"a", lost}}, "no finite value"},
	} {
		err := Write(io.Discard, tc.format, tc.measure, tc.axis, tc.runs)
		if !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%s %s %s: %v, want %q", tc.format, tc.measure, tc.axis, err, tc.want)
		}
	}
	var many []Run
	for range mostRuns {
		many = append(many, good[0])
	}
	if err := Write(io.Discard, "svg", LogLikelihood, Epochs, many); err != nil {
		t.Errorf("%d runs: %v", mostRuns, err)
	}
}

// TestSeconds adds up what epochs took, and interrupts curves.
func TestSeconds(t *testing.T) {
	xs, err := positions(epochs(3, 0), Seconds)
	if err != nil || len(xs) != 3 || xs[0] != 2 || xs[2] != 6 {
		t.Errorf("positions %v, %v", xs, err)
	}
	of, err := curvesOf(Run{"a", epochs(5, 0)}, LogLikelihood, Epochs)
	if err != nil || len(of) != 2 || !math.IsNaN(of[1].points[2].Y) || of[0].points[2].Y != 2 || !of[0].dashed || of[1].dashed {
		t.Errorf("curves %v, %v", of, err)
	}
}
