package query

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/circuit"
	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/blocks"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// queryOf is a query of a kind about the first column where it is about one.
func queryOf(kind string) *Job {
	q := &Job{Format: "csv"}
	switch kind {
	case "conditional", "classify", "covariance":
		q.Columns = []string{"a"}
	case "quantiles":
		q.Columns, q.Levels = []string{"a"}, []float64{0.1, 0.9}
	case "expect":
		q.Of = []string{"a", "a^2", "1 - a"}
	}
	return q
}

// testLead is a lead that logs to w; nil: nowhere.
func testLead(w io.Writer) *job.Lead {
	l := &job.Lead{Log: slog.New(slog.DiscardHandler)}
	if w != nil {
		l.Log = slog.New(slog.NewTextHandler(w, nil))
	}
	return l
}

// modelOf is a model of rows of s: a product of a leaf for each column but those that are unread.
func modelOf(s *dataset.Schema, unread ...int) *run.Blueprint {
	g := &circuit.Graph{NumVars: len(s.Columns)}
	for i := range s.Columns {
		if !slices.Contains(unread, i) {
			g.Nodes = append(g.Nodes, circuit.Node{Kind: circuit.Input, Units: 1, Var: i, Leaf: circuit.Categorical{Categories: s.Columns[i].Categories}})
		}
	}
	root := circuit.Node{Kind: circuit.Product, Units: 1}
	for i := range g.Nodes {
		root.Children = append(root.Children, circuit.NodeID(i))
	}
	g.Root = circuit.NodeID(len(g.Nodes))
	g.Nodes = append(g.Nodes, root)
	return &run.Blueprint{Graph: g, Schema: s}
}

// TestKeep refuses answers that are not about the rows of their question.
func TestKeep(t *testing.T) {
	schema := &dataset.Schema{Columns: []dataset.Column{{Name: "a", Kind: dataset.Discrete, Categories: 3}}}
	block := func(rows int) []byte {
		b := dataset.NewBatch(schema, rows)
		out, err := dataset.AppendBlock(nil, schema, b)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	lead, model := testLead(nil), modelOf(schema)
	for name, good := range map[string][]byte{
		"eval": make([]byte, 8*5), "loglik": make([]byte, 8*5), "sample": block(5), "mpe": append(blocks.AppendPart(nil, block(5)), make([]byte, 16*5)...),
		"conditional": make([]byte, 8*3*5), "classify": make([]byte, 8*3*5), "moments": make([]byte, 8*2*5),
		"covariance": make([]byte, 8*5), "quantiles": make([]byte, 8*2*5), "expect": make([]byte, 8*3*5),
	} {
		a := circuitKinds()[name].Answers(lead, queryOf(name), model)
		if kept, err := a.Keep(good, 5); err != nil || len(kept) < len(good) {
			t.Errorf("%s: %d bytes, %v", name, len(kept), err)
		}
		for rows := range 10 {
			if rows == 5 {
				continue
			}
			if _, err := a.Keep(good, rows); !errors.Is(err, cluster.ErrCluster) {
				t.Errorf("%s: an answer about 5 rows is taken for %d: %v", name, rows, err)
			}
		}
		for _, bad := range [][]byte{nil, good[:len(good)-1], append(bytes.Clone(good), 0)} {
			if _, err := a.Keep(bad, 5); !errors.Is(err, cluster.ErrCluster) {
				t.Errorf("%s: %d bytes are taken for %d: %v", name, len(bad), len(good), err)
			}
		}
	}
}

// TestLongEvidence sends rows whose evidence does not fit a message in several, and refuses one
// that fits none.
func TestLongEvidence(t *testing.T) {
	schema := &dataset.Schema{Columns: []dataset.Column{{Kind: dataset.Discrete, Categories: 40}}}
	path := filepath.Join(t.TempDir(), "rows.csv")
	likelihoods := func(seed, runs int) string { // of so many runs of categories
		words := make([]string, 40)
		for i := range words {
			words[i] = strconv.Itoa(1 + (seed+i*runs/40)%7)
		}
		return "[" + strings.Join(words, "|") + "]\n"
	}
	var text string
	for i := range 9 {
		text += likelihoods(i, 4) + "3\n"
	}
	if err := os.WriteFile(path, []byte(text+likelihoods(0, 40)), 0o600); err != nil {
		t.Fatal(err)
	}
	q := &Job{Data: []string{path}, Soft: true}
	in, err := openRows(t.Context(), q, schema, false)
	if err != nil {
		t.Fatal(err)
	}
	defer in.Close()
	questions := &rowBlocks{in: in, schema: schema, rows: 16, most: 400}
	var all, sent int
	b := &dataset.Batch{}
	for ; all < 18; sent++ {
		block, rows, err := questions.Next(t.Context())
		if err != nil || len(block) > 400 {
			t.Fatalf("after %d rows: a block of %d rows in %d bytes, %v", all, rows, len(block), err)
		}
		if err := dataset.DecodeBlock(schema, block, b); err != nil {
			t.Fatal(err)
		}
		for r := range rows {
			if even := (all+r)%2 == 0; even != (b.Columns[0].Soft.At(r) != nil) || even != b.Columns[0].IsMissing(r) {
				t.Errorf("row %d: %+v", all+r, b.Columns[0])
			}
		}
		all += rows
	}
	if sent < 3 {
		t.Errorf("%d rows in %d blocks of 400 bytes", all, sent)
	}
	if _, _, err := questions.Next(t.Context()); !errors.Is(err, run.ErrOptions) || !strings.Contains(err.Error(), "a row takes") {
		t.Errorf("a row that fits no block: %v", err)
	}
}

// TestNumberedRows reads the rows of a job of most probable completions from the start and from
// the middle, and writes them with what the file says.
func TestNumberedRows(t *testing.T) {
	schema := &dataset.Schema{Columns: []dataset.Column{{Kind: dataset.Discrete, Categories: 3}, {Kind: dataset.Continuous}}}
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte("1,1.50\n?,2.50\n0,?\n2,+3\n?,?\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var changed error
	q := &Job{Format: "csv", Data: []string{path}, Unchanged: func(context.Context) error { return changed }}
	var kept []byte
	for _, skip := range []int64{0, 2} {
		in, err := openRows(t.Context(), q, schema, false)
		if err != nil {
			t.Fatal(err)
		}
		questions := &numbered{rowBlocks: rowBlocks{in: in, schema: schema, rows: 2}}
		if err := questions.Skip(t.Context(), skip); err != nil {
			t.Fatal(err)
		}
		for at := skip; ; at += 2 {
			request, rows, err := questions.Next(t.Context())
			if errors.Is(err, io.EOF) {
				if at < 5 {
					t.Errorf("the questions end at row %d", at)
				}
				break
			}
			var b dataset.Batch
			if err := errors.Join(err, dataset.DecodeBlock(schema, request[8:], &b)); err != nil || b.Rows != rows || binary.LittleEndian.Uint64(request) != uint64(at) {
				t.Fatalf("%d rows from %d on, want row %d; %v", rows, binary.LittleEndian.Uint64(request), at, err)
			}
			if skip > 0 {
				continue
			}
			for r := range rows { // what a worker might answer
				b.Columns[0].Codes.Set(r, 2)
				b.Columns[1].Values[r] = 7
			}
			block, err := dataset.AppendBlock(nil, schema, &b)
			if err != nil {
				t.Fatal(err)
			}
			kept = append(kept, appendFloats(blocks.AppendPart(nil, block), make([]float64, 2*rows))...)
		}
		if err := questions.Close(); err != nil {
			t.Error(err)
		}
	}
	out := filepath.Join(t.TempDir(), "out.csv")
	if err := (mpeKind{}).Answers(testLead(nil), q, modelOf(schema)).Write(t.Context(), out, bytes.NewReader(kept), 5); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(out)
	if want := "1,1.50\n2,2.50\n0,7\n2,+3\n2,7\n"; err != nil || string(text) != want {
		t.Errorf("%q, %v; want %q", text, err, want)
	}
	changed, out = errors.New("changed"), filepath.Join(t.TempDir(), "out.csv") // since the rows were read again
	if err := (mpeKind{}).Answers(testLead(nil), q, modelOf(schema)).Write(t.Context(), out, bytes.NewReader(kept), 5); !errors.Is(err, changed) {
		t.Errorf("%v, want %v", err, changed)
	}
	if _, err := os.Stat(out); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("rows of two files were written: %v", err)
	}
}

// TestLargePicture asks for completions of more rows than a picture takes: that is an error when the first row too many is read, before it is
// completed. Other files take any number.
func TestLargePicture(t *testing.T) {
	schema := &dataset.Schema{Columns: make([]dataset.Column, 4), Image: [3]int{2, 2, 1}}
	for i := range schema.Columns {
		schema.Columns[i] = dataset.Column{Kind: dataset.Discrete, Categories: 2}
	}
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte("0,1,0,1\n1,?,1,0\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for format, want := range map[string]error{"png": dataset.ErrSetting, "csv": nil} {
		q, err := mpeKind{}.Questions(t.Context(), &Job{Format: format, Data: []string{path}}, schema, 1<<19)
		if err != nil {
			t.Fatal(err)
		}
		q.(*numbered).at = 1 << 28 // rows before
		if _, _, err := q.Next(t.Context()); !errors.Is(err, want) {
			t.Errorf("%s: %v, want %v", format, err, want)
		}
		if err := q.Close(); err != nil {
			t.Error(err)
		}
	}
	if q, err := (mpeKind{}).Questions(t.Context(), &Job{Format: "png", Data: []string{path}}, schema, 1<<19); err != nil {
		t.Error(err)
	} else if _, rows, err := q.Next(t.Context()); rows != 2 || err != nil {
		t.Errorf("a picture of two rows: %d rows, %v", rows, err)
	}
}

// TestWriteNothing makes results of no rows, and fails where what was kept is cut.
func TestWriteNothing(t *testing.T) {
	schema := &dataset.Schema{Columns: []dataset.Column{{Name: "a", Kind: dataset.Discrete, Categories: 3}}}
	for name, kind := range circuitKinds() {
		q := queryOf(name)
		a, path := kind.Answers(testLead(nil), q, modelOf(schema)), filepath.Join(t.TempDir(), kind.Result(q))
		if err := a.Write(t.Context(), path, bytes.NewReader(nil), 0); err != nil {
			t.Errorf("%s of no rows: %v", name, err)
		}
		path = filepath.Join(t.TempDir(), kind.Result(q))
		if err := a.Write(t.Context(), path, io.LimitReader(bytes.NewReader(make([]byte, 100)), 15), 2); err == nil {
			t.Errorf("%s: a result is made of half an answer", name)
		}
	}
}

// TestNotes puts what a command notes of its answers into the log of the run: rows whose answers are
// NaN, columns of which the model says nothing, rows that stay incomplete, and how far completions
// may be from the most probable ones. Warnings about rows are told once, though they are read twice.
func TestNotes(t *testing.T) {
	schema := &dataset.Schema{Columns: []dataset.Column{
		{Name: "a", Kind: dataset.Discrete, Categories: 3}, {Name: "b", Kind: dataset.Discrete, Categories: 3},
	}}
	path := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(path, []byte("a,b\n1,?\n?,2\n?,?\n1,1\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	b := dataset.NewBatch(schema, 4) // completions: one of b that is missing, and one of a
	for r, codes := range [][2]int{{1, -1}, {0, 2}, {-1, 2}, {1, 1}} {
		for i, code := range codes {
			if code < 0 {
				code = b.Columns[i].Codes.Limit()
			}
			b.Columns[i].Codes.Set(r, code)
		}
	}
	block, err := dataset.AppendBlock(nil, schema, b)
	if err != nil {
		t.Fatal(err)
	}
	inf, nan := math.Inf(-1), math.NaN()
	completions := appendFloats(blocks.AppendPart(nil, block), []float64{-1, -2, inf, -3 /* bounds: */, -1, -1.5, inf, -2})
	for _, tc := range []struct {
		kind   string
		kept   []byte
		rows   int64
		unread []int
		want   []string
	}{
		{"loglik", appendFloats(nil, []float64{-1, nan, inf, nan}), 4, nil, []string{"2 rows are impossible under the model; their answers are NaN"}},
		{"loglik", appendFloats(nil, []float64{-1, inf}), 2, nil, nil},
		{"moments", appendFloats(nil, []float64{1, 1, nan, nan, nan, nan, nan, nan}), 2, []int{1}, []string{
			"1 row is impossible under the model; its answers are NaN",
			"the answers for columns that no leaf reads are NaN: the model says nothing of them",
		}},
		{"eval", appendFloats(nil, []float64{-1, inf}), 2, nil, []string{"the mean of 2 rows is -Inf, since 1 of them has probability 0"}},
		{"sample", blocks.AppendPart(nil, block), 4, []int{1}, []string{
			"1 row keeps missing cells: what it says is impossible under the model",
			"1 row keeps missing cells of columns that no leaf reads: the model says nothing of them",
		}},
		{"mpe", completions, 4, []int{1}, []string{
			"1 row keeps missing cells: what it says is impossible under the model",
			"1 row keeps missing cells of columns that no leaf reads: the model says nothing of them",
			"approximate: the best of max-product, a beam of 8, 2 improved draws and a search through 9 partial completions for each row; " +
				"a bound allows completions that are 0.5 nats likelier in the mean and 1 at most, none in 1 of 3 rows",
		}},
	} {
		var log bytes.Buffer
		q := queryOf(tc.kind)
		q.Data, q.Candidates, q.Search = []string{path}, 2, 9
		if tc.kind == run.QueryMPE {
			q.Columns = []string{"a", "b"} // of which max-product is never exact
		}
		q.Unchanged = func(context.Context) error { return nil }
		q.Read.Warn = func(w string) { t.Errorf("%s: warned while the result is written: %s", tc.kind, w) }
		q.Read.Types = map[string]dataset.Type{"b": {Skip: true}} // which is warned of
		kind := circuitKinds()[tc.kind]
		out := filepath.Join(t.TempDir(), kind.Result(q))
		if err := kind.Answers(testLead(&log), q, modelOf(schema, tc.unread...)).Write(t.Context(), out, bytes.NewReader(tc.kept), tc.rows); err != nil {
			t.Errorf("%s: %v", tc.kind, err)
		}
		if lines := strings.Count(log.String(), "\n"); lines != len(tc.want) {
			t.Errorf("%s: %d lines in the log, want %d:\n%s", tc.kind, lines, len(tc.want), &log)
		}
		for _, want := range tc.want {
			if !strings.Contains(log.String(), want) {
				t.Errorf("%s: the log lacks %q:\n%s", tc.kind, want, &log)
			}
		}
	}
}

// TestUncheckedModel notes a model file that has no checksum in the log of the run.
func TestUncheckedModel(t *testing.T) {
	schema := &dataset.Schema{Columns: []dataset.Column{{Name: "a", Kind: dataset.Discrete, Categories: 3}}}
	for _, unchecked := range []bool{false, true} {
		var log bytes.Buffer
		s := &circuitSubject{Blueprint: modelOf(schema), kind: numbersKind{run.QueryLogLikelihood}, query: queryOf("loglik")}
		s.Unchecked = unchecked
		s.Answers(testLead(&log))
		if got := strings.Contains(log.String(), "without a checksum"); got != unchecked {
			t.Errorf("unchecked %t: the log says %q", unchecked, &log)
		}
	}
}

// TestLongRows: a row that does not fit a message is refused with what it takes and what there is, which is less, and with what helps.
func TestLongRows(t *testing.T) {
	schema := &dataset.Schema{}
	for range 100 {
		schema.Columns = append(schema.Columns, dataset.Column{Kind: dataset.Continuous})
	}
	s := &circuitSubject{Blueprint: modelOf(schema), kind: numbersKind{run.QueryLogLikelihood}, query: queryOf("loglik")}
	_, err := s.Questions(t.Context(), schema.BlockBytes(1)-1)
	want := fmt.Sprintf("a row takes %d bytes, and a message has room for %d of rows; start a NATS server with a larger max_payload", schema.BlockBytes(1), schema.BlockBytes(1)-1)
	if err == nil || !strings.Contains(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
}

// TestEvalWarnsOnce: what an evaluation warns of is in the log when its file is there, and not where it could not be written, as it then is
// written anew.
func TestEvalWarnsOnce(t *testing.T) {
	schema := &dataset.Schema{Columns: []dataset.Column{{Name: "a", Kind: dataset.Discrete, Categories: 3}}}
	dir := t.TempDir()
	for at, want := range map[string]int{filepath.Join(dir, "none", EvaluationFile): 0, filepath.Join(dir, EvaluationFile): 1} {
		var log bytes.Buffer
		a := evalKind{}.Answers(testLead(&log), queryOf("eval"), modelOf(schema))
		err := a.Write(t.Context(), at, bytes.NewReader(appendFloats(nil, []float64{-1, math.Inf(-1)})), 2)
		if got := strings.Count(log.String(), "has probability 0"); (err == nil) != (want == 1) || got != want {
			t.Errorf("%s: %v, %d warnings, want %d", at, err, got, want)
		}
	}
}

// TestDraws asks for every row once, in requests of the given size, also from the
// middle on and from beyond the end.
func TestDraws(t *testing.T) {
	for _, tc := range []struct{ all, rows, skip, want int }{
		{10, 4, 0, 3}, {8, 4, 0, 2}, {1, 4, 0, 1}, {10, 4, 8, 1}, {10, 4, 9, 1}, {10, 4, 10, 0}, {10, 4, 11, 0},
	} {
		q := &draws{all: tc.all, rows: tc.rows, seed: 3}
		if err := q.Skip(t.Context(), int64(tc.skip)); err != nil {
			t.Fatal(err)
		}
		n, at := 0, tc.skip
		for {
			request, rows, err := q.Next(t.Context())
			if errors.Is(err, io.EOF) {
				break
			}
			var r sampleRequest
			if err := errors.Join(err, job.ReadJSON(request, &r)); err != nil || r != (sampleRequest{at, rows, 3}) || rows < 1 || rows > tc.rows {
				t.Fatalf("%+v: request %s about %d rows from %d on, %v", tc, request, rows, at, err)
			}
			n, at = n+1, at+rows
		}
		if n != tc.want || at != max(tc.all, tc.skip) {
			t.Errorf("%+v: %d requests up to row %d", tc, n, at)
		}
	}
}
