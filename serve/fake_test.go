package serve

import (
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/serve/oip"
)

// fakeModel answers with numbers that can be foretold from a row: log_prob is minus
// the sum of its observed cells, plus a hundredth for each missing one.
type fakeModel struct {
	schema  *dataset.Schema
	bytes   int64
	device  string
	took    time.Duration // of a batch
	perRow  time.Duration // that a batch takes further
	gate    chan struct{} // if not nil, a batch takes one value before it answers
	began   chan int      // if not nil, gets the rows of each batch that begins
	fail    error
	panics  bool
	silent  bool    // batches are answered with what is there
	refuses float64 // a batch that has it in column b is refused; 0: none is
	more    []Query // which answer answers
	answer  func(ctx context.Context, w *Work) error
	closed  atomic.Int64
	runs    atomic.Int64

	mu      sync.Mutex
	batches [][]Part
}

// fakeSchema has four discrete columns, one of them with labels, and a continuous one.
func fakeSchema() *dataset.Schema {
	return &dataset.Schema{Columns: []dataset.Column{
		{Name: "a", Categories: 2},
		{Name: "b", Categories: 200},
		{Name: "c", Categories: 3, Labels: []string{"low", "mid", "high"}},
		{Name: "d", Categories: 3, Labels: []string{"10", "20", "30"}},
		{Name: "e", Kind: dataset.Continuous, Offset: 1, Scale: 2},
	}}
}

func (m *fakeModel) Schema() *dataset.Schema { return m.schema }
func (m *fakeModel) Device() string          { return m.device }
func (m *fakeModel) Bytes() int64            { return m.bytes }

func (m *fakeModel) CheckCell(column int, x float64) error {
	if x == -1000 {
		return fmt.Errorf("column %d of the model lacks %v", column, x)
	}
	return nil
}

func (m *fakeModel) Close() error {
	m.closed.Add(1)
	return nil
}

func (m *fakeModel) Queries() []Query {
	columns := int64(len(m.schema.Columns))
	return append([]Query{
		{Name: "log_prob", Flops: 1000, Outputs: []Output{{Name: "log_prob", Datatype: oip.FP32}, {Name: "twice", Datatype: oip.FP64, OnRequest: true}}},
		{
			Name: "sample", Flops: 2000, RowsOptional: true, Repeat: "n_samples",
			Outputs: []Output{{Name: "samples", Datatype: oip.FP32, Shape: []int64{columns}}},
			Params:  []Param{{Name: "n_samples", Default: int64(1), Min: 1, Max: 1000}, {Name: "seed"}},
		},
		{
			Name: "weighted", Flops: 10,
			Inputs:  []Input{{Name: "w", Datatype: oip.FP64, Shape: []int64{columns}}, {Name: "bias", Datatype: oip.FP32, Optional: true}},
			Outputs: []Output{{Name: "value", Datatype: oip.FP64}},
			Params: []Param{
				{Name: "power", Default: 1.0}, {Name: "exact", Default: false}, {Name: "note", Default: ""}, {Name: "count", Default: uint64(3)},
			},
			Plan: func(p oip.Params) (int64, error) {
				switch p["note"] {
				case "dear":
					return 1 << 50, nil
				case "exact power":
					if p["exact"].(bool) && p["power"] != 1.0 {
						return 0, errors.New("power is not exact")
					}
				}
				return 10, nil
			},
		},
	}, m.more...)
}

// cellsOf returns a row as numbers.
func cellsOf(b *dataset.Batch, row int) []float64 {
	out := make([]float64, len(b.Columns))
	for v := range b.Columns {
		c := &b.Columns[v]
		switch {
		case c.IsMissing(row):
			out[v] = math.NaN()
		case c.Discrete():
			out[v] = float64(c.Codes.At(row))
		default:
			out[v] = float64(c.Values[row])
		}
	}
	return out
}

func logProb(row []float64) float64 {
	sum := 0.0
	for _, x := range row {
		if x != x {
			sum += 0.01
		} else {
			sum -= x
		}
	}
	return sum
}

func (m *fakeModel) Run(ctx context.Context, w *Work) error {
	if m.runs.Add(1); m.silent {
		return nil
	}
	m.mu.Lock()
	m.batches = append(m.batches, w.Parts)
	m.mu.Unlock()
	if m.began != nil {
		m.began <- w.Batch.Rows
	}
	if m.gate != nil {
		select {
		case <-m.gate:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if took := m.took + time.Duration(w.Batch.Rows)*m.perRow; took > 0 {
		select {
		case <-time.After(took):
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	if m.panics {
		w.Parts[len(w.Parts)].Rows++
	}
	if m.fail != nil {
		return m.fail
	}
	if slices.ContainsFunc(m.more, func(q Query) bool { return q.Name == w.Query }) {
		return m.answer(ctx, w)
	}
	for row := range w.Batch.Rows {
		if b := float64(w.Batch.Columns[1].Codes.At(row)); m.refuses > 0 && b == m.refuses {
			return fmt.Errorf("%w: row %d: the model lacks %v", dataset.ErrFormat, row, b)
		}
	}
	at := 0
	for k, p := range w.Parts {
		if p.Params["note"] == "unknown" {
			w.Parts[k].Err = errors.New("the note is unknown")
		}
		for r := range p.Rows {
			row := cellsOf(w.Batch, at)
			switch w.Query {
			case "log_prob":
				for i, out := range w.Outputs {
					if out != nil {
						out[at] = logProb(row) * float64(i+1)
					}
				}
			case "sample":
				seed := p.Params["seed"].(uint64)
				for v, x := range row {
					if x != x {
						x = float64(seed%1000)*1000 + float64(p.First+r)
					}
					w.Outputs[0][at*len(row)+v] = x
				}
			case "weighted":
				sum := 0.0
				for v, x := range row {
					if x == x {
						sum += x * w.Inputs[0][at*len(row)+v]
					}
				}
				if w.Inputs[1] != nil && w.Inputs[1][at] == w.Inputs[1][at] {
					sum += w.Inputs[1][at]
				}
				w.Outputs[0][at] = math.Pow(sum, p.Params["power"].(float64))
				w.Parts[k].Answer = oip.Params{"exact": p.Params["exact"], "note": p.Params["note"], "count": p.Params["count"]}
			}
			at++
		}
	}
	if at != w.Batch.Rows {
		return fmt.Errorf("parts have %d rows, the batch %d", at, w.Batch.Rows)
	}
	return nil
}

// fakeLoader makes models of files whose content is not looked at.
type fakeLoader struct {
	bytes int64
	make  func(path string) *fakeModel
	lacks atomic.Bool // the system has no descriptors

	mu     sync.Mutex
	opened []*fakeModel
}

func (l *fakeLoader) Plan(_ context.Context, path string) (int64, error) {
	if _, err := os.Stat(path); err != nil {
		return 0, err
	}
	return l.bytes, nil
}

func (l *fakeLoader) Open(_ context.Context, path string) (Model, error) {
	text, err := os.ReadFile(path)
	if l.lacks.Load() {
		err = &os.PathError{Op: "open", Path: path, Err: syscall.EMFILE}
	}
	if err != nil {
		return nil, err
	}
	if string(text) == "bad" {
		return nil, errors.New("the file is damaged; get it again")
	}
	m := &fakeModel{schema: fakeSchema(), bytes: l.bytes, device: "cpu"}
	if l.make != nil {
		m = l.make(path)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.opened = append(l.opened, m)
	return m, nil
}

// models returns the models that were opened, in order.
func (l *fakeLoader) models() []*fakeModel {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*fakeModel(nil), l.opened...)
}

// send asks for the answer to a request that is decoded already.
func (s *Server) send(ctx context.Context, req *oip.Request) (*oip.Response, error) {
	bytes := 100
	for _, in := range req.Inputs {
		bytes += len(in.Raw)
	}
	return s.decodeAndInfer(ctx, req.Model, bytes, func(oip.Reserve) (*oip.Request, error) { return req, nil })
}

// decodeAndInfer is infer with a body of that many bytes.
func (s *Server) decodeAndInfer(ctx context.Context, model string, bytes int, decode func(oip.Reserve) (*oip.Request, error)) (*oip.Response, error) {
	body := &requestBody{server: s, bytes: make([]byte, bytes)}
	defer body.done()
	return s.infer(ctx, model, body, true, decode)
}

// testServer makes a server with models of the given names, which are loaded.
func testServer(t testing.TB, l *fakeLoader, o Options, names ...string) *Server {
	t.Helper()
	dir := t.TempDir()
	for _, n := range names {
		path := filepath.Join(dir, n)
		if err := os.WriteFile(path, []byte(n), 0o644); err != nil {
			t.Fatal(err)
		}
		o.Models = append(o.Models, Source{Name: n, Path: path})
	}
	o.Loader, o.Version = l, "test"
	s, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Load(context.Background()); err != nil {
		t.Fatal(err)
	}
	return s
}
