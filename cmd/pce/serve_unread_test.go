package main

import (
	"fmt"
	"math"
	"os"
	"strings"
	"testing"
)

// TestServeUnread: of a column that no leaf reads, or none that the root reaches, a server says what pce query moments says of it,
// and answers all queries about the others.
func TestServeUnread(t *testing.T) {
	t.Chdir(t.TempDir())
	files := map[string]string{
		"unread.spn": "P ProductNode(B, C){\n  B Bernoulli(b|p=0.25)\n  C Gaussian(c|mean=2;stdev=1)\n}\n# a;b;c\n",
		"beside.txt": "circuit 3\nb = input x1 bernoulli 0.25\nc = input x2 gaussian 2 1\np = product b c\na = input x0 gaussian 0 1\nroot p\n",
	}
	for name, text := range files {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { serveUnread(t, name) })
	}
}

// serveUnread is TestServeUnread for a model of three columns, of which the first is not read.
func serveUnread(t *testing.T, model string) {
	url, stop := serving(t, nil, "--model", "m="+model)
	defer stop()
	x := `"inputs":[{"name":"x","datatype":"FP64","shape":[2,3],"data":[7,null,null,null,1,3]}]`
	for query, want := range map[string]string{
		`"moments"`:                       "[NaN 0.25 2 NaN 1 3]",
		`"quantiles","level":0.5`:         "[NaN 0 2 NaN 1 3]",
		`"quantiles","level":0.9`:         "[NaN 1 3.28 NaN 1 3]",
		`"classify","class":"2"`:          "[0 0]",
		`"expect","of":"$2 + $3"`:         "[2.25 4]",
		`"covariance","of":"2,3"`:         "[0.19 0 0 1 0 0 0 0]",
		`"sample","seed":1,"n_samples":1`: "",
		`"mpe"`:                           "[7 0 2 NaN 1 3]",
	} {
		status, said := post(t, url+"/v2/models/m/infer", `{"parameters":{"query":`+query+`},`+x+`}`)
		if status != 200 {
			t.Errorf("%s: %d %s", query, status, said)
			continue
		}
		got := numbersOf(t, status, said)
		for i := range got {
			got[i] = math.Round(100*got[i]) / 100
		}
		if want != "" && fmt.Sprint(got) != want {
			t.Errorf("%s: %v, want %s", query, got, want)
		}
	}
	for query, want := range map[string]string{`"classify","class":"1"`: "want one of", `"expect","of":"$1"`: `is in no leaf`, `"covariance","of":"2,1"`: `is in no leaf`, `"mpe","of":"1"`: ""} {
		status, said := post(t, url+"/v2/models/m/infer", `{"parameters":{"query":`+query+`},`+x+`}`)
		if want != "" && (status != 400 || !strings.Contains(string(said), want)) || status == 500 {
			t.Errorf("%s: %d %s, want %q", query, status, said, want)
		}
	}
}
