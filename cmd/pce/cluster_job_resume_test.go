package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/pce-engine/pce/cluster/job"
)

// TestResumeRows goes on from answers that an earlier attempt left, and wants the
// bytes of an unbroken run.
func TestResumeRows(t *testing.T) {
	model := trained(t, imageFiles(t, t.TempDir())...)
	c := newTestCluster(t, 2)
	dir := t.TempDir()
	r := c.runner(t, dir)
	a := testApp()
	for kind, set := range map[string][]string{
		"loglik": {"job.data=builtin:random?rows=9000&vars=16&categories=4"},
		"sample": {"job.rows=9000", "job.format=npy", "data.image=[4,4]"},
	} {
		run := func(id string) []byte {
			t.Helper()
			cfg := testConfig(t, append(set, "job.kind="+kind, "job.model="+model)...)
			j, err := a.newJob(t.Context(), id, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := uploadMissing(t.Context(), r.Bus, j, true); err != nil {
				t.Fatal(err)
			}
			text, err := j.Encode(r.Bus.MaxPayload())
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Do(t.Context(), id, text); err != nil {
				t.Fatal(err)
			}
			return readFile(t, dir, "runs", id, "out."+cfg.Job.Format)
		}
		want := run("whole-" + kind)
		out := filepath.Join(dir, "runs", "broken-"+kind)
		if err := os.MkdirAll(out, 0o755); err != nil {
			t.Fatal(err)
		}
		kept := 0
		if kind == "loglik" { // rows that only a run that goes on keeps
			kept = 4500
		}
		for name, text := range map[string]string{
			job.AnswersFile: string(make([]byte, 8*kept)) + "half an answer",
			job.JournalFile: fmt.Sprintf(`{"form":2,"rows":%d,"bytes":%d}`, kept, 8*kept),
		} {
			if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got := run("broken-" + kind)
		if kind == "loglik" {
			gotLines, wantLines := bytes.SplitAfter(got, []byte("\n")), bytes.SplitAfter(want, []byte("\n"))
			if len(gotLines) != len(wantLines) || string(gotLines[4499]) != "0\n" {
				t.Fatalf("%d lines, want %d; line 4500 is %q", len(gotLines), len(wantLines), gotLines[4499])
			}
			got, want = bytes.Join(gotLines[4500:], nil), bytes.Join(wantLines[4500:], nil)
		}
		if len(want) == 0 || !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes", kind)
		}
	}
}
