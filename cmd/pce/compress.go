package main

import (
	"bufio"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/codec"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// codecFlags are the flags and arguments of compress and decompress.
type codecFlags struct {
	model   string
	in      string
	out     outputFlags
	asJSON  bool
	restore bool
}

// codecReport is what both commands print with --json.
type codecReport struct {
	Rows     int64 `json:"rows"`
	Literals int64 `json:"literals"` // records that are not rows of the model
	Content  int64 `json:"content_bytes"`
	Stored   int64 `json:"compressed_bytes"`
}

func (a *app) compressCommand() *cobra.Command {
	return a.codecCommand("compress", "Compress rows without loss by a model's conditional probabilities", false)
}

func (a *app) decompressCommand() *cobra.Command {
	return a.codecCommand("decompress", "Restore, byte by byte, what compress was given", true)
}

// codecCommand makes the commands pce compress and pce decompress, which differ by their
// direction alone. What cannot work is refused before the model is read: --json together with
// output to stdout, a file that exists without --force, and a .gz name for what would not be
// packed.
func (a *app) codecCommand(name, short string, restore bool) *cobra.Command {
	f := codecFlags{restore: restore}
	c := &cobra.Command{
		Use:   name + " --model MODEL IN OUT",
		Short: short,
		Args:  cobra.ExactArgs(2),
		RunE: func(cmd *cobra.Command, args []string) error {
			f.in, f.out.path = args[0], args[1]
			if f.model == "" {
				return usagef("no --model; give a model file, such as model.safetensors of a run")
			}
			if f.asJSON && f.out.stdout() {
				return usagef("--json and OUT - both write to stdout; name a file")
			}
			if restore && strings.HasSuffix(strings.ToLower(f.out.path), ".gz") {
				return usagef("%s: what is restored is not packed by gzip; name the file without .gz", f.out.path)
			}
			if err := a.checkOutput(cmd.Context(), &f.out, f.model, f.in); err != nil {
				return err
			}
			return a.code(cmd.Context(), &f)
		},
	}
	c.Flags().StringVar(&f.model, "model", "", "model file")
	c.Flags().BoolVar(&f.out.force, "force", false, "replace OUT if there is such a file")
	c.Flags().BoolVar(&f.asJSON, "json", false, "print one JSON object")
	return c
}

// code compresses or restores a file, or standard input. The output appears whole or not at
// all. Damaged files, and rows that the model does not know, are errors with the name of the
// input.
func (a *app) code(ctx context.Context, f *codecFlags) (err error) {
	m, err := a.codecModel(f.model)
	if err != nil {
		return err
	}
	in := a.stdin
	if f.in != "-" {
		defer func() { // a read that ended with the context looks like damage of the file
			if why := ctx.Err(); why != nil && err != nil {
				err = fmt.Errorf("%s: %w", f.in, why)
			}
		}()
		file, err := dataset.OpenPath(ctx, f.in)
		if err != nil {
			return fmt.Errorf("%w; check the path", err)
		}
		defer file.Close()
		in = file
	}
	var stats codec.Stats
	err = a.output(ctx, &f.out, func(w io.Writer, _ string) (err error) {
		if f.restore {
			stats, err = m.Decompress(ctx, w, in)
			return err
		}
		plain, err := unpacked(in)
		if err != nil {
			return err
		}
		stats, err = m.Compress(ctx, w, plain)
		return err
	})
	if err != nil {
		if errors.Is(err, codec.ErrFile) || errors.Is(err, codec.ErrModel) || errors.Is(err, codec.ErrRows) {
			err = fmt.Errorf("%w (%s)", err, f.in)
		}
		return err
	}
	return a.reportCode(f, &stats)
}

// codecModel reads a model for coding.
func (a *app) codecModel(path string) (*codec.Model, error) {
	file, schema, err := run.OpenCircuit(path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if file.Unchecked {
		noteUnchecked(a.stderr, path)
	}
	m, err := codec.New(file.Graph, file.Params, schema)
	if errors.Is(err, format.ErrNoParams) { // perhaps of nodes that the root does not reach, which have no part in the codes
		m, err = newReached(file, schema)
	}
	if err != nil {
		return nil, fmt.Errorf("%w (%s)", err, path)
	}
	return m, nil
}

// newReached is codec.New for the part of a circuit that its root reaches.
func newReached(file *format.Model, schema *dataset.Schema) (*codec.Model, error) {
	g, params := circuit.Reached(file.Graph, file.Params)
	return codec.New(g, params, schema)
}

// unpacked reads what is in r, or what gzip has packed in it.
func unpacked(r io.Reader) (io.Reader, error) {
	b := bufio.NewReaderSize(r, 1<<16)
	if start, err := b.Peek(2); err != nil || string(start) != "\x1f\x8b" {
		return b, nil // an error comes again with the first read
	}
	z, err := gzip.NewReader(b)
	if err != nil {
		return nil, badGzip(err)
	}
	return gzipRows{z}, nil
}

// gzipRows are rows that are unpacked while they are read. What damage there is shows at the
// latest behind the last one, where their checksum is.
type gzipRows struct{ z *gzip.Reader }

func (g gzipRows) Read(p []byte) (int, error) {
	n, err := g.z.Read(p)
	if err != nil && err != io.EOF {
		err = badGzip(err)
	}
	return n, err
}

// badGzip is the error of a file that gzip cannot unpack.
func badGzip(err error) error {
	return fmt.Errorf("%w: %w; the file is damaged or cut short, get it again", codec.ErrRows, err)
}

func (a *app) reportCode(f *codecFlags, s *codec.Stats) error {
	if s.Literals > 0 && !f.restore {
		if _, err := fmt.Fprintf(a.stderr, "note: %d of %d records are stored as text, since they are not rows of the model; the first is record %d: %s\n",
			s.Literals, s.Literals+s.Rows, s.FirstLiteral, s.Problem); err != nil {
			return err
		}
	}
	if f.asJSON {
		return a.printJSON(codecReport{s.Rows, s.Literals, s.Content, s.Stored})
	}
	from, to := s.Content, s.Stored
	if f.restore {
		from, to = to, from
	}
	_, err := fmt.Fprintf(a.stderr, "%s, %s to %d\n", several(s.Rows, "row"), several(from, "byte"), to)
	return err
}
