package main

import (
	"bytes"
	"encoding/binary"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestAnswers loses what the journal does not say, and nothing else.
func TestAnswers(t *testing.T) {
	dir := t.TempDir()
	number := func(x float64) []byte { return binary.LittleEndian.AppendUint64(nil, math.Float64bits(x)) }
	list := func(a *answers) []float64 {
		t.Helper()
		var err error
		got := slices.Collect(a.numbers(&err))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	reopen := func(want ...float64) *answers {
		t.Helper()
		a, err := openAnswers(dir)
		if err != nil {
			t.Fatal(err)
		}
		if got := list(a); !slices.Equal(got, want) || a.at.Rows != int64(len(want)) {
			t.Fatalf("%v and %d rows, want %v", got, a.at.Rows, want)
		}
		return a
	}
	add := func(a *answers, numbers ...float64) {
		t.Helper()
		for _, x := range numbers {
			if err := a.append(number(x), 1); err != nil {
				t.Fatal(err)
			}
		}
	}
	a := reopen()
	add(a, 1, 2)
	a.f.Close() // a kill
	a = reopen()
	add(a, 3, math.Inf(-1))
	if err := a.save(); err != nil {
		t.Fatal(err)
	}
	add(a, 5)
	a.f.Close()
	a = reopen(3, math.Inf(-1))
	a.saved = time.Now().Add(-time.Hour) // then the next one is made to last at once
	add(a, 6)
	add(a, 7)
	a.f.Close()
	a = reopen(3, math.Inf(-1), 6)
	add(a, 8)
	if err := a.close(); err != nil {
		t.Fatal(err)
	}
	a = reopen(3, math.Inf(-1), 6, 8)
	a.f.Close()
	if err := os.Truncate(filepath.Join(dir, answersFile), 16); err != nil {
		t.Fatal(err)
	}
	a = reopen() // less than the journal says: none can be trusted
	if err := a.remove(); err != nil {
		t.Fatal(err)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left behind: %v, %v", left, err)
	}
	if err := os.WriteFile(filepath.Join(dir, journalFile), []byte(`{"rows":-1}`), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := openAnswers(dir); err == nil || !strings.Contains(err.Error(), "remove it") {
		t.Errorf("a bad journal: %v", err)
	}
}

// TestResumeRows goes on from answers that an earlier attempt left, and wants the
// bytes of an unbroken run.
func TestResumeRows(t *testing.T) {
	model := trained(t, imageFiles(t, t.TempDir())...)
	c := newTestCluster(t, 2)
	dir := t.TempDir()
	co, env := c.coordinator(t, dir)
	a := testApp()
	for kind, set := range map[string][]string{
		kindLoglik: {"job.data=builtin:random?rows=9000&vars=16&categories=4"},
		kindSample: {"job.rows=9000", "job.format=npy", "data.image=[4,4]"},
	} {
		run := func(id string) []byte {
			t.Helper()
			cfg := testConfig(t, append(set, "job.kind="+kind, "job.model="+model)...)
			j, err := a.newJob(t.Context(), id, cfg)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := j.uploadMissing(t.Context(), env.bus, true); err != nil {
				t.Fatal(err)
			}
			text, err := j.encode(env.bus.MaxPayload())
			if err != nil {
				t.Fatal(err)
			}
			if err := a.runJob(t.Context(), id, text, co, env); err != nil {
				t.Fatal(err)
			}
			return readFile(t, dir, "runs", id, "out."+cfg.Job.Format)
		}
		want := run("whole-" + kind)
		out := filepath.Join(dir, "runs", "broken-"+kind)
		if err := os.MkdirAll(out, 0o755); err != nil {
			t.Fatal(err)
		}
		left, err := openAnswers(out)
		if err != nil {
			t.Fatal(err)
		}
		if kind == kindLoglik { // rows that only a run that goes on keeps
			if err := left.append(make([]byte, 8*4500), 4500); err != nil {
				t.Fatal(err)
			}
		}
		if err := left.save(); err != nil {
			t.Fatal(err)
		}
		if _, err := left.f.WriteString("half an answer"); err != nil {
			t.Fatal(err)
		}
		left.f.Close()
		got := run("broken-" + kind)
		if kind == kindLoglik {
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
