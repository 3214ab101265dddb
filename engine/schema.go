package engine

import (
	"fmt"

	"github.com/pce-engine/pce/dataset"
)

// describe takes what the engine needs to know of a schema, which may be nil.
func (e *Engine) describe(s *dataset.Schema) error {
	if s == nil {
		return nil
	}
	if len(s.Columns) != e.prog.NumVars {
		return fmt.Errorf("%w: a schema of %d columns for a program of %d variables", dataset.ErrSetting, len(s.Columns), e.prog.NumVars)
	}
	e.schema, e.logScales, e.bins = s, logScales(s), binsOf(s)
	return nil
}

// columnName is how messages name a variable: as the schema does, which counts columns without a name from 1.
func (e *Engine) columnName(variable int) string {
	if e.schema == nil {
		return fmt.Sprintf("column %d", variable+1)
	}
	return e.schema.ColumnName(variable)
}

// logScales returns LogScale of every column, nil if all are 0.
func logScales(s *dataset.Schema) []float64 {
	logs, any := make([]float64, len(s.Columns)), false
	for i := range logs {
		logs[i] = s.Columns[i].LogScale()
		any = any || logs[i] != 0
	}
	if !any {
		return nil
	}
	return logs
}
