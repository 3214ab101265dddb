package serve

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/serve/oip"
)

// renew replaces the file of a model, as writers of models do.
func renew(t *testing.T, s *Server, name, text string) {
	t.Helper()
	for _, m := range s.opts.Models {
		if m.Name == name {
			if err := os.WriteFile(m.Path+".new", []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
			if err := os.Rename(m.Path+".new", m.Path); err != nil {
				t.Fatal(err)
			}
		}
	}
}

func (s *Server) served(name string) string {
	for _, e := range s.models.index(false) {
		if e.Name == name {
			return e.State + " " + e.Version
		}
	}
	return ""
}

// TestReload replaces a model's file again and again under load: no request is lost,
// each is answered by one version, and versions that were replaced are closed.
func TestReload(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLoader{bytes: 1, make: func(string) *fakeModel {
			return &fakeModel{schema: fakeSchema(), bytes: 1, device: "cpu", took: 300 * time.Millisecond}
		}}
		s := testServer(t, l, Options{MaxBatchRows: 16, MaxQueueRows: 1000}, "m")
		ctx, cancel := context.WithCancel(t.Context())
		var group sync.WaitGroup
		var answered atomic.Int64
		for i := range 8 {
			group.Go(func() {
				for ctx.Err() == nil {
					r, err := s.send(t.Context(), rowsRequest(5, 10*i))
					if err != nil {
						t.Error(err)
						return
					}
					checkRows(t, r, 5, 10*i)
					answered.Add(1)
				}
			})
		}
		const reloads = 10
		for i := range reloads {
			renew(t, s, "m", fmt.Sprint("content ", i))
			time.Sleep(time.Second)
			synctest.Wait() // replaced every second, loaded every second
			if got, want := s.served("m"), fmt.Sprint("READY ", i+2); got != want {
				t.Errorf("after reload %d: %s, want %s", i+1, got, want)
			}
		}
		cancel()
		group.Wait()
		models := l.models()
		if len(models) != reloads+1 || answered.Load() < 60 {
			t.Errorf("%d models were opened, %d requests answered", len(models), answered.Load())
		}
		for i, m := range models[:reloads] {
			if m.closed.Load() != 1 || m.runs.Load() == 0 {
				t.Errorf("version %d ran %d batches and was closed %d times", i+1, m.runs.Load(), m.closed.Load())
			}
		}
		if models[reloads].closed.Load() != 0 {
			t.Error("the version that is served was closed")
		}

		// A damaged file leaves the version in place, and is tried once.
		opened := s.models.index(false)[0].Version
		renew(t, s, "m", "bad")
		time.Sleep(2 * retryReload)
		if got := s.served("m"); got != "READY "+opened {
			t.Error(got)
		}
		if got := s.models.index(true)[0].Reason; got != "a newer version cannot be loaded: the file is damaged; get it again" {
			t.Error(got)
		}
		if text := s.metrics.Text(nil); !strings.Contains(text, `pce_model_load_failures_total{model="m"} 1`+"\n") {
			t.Error(text)
		}
		// So does a file that is gone; one that comes back is loaded.
		if err := os.Remove(s.opts.Models[0].Path); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		if _, err := s.send(t.Context(), rowsRequest(1, 0)); err != nil {
			t.Error(err)
		}
		renew(t, s, "m", "good")
		time.Sleep(3 * time.Second)
		if got := s.served("m"); got == "READY "+opened {
			t.Error(got)
		}
		s.Close()
	})
}

// TestReloadPasses: a file that could not be opened for want of descriptors is loaded once there are some, though it stays the same,
// and until then the index says why the version before it is served.
func TestReloadPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLoader{bytes: 1}
		s := testServer(t, l, Options{MaxQueueDelay: -1}, "m")
		l.lacks.Store(true)
		renew(t, s, "m", "good")
		time.Sleep(2*retryReload + 10*time.Second)
		x := s.models.index(false)[0]
		if x.State != stateReady || x.Version != "1" || !strings.HasPrefix(x.Reason, "a newer version cannot be loaded: open ") {
			t.Errorf("%+v", x)
		}
		if text := s.metrics.Text(nil); !strings.Contains(text, `pce_model_load_failures_total{model="m"} 3`+"\n") {
			t.Error(text)
		}
		l.lacks.Store(false)
		time.Sleep(retryReload)
		if x := s.models.index(false)[0]; x.Version != "2" || x.Reason != "" {
			t.Errorf("%+v", x)
		}
		time.Sleep(2 * retryReload)
		if n := len(l.models()); n != 2 {
			t.Errorf("%d models were opened, want 2", n)
		}
		s.Close()
	})
}

// TestPassing tells what the system or memory lacks from what is wrong with a file.
func TestPassing(t *testing.T) {
	for _, c := range []struct {
		err  error
		want bool
	}{
		{nil, false},
		{errors.New("the file is damaged"), false},
		{fmt.Errorf("open: %w", &os.PathError{Op: "open", Path: "m", Err: syscall.EACCES}), true},
		{fmt.Errorf("it takes 3 MiB, of 4 MiB that models may take 2 %w", errInUse), true},
	} {
		if passing(c.err) != c.want {
			t.Errorf("%v passes: %t", c.err, !c.want)
		}
	}
}

// TestLeftWhileLoading: a client that leaves while its model is being loaded counts as one that has gone, and not as an answer
// that came late.
func TestLeftWhileLoading(t *testing.T) {
	for _, tc := range []struct {
		leaves bool
		want   error
		code   string
	}{{true, context.Canceled, "499"}, {false, ErrLate, "504"}} {
		synctest.Test(t, func(t *testing.T) {
			gate := make(chan struct{})
			l := &fakeLoader{bytes: 1, make: func(string) *fakeModel {
				<-gate
				return &fakeModel{schema: fakeSchema(), bytes: 1, device: "cpu"}
			}}
			path := filepath.Join(t.TempDir(), "m")
			if err := os.WriteFile(path, []byte("m"), 0o644); err != nil {
				t.Fatal(err)
			}
			s, err := New(Options{Loader: l, Models: []Source{{Name: "m", Path: path}}, ReloadEvery: -1, Timeout: time.Second})
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			if tc.leaves {
				time.AfterFunc(time.Millisecond, cancel)
			}
			if _, err := s.send(ctx, rowsRequest(1, 0)); !errors.Is(err, tc.want) {
				t.Errorf("%v, want %v", err, tc.want)
			}
			if text := s.metrics.Text(nil); !strings.Contains(text, `code="`+tc.code+`"} 1`) {
				t.Errorf("want one %s:\n%.300s", tc.code, text)
			}
			close(gate)
			s.Close()
		})
	}
}

// TestReloadWaits: a file that is being written in place is left alone until it rests.
func TestReloadWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLoader{bytes: 1}
		s := testServer(t, l, Options{}, "m")
		time.Sleep(500 * time.Millisecond) // between two looks
		for i := range 6 {
			if err := os.WriteFile(s.opts.Models[0].Path, []byte(strings.Repeat("x", 10+i)), 0o644); err != nil {
				t.Fatal(err)
			}
			time.Sleep(time.Second)
			if got := s.served("m"); got != "READY 1" {
				t.Errorf("after %d writes: %s", i+1, got)
			}
		}
		time.Sleep(2 * time.Second)
		if got := s.served("m"); got != "READY 2" || len(l.models()) != 2 {
			t.Error(got)
		}
		s.Close()
	})
}

// TestMemory: models that were used least recently leave when others need their
// memory, and come back when they are asked for.
func TestMemory(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLoader{bytes: 40 << 20, make: func(string) *fakeModel {
			return &fakeModel{schema: fakeSchema(), bytes: 40 << 20, device: "cpu", took: time.Second}
		}}
		s := testServer(t, l, Options{MaxMemory: 100 << 20, MaxQueueDelay: -1, ReloadEvery: -1}, "a", "b", "c")
		if got := s.served("a") + s.served("b") + s.served("c"); got != "UNAVAILABLE READY 1READY 1" {
			t.Error(got)
		}
		if err := s.models.ready(); err != nil {
			t.Error(err) // a left, but can come back
		}
		use := func(name string) error {
			req := rowsRequest(1, 3)
			req.Model = name
			r, err := s.send(t.Context(), req)
			if err == nil {
				checkRows(t, r, 1, 3)
			}
			return err
		}
		for _, name := range []string{"b", "a"} { // c was used less recently than b
			if err := use(name); err != nil {
				t.Error(err)
			}
		}
		if got := s.served("a") + s.served("b") + s.served("c"); got != "READY 2READY 1UNAVAILABLE " {
			t.Error(got)
		}
		// All memory is held by requests: the next model waits for the first to end.
		start := time.Now()
		var group sync.WaitGroup
		for _, name := range []string{"a", "b", "c"} {
			group.Go(func() {
				if err := use(name); err != nil {
					t.Error(name, err)
				}
			})
			synctest.Wait()
		}
		group.Wait()
		if took := time.Since(start); took != 3*time.Second { // one batch at a time on the device
			t.Errorf("took %v", took)
		}
		s.Close()
		if s.models.memory != 0 {
			t.Errorf("%d bytes are in use after Close", s.models.memory)
		}
		for i, m := range l.models() {
			if m.closed.Load() != 1 {
				t.Errorf("model %d was closed %d times", i, m.closed.Load())
			}
		}
	})
}

// TestMemoryRefuses models that can never fit, and replacements that do not fit
// beside what they replace.
func TestMemoryRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLoader{bytes: 60 << 20}
		s := testServer(t, l, Options{MaxMemory: 100 << 20, MaxQueueDelay: -1, ModelControl: true}, "a")
		renew(t, s, "a", "other")
		if w := ask(t, s, "POST", "/v2/repository/models/a/load", ""); w.Code != 503 || !strings.Contains(w.Body.String(), "60 MiB beside the 60 MiB of the version that it replaces") {
			t.Error(w.Code, w.Body)
		}
		if got := s.served("a"); got != "READY 1" {
			t.Error(got)
		}
		l.bytes = 101 << 20
		if w := ask(t, s, "POST", "/v2/repository/models/a/unload", ""); w.Code != 200 {
			t.Error(w.Code, w.Body)
		}
		if w := ask(t, s, "POST", "/v2/repository/models/a/load", ""); w.Code != 503 || !strings.Contains(w.Body.String(), "it takes 101 MiB, models may take 100") {
			t.Error(w.Code, w.Body)
		}
		l.bytes = 100 << 20
		if w := ask(t, s, "POST", "/v2/repository/models/a/load", "{}"); w.Code != 200 {
			t.Error(w.Code, w.Body)
		}
		s.Close()
	})
}

// TestUnloadedReason: a model that was unloaded is said to be, also where a newer file could not be opened before.
func TestUnloadedReason(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1, ReloadEvery: -1, ModelControl: true}, "m")
	renew(t, s, "m", "bad")
	for _, step := range []struct {
		verb, want string
		code       int
	}{{"load", "a newer version cannot be loaded: the file is damaged; get it again", 503}, {"unload", "unloaded", 200}, {"load", "the file is damaged; get it again", 503}} {
		if w := ask(t, s, "POST", "/v2/repository/models/m/"+step.verb, ""); w.Code != step.code {
			t.Error(step.verb, w.Code, w.Body)
		}
		if got := s.models.index(false)[0].Reason; got != step.want {
			t.Errorf("after %s: %q, want %q", step.verb, got, step.want)
		}
	}
}

// TestMemoryKeeps: where a new version has no room beside the one that it replaces, no other model leaves for it.
func TestMemoryKeeps(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := &fakeLoader{bytes: 40 << 20}
		s := testServer(t, l, Options{MaxMemory: 100 << 20, MaxQueueDelay: -1, ModelControl: true}, "a", "b")
		l.bytes = 70 << 20
		renew(t, s, "a", "larger")
		if w := ask(t, s, "POST", "/v2/repository/models/a/load", ""); w.Code != 503 || !strings.Contains(w.Body.String(), "70 MiB beside the 40 MiB of the version that it replaces") {
			t.Error(w.Code, w.Body)
		}
		if got := s.served("a") + " " + s.served("b"); got != "READY 1 READY 1" {
			t.Error(got)
		}
		s.Close()
	})
}

// TestControl loads and unloads by request.
func TestControl(t *testing.T) {
	l := &fakeLoader{bytes: 1}
	s := testServer(t, l, Options{MaxQueueDelay: -1, ReloadEvery: -1, ModelControl: true}, "m")
	infer := func() int { return ask(t, s, "POST", "/v2/models/m/infer", row).Code }
	for i, step := range []struct {
		verb  string
		state string
		infer int
	}{{"load", "READY 2", 200}, {"unload", "UNAVAILABLE ", 503}, {"unload", "UNAVAILABLE ", 503}, {"load", "READY 3", 200}} {
		if w := ask(t, s, "POST", "/v2/repository/models/m/"+step.verb, ""); w.Code != 200 || strings.TrimSpace(w.Body.String()) != "{}" {
			t.Error(w.Code, w.Body)
		}
		if got := s.served("m"); got != step.state || infer() != step.infer {
			t.Errorf("step %d: %s", i, got)
		}
	}
	if w := ask(t, s, "GET", "/v2/models/m/ready", ""); w.Code != 200 {
		t.Error(w.Code)
	}
	if w := ask(t, s, "POST", "/v2/repository/models/x/load", ""); w.Code != 404 {
		t.Error(w.Code)
	}
	if w := ask(t, s, "POST", "/v2/repository/models/x/unload", ""); w.Code != 404 {
		t.Error(w.Code)
	}
	// A model that cannot be loaded says why, to those who load it and to requests.
	renew(t, s, "m", "bad")
	ask(t, s, "POST", "/v2/repository/models/m/unload", "")
	if w := ask(t, s, "POST", "/v2/repository/models/m/load", ""); w.Code != 503 || !strings.Contains(w.Body.String(), "damaged") {
		t.Error(w.Code, w.Body)
	}
	if w := ask(t, s, "POST", "/v2/models/m/infer", row); w.Code != 503 {
		t.Error(w.Code, w.Body)
	}
}

// TestLoadFailure: a server whose model cannot be opened is alive, not ready, and
// answers once the file is there.
func TestLoadFailure(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "m")
		s, err := New(Options{Loader: &fakeLoader{bytes: 1}, Models: []Source{{"m", path}}, MaxQueueDelay: -1})
		if err != nil {
			t.Fatal(err)
		}
		if w := ask(t, s, "GET", "/v2/health/ready", ""); w.Code != 503 || !strings.Contains(w.Body.String(), "is being loaded") {
			t.Error(w.Code, w.Body)
		}
		if w := ask(t, s, "GET", "/v2/health/live", ""); w.Code != 200 || w.Body.String() != `{"live":true,"ready":false}` {
			t.Error(w.Code, w.Body)
		}
		if err := s.Load(t.Context()); !errors.Is(err, os.ErrNotExist) || !errors.Is(err, ErrUnavailable) {
			t.Error(err)
		}
		for _, check := range []string{"/v2/health/ready", "/v2/models/m/ready"} {
			if w := ask(t, s, "GET", check, ""); w.Code != 503 {
				t.Error(w.Code, w.Body)
			}
		}
		if w := ask(t, s, "POST", "/v2/models/m/infer", row); w.Code != 503 || w.Header().Get("Retry-After") != "1" {
			t.Error(w.Code, w.Body)
		}
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		if w := ask(t, s, "POST", "/v2/models/m/infer", row); w.Code != 503 { // it was tried just now
			t.Error(w.Code, w.Body)
		}
		time.Sleep(retryOpen)
		if w := ask(t, s, "POST", "/v2/models/m/infer", row); w.Code != 200 {
			t.Error(w.Code, w.Body)
		}
		if w := ask(t, s, "GET", "/v2/health/ready", ""); w.Code != 200 {
			t.Error(w.Code, w.Body)
		}
		s.Close()
	})
}

// slowLoader opens a model when it is told to.
type slowLoader struct {
	fakeLoader
	gate chan struct{}
}

func (l *slowLoader) Open(ctx context.Context, path string) (Model, error) {
	select {
	case <-l.gate:
		return l.fakeLoader.Open(ctx, path)
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// TestLoadWaits: requests wait for a model that is being opened as long as their
// deadlines let them, and Close ends an opener.
func TestLoadWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		path := filepath.Join(t.TempDir(), "m")
		if err := os.WriteFile(path, nil, 0o644); err != nil {
			t.Fatal(err)
		}
		l := &slowLoader{fakeLoader{bytes: 1}, make(chan struct{}, 1)}
		s, err := New(Options{Loader: l, Models: []Source{{"m", path}}, MaxQueueDelay: -1, ModelControl: true})
		if err != nil {
			t.Fatal(err)
		}
		req := rowsRequest(1, 0)
		req.Params = oip.Params{"timeout": int64(5000)}
		start := time.Now()
		if _, err := s.send(t.Context(), req); !errors.Is(err, ErrLate) || time.Since(start) != 5*time.Millisecond {
			t.Errorf("%v after %v", err, time.Since(start))
		}
		if got := s.served("m"); got != "LOADING " {
			t.Error(got)
		}
		if w := ask(t, s, "POST", "/v2/repository/models/m/unload", ""); w.Code != 503 {
			t.Error(w.Code, w.Body)
		}
		l.gate <- struct{}{}
		if _, err := s.send(t.Context(), rowsRequest(1, 0)); err != nil {
			t.Error(err)
		}
		go s.models.load(context.Background(), "m") // waits for the gate
		synctest.Wait()
		s.Close()
	})
}

// slowLog is a log whose lines take a while. The one that a model is loaded is written before the requests hear of it, so
// that others that wait for memory always look first.
type slowLog struct{}

func (slowLog) Enabled(context.Context, slog.Level) bool { return true }
func (slowLog) WithAttrs([]slog.Attr) slog.Handler       { return slowLog{} }
func (slowLog) WithGroup(string) slog.Handler            { return slowLog{} }
func (slowLog) Handle(context.Context, slog.Record) error {
	time.Sleep(time.Millisecond)
	return nil
}

// TestMemoryWaits: models that memory has no room for together come one after the other, though at first none can leave
// for another, as all are being opened. A model without waiting requests leaves at once; the others stay until the requests
// that waited for them have them.
func TestMemoryWaits(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		names := []string{"a", "b", "c"}
		l := &slowLoader{fakeLoader{bytes: 60 << 20}, make(chan struct{})}
		o := Options{Loader: l, MaxMemory: 100 << 20, MaxQueueDelay: -1, ReloadEvery: -1, Log: slog.New(slowLog{})}
		for _, name := range names {
			path := filepath.Join(t.TempDir(), name)
			if err := os.WriteFile(path, nil, 0o644); err != nil {
				t.Fatal(err)
			}
			o.Models = append(o.Models, Source{name, path})
		}
		s, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		var group sync.WaitGroup
		group.Go(func() {
			if err := s.models.load(t.Context(), "a"); err != nil {
				t.Error(err)
			}
		})
		for _, name := range names[1:] {
			synctest.Wait() // the one before has all memory, or waits for it
			group.Go(func() {
				req := rowsRequest(1, 3)
				req.Model = name
				if _, err := s.send(t.Context(), req); err != nil {
					t.Error(name, err)
				}
			})
		}
		synctest.Wait()
		start := time.Now()
		for range names {
			time.Sleep(time.Second)
			select {
			case l.gate <- struct{}{}:
			default:
				t.Errorf("after %v no model is being opened", time.Since(start))
			}
			synctest.Wait()
		}
		group.Wait()
		if took := time.Since(start); took.Truncate(time.Second) != 3*time.Second || len(l.models()) != 3 {
			t.Errorf("%d models were opened in %v, want 3 in 3 s", len(l.models()), took)
		}
		s.Close()
	})
}

// TestCheckQueries refuses models that requests could not rely on.
func TestCheckQueries(t *testing.T) {
	good := Query{Name: "q", Outputs: []Output{{Name: "y"}}}
	for name, list := range map[string][]Query{
		"none": nil, "no name": {{Outputs: good.Outputs}}, "twice": {good, good}, "no outputs": {{Name: "q"}},
		"repeat":        {{Name: "q", Outputs: good.Outputs, Repeat: "n"}},
		"repeat float":  {{Name: "q", Outputs: good.Outputs, Repeat: "n", Params: []Param{{Name: "n", Default: 1.0}}}},
		"whole of rows": {{Name: "q", Outputs: good.Outputs, Whole: true, RowsOptional: true}},
	} {
		if checkQueries(list) == nil {
			t.Error(name)
		}
	}
	if err := checkQueries([]Query{good}); err != nil {
		t.Error(err)
	}
}

// TestControlParameters: what would be of no effect is refused, but for the parameter that clients of Triton always send.
func TestControlParameters(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1, ReloadEvery: -1, ModelControl: true}, "m")
	for body, code := range map[string]int{
		"": 200, " {} ": 200, `{"parameters":{}}`: 200, `{"parameters":{"unload_dependents":false},"id":"1"}`: 200,
		`{"parameters":{"config":"{}"}}`: 400, `{"parameters":1}`: 400, `{"parameters":{},"parameters":{}}`: 400, "{}{}": 400, "x": 400, strings.Repeat(" ", 65<<10): 413,
	} {
		for _, verb := range []string{"load", "unload"} {
			if w := ask(t, s, "POST", "/v2/repository/models/m/"+verb, body); w.Code != code {
				t.Errorf("%s with %.60q: %d %s, want %d", verb, body, w.Code, w.Body, code)
			}
		}
	}
}
