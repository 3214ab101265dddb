package main

import (
	"fmt"
	"io"

	"github.com/pce-engine/pce/circuit/format"
	"github.com/pce-engine/pce/circuit/format/spflow"
	"github.com/pce-engine/pce/run"
)

// convertCircuit writes a circuit as a reference graph of SPFlow, with all digits of its
// parameters. What the text cannot hold is refused.
func (a *app) convertCircuit(in string, out *outputFlags) error {
	m, schema, err := run.OpenCircuit(in)
	if err != nil {
		return err
	}
	defer m.Close()
	var names []string
	for i := range schema.Columns {
		c := &schema.Columns[i]
		if c.Scale != 0 || c.Edges != nil {
			return fmt.Errorf("%w: %s: %s is stored scaled or in bins, which SPFlow's text cannot say; convert a circuit over numbers as they are", format.ErrModel, in, schema.ColumnName(i))
		}
		if c.Name != "" {
			names = append(names, c.Name)
		}
	}
	if len(names) == len(schema.Columns) {
		m.Names = names
	}
	if err := a.output(out, func(w io.Writer, _ string) error { return spflow.Print(w, m) }); err != nil {
		return fmt.Errorf("%s: %w", in, err)
	}
	return nil
}
