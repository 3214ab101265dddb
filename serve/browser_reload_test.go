package serve

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// held is a model that answers when it may.
type held struct {
	*painter
	asked, may chan struct{}
}

func (h held) Run(ctx context.Context, w *Work) error {
	h.asked <- struct{}{}
	<-h.may
	return h.painter.Run(ctx, w)
}

// holding opens tables as relabelled does; the first version answers when it may.
type holding struct {
	relabelled
	asked, may chan struct{}
}

func (l holding) Open(ctx context.Context, path string) (Model, error) {
	m, err := l.relabelled.Open(ctx, path)
	if p := m.(*painter); err == nil && p.schema.Columns[0].Labels[0] == "red" {
		m = held{p, l.asked, l.may}
	}
	return m, err
}

// replaceFile puts a new file in the place of one.
func replaceFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

// oneModel returns a server of the model m, which it looks at often.
func oneModel(t *testing.T, l Loader, path string) *Server {
	t.Helper()
	s, err := New(Options{Loader: l, Models: []Source{{Name: "m", Path: path}}, Hosts: LoopbackHosts, MaxQueueDelay: -1, ReloadEvery: 10 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	if err := s.Load(t.Context()); err != nil {
		t.Fatal(err)
	}
	return s
}

// TestBrowserReloadMeanwhile replaces a model while it works on an answer, and has the page renew its form before that comes: the answer has the
// labels of the version that gave it, and a row that this one has drawn is not taken for one of the other.
func TestBrowserReloadMeanwhile(t *testing.T) {
	b := startBrowser(t)
	for what, want := range map[string]string{"ask": "\nblue", "draw": "Draw another one"} {
		path := filepath.Join(t.TempDir(), "model")
		replaceFile(t, path, "red,blue")
		l := holding{asked: make(chan struct{}), may: make(chan struct{})}
		h := httptest.NewServer(oneModel(t, l, path))
		t.Cleanup(h.Close)
		p := b.open(t, h.URL+"/", 900, 700)
		const form = `document.querySelectorAll("#cell-0 option").length === %d`
		p.wait(`!document.getElementById("ask").disabled && ` + fmt.Sprintf(form, 3))
		p.choose("query", "mpe")
		p.click("#" + what)
		<-l.asked
		replaceFile(t, path, "blue,green,red")
		p.wait(fmt.Sprintf(form, 4))
		close(l.may)
		p.wait(answered)
		var said, row string
		p.eval(`document.getElementById("answer").innerText`, &said)
		p.eval(`document.getElementById("row").value`, &row)
		if !strings.Contains(said, want) || row != "" {
			t.Errorf("%s is answered with %q, and the row is %q; want %q and no row", what, said, row, want)
		}
	}
}

// TestBrowserRestart has another server in the place of the page's, which counts the versions of its model from 1, too: the form and the
// answers have the labels of the model that it serves.
func TestBrowserRestart(t *testing.T) {
	b := startBrowser(t)
	path := filepath.Join(t.TempDir(), "model")
	replaceFile(t, path, "red,blue")
	var now atomic.Pointer[Server]
	now.Store(oneModel(t, relabelled{}, path))
	h := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { now.Load().ServeHTTP(w, r) }))
	t.Cleanup(h.Close)
	p := b.open(t, h.URL+"/", 900, 700)
	const first = `!document.getElementById("ask").disabled && document.querySelector("#cell-0 option:nth-child(2)")?.value === %q`
	p.wait(fmt.Sprintf(first, "red"))
	other := path + "2"
	replaceFile(t, other, "green,red")
	now.Store(oneModel(t, relabelled{}, other))
	p.wait(fmt.Sprintf(first, "green"))
	if got := p.ask("mpe"); !strings.Contains(got, "\nred") {
		t.Errorf("the second label is shown as %s", got)
	}
}
