package serve

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestNames: every name that a model may have is that of its path, and the one that has another path is refused.
func TestNames(t *testing.T) {
	names := []string{"index", "ready", "live", "infer", "load", "models", "versions", "v2", "metrics", "Stats", "stats2"}
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1, ReloadEvery: -1}, names...)
	for _, name := range names {
		var meta struct{ Name string }
		w := ask(t, s, "GET", "/v2/models/"+name, "")
		if err := json.Unmarshal(w.Body.Bytes(), &meta); err != nil || w.Code != 200 || meta.Name != name {
			t.Errorf("the model %q: %d %s", name, w.Code, w.Body)
		}
		if w := ask(t, s, "POST", "/v2/models/"+name+"/infer", row); w.Code != 200 {
			t.Errorf("the model %q: %d %s", name, w.Code, w.Body)
		}
	}
	if _, err := New(Options{Loader: &fakeLoader{}, Models: []Source{{"stats", "m"}}}); !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), "GET /v2/models/stats is that of the statistics; rename it") {
		t.Errorf("a model named stats: %v", err)
	}
}

// TestServerWithoutLog: a server of HTTP needs no log, as a Server does.
func TestServerWithoutLog(t *testing.T) {
	if h := HTTPServer(http.NotFoundHandler(), time.Second, nil); h.ErrorLog == nil {
		t.Error("errors of connections go to the log of the program")
	}
}
