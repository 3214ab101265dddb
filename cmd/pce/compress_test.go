package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// densityFile returns a file of the shared density data, or skips the test.
func densityFile(t *testing.T, name string) string {
	t.Helper()
	path, err := filepath.Abs(filepath.Join("../../../shared/data/density", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err != nil {
		t.Skipf("SKIPPED: needs %s, density data that is not part of the repository: place the folder shared beside it", path)
	}
	return path
}

// plainFile returns what gzip has packed in a file.
func plainFile(t *testing.T, path string) []byte {
	t.Helper()
	z, err := gzip.NewReader(bytes.NewReader(readFile(t, path)))
	if err != nil {
		t.Fatal(err)
	}
	b, err := io.ReadAll(z)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// do runs a command and returns its exit code and what it prints.
func do(t *testing.T, stdin string, args ...string) (code int, stdout, stderr string) {
	t.Helper()
	var out, errs bytes.Buffer
	code = Run(t.Context(), args, nil, strings.NewReader(stdin), &out, &errs)
	return code, out.String(), errs.String()
}

// TestCodecTestSets compresses the test sets of NLTCS and MNIST by models that were
// trained on them for a moment, and restores every byte. The size is what eval says.
func TestCodecTestSets(t *testing.T) {
	for _, tc := range []struct {
		name, train, test string
		set               []string
	}{
		{"nltcs", "nltcs/nltcs.train.data.gz", "nltcs/nltcs.test.data.gz", []string{"model.latents=16", "train.epochs=3"}},
		{"mnist", "mnist/t10k-images-idx3-ubyte.gz", "mnist/t10k-images-idx3-ubyte.gz",
			[]string{"model.latents=4", "train.epochs=1", "model.hclt.max_rows=500", "model.hclt.bins=4"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			if testing.Short() && tc.name == "mnist" {
				t.Skip("skipped with -short: trains and codes 10,000 images")
			}
			train, test := densityFile(t, tc.train), densityFile(t, tc.test)
			t.Chdir(t.TempDir())
			args := []string{"train", "--config", "preset:hclt", "--device", "cpu", "--out", "run"}
			for _, s := range append(tc.set, "data.train="+train, "data.valid=", "data.test=") {
				args = append(args, "--set", s)
			}
			runJSON(t, args...)
			const model = "run/model.safetensors"
			packed := runJSON(t, "compress", "--model", model, "--json", test, "packed")
			eval := runJSON(t, "eval", "--model", model, "--data", test)
			if got, want := number(t, packed, "rows"), number(t, eval, "rows"); got != want {
				t.Errorf("%v rows, want %v", got, want)
			}
			bits := -number(t, eval, "ll") * number(t, eval, "rows") / math.Ln2
			size := len(readFile(t, "packed"))
			if most := 1.001*bits/8 + 64; !(float64(size) <= most) || !(float64(size) > 0.999*bits/8) {
				t.Errorf("%d bytes for %v bits, want at most %v and at least the bits", size, bits, most)
			}
			runJSON(t, "decompress", "--model", model, "--json", "packed", "plain")
			if !bytes.Equal(readFile(t, "plain"), plainFile(t, test)) {
				t.Error("what is restored is not what was compressed")
			}
		})
	}
}

// compressed trains a small model, in an empty directory, and compresses rows of it.
func compressed(t *testing.T) (model string, rows string) {
	t.Helper()
	dir := t.TempDir()
	t.Chdir(dir)
	var b strings.Builder
	b.WriteString("sky,wind,\"rain, mm\"\n")
	for i := range 200 {
		fmt.Fprintf(&b, "%s,%s,%d\n", []string{"clear", "grey", "NA"}[i*i%7%3], []string{"calm", "\"so, so\"", "storm"}[i%3], (i%3+i%2)%4)
	}
	rows = b.String()
	if err := os.WriteFile("rows.csv", []byte(rows), 0o600); err != nil {
		t.Fatal(err)
	}
	runJSON(t, "train", "--config", "preset:hclt", "--device", "cpu", "--set", "data.train=rows.csv", "--set", "data.valid=", "--set", "data.test=",
		"--set", "model.latents=3", "--set", "train.epochs=5", "--set", "train.batch_size=50", "--out", "run", "--threads", "1")
	model = filepath.Join(dir, "run", "model.safetensors")
	if code, _, errs := do(t, "", "compress", "--model", model, "rows.csv", "rows.pcz"); code != 0 {
		t.Fatalf("compress: exit %d: %s", code, errs)
	}
	return model, rows
}

// TestCodecCommands compresses a table with names, labels, quotes and missing cells, by
// files and by standard input and output.
func TestCodecCommands(t *testing.T) {
	model, rows := compressed(t)
	if n := len(readFile(t, "rows.pcz")); n > 200 {
		t.Errorf("%d bytes of rows take %d", len(rows), n)
	}
	code, piped, errs := do(t, rows, "compress", "--model", model, "-", "-")
	if code != 0 || piped != string(readFile(t, "rows.pcz")) {
		t.Errorf("by standard input: exit %d, %d bytes: %s", code, len(piped), errs)
	}
	if code, back, errs := do(t, piped, "decompress", "--model", model, "-", "-"); code != 0 || back != rows {
		t.Errorf("by standard output: exit %d, %q: %s", code, back, errs)
	}
	// Columns in another order, one of them left out, and a line that is not a row.
	other := "rain; sky\n"
	if code, _, errs := do(t, other, "compress", "--model", model, "-", "-"); code != exitData || strings.Count(errs, "\n") != 1 {
		t.Errorf("no row: exit %d: %s", code, errs)
	}
	other = "\"rain, mm\";sky\n1;clear\n0;\n02;grey\n3;grey"
	code, piped, errs = do(t, other, "compress", "--model", model, "-", "-")
	if code != 0 || !strings.Contains(errs, "note: 1 of 4 records are stored as text") || !strings.Contains(errs, `record 3: "02" is not`) {
		t.Errorf("some columns: exit %d: %s", code, errs)
	}
	if code, back, errs := do(t, piped, "decompress", "--model", model, "-", "-"); code != 0 || back != other {
		t.Errorf("some columns: exit %d, %q: %s", code, back, errs)
	}
}

// TestCodecRefusals wants one line, the exit code of its kind, and no file left behind.
func TestCodecRefusals(t *testing.T) {
	model, rows := compressed(t)
	file := readFile(t, "rows.pcz")
	for name, content := range map[string][]byte{
		"flipped": append(append(bytes.Clone(file[:70]), file[70]^4), file[71:]...),
		"cut":     file[:len(file)-20],
		"stub":    file[:3],
		"empty":   nil,
		"foreign": []byte("sky,wind\n" + strings.Repeat("grey,calm\n", 9)),
	} {
		if err := os.WriteFile(name, content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	runJSON(t, "train", "--config", "preset:hclt", "--device", "cpu", "--set", "data.train=rows.csv", "--set", "data.valid=", "--set", "data.test=",
		"--set", "model.latents=2", "--set", "train.epochs=1", "--out", "second", "--threads", "1")
	if err := os.WriteFile("numbers.csv", []byte(strings.Repeat("0.25,1\n1.5,2\n-3.75,0\n", 20)), 0o600); err != nil {
		t.Fatal(err)
	}
	runJSON(t, "train", "--config", "preset:hclt", "--device", "cpu", "--set", "data.train=numbers.csv", "--set", "data.valid=", "--set", "data.test=",
		"--set", "model.latents=2", "--set", "train.epochs=1", "--out", "numbers", "--threads", "1")
	second := filepath.Join("second", "model.safetensors")
	if err := os.Symlink(second, "linked"); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		args []string
		code int
		says string
	}{
		{[]string{"decompress", "--model", model, "flipped", "x"}, exitData, "damaged"},
		{[]string{"decompress", "--model", model, "cut", "x"}, exitData, "cut short"},
		{[]string{"decompress", "--model", model, "stub", "x"}, exitData, "ends in its header"},
		{[]string{"decompress", "--model", model, "empty", "x"}, exitData, "not a file that pce has compressed"},
		{[]string{"decompress", "--model", model, "foreign", "x"}, exitData, "not a file that pce has compressed"},
		{[]string{"decompress", "--model", second, "rows.pcz", "x"}, exitData, "another model"},
		{[]string{"decompress", "--model", model, "absent", "x"}, exitData, "no such file"},
		{[]string{"decompress", "--model", model, "rows.pcz", "x.csv.gz"}, exitUsage, "without .gz"},
		{[]string{"decompress", "--model", model, "rows.pcz", "rows.csv"}, exitUsage, "--force"},
		{[]string{"decompress", "--model", model, "rows.pcz", "-", "--json"}, exitUsage, "stdout"},
		{[]string{"compress", "--model", model, "empty", "x"}, exitData, "empty"},
		{[]string{"compress", "--model", model, "numbers.csv", "x"}, exitData, "it has 2 cells, want 3"},
		{[]string{"compress", "--model", "numbers/model.safetensors", "numbers.csv", "x"}, exitData, "continuous"},
		{[]string{"compress", "rows.csv", "x"}, exitUsage, "--model"},
		{[]string{"compress", "--model", model, "rows.csv", "second", "--force"}, exitUsage, "second is a folder"},
		{[]string{"compress", "--model", second, "rows.csv", second, "--force"}, exitUsage, "is read, and would be replaced"},
		{[]string{"compress", "--model", second, "rows.csv", "linked", "--force"}, exitUsage, "is read, and would be replaced"},
		{[]string{"query", "loglik", "--model", second, "--data", "rows.csv", "--out", "numbers"}, exitUsage, "numbers is a folder"},
	} {
		code, out, errs := do(t, "", tc.args...)
		lines := 1
		if tc.code == exitUsage {
			lines = 2 // and a hint
		}
		if code != tc.code || out != "" || !strings.Contains(errs, tc.says) || strings.Count(errs, "\n") != lines {
			t.Errorf("%v: exit %d, %q on stdout and %q on stderr; want exit %d, %d lines and %q", tc.args, code, out, errs, tc.code, lines, tc.says)
		}
	}
	if _, err := os.Stat("x"); err == nil {
		t.Error("a command that failed has left its file")
	}
	if left, _ := filepath.Glob(".*tmp*"); left != nil {
		t.Errorf("%v is left", left)
	}
	if code, _, errs := do(t, "", "decompress", "--model", model, "rows.pcz", "rows.csv", "--force"); code != 0 || string(readFile(t, "rows.csv")) != rows {
		t.Errorf("--force: exit %d: %s", code, errs)
	}
}

// TestCompressDamagedGzip damages a packed table in each of its parts. The line names the file
// and what is wrong, and no file is left.
func TestCompressDamagedGzip(t *testing.T) {
	model, rows := compressed(t)
	var b bytes.Buffer
	z := gzip.NewWriter(&b)
	io.WriteString(z, rows)
	z.Close()
	whole := b.Bytes()
	if err := os.WriteFile("whole.gz", whole, 0o600); err != nil {
		t.Fatal(err)
	}
	if code, _, errs := do(t, "", "compress", "--model", model, "whole.gz", "packed"); code != 0 || !bytes.Equal(readFile(t, "packed"), readFile(t, "rows.pcz")) {
		t.Errorf("whole: exit %d: %s", code, errs)
	}
	flipped := func(at int) []byte {
		bad := bytes.Clone(whole)
		bad[at] ^= 0xff
		return bad
	}
	for name, tc := range map[string]struct {
		file []byte
		says string
	}{
		"no header":      {whole[:5], "unexpected EOF"},
		"bad header":     {flipped(2), "invalid header"},
		"half":           {whole[:len(whole)/2], "unexpected EOF"},
		"no trailer":     {whole[:len(whole)-8], "unexpected EOF"},
		"cut in trailer": {whole[:len(whole)-1], "unexpected EOF"},
		"checksum":       {flipped(len(whole) - 8), "invalid checksum"},
		"length":         {flipped(len(whole) - 1), "invalid checksum"},
		"block":          {flipped(10), "corrupt input"},
		"junk behind":    {append(bytes.Clone(whole), "junk behind its end"...), "invalid header"},
	} {
		if err := os.WriteFile("bad.gz", tc.file, 0o600); err != nil {
			t.Fatal(err)
		}
		code, out, errs := do(t, "", "compress", "--model", model, "bad.gz", "x")
		if code != exitData || out != "" || strings.Count(errs, "\n") != 1 || !strings.Contains(errs, tc.says) || !strings.Contains(errs, "damaged or cut short") || !strings.Contains(errs, "(bad.gz)") {
			t.Errorf("%s: exit %d, %q on stdout and %q on stderr; want exit %d and %q", name, code, out, errs, exitData, tc.says)
		}
		if _, err := os.Stat("x"); err == nil {
			t.Fatalf("%s: a file is left", name)
		}
	}
}
