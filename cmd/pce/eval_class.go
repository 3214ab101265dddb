package main

import (
	"context"
	"fmt"
	"io"
	"math"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// classification is what pce eval --class prints. Accuracy and the mean are of the rows that name their class.
type classification struct {
	Rows       int      `json:"rows"`
	Classified int      `json:"classified"` // rows that name their class
	Right      int      `json:"right"`      // of these, rows whose likeliest class it is
	Accuracy   *float64 `json:"accuracy"`   // nil without such rows
	ClassLL    *float64 `json:"class_ll"`   // mean of log p(class | other cells), in nats; nil: -Inf, or none
	Warnings   []string `json:"warnings,omitempty"`
}

// classify compares the classes of the rows of a command with those that a model finds likeliest given the other cells.
func (a *app) classify(ctx context.Context, f *queryFlags, m *pce.Model, class string) (*classification, error) {
	q, err := m.NewQuery(pce.QueryClass, class)
	if err != nil {
		return nil, err
	}
	s, column := m.Schema(), q.Columns[0]
	given := pce.Query{Kind: pce.QueryLogLikelihood}
	for v := range s.Columns {
		if v != column {
			given.Columns = append(given.Columns, v)
		}
	}
	q.All = true
	width := q.Width(s)
	var c classification
	var tally em.Tally
	first := 0 // row of probability 0 with its class, counted from 1
	most := min(rowsAtOnce(s), max(1, readCells/width))
	err = a.eachBatch(ctx, f, m, most, func(b *dataset.Batch) error {
		p, err := m.Answer(ctx, q, b)
		if err != nil {
			return err
		}
		ll, err := m.Answer(ctx, &given, b)
		if err != nil {
			return err
		}
		c.Rows += b.Rows
		for i := range b.Rows {
			code := b.Columns[column].Codes.At(i)
			if code == dataset.Missing {
				continue
			}
			c.Classified++
			if run.Likeliest(p[i*width:][:width]) == code {
				c.Right++
			}
			if math.IsNaN(ll[i]) { // the other cells are impossible
				ll[i] = math.Inf(-1)
			}
			if first == 0 && math.IsInf(ll[i], -1) {
				first = c.Rows - b.Rows + i + 1
			}
			tally.Add(ll[i])
		}
		return nil
	})
	if err != nil || c.Classified == 0 {
		return &c, err
	}
	e := tally.Evaluation()
	accuracy := float64(c.Right) / float64(c.Classified)
	c.Accuracy = &accuracy
	if mean := e.Mean(); !math.IsInf(mean, 0) {
		c.ClassLL = &mean
	} else if e.Impossible > 0 {
		have, whose := several(e.Impossible, "row")+" have", "their"
		if e.Impossible == 1 {
			have, whose = "1 row has", "its"
		}
		c.Warnings = append(c.Warnings, fmt.Sprintf("the mean of log p(class) is -Inf, since %s probability 0 with %s class, the first is row %d: look at its cells, or train with a larger pseudocount or other leaves",
			have, whose, first))
	}
	return &c, nil
}

// print writes a classification for people.
func (c *classification) print(w io.Writer) error {
	text := fmt.Sprintf("rows                %d, %d of them with a class\n", c.Rows, c.Classified)
	if c.Accuracy != nil {
		text += fmt.Sprintf("accuracy            %.6g\nlog p(class)        %s nats per row\n", *c.Accuracy, orInfinite(c.ClassLL, "-inf"))
	}
	_, err := io.WriteString(w, text)
	return err
}
