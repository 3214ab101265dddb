package serve

import (
	"os"
	"path"
	"regexp"
	"strings"
	"testing"
)

// TestPage wants each file of the page with its type and policy, to those who come
// without a token too, and files that refer to nothing outside.
func TestPage(t *testing.T) {
	types := map[string]string{".html": "text/html; charset=utf-8", ".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
	for _, token := range []string{"", "s3cret"} {
		s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1, Token: token}, "m")
		files, err := os.ReadDir("page")
		if err != nil || len(files) < 8 {
			t.Fatalf("%d files, %v", len(files), err)
		}
		for _, f := range files {
			if path.Ext(f.Name()) == ".go" {
				continue
			}
			at := "/page/" + f.Name()
			if f.Name() == "index.html" {
				at = "/"
			}
			w := ask(t, s, "GET", at, "")
			h := w.Header()
			if kind := types[path.Ext(f.Name())]; w.Code != 200 || kind == "" || h.Get("Content-Type") != kind || h.Get("X-Content-Type-Options") != "nosniff" {
				t.Errorf("%s: %d %q, want %q", at, w.Code, h.Get("Content-Type"), kind)
			}
			if policy := h.Get("Content-Security-Policy"); strings.Contains(policy, "unsafe") || !strings.HasPrefix(policy, "default-src 'none'; script-src 'self'; ") {
				t.Errorf("%s: policy %q", at, policy)
			}
			for _, to := range regexp.MustCompile(`[a-z]*:?//[a-z][^"'\s]*`).FindAllString(w.Body.String(), -1) {
				if to != "https://github.com/kserve/open-inference-protocol" && to != "http://www.w3.org/2000/svg" {
					t.Errorf("%s refers to %q", at, to)
				}
			}
			if want := map[string]string{"": "none", "s3cret": "needed"}[token]; at == "/" && !strings.Contains(w.Body.String(), `content="`+want+`"`) {
				t.Errorf("with token %q the page does not say %q", token, want)
			}
		}
		for _, at := range []string{"/page/index.html", "/page/", "/page/page.go", "/page/../page_test.go", "/page/absent.js"} {
			if w := ask(t, s, "GET", at, ""); w.Code == 200 || strings.Contains(w.Body.String(), "<html") {
				t.Errorf("%s: %d", at, w.Code)
			}
		}
	}
	// What is not the page keeps the strict policy.
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1}, "m")
	if got := ask(t, s, "GET", "/v2", "").Header().Get("Content-Security-Policy"); strings.Contains(got, "self") {
		t.Errorf("/v2: policy %q", got)
	}
}
