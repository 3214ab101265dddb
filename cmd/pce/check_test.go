package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"io"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// sharedData is where data of others lies, beside the repository.
const sharedData = "../../../shared/data"

// TestCheckSharedModels plays pce check on public networks with known log-likelihoods.
func TestCheckSharedModels(t *testing.T) {
	if _, err := os.Stat(sharedData + "/spn/text"); err != nil {
		t.Skip("no networks in ../shared/data/spn: they are in the repository esa-tu-darmstadt/spn-compiler, branch feature/circt-llvm-19.0.0")
	}
	for _, c := range []struct {
		model, rows string
		columns     int // of the rows that the model reads; 0: all
		quick       bool
	}{
		{"NLTCS_200", "nltcs/nltcs.test.data.gz", 0, true},
		{"NIPS5", "nips-bow/nips100.csv.gz", 5, true},
		{"NIPS10", "nips-bow/nips100.csv.gz", 10, false},
		{"NIPS20", "nips-bow/nips100.csv.gz", 20, false},
		{"NIPS40", "nips-bow/nips100.csv.gz", 40, false},
		{"NIPS50", "nips-bow/nips100.csv.gz", 50, false},
		{"NIPS70", "nips-bow/nips100.csv.gz", 70, false},
		{"PLANTS_4000", "plants/plants.test.data.gz", 0, false},
		{"ACCIDENTS_4000", "accidents/accidents.test.data.gz", 0, false},
		{"BAUDIO_4000", "audio/baudio.test.data.gz", 0, false},
		{"MSNBC_200", "msnbc/msnbc.test.data.gz", 0, false},
	} {
		t.Run(c.model, func(t *testing.T) {
			if testing.Short() && !c.quick {
				t.Skip("short")
			}
			rows := filepath.Join(sharedData, "density", c.rows)
			if _, err := os.Stat(rows); err != nil {
				t.Skipf("no rows %s in ../shared/data/density", c.rows)
			}
			if c.columns > 0 {
				rows = cut(t, rows, c.columns)
			}
			text := filepath.Join(sharedData, "spn/text", c.model)
			for _, numbers := range []struct {
				flags string
				most  float64 // error of the path of code
			}{{"--max-error=0", 1e-10}, {"--max-error=1e-4", 1e-5}} {
				var out, errs bytes.Buffer
				code := Run(t.Context(), []string{"check", text + ".spn", "--data", rows, "--expected", text + ".expected_ll.txt.gz", "--json", numbers.flags}, nil, nil, &out, &errs)
				var r checkResult
				if err := json.Unmarshal(out.Bytes(), &r); err != nil || code != exitOK || errs.Len() > 0 {
					t.Fatalf("exit %d, %v\n%s%s", code, err, out.String(), errs.String())
				}
				if !r.OK || r.Expected == nil || !(r.Expected.MaxError <= expectedBound) || r.Rows == 0 {
					t.Errorf("%s", out.String())
				}
				for _, p := range r.Paths {
					if !p.OK || p.Path == "code" && (!(p.MaxError <= numbers.most) || p.MaxError > 1e-10 != (numbers.most > 1e-10)) {
						t.Errorf("%s: %s", numbers.flags, out.String())
					}
				}
				if len(r.Paths) == 0 || r.Paths[0].Path != "code" {
					t.Errorf("paths %+v, want code first", r.Paths)
				}
				t.Log(strings.TrimSpace(out.String()))
				checkOnEmulator(t, &r.Paths[0], text+".spn", rows, numbers.flags)
			}
		})
	}
}

// checkOnEmulator plays pce check for code on the emulator. Its numbers are those of the CPU to the bit.
func checkOnEmulator(t *testing.T, onCPU *pathCheck, model, rows, flags string) {
	t.Helper()
	var out, errs bytes.Buffer
	code := Run(t.Context(), []string{"check", model, "--data", rows, "--json", "--path", "code", "--device", "emulator", flags}, nil, nil, &out, &errs)
	var r checkResult
	if err := json.Unmarshal(out.Bytes(), &r); err != nil || code != exitOK || errs.Len() > 0 || len(r.Paths) != 1 {
		t.Fatalf("exit %d, %v\n%s%s", code, err, out.String(), errs.String())
	}
	want := *onCPU
	want.Device, want.KernelPath = "emulator", r.Paths[0].KernelPath
	if path, parts, _ := strings.Cut(want.KernelPath, ", "); path != "ptx sm_90" || parts != "" && !strings.HasSuffix(parts, " parts") {
		t.Errorf("the path on the emulator is %q, want ptx sm_90, of a part or several", want.KernelPath)
	}
	if r.Paths[0] != want {
		t.Errorf("on the emulator %+v, want %+v", r.Paths[0], want)
	}
}

// cut writes the first columns of a table to a file, and returns its name.
func cut(t *testing.T, path string, columns int) string {
	t.Helper()
	f, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	z, err := gzip.NewReader(f)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	var b strings.Builder
	for line := range strings.Lines(string(text)) {
		b.WriteString(strings.Join(strings.Split(strings.TrimSpace(line), ",")[:columns], ",") + "\n")
	}
	to := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(to, []byte(b.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	return to
}

// TestCheckNamesRows: what a path that is beyond its bound is said to differ by is beyond the bound, though rows with larger
// numbers, and larger bounds, differ by more.
func TestCheckNamesRows(t *testing.T) {
	p, s := pathCheck{OK: true}, scoreCheck{OK: true}
	for row, x := range []struct{ got, want, bound float64 }{
		{-1000.004, -1000, 0.01}, {-1.0001, -1, 1e-5}, {-3000.02, -3000, 0.03}, {-1.0002, -1, 1e-5}, {-2.0001, -2, 2e-5},
	} {
		p.compare(row, x.got, x.want, x.bound)
		s.compare(row, x.got, x.want, x.bound)
	}
	if p.OK || p.Row != 4 || p.Bound != 1e-5 || !(p.MaxError > p.Bound) {
		t.Errorf("%+v, want row 4", p)
	}
	if s.OK || s.Row != 4 || s.Bound != 1e-5 || !(s.MaxError > s.Bound) {
		t.Errorf("%+v, want row 4", s)
	}
	within := pathCheck{OK: true}
	within.compare(0, -1.000001, -1, 1e-5)
	within.compare(1, -1000.004, -1000, 0.01)
	if !within.OK || within.Row != 2 || within.Bound != 0.01 {
		t.Errorf("%+v, want row 2", within)
	}
}

// TestCheckExpectedLarge: of a log-likelihood of -1e9 float64 has no 1e-9th, so numbers of another program need not agree that far, but in
// their first twelve digits.
func TestCheckExpectedLarge(t *testing.T) {
	want := []float64{-1e9, -2, math.Inf(-1)}
	for text, ok := range map[string]bool{
		"-1000000000.0000002\n-2\n-Inf\n":      true,
		"-1000000000.01\n-2\n-Inf\n":           false,
		"-1000000000\n-2.00000001\n-Inf\n":     false,
		"-1000000000\n-2\n-1000000000000000\n": false,
		"-Inf\n-2\n-Inf\n":                     false,
		"NaN\n-2\n-Inf\n":                      false,
	} {
		path := filepath.Join(t.TempDir(), "expected")
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		c, err := (&app{}).compareExpected(t.Context(), path, want)
		if err != nil || c.OK != ok {
			t.Errorf("%q: %+v, %v; want %v", text, c, err, ok)
		}
		if c != nil && !(c.Bound <= 1e4) { // no more than that of -1e15: -Inf and NaN have that of small numbers
			t.Errorf("%q: the bound is %v", text, c.Bound)
		}
	}
}

// TestCheckFiniteOfImpossible: a likelihood of a row that is impossible is beyond every bound, also one that grows with what should be there,
// and the report of it is JSON.
func TestCheckFiniteOfImpossible(t *testing.T) {
	p := pathCheck{OK: true}
	want := math.Inf(-1)
	p.compare(0, -5, want, tensorBound*math.Max(1, math.Abs(want)))
	if p.OK || p.Row != 1 {
		t.Errorf("%+v passes", p)
	}
	if _, err := json.Marshal(p); err != nil {
		t.Error(err)
	}
}

// TestCheckFarRows: rows below what the tensor path has, -Inf there, do not fail it, and are counted. An impossible row is one as before.
func TestCheckFarRows(t *testing.T) {
	dir := t.TempDir()
	model, rows := filepath.Join(dir, "model.txt"), filepath.Join(dir, "rows.csv")
	for path, text := range map[string]string{
		model: "circuit 2\na = input x0 gaussian 0 1\nb = input x1 bernoulli 1\np = product a b\n",
		rows:  "1,1\n40000,1\n50000,1\n1e9,1\n2,0\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	paths := runJSON(t, "check", model, "--data", rows, "--set", "data.header=no", "--path", "tensor")["paths"].([]any)
	if p := paths[0].(map[string]any); len(paths) != 1 || p["ok"] != true || number(t, p, "below_least") != 2 {
		t.Errorf("%v; want two rows left out", paths)
	}
	if err := os.WriteFile(rows, []byte("1e9,1\n2,0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if got := plain(t, "check", model, "--data", rows, "--set", "data.header=no", "--path", "tensor"); !strings.Contains(got, "tensor     no row is finite here, so none has an error; ") {
		t.Errorf("rows without a number: %s", got)
	}
	for _, x := range []struct{ least, want float64 }{{0, -1e10}, {tensorLeast, -9e8}, {rtlLeast, -700}} { // -Inf is too little
		p := pathCheck{OK: true, least: x.least}
		if p.compare(0, math.Inf(-1), x.want, 1e-5); p.OK || p.Below != 0 {
			t.Errorf("%+v passes as %v", p, x.want)
		}
	}
	hardware := pathCheck{OK: true, least: rtlLeast}
	if hardware.compare(0, math.Inf(-1), -709, 1e-12); !hardware.OK || hardware.Below != 1 {
		t.Errorf("%+v; want a row left out", hardware)
	}
}

// TestCheckUnreadColumns: numbers in a column that the root does not read change no log-likelihood, whatever the scale of the column, on
// no path and not in the reference.
func TestCheckUnreadColumns(t *testing.T) {
	dir := t.TempDir()
	model, rows := filepath.Join(dir, "model.txt"), filepath.Join(dir, "rows.csv")
	schema := `{"columns":[{"name":"a","kind":"continuous","offset":1,"scale":2},{"name":"b","kind":"continuous","offset":5,"scale":1000}]}`
	for path, text := range map[string]string{
		model: "circuit 2\nmeta \"schema\" " + strconv.Quote(schema) + "\na = input x0 gaussian 0 1\nb = input x1 gaussian 0 1\nroot a\n",
		rows:  "a,b\n1,7\n1,\n",
	} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := runJSON(t, "check", model, "--data", rows)
	if want := -0.5*math.Log(2*math.Pi) - math.Ln2; !(math.Abs(number(t, r, "mean_ll")-want) <= 1e-12) || r["ok"] != true {
		t.Errorf("%v; want the mean %v on all paths", r, want)
	}
}
