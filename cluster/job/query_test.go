package job

import (
	"bytes"
	"errors"
	"io"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/dataset"
)

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
	query := &Query{Format: "csv"}
	lead := &Lead{}
	for name, good := range map[string][]byte{"eval": make([]byte, 8*5), "loglik": make([]byte, 8*5), "sample": block(5)} {
		a := QueryKinds()[name].Answers(lead, query, schema)
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

// TestWriteNothing makes results of no rows, and fails where what was kept is cut.
func TestWriteNothing(t *testing.T) {
	schema := &dataset.Schema{Columns: []dataset.Column{{Name: "a", Kind: dataset.Discrete, Categories: 3}}}
	for name, kind := range QueryKinds() {
		q := &Query{Format: "csv"}
		a, path := kind.Answers(&Lead{}, q, schema), filepath.Join(t.TempDir(), kind.Result(q))
		if err := a.Write(t.Context(), path, bytes.NewReader(nil), 0); err != nil {
			t.Errorf("%s of no rows: %v", name, err)
		}
		path = filepath.Join(t.TempDir(), kind.Result(q))
		if err := a.Write(t.Context(), path, io.LimitReader(bytes.NewReader(make([]byte, 100)), 15), 2); err == nil {
			t.Errorf("%s: a result is made of half an answer", name)
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
			if err := errors.Join(err, strictJSON(request, &r)); err != nil || r != (sampleRequest{at, rows, 3}) || rows < 1 || rows > tc.rows {
				t.Fatalf("%+v: request %s about %d rows from %d on, %v", tc, request, rows, at, err)
			}
			n, at = n+1, at+rows
		}
		if n != tc.want || at != max(tc.all, tc.skip) {
			t.Errorf("%+v: %d requests up to row %d", tc, n, at)
		}
	}
}
