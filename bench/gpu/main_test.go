package main

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// script writes a program that stands in for one to be run.
func script(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSuite runs suites that pass, fail, skip and hang, and wants measurements after
// the first alone, or where they are asked for anyway.
func TestSuite(t *testing.T) {
	const pass = "echo '--- PASS: TestConformanceOnCard (1.00s)'\n"
	for _, c := range []struct {
		name, suite string
		more        []string
		measured    bool
		words       string // of the suite's error
	}{
		{"pass", "test \"$PCE_CARD\" = cuda:7 && test -n \"$CUDA_CACHE_PATH\" || exit 3\n" + pass, nil, true, ""},
		{"fail", "echo '    --- FAIL: TestConformanceOnCard/step'\nseq 1000\nexit 1", nil, false, "FAIL: TestConformanceOnCard/step"},
		{"fail, anyway", "exit 1", []string{"-anyway"}, true, "exit status 1"},
		{"skip", "echo '--- SKIP: TestConformanceOnCard'", nil, false, "has not run"},
		{"hang of another", pass, []string{"-task-time", "100ms"}, true, ""},
		{"hang", "echo begun; exec sleep 60", []string{"-suite-time", "200ms"}, false, "killed: begun"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := t.TempDir()
			pce := "echo '{\"seconds_per_1k_samples\": 1}'\n"
			hangs := slices.Contains(c.more, "-task-time")
			if hangs {
				pce = "exec sleep 60"
			}
			out := filepath.Join(dir, "out.jsonl")
			err := run(append([]string{
				"-pce", script(t, dir, "pce", pce), "-suite", script(t, dir, "suite", c.suite),
				"-device", "cuda:7", "-sets", "rat-batch", "-out", out,
			}, c.more...))
			if clean := c.words == "" && !hangs; (err == nil) != clean {
				t.Errorf("error %v", err)
			}
			records, err := readRecords(out)
			if err != nil {
				t.Fatal(err)
			}
			if len(records) < 2 || records[1].Task != "conformance" || !strings.Contains(records[1].Error, c.words) || (records[1].Error == "") != (c.words == "") {
				t.Fatalf("records %+v", records)
			}
			if measured := len(records) == 2+7; measured != c.measured {
				t.Errorf("%d records", len(records))
			}
			if _, err := os.Stat(out + ".suite.log"); err != nil {
				t.Error(err)
			}
		})
	}
}
