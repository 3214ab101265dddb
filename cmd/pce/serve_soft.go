package main

import (
	"fmt"
	"math"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/serve"
	"github.com/pce-engine/pce/serve/oip"
)

// Inputs of evidence about cells that x leaves missing.
const (
	inputLow        = "low"
	inputHigh       = "high"
	inputLikelihood = "likelihood"
)

// addSoft lets a query take the inputs low, high and likelihood; most is the largest number of
// categories of a column. Likelihoods beyond those of a column are NaN or 0.
func addSoft(q *serve.Query, s *dataset.Schema, most int) {
	n := int64(len(s.Columns))
	first := len(q.Inputs)
	q.Inputs = append(q.Inputs,
		serve.Input{Name: inputLow, Datatype: oip.FP64, Shape: []int64{n}, Optional: true},
		serve.Input{Name: inputHigh, Datatype: oip.FP64, Shape: []int64{n}, Optional: true},
		serve.Input{Name: inputLikelihood, Datatype: oip.FP64, Shape: []int64{n, int64(most)}, Optional: true})
	own := q.Check
	q.Check = func(rows int, inputs [][]float64) error {
		if own != nil {
			if err := own(rows, inputs); err != nil {
				return err
			}
		}
		return eachSoft(s, rows, inputs[first:], func(row, column int, _ *dataset.Evidence, err error) error {
			if err != nil {
				return fmt.Errorf("row %d, %s: %w", row, s.ColumnName(column), err)
			}
			return nil
		})
	}
}

// eachSoft calls do with the evidence about each cell that the inputs low, high and likelihood
// say something of, or with what is wrong with it.
func eachSoft(s *dataset.Schema, rows int, inputs [][]float64, do func(row, column int, e *dataset.Evidence, err error) error) error {
	low, high, likelihood := inputs[0], inputs[1], inputs[2]
	if low == nil && high == nil && likelihood == nil {
		return nil
	}
	columns := len(s.Columns)
	at := func(x []float64, i int) float64 {
		if x == nil {
			return math.NaN()
		}
		return x[i]
	}
	for i := range rows * columns {
		row, v := i/columns, i%columns
		c := &s.Columns[v]
		from, to := at(low, i), at(high, i)
		var of []float64
		if likelihood != nil {
			most := len(likelihood) / (rows * columns)
			if of = likelihood[i*most : (i+1)*most]; allNaN(of) {
				of = nil
			}
		}
		var e *dataset.Evidence
		var err error
		switch {
		case of != nil && (from == from || to == to):
			err = fmt.Errorf("%s beside %s or %s; give one of them", inputLikelihood, inputLow, inputHigh)
		case of != nil:
			e, err = likelihoods(c, of)
		case from == from || to == to:
			if from != from {
				from = math.Inf(-1)
			}
			if to != to {
				to = math.Inf(1)
			}
			if math.IsInf(from, -1) && math.IsInf(to, 1) {
				continue
			}
			e, err = c.RangeEvidence(from, to)
		default:
			continue
		}
		if err := do(row, v, e, err); err != nil {
			return err
		}
	}
	return nil
}

func allNaN(x []float64) bool {
	for _, v := range x {
		if v == v {
			return false
		}
	}
	return true
}

// likelihoods makes evidence of those of a column's categories, behind which there is nothing.
func likelihoods(c *dataset.Column, of []float64) (*dataset.Evidence, error) {
	n := min(c.Categories, len(of))
	if c.Kind == dataset.Discrete {
		for _, x := range of[n:] {
			if x == x && x != 0 {
				return nil, fmt.Errorf("a %s beyond the %d categories; write NaN there", inputLikelihood, n)
			}
		}
		of = of[:n]
	}
	return c.LikelihoodEvidence(of)
}

// soften puts what the inputs low, high and likelihood say into the missing cells of the rows,
// as soft evidence; observed cells stay what they are. It is called for every query of a server
// with --soft, before the query runs, and does nothing where the query does not take these
// inputs. Equal evidence of a column is kept once. The server has checked the inputs when the
// request came, so evidence that is not valid here is a bug.
func (c *servedCircuit) soften(w *serve.Work, inputs []serve.Input) {
	n := len(inputs) - 3
	if n < 0 || inputs[n].Name != inputLow {
		return
	}
	s := c.Schema()
	known := make([]map[string]uint32, len(s.Columns)) // evidence → 1 + place in the column's list
	err := eachSoft(s, w.Batch.Rows, w.Inputs[n:], func(row, v int, e *dataset.Evidence, err error) error {
		cells := &w.Batch.Columns[v]
		if err != nil || !cells.IsMissing(row) {
			return err
		}
		if known[v] == nil {
			known[v] = make(map[string]uint32)
			cells.Soft = dataset.SoftCells{Of: make([]uint32, w.Batch.Rows)}
		}
		key := e.Key()
		if known[v][key] == 0 {
			cells.Soft.List = append(cells.Soft.List, e)
			known[v][key] = uint32(len(cells.Soft.List))
		}
		cells.Soft.Of[row] = known[v][key]
		return nil
	})
	if err != nil {
		panic("BUG: cmd/pce: evidence that was checked: " + err.Error())
	}
}
