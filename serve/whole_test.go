package serve

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/serve/cells"
	"github.com/pce-engine/pce/serve/oip"
)

// askWhole makes a model answer the query size too, which is about the model: how many columns it has, times a parameter.
func askWhole(m *fakeModel) {
	m.more = []Query{{
		Name: "size", Whole: true, Flops: 7,
		Outputs: []Output{{Name: "size", Datatype: oip.FP64}},
		Params:  []Param{{Name: "times", Default: int64(1)}},
		Plan:    func(p oip.Params) (int64, error) { return p["times"].(int64), nil },
	}}
	m.answer = func(_ context.Context, w *Work) error {
		if len(w.Parts) != 1 || w.Batch.Rows != 1 {
			return fmt.Errorf("%d requests of %d rows", len(w.Parts), w.Batch.Rows)
		}
		w.Outputs[0][0] = float64(len(w.Batch.Columns)) * float64(w.Parts[0].Params["times"].(int64))
		return nil
	}
}

// TestWhole: a query about the model takes no tensors, and each request for it is a batch, whatever waits beside it.
func TestWhole(t *testing.T) {
	bubbleOf(t, Options{MaxQueueDelay: time.Millisecond, MaxFlops: 1e4}, askWhole, func(t *testing.T, s *Server, m *fakeModel) {
		size := func(times int64) (*oip.Response, error) {
			return s.send(t.Context(), &oip.Request{Model: "m", Params: oip.Params{"query": "size", "times": times}})
		}
		start := time.Now()
		var group sync.WaitGroup
		for k := range 3 {
			group.Go(func() {
				r, err := size(int64(k + 1))
				if err != nil {
					t.Error(err)
				} else if got := cells.View[float64](r.Outputs[0].Raw); len(got) != 1 || got[0] != float64(5*(k+1)) || fmt.Sprint(r.Outputs[0].Shape) != "[1]" {
					t.Errorf("%d times the size is %v, shape %v", k+1, got, r.Outputs[0].Shape)
				}
				if took, want := time.Since(start), time.Duration(11+10*k)*time.Millisecond; took != want {
					t.Errorf("request %d was answered after %v, want %v: it waits for those before it alone", k, took, want)
				}
			})
			synctest.Wait()
		}
		group.Wait()
		if got := m.sizes(); got != "[[1] [1] [1]]" {
			t.Error(got)
		}
		if _, err := size(1e5); err == nil || !strings.Contains(err.Error(), `query "size" takes 1e+05 operations, 1e+04 may be asked for at once; choose other parameters`) {
			t.Error(err)
		}
		req := rowsRequest(1, 0)
		req.Outputs, req.Params = nil, oip.Params{"query": "size"}
		if _, err := s.send(t.Context(), req); err == nil || !strings.Contains(err.Error(), `input "x": name: query "size" is about the model and takes none`) {
			t.Error(err)
		}
		var about struct {
			Queries []struct {
				Name   string
				Inputs []oip.TensorInfo
			}
		}
		text := ask(t, s, "GET", "/v2/models/m", "").Body.Bytes()
		if err := json.Unmarshal(text, &about); err != nil || len(about.Queries) != 4 || about.Queries[3].Name != "size" || about.Queries[3].Inputs == nil || len(about.Queries[3].Inputs) > 0 {
			t.Errorf("%v: %s", err, text)
		}
	})
}
