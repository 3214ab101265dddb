// Package page is the page that a server shows to people: its models, how they do,
// and a form to ask them.
//
// The page is HTML, a style and JavaScript modules, which are files of this folder and
// part of the program. It asks the server that it came from, over the same paths as
// any other client.
//
// # Shapes and units
//
// As those of the Open Inference Protocol.
//
// # Errors
//
// None. Refusals of the server are shown with the server's line.
//
// # Source
//
// Contrast and labels follow the Web Content Accessibility Guidelines 2.2, level AA.
package page

import (
	"embed"
	"io/fs"
	"net/http"
	"path"
	"strings"
)

//go:embed *.html *.css *.js *.svg
var files embed.FS

// folder is where the files lie in the server's paths.
const folder = "/page/"

// policy lets the page use its own files and the server, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"frame-ancestors 'none'; base-uri 'none'; form-action 'none'"

// types are the types of the files, whatever the machine knows of types.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".svg":  "image/svg+xml",
}

// Has reports whether a path is one of the page's. Its files hold no secret, so that a
// browser, which sends no token when it opens an address, may have them without one.
func Has(path string) bool { return path == "/" || strings.HasPrefix(path, folder) }

// Routes adds the page at / and its files to mux. With token the page asks for the
// server's token before its first request.
func Routes(mux *http.ServeMux, token bool) {
	list, err := fs.ReadDir(files, ".")
	if err != nil {
		panic("BUG: " + err.Error()) // the files are in the program
	}
	for _, f := range list {
		text, err := files.ReadFile(f.Name())
		if err != nil {
			panic("BUG: " + err.Error())
		}
		route, kind := "GET "+folder+f.Name(), types[path.Ext(f.Name())]
		if f.Name() == "index.html" {
			route = "GET /{$}"
			if token {
				text = []byte(strings.Replace(string(text), `name="pce-token" content="none"`, `name="pce-token" content="needed"`, 1))
			}
		}
		mux.HandleFunc(route, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Security-Policy", policy)
			w.Header().Set("Content-Type", kind)
			w.Write(text)
		})
	}
}
