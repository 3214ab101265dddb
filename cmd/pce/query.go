package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/internal/atomicfile"
)

func (a *app) queryCommand() *cobra.Command {
	c := &cobra.Command{Use: "query", Short: "Ask a model about rows"}
	c.AddCommand(a.queryLoglikCommand(), a.queryConditionalCommand(), a.queryMPECommand(), a.queryMomentsCommand(), a.queryExpectCommand(), a.queryQuantilesCommand(), a.queryClassifyCommand(), a.querySampleCommand(), a.queryEntropyCommand(), a.queryKLCommand())
	return c
}

// outputFlags say where the result of a query goes.
type outputFlags struct {
	path  string
	force bool
}

// What becomes of a result without a file: of answers, and of rows of the model, which may be text.
const (
	answersToStdout = "without it, or with -, CSV goes to stdout"
	rowsToStdout    = "without it, or with -, CSV goes to stdout; without it, rows of text are printed as plain text instead"
)

// register declares --out, with the formats of files and what goes to stdout.
func (f *outputFlags) register(flags *pflag.FlagSet, formats, stdout string) {
	flags.StringVar(&f.path, "out", "", "file to write: "+formats+"; "+stdout)
	flags.BoolVar(&f.force, "force", false, "replace the file of --out if there is one")
}

// checkOutput refuses, before any work is done, to write to a folder, or in one that is missing, to replace a file without --force, and to replace
// one of the files that are read in any case. A terminal may be read and written.
func (a *app) checkOutput(ctx context.Context, f *outputFlags, inputs ...string) error {
	if f.stdout() {
		return nil
	}
	info, err := os.Stat(f.path)
	switch {
	case err == nil && info.IsDir():
		return usagef("%s is a folder; name a file in it", f.path)
	case err == nil && info.Mode().IsRegular() && !f.force:
		return usagef("%s exists; name another file, or replace it with --force", f.path)
	case err == nil && info.Mode().IsRegular():
		return a.spare(ctx, f.path, inputs...)
	case errors.Is(err, fs.ErrNotExist): // of the file; without its folder it could not be written when all is computed
		if _, err := os.Stat(filepath.Dir(f.path)); err != nil {
			return fmt.Errorf("pce: %w; make the folder of %s, or name a file elsewhere", err, f.path)
		}
	}
	return nil
}

// spare refuses to replace a file that is read: one of the inputs, or a file that one of them means as a path of rows,
// which may be a folder or a pattern.
func (a *app) spare(ctx context.Context, file string, inputs ...string) error {
	paths, err := a.expandPaths(ctx, inputs)
	if err == nil && dataset.Means(paths, file) {
		err = usagef("%s is read, and would be replaced; name another file for the output", file)
	}
	return err
}

func (f *outputFlags) stdout() bool { return f.path == "" || f.path == "-" }

// named returns the name by whose ending the format of a result is chosen. A device or a pipe without an ending, such as /dev/stdout and
// what a shell gives for >(...), gets what stdout gets.
func (f *outputFlags) named(stdout string) string {
	if info, err := os.Stat(f.path); f.stdout() || err == nil && !info.Mode().IsRegular() && filepath.Ext(f.path) == "" {
		return stdout
	}
	return f.path
}

// rowsName is the name by whose extension rows on stdout are written: text as people
// read it, unless - asks for CSV.
func (f *outputFlags) rowsName(s *dataset.Schema) string {
	if f.path == "" && s.Unit != "" {
		return "stdout.txt"
	}
	return "stdout.csv"
}

// output writes a result to a file, which appears whole or not at all, or as
// CSV to stdout. write learns the name for the format.
func (a *app) output(ctx context.Context, f *outputFlags, write func(w io.Writer, name string) error) error {
	name := f.named("stdout.csv")
	if f.stdout() {
		return write(a.stdout, name)
	}
	return atomicfile.WriteContext(ctx, f.path, 0o644, func(w io.Writer) error { return write(w, name) })
}
