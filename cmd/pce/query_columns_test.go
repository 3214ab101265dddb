package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestCodeColumns asks for the log-likelihoods of so many cells that threads of the host share the columns of a launch on
// the emulator, and of one row less than a size of its buffers, as many and one more: they are those of the CPU.
func TestCodeColumns(t *testing.T) {
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	const columns = 40
	var names, leaves, table strings.Builder
	for v := range columns {
		fmt.Fprintf(&names, "%sL%d", map[bool]string{true: ", "}[v > 0], v)
		fmt.Fprintf(&leaves, "L%d Histogram(V%d|[0., 1., %d.];[0.5,%g])\n", v, v, 3+v%3, 0.5/float64(2+v%3))
	}
	rng := rand.New(rand.NewPCG(6, 1))
	const rows = 9000
	for range rows {
		for v := range columns {
			table.WriteString(map[bool]string{true: ","}[v > 0])
			if n := rng.IntN(7); n < 6 {
				fmt.Fprint(&table, n)
			}
		}
		table.WriteByte('\n')
	}
	lines := strings.SplitAfter(table.String(), "\n")
	write := func(name, text string) {
		if err := os.WriteFile(at(name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write("net.spn", "P ProductNode("+names.String()+"){\n"+leaves.String()+"}\n")
	for _, n := range []int{1023, 1024, 1025, 8192, rows} {
		write("rows.csv", strings.Join(lines[:n], ""))
		var results [2][]byte
		for i, device := range []string{"cpu", "emulator"} {
			out := at(device + ".npy")
			args := []string{"query", "loglik", "--model", at("net.spn"), "--data", at("rows.csv"), "--set", "data.header=no", "--path", "code", "--device", device, "--out", out, "--force"}
			var stdout, errs strings.Builder
			if code := Run(t.Context(), args, nil, nil, &stdout, &errs); code != 0 {
				t.Fatalf("%v: exit %d, %s", args, code, errs.String())
			}
			b, err := os.ReadFile(out)
			if err != nil {
				t.Fatal(err)
			}
			results[i] = b
		}
		if len(results[0]) < 8*n || !bytes.Equal(results[0], results[1]) {
			t.Errorf("%d rows: %d and %d bytes differ", n, len(results[0]), len(results[1]))
		}
	}
}
