package serve

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/serve/cells"
	"github.com/pce-engine/pce/serve/oip"
)

// comparing makes models answer the query pair too: the bytes of another model that is named. It takes a second, whether its request waits or not.
func comparing(bytes func(name string) int64) func(path string) *fakeModel {
	return func(path string) *fakeModel {
		name := filepath.Base(path)
		m := &fakeModel{schema: fakeSchema(), bytes: bytes(name), device: "cpu"}
		m.more = []Query{{
			Name: "pair", Whole: true, Outputs: []Output{{Name: "pair", Datatype: oip.FP64}},
			Params: []Param{{Name: "with", Default: "", Model: true}},
			Plan:   func(p oip.Params) (int64, error) { return p["with"].(*fakeModel).bytes, nil },
		}}
		m.answer = func(ctx context.Context, w *Work) error {
			with := w.Parts[0].Params["with"].(*fakeModel)
			time.Sleep(time.Second)
			if n := with.closed.Load(); n != 0 {
				return fmt.Errorf("the other model was closed %d times", n)
			}
			w.Outputs[0][0] = float64(with.bytes)
			return ctx.Err()
		}
		return m
	}
}

func pairRequest(model string, with any) *oip.Request {
	return &oip.Request{Model: model, Params: oip.Params{"query": "pair", "with": with}}
}

// TestOtherModel: a query about two models has the one that a parameter names, which stays open until the answer is there, or until
// the batch of a request that was given up has ended.
func TestOtherModel(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		bytes := func(name string) int64 { return int64(len(name)) }
		s := testServer(t, &fakeLoader{bytes: 1, make: comparing(bytes)}, Options{MaxQueueDelay: -1, ReloadEvery: -1, MaxFlops: 10}, "a", "bbb", "much-larger-one")
		open := func(name string) *fakeModel {
			v := s.models.current(name)
			defer v.release()
			return v.model.(*fakeModel)
		}
		for _, with := range []string{"bbb", "a"} {
			r, err := s.send(t.Context(), pairRequest("a", with))
			if err != nil {
				t.Fatal(err)
			}
			if got := cells.View[float64](r.Outputs[0].Raw)[0]; got != float64(len(with)) {
				t.Errorf("the other model has %v bytes", got)
			}
		}
		for with, want := range map[any]string{
			"c": `parameters: with: no such model: model "c"`, "": "parameters: with is empty; give the name of a model of this server",
			3.0: "parameters: with is 3; want a string", "much-larger-one": "takes 15 operations",
		} {
			class := map[any]error{"c": ErrModel, "much-larger-one": ErrTooLarge}[with]
			if class == nil {
				class = ErrRequest
			}
			if _, err := s.send(t.Context(), pairRequest("a", with)); !errors.Is(err, class) || !strings.Contains(err.Error(), want) {
				t.Errorf("with %v: %v, want %q", with, err, want)
			}
		}
		counts := s.metrics.Text(nil)
		for _, line := range []string{
			`pce_inference_requests_total{model="a",query="pair",code="200"} 2`, `pce_inference_requests_total{model="a",query="pair",code="404"} 1`,
			`pce_inference_requests_total{model="a",query="pair",code="400"} 2`, `pce_inference_requests_total{model="a",query="pair",code="413"} 1`,
		} {
			if !strings.Contains(counts, line+"\n") || strings.Contains(counts, `model="",`) {
				t.Errorf("the metrics lack %s:\n%s", line, counts)
			}
		}
		for _, late := range []bool{false, true} {
			other := open("bbb")
			var group sync.WaitGroup
			group.Go(func() {
				req := pairRequest("a", "bbb")
				if late {
					req.Params["timeout"] = int64(300_000)
				}
				if _, err := s.send(t.Context(), req); errors.Is(err, ErrLate) != late || (err == nil) == late {
					t.Error(err)
				}
			})
			synctest.Wait()
			if err := s.models.unload("bbb"); err != nil {
				t.Fatal(err)
			}
			if other.closed.Load() != 0 {
				t.Error("the other model was closed while it was used")
			}
			group.Wait()
			if late && other.closed.Load() != 0 {
				t.Error("the other model was closed while a batch of a request that was given up used it")
			}
			time.Sleep(2 * time.Second)
			if other.closed.Load() != 1 {
				t.Errorf("the other model was closed %d times", other.closed.Load())
			}
			if err := s.models.load(t.Context(), "bbb"); err != nil {
				t.Fatal(err)
			}
		}
		s.Close()
		if s.models.memory != 0 || s.models.open != 0 {
			t.Errorf("%d bytes of %d models are in use after Close", s.models.memory, s.models.open)
		}
	})
}

// TestOtherModelMemory: another model comes back to memory for a request that names it. Where there is no room for both, the request is
// refused without a wait, also where two name each other, and both models are served as before.
func TestOtherModelMemory(t *testing.T) {
	for _, limit := range []int64{100, 50} {
		synctest.Test(t, func(t *testing.T) {
			bytes := func(string) int64 { return 40 }
			s := testServer(t, &fakeLoader{bytes: 40, make: comparing(bytes)}, Options{MaxMemory: limit, MaxQueueDelay: -1, ReloadEvery: -1}, "a", "b", "c")
			start := time.Now()
			var group sync.WaitGroup
			for _, pair := range []string{"ab", "ba"} {
				group.Go(func() {
					_, err := s.send(t.Context(), pairRequest(pair[:1], pair[1:]))
					if limit == 100 && err != nil || limit < 100 && (!errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), "left memory for it") || retryAfter(err) != 1) {
						t.Errorf("%s with a limit of %d: %v", pair, limit, err)
					}
				})
			}
			group.Wait()
			ask := func(name string) {
				req := rowsRequest(1, 3)
				req.Model = name
				if _, err := s.send(t.Context(), req); err != nil {
					t.Error(name, err)
				}
			}
			if limit < 100 { // also where the model that is asked is in memory first
				ask("a")
				if _, err := s.send(t.Context(), pairRequest("a", "b")); !errors.Is(err, ErrUnavailable) {
					t.Error(err)
				}
			}
			if took := time.Since(start); limit < 100 && took != 0 {
				t.Errorf("the requests were refused after %v", took)
			}
			for _, name := range []string{"a", "b", "c"} {
				ask(name)
			}
			s.Close()
			if s.models.memory != 0 || s.metrics.Pending.Load() != 0 {
				t.Errorf("%d bytes of models and %d of requests are in use after Close", s.models.memory, s.metrics.Pending.Load())
			}
		})
	}
}
