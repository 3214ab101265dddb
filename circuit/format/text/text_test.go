package text

import (
	"bytes"
	"errors"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/formattest"
	"github.com/pce-engine/pce/internal/golden"
)

func init() { format.Register(Format) }

func mustParse(t *testing.T, text string) *format.Model {
	t.Helper()
	m, err := Parse(text)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func printText(m *format.Model) (string, error) {
	var b bytes.Buffer
	err := Print(&b, m.Graph, m.Meta, m.Params)
	return b.String(), err
}

// TestFormat holds the format to what all of them promise.
func TestFormat(t *testing.T) {
	formattest.Run(t, Format, []byte(formattest.Everything), []byte("# a comment\n\ncircuit 1\na = input x0 bernoulli\n"),
		[]byte("\ufeffcircuit 1\na = input x0 bernoulli 0.5\n"))
}

// TestCutText cuts a text at every byte: what is left is a model whose parameters
// are good, for a shorter text may be one, or an error.
func TestCutText(t *testing.T) {
	whole := []byte(formattest.Everything)
	models := 0
	for n := range whole {
		m, err := format.Decode(bytes.NewReader(whole[:n]), int64(n))
		switch {
		case err != nil && !errors.Is(err, format.ErrModel):
			t.Errorf("%d bytes: error is %v, want ErrModel", n, err)
		case err == nil:
			models++
			if err := m.Verify(); err != nil {
				t.Errorf("%d bytes are taken for a model whose parameters are bad: %v", n, err)
			}
		}
	}
	if models == 0 || models == len(whole) {
		t.Errorf("%d of %d texts are models; want some of both", models, len(whole))
	}
}

// TestTextDialogues: "parse" reads a text model and prints it, or its error.
func TestTextDialogues(t *testing.T) {
	files, err := filepath.Glob("testdata/text*.txt")
	if err != nil || len(files) < 2 {
		t.Fatalf("dialogues %v, %v", files, err)
	}
	for _, path := range files {
		golden.Run(t, path, func(cmd string, _ []string, input string) string {
			if cmd != "parse" {
				return "unknown command"
			}
			m, err := Parse(input)
			if err != nil {
				if !errors.Is(err, format.ErrModel) || strings.Contains(err.Error(), "\n") {
					t.Errorf("error %q is not one line that matches format.ErrModel", err)
				}
				return strings.TrimPrefix(err.Error(), "format: bad model: ")
			}
			text, err := printText(m)
			if err != nil {
				t.Error(err)
			}
			checkIdentity(t, m, text)
			return text
		})
	}
}

// checkIdentity: what m prints as reads back as m and prints as itself.
func checkIdentity(t *testing.T, m *format.Model, text string) {
	t.Helper()
	again, err := Parse(text)
	if err != nil {
		t.Fatalf("printed text is not read: %v\n%s", err, text)
	}
	if d := formattest.Diff(again, m); d != "" {
		t.Fatal(d)
	}
	second, err := printText(again)
	if err != nil {
		t.Fatal(err)
	}
	if second != text {
		t.Fatalf("printed\n%s\nthen\n%s", text, second)
	}
}

func TestTextRoundTripOfRandomCircuits(t *testing.T) {
	rng := rand.New(rand.NewPCG(3, 4))
	n := 100
	if testing.Short() {
		n = 30
	}
	for i := range n {
		m := formattest.Random(t, rng)
		if i%2 == 1 { // leave every third node open
			whole := m
			m = format.NewModel(m.Graph, m.Meta, format.Params{Float32: func(id circuit.NodeID, dst []float32) error {
				if id%3 == 0 {
					return format.ErrNoParams
				}
				return whole.Params(id, dst)
			}})
		}
		text, err := printText(m)
		if err != nil {
			t.Fatal(err)
		}
		checkIdentity(t, m, text)
	}
}

// TestFloat64 reads decimals in both precisions, each rounded once.
func TestFloat64(t *testing.T) {
	m := mustParse(t, "circuit 2\na = input[2] x0 bernoulli 0.99999999 / 1e-50\nb = input[2] x1 gaussian 0.1 1 / 16777217.00000001 0.3\np = product a b\ns = sum p : 0.7 0.3\n")
	nines := 0.99999999 // a variable: constants are subtracted exactly
	for id, want := range [][]float64{{1 - nines, nines, 1, 1e-50}, {0.1, 1, 16777217.00000001, 0.3}, {}, {0.7, 0.3}} {
		got := make([]float64, len(want))
		if err := m.Params64(circuit.NodeID(id), got); err != nil || !slices.Equal(got, want) {
			t.Errorf("node %d has %v in float64, want %v: %v", id, got, want, err)
		}
	}
	// By way of float64, 16777217.00000001 would become 16777216. Float32 leaves nothing of 1 beside 0.99999999.
	for id, want := range [][]float32{{float32(1 - nines), 1, 1, 0}, {0.1, 1, 16777218, 0.3}, {}, {0.7, 0.3}} {
		got := make([]float32, len(want))
		if err := m.Params(circuit.NodeID(id), got); err != nil || !slices.Equal(got, want) {
			t.Errorf("node %d has %v in float32, want %v: %v", id, got, want, err)
		}
	}
	rng := rand.New(rand.NewPCG(7, 8))
	n := 100
	if testing.Short() {
		n = 30
	}
	for range n {
		m := formattest.Random64(t, rng)
		var b bytes.Buffer
		if err := Print64(&b, m.Graph, m.Meta, m.Params64); err != nil {
			t.Fatal(err)
		}
		if d := formattest.Diff64(mustParse(t, b.String()), m); d != "" {
			t.Fatal(d)
		}
	}
}

// TestTextLimits: sizes that a short text can name are refused or cost nothing.
func TestTextLimits(t *testing.T) {
	wide := "circuit 1\na = input[16777216] x0 bernoulli\n"
	for _, tc := range []struct{ text, want string }{
		{wide + "s = sum[16777216] a\nr = sum s\n", "weights"},
		{wide + "s = sum[16777216] a edges 16777216x16777216 (0,0)\nr = sum s\n", "weights"},
		{wide + "s = sum[16777216]" + strings.Repeat(" a", 129) + "\n", "at most 2147483648"},
		{wide + "s = sum[16777216] a edges 16777216x16777216 (0,0) (0,1)\n", "more than the 1 edge blocks"},
		{wide + "s = sum[16777216] a edges 1x16777216 (0,0) mask 1\n", "mask bits"},
		{wide + "s = sum[16777216] a : 1\n", "want 281474976710656"},
		{strings.Repeat(" ", maxTextBytes) + "circuit 1", "tried: text"},
		{"circuit 1" + strings.Repeat(" ", maxTextBytes), "at most"},
	} {
		if testing.Short() && len(tc.text) > maxTextBytes {
			continue
		}
		_, err := format.Decode(strings.NewReader(tc.text), int64(len(tc.text)))
		if !errors.Is(err, format.ErrModel) || !strings.Contains(err.Error(), tc.want) {
			t.Errorf("%.100q: error is %v, want ErrModel with %q", tc.text, err, tc.want)
		}
	}
	m := mustParse(t, wide+"s = sum a\n")
	if m.NumParams() != 3<<24 {
		t.Errorf("%d parameters, want %d", m.NumParams(), 3<<24)
	}
}

func TestPrintErrors(t *testing.T) {
	m := mustParse(t, formattest.Everything)
	boom := errors.New("boom")
	if err := Print(&formattest.FullDisk{Room: 10}, m.Graph, m.Meta, m.Params); err == nil {
		t.Error("a full disk was not reported")
	}
	if err := Print(&bytes.Buffer{}, m.Graph, nil, func(circuit.NodeID, []float32) error { return boom }); !errors.Is(err, boom) {
		t.Errorf("error is %v, want boom", err)
	}
	if err := Print(&bytes.Buffer{}, m.Graph, nil, func(circuit.NodeID, []float32) error { return nil }); !errors.Is(err, format.ErrModel) {
		t.Errorf("zeros as parameters: error is %v, want ErrModel", err)
	}
	if err := Print(&bytes.Buffer{}, &circuit.Graph{}, nil, nil); !errors.Is(err, format.ErrModel) {
		t.Errorf("empty graph: error is %v, want ErrModel", err)
	}
}

// FuzzParse: what is read prints and reads back as the same model.
func FuzzParse(f *testing.F) {
	f.Add(formattest.Everything)
	f.Add("circuit 1\n# c\na = input x0\n poisson 2.5\n\nroot a")
	f.Add("circuit 2\na=input[3]x0 binomial trials=4 .5/.5/1\nb=sum a edges 1x1(0,0)(0,2)mask 1 1:0.5 0.5")
	f.Add("circuit 1\na = input x0 discretised-logistic codes=256 min_scale=0.1 1e1 2\nmeta \"\\xff\" \"\\\\\"")
	f.Fuzz(func(t *testing.T, text string) {
		m, err := Parse(text)
		if err != nil {
			if !errors.Is(err, format.ErrModel) {
				t.Fatalf("error %v does not match ErrModel", err)
			}
			return
		}
		if m.NumParams() > 1<<20 {
			return
		}
		printed, err := printText(m)
		if err != nil {
			t.Fatal(err)
		}
		checkIdentity(t, m, printed)
	})
}
