package dataset

import (
	"cmp"
	"context"
	"io"
	"slices"
)

// inspection is what a first reading finds out about files.
type inspection struct {
	path    string
	schema  *Schema
	rows    int
	tallies []tally // of the schema's columns
	sampled int     // numbers that a tally keeps
}

// inspect reads a whole file once and returns its schema, its rows and what was noted on its
// columns. Whether the first row is a header may be known only at the end; then it is added as
// a row or renames the columns. A column that mixes numbers and texts in a way that labels
// explain is read again, with labels.
func inspect(ctx context.Context, file file, opts *Options) (*inspection, error) {
	recs, err := file.open(ctx, opts)
	if err != nil {
		return nil, err
	}
	defer recs.Close()
	f := newInference(recs, opts)
	row := make([]Value, recs.Columns())
	rows := 0
	for ; ; rows++ {
		if rows%chunkRows == 0 && ctx.Err() != nil {
			return nil, ctx.Err()
		}
		if err := recs.Next(row); err == io.EOF {
			break
		} else if err != nil {
			return nil, err
		}
		if err := f.add(row); err != nil {
			return nil, err
		}
	}
	if c, ok := recs.(*csvRecords); ok && c.undecided {
		if c.decide(f.looksLikeHeader(c.first)) {
			f.rename(c.Names())
		} else {
			if err := f.add(c.first); err != nil {
				return nil, err
			}
			rows++
		}
	}
	if rows == 0 {
		return nil, badData(file.path, "has no rows; give a file with at least one")
	}
	if err := f.checkTypes(opts); err != nil {
		return nil, err
	}
	if cols := f.mixed(); cols != nil {
		f.warnOfNames(file.path, cols, opts)
		return inspect(ctx, file, opts.withLabels(recs, cols))
	}
	s, err := f.schema(file.path, file.format.OneDomain)
	if err != nil {
		return nil, err
	}
	if im, ok := recs.(interface{ Image() [3]int }); ok && len(s.Columns) == recs.Columns() { // no pixel is skipped
		s.Image = im.Image()
	}
	return &inspection{path: file.path, schema: s, rows: rows, tallies: f.tallies(), sampled: f.sampled}, nil
}

// inspectAll returns what is to be known of all files together, and warns of
// columns that identify rows.
func inspectAll(ctx context.Context, files []file, opts *Options) (*inspection, error) {
	var all *inspection
	for _, f := range files {
		in, err := inspect(ctx, f, opts)
		if err != nil {
			return nil, err
		}
		if all == nil {
			all = in
		} else if err := all.merge(in); err != nil {
			return nil, err
		}
	}
	if opts.Image != [3]int{} {
		all.schema.Image = opts.Image
	}
	all.path = joinNames(files)
	for i := range all.tallies {
		if err := all.tallies[i].checkCommas(); err != nil {
			return nil, err
		}
	}
	if err := all.checkLabels(); err != nil {
		return nil, err
	}
	if err := all.schema.Validate(); err != nil {
		return nil, err
	}
	all.warnOfKeys(opts)
	all.warnOfEmpty(opts)
	all.settleScales(opts)
	return all, nil
}

// checkLabels reports a column of labels that has none, and one in which numbers without text, as .npy has them, would be
// read as codes: some label is not a number, or two are the same one.
func (all *inspection) checkLabels() error {
	for i := range all.schema.Columns {
		c := &all.schema.Columns[i]
		if c.Kind == Discrete && c.Categories == 0 {
			return badData(all.path, "%s has no observed cell to take labels from; set its type to skip", all.schema.ColumnName(i))
		}
		if all.tallies[i].bare && c.Labels != nil && c.LabelNumbers() == nil {
			return badData(all.path, "%s has numbers without text, as of .npy, beside labels that are not all different numbers (%s); give all files as text, such as .csv",
				all.schema.ColumnName(i), listLabels(c.Labels))
		}
	}
	return nil
}

// warnOfKeys warns of columns without a set type whose cells are all different.
func (all *inspection) warnOfKeys(opts *Options) {
	s := all.schema
	for i := range s.Columns {
		t := &all.tallies[i]
		if t.set || !t.allDiffer() {
			continue
		}
		what := "whole numbers"
		if s.Columns[i].Labels != nil {
			what = "texts"
		}
		many := "all"
		if t.distinct.shift > 0 {
			many = "nearly all"
		}
		opts.warn(all.path, "%s holds %d %s that are %s different; if they only name the rows, set its type to skip", s.ColumnName(i), t.cells, what, many)
	}
}

// warnOfEmpty warns of columns without an observed cell and without a set type: training learns nothing of them, and what a model
// says of them is where it started.
func (all *inspection) warnOfEmpty(opts *Options) {
	var empty []string
	for i := range all.schema.Columns {
		if t := &all.tallies[i]; t.cells == 0 && !t.set {
			empty = append(empty, all.schema.ColumnName(i))
		}
	}
	switch len(empty) {
	case 0:
	case 1:
		opts.warn(all.path, "%s has no observed cell to learn from; set its type to skip to leave it out", empty[0])
	default:
		opts.warn(all.path, "%d columns have no observed cell to learn from, the first is %s; set their types to skip to leave them out", len(empty), empty[0])
	}
}

// merge widens the schema so that rows of another inspection are rows of it too,
// and adds the other's cells. A column of which one has no observed cell is as the other has it.
func (all *inspection) merge(in *inspection) error {
	s, t := all.schema, in.schema
	if len(s.Columns) != len(t.Columns) {
		return badData(in.path, "has %d columns, the first file has %d; give files of the same columns", len(t.Columns), len(s.Columns))
	}
	byName := make(map[string]int, len(t.Columns))
	for i, c := range t.Columns {
		byName[c.Name] = i
	}
	for i := range s.Columns {
		a, j := &s.Columns[i], i
		if b := &t.Columns[i]; a.Name != "" && b.Name != "" && a.Name != b.Name {
			var ok bool
			if j, ok = byName[a.Name]; !ok {
				return badData(in.path, "the header lacks %.200q, which the first file has; give files of the same columns", a.Name)
			}
		}
		b := &t.Columns[j]
		switch {
		case (a.Labels == nil) == (b.Labels == nil) || in.tallies[j].cells == 0:
		case all.tallies[i].cells == 0: // its type is a guess
			a.Labels = []string{}
		default:
			if err := cmp.Or(all.tallies[i].checkCommas(), in.tallies[j].checkCommas()); err != nil {
				return err
			}
			return badData(in.path, "%s holds texts in one file and numbers in another; set its type to label", s.ColumnName(i))
		}
		all.tallies[i].merge(&in.tallies[j], all.sampled)
		switch {
		case a.Labels != nil:
			labels := append(slices.Clone(a.Labels), b.Labels...)
			slices.Sort(labels)
			a.Labels = slices.Compact(labels)
			a.Categories = len(a.Labels)
			all.tallies[i].repeated = all.tallies[i].repeated || a.Categories < len(labels)
		case a.Kind == Continuous || b.Kind == Continuous:
			a.Kind, a.Categories = Continuous, 0
		default:
			a.Categories = max(a.Categories, b.Categories)
		}
	}
	if s.Image != t.Image {
		s.Image = [3]int{}
	}
	all.rows += in.rows
	return nil
}
