package simulate_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce/compile/rtl"
	"github.com/pce-engine/pce/compile/rtl/simulate"
	"github.com/pce-engine/pce/compile/rtl/verilog"
)

// TestLint wants no warning of Verilator about designs and testbenches.
func TestLint(t *testing.T) {
	verilator := tool(t, simulate.Verilator)
	for _, c := range []struct{ columns, width int }{{3, 2}, {65, 3}} {
		m := product(t, c.columns, c.width)
		for _, o := range []rtl.Options{{}, {Faithful: true, Marginals: true}} {
			options := rtl.DefaultOptions()
			options.Faithful, options.Marginals = o.Faithful, o.Marginals
			d, err := rtl.Compile(m.Graph, m.Params64, options)
			if err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			files := verilog.Write(d)
			for _, f := range files {
				if err := os.WriteFile(filepath.Join(dir, f.Name), []byte(f.Text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			tops := []string{"pce_top", "tb_datapath", "tb_stream", "tb_memory"}
			if c.columns > 3 || o.Faithful {
				tops = tops[:1]
			}
			for _, top := range tops {
				command := []string{verilator, "--lint-only", "-Wall", "--timing", "--top-module", top,
					filepath.Join(dir, "pce_datapath.v"), filepath.Join(dir, "pce_top.v")}
				if top != "pce_top" {
					command = append(command, filepath.Join(dir, top+".v"))
				}
				if said, err := simulate.Command(t.Context(), command); err != nil || said != "" {
					t.Errorf("%d columns of %d bits, %s: %v %s", c.columns, c.width, top, err, said)
				}
			}
		}
	}
}
