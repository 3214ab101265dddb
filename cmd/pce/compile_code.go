package main

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pce-engine/pce/compile"
	"github.com/pce-engine/pce/compile/spn"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels/ptx"
	"github.com/pce-engine/pce/kernels/ptx/scalar"
	"github.com/pce-engine/pce/kernels/simt"
	"github.com/pce-engine/pce/kernels/x86"
	"github.com/pce-engine/pce/run"
)

// Forms of a circuit's code that compile --emit prints.
const (
	formHiSPN = "hispn"
	formLoSPN = "lospn"
	formSIMT  = "simt"
	formPTX   = "ptx"
)

var circuitForms = []string{formHiSPN, formLoSPN, formSIMT, formPTX}

// targetX86 is the name of the CPU's machine code among targets.
const targetX86 = "x86"

// codeFlags are the flags of compile that say how a circuit's code becomes kernels.
type codeFlags struct {
	path    pathFlag
	options scalar.Options
	names   []string // of the flags
}

func (f *codeFlags) register(flags *pflag.FlagSet) {
	own := pflag.NewFlagSet("code", pflag.ContinueOnError)
	f.path.register(own)
	own.IntVar(&f.options.Threads, "block", 0, "for --path code: threads of a block, 32, 64, 128, 256 or 512; 0: as the model of costs says")
	own.IntVar(&f.options.Cascade, "cascade", 0, "for --path code: tables of at most N elements are selections; 0: as the model of costs says, -1: none")
	own.IntVar(&f.options.Part, "max-task-size", 0, fmt.Sprintf("for --path code: most instructions of a kernel; 0: %d", scalar.DefaultPart))
	own.VisitAll(func(x *pflag.Flag) { f.names = append(f.names, x.Name) })
	flags.AddFlagSet(own)
}

// given returns the first of the flags that was given, "" if none was.
func (f *codeFlags) given(c *cobra.Command) string {
	for _, name := range f.names {
		if c.Flags().Changed(name) {
			return name
		}
	}
	return ""
}

// open opens the model of a command line that may want code. It returns nil where the model
// takes the tensor path.
func (f *codeFlags) open(c *cobra.Command, emit, model string) (*run.Blueprint, error) {
	how, err := f.path.how()
	if err != nil {
		return nil, err
	}
	if emit != "" {
		if how.Path == run.PathTensor {
			return nil, usagef("--emit of a circuit is for the path of code")
		}
		how.Path = run.PathCode
	}
	b, err := run.OpenModelFor(how, model, compile.Options{})
	if err != nil || b.Code != nil {
		return b, err
	}
	b.Close()
	for _, name := range []string{"block", "cascade", "max-task-size"} {
		if c.Flags().Changed(name) {
			return nil, usagef("--%s is for --path code; the model takes the tensor path", name)
		}
	}
	return nil, nil
}

// unused refuses flags that the form of a circuit's code does not depend on.
func (f *codeFlags) unused(c *cobra.Command, emit string) error {
	var names []string
	switch {
	case emit == "":
		return nil
	case emit == formHiSPN || emit == formSIMT:
		names = []string{"arch", "block", "cascade", "max-task-size"}
	case emit == formLoSPN:
		names = []string{"arch", "block", "cascade"}
	}
	for _, name := range append(names, "output") {
		if c.Flags().Changed(name) {
			return usagef("--%s does not change what --emit %s prints; leave it out", name, emit)
		}
	}
	return nil
}

// compileCode writes the kernels of a circuit's code to a folder, or prints a form of it. Both have the programs for rows that are
// computed twice, too.
func (a *app) compileCode(f *compileFlags, b *run.Blueprint) error {
	o := f.code.options
	capability, known := architectures[f.arch]
	if !known {
		return usagef("--arch %s: want sm_80 or sm_90", f.arch)
	}
	o.Major = capability[0]
	switch f.emit {
	case formHiSPN:
		_, err := io.WriteString(a.stdout, b.Code.HiSPN(storedUnits(b.Schema)...))
		return err
	case formLoSPN:
		return a.printLoSPN(f, b, o)
	case formSIMT:
		var texts []string
		for p := b.Code; p != nil; p = p.Exact {
			texts = append(texts, p.Module.Text())
		}
		_, err := io.WriteString(a.stdout, strings.Join(texts, "\n"))
		return err
	}
	text, err := kernelsOf(b.Code.Module, o, "")
	if err != nil {
		return err
	}
	prefix := ""
	for p := b.Code.Exact; p != nil; p = p.Exact {
		prefix += "exact_"
		exact, err := kernelsOf(p.Module, o, prefix)
		if err != nil {
			return err
		}
		text.Kernels = append(text.Kernels, exact.Kernels...)
	}
	if f.emit == formPTX {
		_, err := a.stdout.Write(text.Text())
		return err
	}
	return a.writeKernels(text, f.dir)
}

// storedUnits lists the columns whose cells are not stored as rows have them.
func storedUnits(s *dataset.Schema) (units []spn.Units) {
	for v := range s.Columns {
		if c := &s.Columns[v]; c.Scale != 0 {
			units = append(units, spn.Units{Variable: v, Offset: c.Offset, Scale: c.Scale})
		}
	}
	return units
}

// printLoSPN prints the code of a circuit in the tasks of a target: the parts of machine code, or the kernels of a card.
func (a *app) printLoSPN(f *compileFlags, b *run.Blueprint, o scalar.Options) error {
	if most := o.Part; most < 0 || most > 0 && most < 16 {
		return usagef("--max-task-size %d: want at least 16", most)
	}
	var failed error
	text := b.Code.LoSPN(func(m *simt.Module) spn.Tasks {
		if f.target == targetX86 {
			return spn.SplitTasks(m, cmp.Or(o.Part, x86.DefaultPart))
		}
		of, places, err := scalar.Cut(m, o)
		if err != nil {
			failed = fmt.Errorf("%w: %w", errUsage, err)
			return spn.Tasks{}
		}
		return spn.Tasks{Of: of, Kept: func(v simt.Value) string {
			if places[v] < 0 {
				return ""
			}
			return fmt.Sprintf("scratch[%d]", places[v])
		}}
	})
	if failed != nil {
		return failed
	}
	_, err := io.WriteString(a.stdout, text)
	return err
}

// kernelsOf lowers a module, and puts a prefix in front of the names of its kernels.
func kernelsOf(m *simt.Module, o scalar.Options, prefix string) (*ptx.Module, error) {
	p, err := scalar.Lower(m, o)
	if err != nil {
		return nil, fmt.Errorf("%w: %w", errUsage, err)
	}
	for _, k := range p.Text.Kernels {
		k.Name = prefix + k.Name
	}
	return p.Text, nil
}
