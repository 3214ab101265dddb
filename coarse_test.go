package pce_test

import (
	"fmt"
	"strings"
	"testing"
)

// TestCoarse tells of leaves that are narrower than float32 is fine, one of many and one of them alone, and of no others.
func TestCoarse(t *testing.T) {
	for text, want := range map[string]string{
		"a = input x0 gaussian 30000000 0.001":                                         "column 1 has Gaussian leaves of a deviation of 0.001 around 3e+07",
		"a = input[2] x0 gaussian 0 1 / -30000000 0.001\ns = sum a : 0.5 0.5":          "column 1 has Gaussian leaves of a deviation of 0.001 around -3e+07",
		"a = input x0 gaussian 20000000 0.001":                                         "has numbers 2 apart, so that answers are about rounded numbers;",
		"a = input x0 gaussian 1000000 0.01":                                           "has numbers 0.0625 apart, so that answers about numbers that are not whole are about rounded ones;",
		"a = input x0 gaussian 30000000 100":                                           "",
		"a = input x0 gaussian 0 1e-37":                                                "",
		"a = input x0 bernoulli 0.5\nb = input x1 gaussian 100 0.1\nc = product a b":   "",
		"a = input x0 poisson 1e12\nb = input x1 gaussian 16777216 1\nc = product a b": "column 2 has",
	} {
		vars := 1 + strings.Count(text, "x1")
		m := openText(t, fmt.Sprintf("circuit %d\n%s\n", vars, text))
		if got := m.Coarse(); want == "" && got != "" || !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q", text, got, want)
		}
	}
}
