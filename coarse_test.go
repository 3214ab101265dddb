package pce_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/run"
)

// TestCoarse tells of leaves that are narrower than float32 is fine, one of many and one of them alone, and of no others.
func TestCoarse(t *testing.T) {
	for text, want := range map[string]string{
		"a = input x0 gaussian 30000000 0.001":                                          "column 1 has Gaussian leaves of a deviation of 0.001 around 3e+07",
		"a = input[2] x0 gaussian 0 1 / -30000000 0.001\ns = sum a : 0.5 0.5":           "column 1 has Gaussian leaves of a deviation of 0.001 around -3e+07",
		"a = input x0 gaussian 20000000 0.001":                                          "has numbers 2 apart, so that answers are about rounded numbers;",
		"a = input x0 gaussian 1000000 0.01":                                            "has numbers 0.0625 apart, so that answers about numbers that are not whole are about rounded ones;",
		"a = input x0 gaussian 30000000 100":                                            "",
		"a = input x0 gaussian 0 1e-37":                                                 "",
		"a = input x0 bernoulli 0.5\nb = input x1 gaussian 100 0.1\nc = product a b":    "",
		"a = input x0 bernoulli 1e-50\nb = input x0 bernoulli 1\ns = sum a b : 1 1e-60": "2 probabilities, the least 1e-60, are 0 in answers of the tensor path",
		"a = input x0 categorical categories=3 1e-50 1e-45 1":                           "a probability of 1e-50 is 0 in answers of the tensor path",
		"a = input[2] x0 binomial trials=2 1e-50 / 0.99999999\ns = sum a : 0.5 0.5":     "2 probabilities, the least 1e-50, are 0",
		"a = input[2] x0 binomial trials=2 1 / 0.9999999\ns = sum a : 0.5 0.5":          "",
		"a = input x0 poisson 1e12\nb = input x1 gaussian 16777216 1\nc = product a b":  "column 2 has",
	} {
		vars := 1 + strings.Count(text, "x1")
		m := openText(t, fmt.Sprintf("circuit %d\n%s\n", vars, text))
		if got := m.Coarse(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}

// TestCoarseCode: a model that code alone answers for has every probability of its file.
func TestCoarseCode(t *testing.T) {
	path := filepath.Join(t.TempDir(), "m.txt")
	if err := os.WriteFile(path, []byte("circuit 1\na = input x0 bernoulli 1e-50\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, tc := range []struct {
		opts        pce.Options
		faint, lost bool // the log-likelihood
	}{
		{pce.Options{}, true, false}, {pce.Options{Only: run.QueryMPE}, true, true}, {pce.Options{Path: run.PathTensor}, true, true},
		{pce.Options{Only: pce.QueryLogLikelihood}, false, false}, {pce.Options{Path: run.PathCode}, false, false},
	} {
		m, err := pce.Open(t.Context(), path, tc.opts)
		if err != nil {
			t.Fatal(err)
		}
		ll, err := m.LogLikelihood(t.Context(), [][]float64{{1}})
		if err != nil || math.IsInf(ll[0], -1) != tc.lost {
			t.Errorf("%+v: log-likelihood %v, %v", tc.opts, ll, err)
		}
		if got := m.Coarse(); (got != "") != tc.faint {
			t.Errorf("%+v: %q", tc.opts, got)
		}
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
}
