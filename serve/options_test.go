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

// TestLongToken: a token that no request can have in its header is refused, and the longest one that is taken opens the server.
func TestLongToken(t *testing.T) {
	_, err := New(Options{Loader: &fakeLoader{}, Token: strings.Repeat("t", maxToken+1)})
	if !errors.Is(err, ErrOptions) || !strings.Contains(err.Error(), "the token has 16385 bytes") {
		t.Errorf("a token of %d bytes: %v", maxToken+1, err)
	}
	token := strings.Repeat("t", maxToken)
	addr := listen(t, testServer(t, &fakeLoader{bytes: 1}, Options{Token: token}, "m"))
	for _, c := range []*http.Client{http.DefaultClient, client2(t)} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", "http://"+addr+"/v2/models/m", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		w, err := c.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		w.Body.Close()
		if w.StatusCode != 200 {
			t.Errorf("%s %s", w.Proto, w.Status)
		}
	}
	http.DefaultClient.CloseIdleConnections()
}
