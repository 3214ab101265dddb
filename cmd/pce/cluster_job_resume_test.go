package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/cluster/blocks"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// TestResumeRows goes on from answers that an earlier attempt left, and wants the
// bytes of an unbroken run.
func TestResumeRows(t *testing.T) {
	model := trained(t, imageFiles(t, t.TempDir())...)
	c := newTestCluster(t, 2)
	dir := t.TempDir()
	r := c.runner(t, dir)
	a := testApp()
	// Of the 12 rows that are completed the first five are kept, their missing cells as category 1.
	var text strings.Builder
	for row := range 12 {
		for v := range 16 {
			cell := strconv.Itoa((row + v) % 4)
			if (row*5+v)%3 == 0 {
				cell = "?"
			}
			text.WriteString(cell + map[bool]string{false: ",", true: "\n"}[v == 15])
		}
	}
	rows := filepath.Join(t.TempDir(), "rows.csv")
	if err := os.WriteFile(rows, []byte(text.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(text.String(), "\n")
	ones := strings.ReplaceAll(strings.Join(lines[:5], ""), "?", "1")
	for kind, set := range map[string][]string{
		"loglik": {"job.data=builtin:random?rows=9000&vars=16&categories=4"},
		"sample": {"job.rows=9000", "job.format=npy", "data.image=[4,4]"},
		"mpe":    {"job.data=" + rows},
	} {
		do := func(id string) []byte {
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
		want := do("whole-" + kind)
		out := filepath.Join(dir, "runs", "broken-"+kind)
		if err := os.MkdirAll(out, 0o755); err != nil {
			t.Fatal(err)
		}
		kept, answers := 0, ""
		switch kind { // rows that only a run which continues keeps
		case "loglik":
			kept, answers = 4500, string(make([]byte, 8*4500))
		case "mpe":
			kept, answers = 5, completedRows(t, model, ones)
		}
		for name, text := range map[string]string{
			job.AnswersFile: answers + "half an answer",
			job.JournalFile: fmt.Sprintf(`{"form":2,"rows":%d,"bytes":%d}`, kept, len(answers)),
		} {
			if err := os.WriteFile(filepath.Join(out, name), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		got := do("broken-" + kind)
		if kind == "loglik" {
			gotLines, wantLines := bytes.SplitAfter(got, []byte("\n")), bytes.SplitAfter(want, []byte("\n"))
			if len(gotLines) != len(wantLines) || string(gotLines[4499]) != "0\n" {
				t.Fatalf("%d lines, want %d; line 4500 is %q", len(gotLines), len(wantLines), gotLines[4499])
			}
			got, want = bytes.Join(gotLines[4500:], nil), bytes.Join(wantLines[4500:], nil)
		}
		if kind == "mpe" {
			want = append([]byte(ones), bytes.Join(bytes.SplitAfter(want, []byte("\n"))[5:], nil)...)
		}
		if len(want) == 0 || !bytes.Equal(got, want) {
			t.Errorf("%s: other bytes", kind)
		}
	}
}

// completedRows is what a job keeps of rows of a model that a worker has completed.
func completedRows(t *testing.T, model, text string) string {
	t.Helper()
	c, schema, err := run.OpenCircuit(model)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	path := filepath.Join(t.TempDir(), "completed.csv")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r, err := dataset.OpenReader(t.Context(), path, dataset.Options{Schema: schema})
	if err != nil {
		t.Fatal(err)
	}
	defer r.Close()
	b := &dataset.Batch{}
	if err := r.Read(t.Context(), b, strings.Count(text, "\n")); err != nil {
		t.Fatal(err)
	}
	block, err := dataset.AppendBlock(nil, schema, b)
	if err != nil {
		t.Fatal(err)
	}
	return string(blocks.AppendPart(nil, block)) + string(make([]byte, 16*b.Rows)) // log-likelihoods and bounds
}
