package main

import (
	"os"
	"os/exec"
	"testing"
)

// TestPythonClient runs the tests of clients/python with this program. PCE_PYTHON names
// the interpreter; without it, the first one that has numpy is taken.
func TestPythonClient(t *testing.T) {
	if testing.Short() {
		t.Skip("a server and a cluster of processes; without -short")
	}
	python := numpyPython(t)
	cmd := exec.CommandContext(t.Context(), python, "../../clients/python/pce_test.py")
	cmd.Env = append(os.Environ(), roleVariable+"=pce", "PCE="+os.Args[0])
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%s: %v\n%s", python, err, out)
	}
	t.Logf("%s", out)
}

// numpyPython returns a Python interpreter that has numpy; it skips the test where none has.
// PCE_PYTHON names one.
func numpyPython(t *testing.T) string {
	t.Helper()
	candidates := []string{"python3", "/usr/bin/python3"}
	if named := os.Getenv("PCE_PYTHON"); named != "" {
		candidates = []string{named}
	}
	for _, python := range candidates {
		if exec.CommandContext(t.Context(), python, "-c", "import numpy").Run() == nil {
			return python
		}
	}
	t.Skipf("SKIPPED: none of %q has numpy; install it (Debian's package is python3-numpy), or name an interpreter in PCE_PYTHON", candidates)
	return ""
}
