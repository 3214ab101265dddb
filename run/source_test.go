package run_test

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// wrongSource is a source whose batches or number of rows are not what they have to be.
type wrongSource struct {
	dataset.Source
	gather func(ctx context.Context, src dataset.Source, b *dataset.Batch, rows []int) error
	rows   func(n int) int
	asked  int
}

func (w *wrongSource) Rows() int {
	if w.rows == nil {
		return w.Source.Rows()
	}
	w.asked++
	return w.rows(w.asked)
}

func (w *wrongSource) Gather(ctx context.Context, b *dataset.Batch, rows []int) error {
	if w.gather == nil {
		return w.Source.Gather(ctx, b, rows)
	}
	return w.gather(ctx, w.Source, b, rows)
}

// schemaless is a source without a schema.
type schemaless struct{ dataset.Source }

func (schemaless) Schema() *dataset.Schema { return nil }

// TestWrongSource trains on sources of a program that do not keep what dataset.Source says. Each is an error that says so,
// but for a source that has other rows than when it was opened: the run has those from then on.
func TestWrongSource(t *testing.T) {
	own, err := dataset.Open(t.Context(), "builtin:random?rows=200&vars=16&categories=2", dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	other, err := dataset.Open(t.Context(), "builtin:random?rows=200&vars=15&categories=2", dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	type batch = dataset.Batch
	for _, tc := range []struct {
		name string
		src  dataset.Source
		want error
		says string
	}{
		{"right", &wrongSource{Source: own}, nil, ""},
		{"none", nil, run.ErrOptions, "without a source"},
		{"no schema", schemaless{own}, run.ErrOptions, "without a schema"},
		{"half of the rows", &wrongSource{Source: own, gather: func(ctx context.Context, src dataset.Source, b *batch, rows []int) error {
			return src.Gather(ctx, b, rows[:len(rows)/2])
		}}, dataset.ErrFormat, "where 200 were asked for"},
		{"nothing", &wrongSource{Source: own, gather: func(context.Context, dataset.Source, *batch, []int) error { return nil }}, dataset.ErrFormat, "gave 0 rows"},
		{"other columns", &wrongSource{Source: own, gather: func(ctx context.Context, _ dataset.Source, b *batch, rows []int) error {
			return other.Gather(ctx, b, rows)
		}}, dataset.ErrFormat, "want 16 columns"},
		{"values for codes", &wrongSource{Source: own, gather: func(_ context.Context, _ dataset.Source, b *batch, rows []int) error {
			b.Rows, b.Columns = len(rows), make([]dataset.Cells, 16)
			for v := range b.Columns {
				b.Columns[v].Values = make([]float32, len(rows))
			}
			return nil
		}}, dataset.ErrFormat, "codes where its schema has values"},
		{"longer than asked for", &wrongSource{Source: own, gather: func(ctx context.Context, src dataset.Source, b *batch, rows []int) error {
			if err := src.Gather(ctx, b, append(slices.Clone(rows), rows...)); err != nil {
				return err
			}
			b.Rows = len(rows)
			return nil
		}}, nil, ""},
		{"a table that is nil", (*dataset.Table)(nil), run.ErrOptions, "without a source"},
		{"endless", &wrongSource{Source: own, rows: func(int) int { return 1 << 50 }}, run.ErrOptions, "1125899906842624 rows"},
		{"fewer than none", &wrongSource{Source: own, rows: func(int) int { return -1 }}, run.ErrOptions, "-1 rows"},
		{"fewer rows each time", &wrongSource{Source: own, rows: func(asked int) int { return 201 - asked }}, nil, ""},
	} {
		o := small(t, "hclt")
		o.Train, o.Valid, o.Test, o.Samples = run.Table(tc.src), nil, nil, 0
		if _, err := run.Train(t.Context(), o); !errors.Is(err, tc.want) || err != nil && !strings.Contains(err.Error(), tc.says) {
			t.Errorf("%s: %v, want %v with %q", tc.name, err, tc.want, tc.says)
		}
		o.Train = func(context.Context, *dataset.Schema) (dataset.Source, error) { return tc.src, nil }
		o.Dir = t.TempDir()
		if _, err := run.Train(t.Context(), o); !errors.Is(err, tc.want) {
			t.Errorf("%s, opened by a function: %v, want %v", tc.name, err, tc.want)
		}
	}
}

// TestTrainTables evaluates a circuit of scaled numbers on tables of a program: one whose numbers are all whole was read as
// categories, and its codes mean the numbers that they are, as those of the same file do that is read as the circuit says.
func TestTrainTables(t *testing.T) {
	path := codesFile(t, 30, 60)
	table, err := dataset.Open(t.Context(), path, dataset.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if table.Schema().Columns[0].Kind != dataset.Discrete {
		t.Fatal("the column is continuous already; the test compares nothing")
	}
	var text strings.Builder
	for i := range 60 {
		fmt.Fprintf(&text, "%v,%v,%v,%v\n", 30+i%31, 30.5+float64(i*i%31), 30+i*7%31, 40.25+float64(i%10))
	}
	train := filepath.Join(t.TempDir(), "numbers.csv")
	if err := os.WriteFile(train, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, leaf := range []string{"gaussian", "histogram"} {
		o := onRows(t, "hclt", leaf, train)
		o.Structure.Leaf.Outside = 1e-3
		o.Valid, o.Test = run.Table(table), run.Files(path)
		r, err := run.Train(t.Context(), o)
		if err != nil {
			t.Fatal(err)
		}
		if !(math.Abs(r.ValidLL-r.TestLL) <= 1e-9) {
			t.Errorf("%s: the rows of a table have log-likelihood %v, those of its file %v", leaf, r.ValidLL, r.TestLL)
		}
	}
}

// TestValidOnce reads the rows of validation once, although those of a search choose the structure and are those that training looks at,
// too: a named pipe has them once.
func TestValidOnce(t *testing.T) {
	o, reads := small(t, "learnspn"), 0
	valid := o.Valid
	o.Structure.LearnSPN.Search = true
	o.Valid = func(ctx context.Context, s *dataset.Schema) (dataset.Source, error) {
		reads++
		return valid(ctx, s)
	}
	r, err := run.Train(t.Context(), o)
	if err != nil || math.IsNaN(r.ValidLL) || reads != 1 {
		t.Errorf("%d reads, %v", reads, err)
	}
}
