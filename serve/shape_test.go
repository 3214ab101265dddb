package serve

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/serve/cells"
	"github.com/pce-engine/pce/serve/oip"
)

// askShaped makes a model answer the query square too, with a matrix per row whose sides are a parameter and whose numbers are a
// hundred times the row's cell b, plus their place.
func askShaped(m *fakeModel) {
	side := func(p oip.Params) int { return int(p["side"].(int64)) }
	m.more = []Query{{
		Name: "square", Flops: 1,
		Outputs: []Output{
			{Name: "square", Datatype: oip.FP64, Shape: []int64{-1, -1}, ShapeOf: func(p oip.Params) []int64 { return []int64{int64(side(p)), int64(side(p))} }},
			{Name: "side", Datatype: oip.Int32, OnRequest: true},
		},
		Params: []Param{{Name: "side", Default: int64(1)}},
		Plan: func(p oip.Params) (int64, error) {
			if side(p) < 1 {
				return 0, errors.New("side is below 1")
			}
			return 1, nil
		},
	}}
	m.answer = func(_ context.Context, w *Work) error {
		at, out := 0, w.Outputs[0]
		for _, p := range w.Parts {
			n := side(p.Params) * side(p.Params)
			for range p.Rows {
				for k := range n {
					out[k] = 100*float64(w.Batch.Columns[1].Codes.At(at)) + float64(k)
				}
				if w.Outputs[1] != nil {
					w.Outputs[1][at] = float64(side(p.Params))
				}
				at, out = at+1, out[n:]
			}
		}
		if len(out) != 0 {
			return fmt.Errorf("%d numbers too many", len(out))
		}
		return nil
	}
}

// TestShapesOfRequests: outputs of a shape that parameters choose are each request's own, also in a batch of several and in
// requests that several batches answer.
func TestShapesOfRequests(t *testing.T) {
	o := Options{MaxQueueDelay: time.Millisecond, MaxBatchRows: 5, MaxQueueRows: 100, MaxCells: 1000}
	bubbleOf(t, o, askShaped, func(t *testing.T, s *Server, m *fakeModel) {
		ask := func(n, first, side int, outputs ...oip.Output) (*oip.Response, error) {
			req := rowsRequest(n, first)
			req.Outputs, req.Params = outputs, oip.Params{"query": "square", "side": int64(side)}
			return s.send(t.Context(), req)
		}
		var group sync.WaitGroup
		for _, tc := range []struct{ n, first, side int }{{1, 10, 2}, {2, 20, 1}, {7, 30, 3}, {1, 40, 1}} {
			group.Go(func() {
				var outputs []oip.Output
				if tc.side != 1 {
					outputs = []oip.Output{{Name: "side"}, {Name: "square"}}
				}
				r, err := ask(tc.n, tc.first, tc.side, outputs...)
				if err != nil {
					t.Error(err)
					return
				}
				out := r.Outputs[len(r.Outputs)-1]
				if want := []int64{int64(tc.n), int64(tc.side), int64(tc.side)}; !slices.Equal(out.Shape, want) {
					t.Errorf("shape %v, want %v", out.Shape, want)
				}
				var want []float64
				for row := range tc.n {
					for k := range tc.side * tc.side {
						want = append(want, 100*float64(tc.first+row)+float64(k))
					}
				}
				if got := cells.View[float64](out.Raw); !slices.Equal(got, want) {
					t.Errorf("side %d: %v, want %v", tc.side, got, want)
				}
			})
			synctest.Wait()
		}
		group.Wait()
		if got := m.sizes(); got != "[[1 2 2] [5] [1]]" {
			t.Error(got)
		}
		for side, want := range map[int]string{0: "side is below 1", 32: `output "square" of 1 rows has 1024 elements, 1000 may be asked for at once`} {
			if _, err := ask(1, 0, side); err == nil || !strings.Contains(err.Error(), want) {
				t.Errorf("side %d: %v, want %q", side, err, want)
			}
		}
	})
}
