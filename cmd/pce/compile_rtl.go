package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/compile/rtl"
	"github.com/pce-engine/pce/compile/rtl/verilog"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/internal/atomicfile"
	"github.com/pce-engine/pce/run"
)

// targetRTL is the name of hardware among targets.
const targetRTL = "rtl"

// rtlFlags are the flags of compile and check that say how hardware is made.
type rtlFlags struct {
	options rtl.Options
	names   []string // of the flags
}

func (f *rtlFlags) register(flags *pflag.FlagSet) {
	f.options = rtl.DefaultOptions()
	o := &f.options
	flags.BoolVar(&o.Faithful, "faithful", false, "for --target rtl: the rules of the paper, without passes")
	flags.BoolVar(&o.Marginals, "marginals", false, "for --target rtl: a valid bit per variable, for missing cells")
	for _, x := range []struct {
		name string
		at   *int
		doc  string
	}{
		{"table-bits", &o.TableBits, "code bits of a table, 4 to 12"},
		{"mul-stages", &o.MulStages, "pipeline stages of a multiplier, 1 to 64"},
		{"add-stages", &o.AddStages, "pipeline stages of an adder, 1 to 64"},
		{"input-bits", &o.InputBits, "bits of every column as an unsigned integer, 1 to 16; 0: as the leaves need"},
	} {
		flags.IntVar(x.at, x.name, *x.at, "for --target rtl: "+x.doc)
		f.names = append(f.names, x.name)
	}
	f.names = append(f.names, "faithful", "marginals")
}

// registerChip adds the flags of compile alone.
func (f *rtlFlags) registerChip(flags *pflag.FlagSet) {
	flags.StringVar(&f.options.Device, "device", f.options.Device, "for --target rtl: the chip, "+strings.Join(rtl.Devices(), ", "))
	flags.IntVar(&f.options.Rows, "rows", f.options.Rows, "for --target rtl: rows of the estimate of cycles")
	f.names = append(f.names, "device", "rows", "json")
}

// only fails if flags of hardware are given with another target.
func (f *rtlFlags) only(c *cobra.Command, target string) error {
	if target == targetRTL {
		return nil
	}
	for _, name := range f.names {
		if c.Flags().Changed(name) {
			return usagef("--%s is for --target rtl", name)
		}
	}
	return nil
}

// openDatapath compiles a model to a datapath. The model stays open for the caller.
func (a *app) openDatapath(path string, o rtl.Options) (*rtl.Datapath, *format.Model, *dataset.Schema, error) {
	m, schema, err := run.OpenCircuit(path)
	if err != nil {
		return nil, nil, nil, err
	}
	if m.Unchecked {
		noteUnchecked(a.stderr, path)
	}
	err = asTheyAre(schema)
	var d *rtl.Datapath
	if err == nil {
		d, err = rtl.Compile(m.Graph, m.Params64, o)
	}
	if err != nil {
		m.Close()
		return nil, nil, nil, fmt.Errorf("%s: %w", path, err)
	}
	for v := range d.Columns {
		d.Columns[v].Name, d.Columns[v].Labels = schema.Columns[v].Name, schema.Columns[v].Labels
	}
	return d, m, schema, nil
}

// asTheyAre refuses columns whose leaves read other numbers than those of the cells, which hardware takes: bins of values, and
// distances from the median.
func asTheyAre(s *dataset.Schema) error {
	for i := range s.Columns {
		c := &s.Columns[i]
		switch {
		case c.Edges != nil:
			return fmt.Errorf("%w: %s is a histogram over values that were binned in training, and hardware reads cells as they are; train with a leaf of categories or counts",
				rtl.ErrCircuit, s.ColumnName(i))
		case c.Scale != 0:
			return fmt.Errorf("%w: the leaves of %s read distances from %.6g in units of %.6g, and hardware reads cells as they are; train with a leaf of categories or counts",
				rtl.ErrCircuit, s.ColumnName(i), c.Offset, c.Scale)
		}
	}
	return nil
}

// reportJSON is the file beside the Verilog that says what the hardware takes.
const reportJSON = "report.json"

// compileRTL writes the Verilog of a model and report.json to a folder, which is made if it is not
// there; files that are there are replaced, but for the model. It prints the report.
func (a *app) compileRTL(ctx context.Context, f *compileFlags, model string) error {
	for _, name := range append(verilog.Names(), reportJSON) {
		if err := a.spare(ctx, filepath.Join(f.dir, name), model); err != nil { // a network of SPFlow may be a report.json
			return err
		}
	}
	d, m, _, err := a.openDatapath(model, f.rtl.options)
	if err != nil {
		return err
	}
	defer m.Close()
	if err := os.MkdirAll(f.dir, 0o755); err != nil {
		return fmt.Errorf("pce: %w", err)
	}
	r := d.Report(&f.rtl.options)
	files := verilog.Write(d)
	text, err := r.JSON()
	if err != nil {
		return err
	}
	for _, x := range append(slices.Clone(files), verilog.File{Name: reportJSON, Text: string(text)}) {
		err := atomicfile.Write(filepath.Join(f.dir, x.Name), 0o644, func(w io.Writer) error {
			_, err := io.WriteString(w, x.Text)
			return err
		})
		if err != nil {
			return err
		}
	}
	if f.asJSON {
		_, err = a.stdout.Write(text)
		return err
	}
	return a.printRTL(&r, f.dir)
}

func (a *app) printRTL(r *rtl.Report, dir string) error {
	percent := func(n, of int) string { return fmt.Sprintf("%.1f %% of %s", 100*float64(n)/float64(of), r.Device) }
	_, err := fmt.Fprintf(a.stdout, `operators  %s, %s, %s, %s
depth      %s, one row per cycle
row        %s, %s
estimate   %d DSP (%s), %d LUT (%s)
cycles     %d for %s
written    %s: %s, report.json
`, several(r.Multipliers, "multiplier"), several(r.Adders, "adder"), several(r.Selections, "selection"), several(r.Tables, "table"),
		several(r.Depth, "cycle"), several(r.RowBits, "bit"), several(r.RowBytes, "byte"),
		r.DSP, percent(r.DSP, r.DeviceDSP), r.LUT, percent(r.LUT, r.DeviceLUT), r.Cycles, several(r.Rows, "row"), dir, strings.Join(verilog.Names(), ", "))
	return err
}
