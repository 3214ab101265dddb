package main

import (
	"context"
	"fmt"

	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
)

// datasetOptions says to package dataset what the config says of data. schema
// is what the rows must be; nil lets the files tell. Warnings go to stderr.
func (a *app) datasetOptions(d *configs.Data, schema *dataset.Schema) (dataset.Options, error) {
	o := dataset.Options{
		Schema:  schema,
		Header:  dataset.Header(d.Header),
		Missing: d.Missing,
		Image:   imageShape(d.Image),
		Warn:    func(warning string) { a.tell("warning: %s", warning) },
		Text: dataset.Text{
			Unit:       dataset.Unit(d.Text.Unit),
			Length:     d.Text.Length,
			Vocabulary: d.Text.Vocabulary,
			MaxBytes:   int64(d.Text.MaxBytes),
		},
	}
	if d.Text.Unit == "auto" {
		o.Text.Unit = ""
	}
	for _, c := range d.Columns {
		if c.Type == "" {
			continue // it has a leaf alone
		}
		spec := c.Type
		if c.Categories > 0 {
			spec = fmt.Sprintf("%s:%d", c.Type, c.Categories)
		}
		t, err := dataset.ParseType(spec)
		if err != nil {
			return o, fmt.Errorf("%w, for column %q of data.columns", err, c.Name)
		}
		if o.Types == nil {
			o.Types = map[string]dataset.Type{}
		}
		o.Types[c.Name] = t
	}
	return o, nil
}

// imageShape completes [height, width] by one channel; an empty shape is zeros.
func imageShape(shape []int) [3]int {
	var s [3]int
	if copy(s[:], shape) == 2 {
		s[2] = 1
	}
	return s
}

// queryOptions is datasetOptions for the rows of a query: a file may lack columns
// of the model, and - is standard input.
func (a *app) queryOptions(d *configs.Data, schema *dataset.Schema) (dataset.Options, error) {
	o, err := a.datasetOptions(d, schema)
	o.Partial, o.Stdin = true, a.stdin
	return o, err
}

// openRows loads the rows of a split; schema as in datasetOptions.
func (a *app) openRows(ctx context.Context, d *configs.Data, paths configs.Paths, schema *dataset.Schema) (dataset.Source, error) {
	o, err := a.datasetOptions(d, schema)
	if err != nil {
		return nil, err
	}
	return a.openAll(ctx, paths, o)
}

// openAll loads the rows of paths, which may start with $GOROOT.
func (a *app) openAll(ctx context.Context, paths []string, o dataset.Options) (dataset.Source, error) {
	files, err := a.expandPaths(ctx, paths)
	if err != nil {
		return nil, err
	}
	return dataset.OpenAll(ctx, files, o)
}
