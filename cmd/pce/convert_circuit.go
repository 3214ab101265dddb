package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"strings"

	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/juice"
	"github.com/pce-engine/pce/circuit/format/spflow"
	"github.com/pce-engine/pce/circuit/format/spnc"
	"github.com/pce-engine/pce/run"
)

// circuitWriters write a circuit as files with an ending have it, and return what is not kept.
var circuitWriters = map[string]func(w io.Writer, m *format.Model) (lost []string, err error){
	".spn":  spflow.Print,
	".bin":  spnc.Write,
	".bspn": spnc.Write,
	".jpc":  juice.Write,
}

// circuitWriter returns the writer for a path, nil if its ending names none.
func circuitWriter(path string) func(w io.Writer, m *format.Model) (lost []string, err error) {
	return circuitWriters[strings.ToLower(filepath.Ext(path))]
}

// nativeName refuses a name that promises another format, for commands that write native model files alone.
func nativeName(path string) error {
	if circuitWriter(path) != nil {
		return usagef("%s: a model file of pce would be written under this name; name one that ends in .safetensors, and have pce convert write %s from it", path, filepath.Ext(path))
	}
	return nil
}

// convertCircuit writes a circuit in the format of the output's ending, with all digits of its
// parameters. What the format cannot hold is refused, as is what could not be read again; what it
// leaves out is noted.
func (a *app) convertCircuit(ctx context.Context, in string, out *outputFlags) error {
	m, schema, err := run.OpenCircuit(in)
	if err != nil {
		return err
	}
	defer m.Close()
	if m.Unchecked {
		noteUnchecked(a.stderr, in)
	}
	var names, labelled []string
	named := false
	for i := range schema.Columns {
		c := &schema.Columns[i]
		if c.Scale != 0 || c.Edges != nil {
			return fmt.Errorf("%w: %s: %s is stored scaled or in bins, which the format cannot say; convert a circuit over numbers as they are", format.ErrModel, in, schema.ColumnName(i))
		}
		names, named = append(names, c.Name), named || c.Name != ""
		if c.Labels != nil {
			labelled = append(labelled, schema.ColumnName(i))
		}
	}
	if named {
		m.Names = names
	}
	var lost []string
	err = a.output(ctx, out, func(w io.Writer, _ string) (err error) {
		var b bytes.Buffer
		if lost, err = circuitWriter(out.path)(&b, m); err != nil {
			return err
		}
		if _, err := format.Decode(bytes.NewReader(b.Bytes()), int64(b.Len())); err != nil {
			return fmt.Errorf("what %s would have cannot be read again: %w; write another format", out.path, err)
		}
		_, err = w.Write(b.Bytes())
		return err
	})
	if err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	if len(labelled) > 0 { // as no format has
		lost = append(lost, "the texts of the categories of "+strings.Join(labelled, ", "))
	}
	for _, mark := range schema.Missing { // a number like others then, with a probability of its own
		lost = append(lost, fmt.Sprintf("that %q marks missing cells", mark))
	}
	if len(lost) > 0 {
		return a.tell("note: %s does not keep %s", out.path, strings.Join(lost, ", "))
	}
	return nil
}
