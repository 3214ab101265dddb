package main

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// script writes a program that is run in place of another one.
func script(t *testing.T, dir, name, text string) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, []byte("#!/bin/sh\n"+text), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Scripts of programs that work.
const (
	goodSuite = "echo '--- PASS: TestConformanceOnCard (1.00s)'\n"
	goodPCE   = "echo '{\"seconds_per_1k_samples\": 1}'\n"
)

// bed is a folder with scripts and a file of results.
type bed struct {
	dir, out string
	args     []string
}

// newBed writes scripts of pce, the suite and the card's program.
func newBed(t *testing.T, pce, suite, card string) *bed {
	dir := t.TempDir()
	b := &bed{dir: dir, out: filepath.Join(dir, "out.jsonl")}
	b.args = []string{
		"-pce", script(t, dir, "pce", pce), "-suite", script(t, dir, "suite", suite), "-card", script(t, dir, "card", card),
		"-device", "cuda:7", "-out", b.out,
	}
	return b
}

// run runs the benchmark with more arguments.
func (b *bed) run(more ...string) error {
	return run(context.Background(), append(slices.Clip(b.args), more...), io.Discard, io.Discard)
}

// records reads the results.
func (b *bed) records(t *testing.T) []record {
	t.Helper()
	records, err := readRecords(b.out)
	if err != nil {
		t.Fatal(err)
	}
	return records
}

// find returns the last record of a part.
func find(t *testing.T, records []record, name string) record {
	t.Helper()
	for _, r := range slices.Backward(records) {
		if r.Part == name {
			return r
		}
	}
	t.Fatalf("no record of %q", name)
	return record{}
}

// TestSuite runs suites that pass, fail, skip and hang. Measurements follow in any case,
// and carry what the suite has said, but not with -strict.
func TestSuite(t *testing.T) {
	for _, c := range []struct {
		name, suite string
		strict      bool
		measured    bool
		state       string
		words       string // of the suite's error
	}{
		{"pass", "test \"$PCE_CARD\" = cuda:7 && test -n \"$CUDA_CACHE_PATH\" && test \"$4 $5\" = '-depth brief' || exit 3\n" + goodSuite, false, true, suitePassed, ""},
		{"pass, strict", goodSuite, true, true, suitePassed, ""},
		{"fail", "echo '    --- FAIL: TestConformanceOnCard/step'\nseq 1000\nexit 1", false, true, suiteFailed, "FAIL: TestConformanceOnCard/step"},
		{"fail, strict", "exit 1", true, false, suiteFailed, "exit status 1"},
		{"skip", "echo '--- SKIP: TestConformanceOnCard'", false, true, suiteFailed, "has not run"},
		{"hang", "echo begun; exec sleep 600", false, true, suiteFailed, "not done within"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBed(t, goodPCE, c.suite, "echo '{}'")
			more := []string{"-call", "1", "-sets", "rat-batch"}
			if c.strict {
				more = append(more, "-strict")
			}
			if c.name == "hang" {
				more = append(more, "-most", "300ms")
			}
			err := b.run(more...)
			if err == nil { // the step beside the CPU has no model
				t.Error("no error")
			}
			records := b.records(t)
			suite := find(t, records, "suite brief")
			if !strings.Contains(suite.Error, c.words) || (suite.Error == "") != (c.words == "") || suite.Suite != c.state {
				t.Errorf("suite %+v", suite)
			}
			measured := slices.ContainsFunc(records, func(r record) bool { return r.Part == "ratspn-512 batch 8" })
			if measured != c.measured {
				t.Fatalf("measured: %v; records %+v", measured, records)
			}
			if measured {
				if r := find(t, records, "ratspn-512 batch 8"); r.Suite != c.state || r.Error != "" {
					t.Errorf("row %+v", r)
				}
			}
			if _, err := os.Stat(b.out + ".suite.log"); err != nil {
				t.Error(err)
			}
			var table strings.Builder
			if err := printTables(&table, b.out); err != nil {
				t.Fatal(err)
			}
			if marked := strings.Contains(table.String(), "ratspn-512 batch 8 (!)"); marked != (c.measured && c.state != suitePassed) {
				t.Errorf("marked: %v in\n%s", marked, table.String())
			}
		})
	}
}

// TestStrictRepeated repeats a call with -strict whose suite has failed: the suite comes first, and what it
// kept from being measured follows.
func TestStrictRepeated(t *testing.T) {
	b := newBed(t, goodPCE, "exit 1", "echo '{}'")
	args := []string{"-call", "1", "-sets", "rat-batch", "-only", "^(suite|ratspn)", "-strict"}
	if err := b.run(args...); err == nil || !strings.Contains(err.Error(), "has not passed") {
		t.Fatalf("a suite that fails: %v", err)
	}
	script(t, b.dir, "suite", goodSuite)
	if err := b.run(args...); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"suite brief", "ratspn-512 batch 8"} {
		if r := find(t, b.records(t), name); r.Error != "" || r.Suite != suitePassed {
			t.Errorf("record %+v", r)
		}
	}
}

// withPeer are the arguments of a call that has PyJuice, whose benchmark is a script.
func (b *bed) withPeer(t *testing.T, text string) []string {
	t.Helper()
	return []string{"-call", "3", "-only", "beside PyJuice", "-pyjuice", b.dir, "-peer", script(t, b.dir, "peer", ""), "-python", script(t, b.dir, "python", text)}
}

// goodPeer is what PyJuice's benchmark prints.
const goodPeer = "echo '{\"structure\": \"x\", \"batch\": 512, \"seconds_per_60k\": 90, \"peak_mem_bytes\": 1048576}'\n"

// tables prints the results.
func (b *bed) tables(t *testing.T) string {
	t.Helper()
	var table strings.Builder
	if err := printTables(&table, b.out); err != nil {
		t.Fatal(err)
	}
	return table.String()
}

// TestPeerLater makes call 3 without PyJuice and then with it: the pairs are still to be measured.
func TestPeerLater(t *testing.T) {
	b := newBed(t, goodPCE, goodSuite, "")
	if err := b.run("-call", "3", "-only", "suite|PyJuice"); err != nil {
		t.Fatal(err)
	}
	if n := len(b.records(t)); n != 1 {
		t.Errorf("%d records without PyJuice, want that of the suite alone", n)
	}
	if err := b.run(b.withPeer(t, goodPeer)...); err != nil {
		t.Fatal(err)
	}
	text := b.tables(t)
	for _, p := range pairs {
		find(t, b.records(t), p.name(false))
		if row := p.structure.name + "-" + strconv.Itoa(p.latents); !strings.Contains(text, "| "+row) {
			t.Errorf("no row of %s beside PyJuice in\n%s", row, text)
		}
	}
}

// TestPeerFails has a benchmark of PyJuice that prints an error as its result, or none, and ends well: the
// part has failed, the tables say so, and it is measured when the call is made once more.
func TestPeerFails(t *testing.T) {
	for text, want := range map[string]string{
		"echo '{\"structure\": \"x\", \"error\": \"OutOfMemoryError: CUDA\"}'\n": "OutOfMemoryError: CUDA",
		"echo '{\"structure\": \"x\"}'\n":                                        "no seconds_per_60k",
		"echo nothing\n":                                                         "no JSON object",
	} {
		b := newBed(t, goodPCE, goodSuite, "")
		if err := b.run(b.withPeer(t, text)...); err == nil || !strings.Contains(err.Error(), "5 parts failed") {
			t.Errorf("%q: %v", text, err)
		}
		name := pairs[0].name(false)
		if r := find(t, b.records(t), name); !strings.Contains(r.Error, "pyjuice: "+want) || !strings.Contains(b.tables(t), name+" failed") {
			t.Errorf("%q: record %+v, tables\n%s", text, r, b.tables(t))
		}
		if err := b.run(b.withPeer(t, goodPeer)...); err != nil {
			t.Fatal(err)
		}
		if r := find(t, b.records(t), name); r.Error != "" || len(r.Steps) != 3 {
			t.Errorf("%q: record %+v", text, r)
		}
	}
}

// TestProfilerLater makes a call where the profiler is missing, and then where it is there: the part that lacked
// it is run, and once.
func TestProfilerLater(t *testing.T) {
	b := newBed(t, goodPCE, goodSuite, "")
	bin := t.TempDir()
	t.Setenv("PATH", bin) // of scripts that need nothing of another
	for _, c := range []struct {
		there   bool
		records int
	}{{false, 1}, {false, 1}, {true, 2}, {true, 2}} {
		if c.there {
			script(t, bin, "ncu", "while [ \"$1\" != --log-file ]; do shift; done\nprintf '%s\\n' '\"ID\",\"a__b\"' '\"\",\"\"' '\"0\",\"1\"' >\"$2\"\n")
		}
		if err := b.run("-call", "2", "-only", "counters"); err != nil {
			t.Fatal(err)
		}
		records := b.records(t)
		last := records[len(records)-1]
		if len(records) != c.records || len(last.Steps) != len(counted) || (last.Steps[0].Skipped == "") != c.there || (len(last.Steps[0].Results) == 1) != c.there {
			t.Errorf("profiler: %v; %d records, the last %+v", c.there, len(records), last)
		}
	}
}

// TestState wants a suite to count as failed while any depth's last run has failed.
func TestState(t *testing.T) {
	run := func(build, part, problem string) record { return record{Build: build, Part: part, Error: problem} }
	for _, c := range []struct {
		records []record
		want    string
	}{
		{nil, suiteUnknown},
		{[]record{run("x", "doctor", "")}, suiteUnknown},
		{[]record{run("y", "suite brief", "")}, suiteUnknown},
		{[]record{run("x", "suite brief", "")}, suitePassed},
		{[]record{run("x", "suite brief", "red"), run("x", "suite full", "")}, suiteFailed},
		{[]record{run("x", "suite brief", ""), run("x", "suite full", "red")}, suiteFailed},
		{[]record{run("x", "suite brief", "red"), run("x", "suite brief", "")}, suitePassed},
		{[]record{run("x", "suite brief", ""), run("y", "suite brief", "red")}, suitePassed},
	} {
		if got := stateOf(c.records, "x"); got != c.want {
			t.Errorf("%+v: %s, want %s", c.records, got, c.want)
		}
	}
}

// TestHang has a part that hangs, with a child that holds its output: it is reported
// within its budget, with what it printed, the others run, and it comes last when the
// call is made again.
func TestHang(t *testing.T) {
	b := newBed(t, "case \"$*\" in *'--batch 16 '*) echo '{\"seconds_per_1k_samples\": 2}'; sleep 600 & echo $! >\"$(dirname \"$0\")/child\"; sleep 600;; esac\n"+goodPCE, goodSuite, "")
	begin := time.Now()
	err := b.run("-sets", "rat-batch", "-most", "500ms")
	if err == nil || !strings.Contains(err.Error(), "1 parts failed") {
		t.Fatalf("error %v", err)
	}
	if d := time.Since(begin); d > lingering {
		t.Errorf("took %v", d)
	}
	child, err := os.ReadFile(filepath.Join(b.dir, "child"))
	if err != nil {
		t.Fatal(err)
	}
	// The child is gone, or waits for its parent to look at how it ended.
	if stat, err := os.ReadFile("/proc/" + strings.TrimSpace(string(child)) + "/stat"); err == nil && !strings.Contains(string(stat), ") Z ") {
		t.Errorf("the child runs on: %s", stat)
	}
	records := b.records(t)
	if len(records) != 7 {
		t.Fatalf("%d records", len(records))
	}
	hung := find(t, records, "ratspn-512 batch 16")
	if !strings.Contains(hung.Error, "not done within") || len(hung.Steps) != 1 || len(hung.Steps[0].Results) != 1 || hung.Budget != 0.5 {
		t.Errorf("record %+v", hung)
	}
	if err := b.run("-sets", "rat-batch,batch-2048", "-most", "500ms"); err == nil {
		t.Error("no error the second time")
	}
	records = b.records(t)
	if last := records[len(records)-1]; last.Part != hung.Part || len(records) != 7+12+1 {
		t.Errorf("%d records, the last of %q", len(records), last.Part)
	}
}

// TestResume cuts calls in the middle of a part and of a line, carries the file on to
// another machine, and wants every part once.
func TestResume(t *testing.T) {
	counted := "echo x >>\"$(dirname \"$0\")/runs\"\n" + goodPCE
	b := newBed(t, counted, goodSuite, "")
	runs := func() int {
		data, _ := os.ReadFile(filepath.Join(b.dir, "runs"))
		return strings.Count(string(data), "x")
	}
	if err := b.run("-sets", "rat-batch"); err != nil || runs() != 7 {
		t.Fatalf("%d runs, error %v", runs(), err)
	}
	data, err := os.ReadFile(b.out)
	if err != nil {
		t.Fatal(err)
	}
	lines := strings.SplitAfter(string(data), "\n")
	for _, c := range []struct {
		name string
		text string
		runs int
	}{
		{"whole", string(data), 0},
		{"cut in the last line", string(data[:len(data)-5]), 1},
		{"cut before the last line's end", string(data[:len(data)-1]), 0},
		{"cut after the first line", lines[0], 6},
		{"cut in the first line", lines[0][:10], 7},
		{"nothing", "", 7},
	} {
		t.Run(c.name, func(t *testing.T) {
			if err := os.WriteFile(b.out, []byte(c.text), 0o644); err != nil {
				t.Fatal(err)
			}
			before := runs()
			carried := filepath.Join(t.TempDir(), "carried.jsonl")
			if err := b.run("-sets", "rat-batch", "-in", b.out, "-out", carried); err != nil {
				t.Fatal(err)
			}
			if err := b.run("-sets", "rat-batch"); err != nil {
				t.Fatal(err)
			}
			if n := runs() - before; n != 2*c.runs {
				t.Errorf("%d runs, want %d for each of two files", n, c.runs)
			}
			for _, path := range []string{b.out, carried} {
				records, err := readRecords(path)
				if err != nil || len(records) != 7 {
					t.Errorf("%s: %d records, error %v", path, len(records), err)
				}
			}
		})
	}
	if err := b.run("-sets", "rat-batch", "-in", b.out); err == nil {
		t.Error("-in with an -out that exists")
	}
	script(t, b.dir, "pce", counted+"# another build\n")
	before := runs()
	if err := b.run("-sets", "rat-batch"); err != nil || runs() != before+7 {
		t.Errorf("%d runs of another build, error %v", runs()-before, err)
	}
	if err := os.WriteFile(b.out, []byte("{\n"+lines[0]), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := b.run("-sets", "rat-batch"); err == nil || !strings.Contains(err.Error(), "line 1") {
		t.Errorf("a damaged line in the middle: %v", err)
	}
}

// TestOtherSetting refuses to continue a file of another precision, of the emulator or of a rehearsal, whose
// parts have the same names: none would run. Another card may continue it, and either precision one with a suite alone.
func TestOtherSetting(t *testing.T) {
	b := newBed(t, goodPCE, goodSuite, "")
	if err := b.run("-sets", "rat-batch"); err != nil {
		t.Fatal(err)
	}
	for _, more := range [][]string{{"-precision", "fp32"}, {"-rehearse"}, {"-device", "emulator"}} {
		other := filepath.Join(t.TempDir(), "other.jsonl")
		for _, file := range [][]string{nil, {"-in", b.out, "-out", other}} {
			err := b.run(slices.Concat([]string{"-sets", "rat-batch"}, more, file)...)
			if err == nil || !strings.Contains(err.Error(), b.out) || !strings.Contains(err.Error(), "a file of its own") {
				t.Errorf("%q %q: %v", more, file, err)
			}
		}
		if _, err := os.Stat(other); err == nil {
			t.Errorf("%q leaves a file", more)
		}
	}
	if err := b.run("-sets", "rat-batch", "-device", "cuda:1"); err != nil || len(b.records(t)) != 7 {
		t.Errorf("another card: %d records, error %v", len(b.records(t)), err)
	}
	b = newBed(t, goodPCE, goodSuite, "")
	if err := b.run("-call", "1", "-only", "suite"); err != nil {
		t.Fatal(err)
	}
	if err := b.run("-sets", "rat-batch", "-precision", "fp32"); err != nil {
		t.Error(err)
	}
	if r := find(t, b.records(t), "ratspn-512 batch 8"); r.Suite != suitePassed || r.Precision != "fp32" {
		t.Errorf("record %+v", r)
	}
}

// TestCut ends the benchmark while a part runs: that one is not recorded.
func TestCut(t *testing.T) {
	b := newBed(t, "case \"$*\" in *'--batch 32 '*) echo >\"$(dirname \"$0\")/begun\"; exec sleep 600;; esac\n"+goodPCE, goodSuite, "")
	begun := filepath.Join(b.dir, "begun")
	if err := syscall.Mkfifo(begun, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	go func() {
		_, _ = os.ReadFile(begun) // until the script has written to it
		cancel()
	}()
	err := run(ctx, append(slices.Clip(b.args), "-sets", "rat-batch"), io.Discard, io.Discard)
	if err == nil || !strings.Contains(err.Error(), `ended before "ratspn-512 batch 32"`) {
		t.Errorf("error %v", err)
	}
	if records := b.records(t); len(records) != 2 {
		t.Errorf("%d records", len(records))
	}
}

// TestTime leaves parts whose budgets exceed the time that is left, and takes others.
func TestTime(t *testing.T) {
	b := newBed(t, goodPCE, goodSuite, "")
	err := b.run("-sets", "batch-2048", "-time", "10s")
	if err == nil || !strings.Contains(err.Error(), "no time for hmm-2048 batch 2048, pd-256 batch 2048;") {
		t.Errorf("error %v", err)
	}
	records := b.records(t)
	if len(records) != 10 {
		t.Errorf("%d records", len(records))
	}
	for _, r := range records {
		if r.Budget > 10 {
			t.Errorf("%s has begun with a budget of %v s", r.Part, r.Budget)
		}
	}
}

// TestBudgets wants the parts of each call to fit into its time together, those of the
// third without what it does with time that is left.
func TestBudgets(t *testing.T) {
	o := &options{pyjuice: "x", peer: "y", cutlass: "z"}
	for call, list := range calls {
		var sum time.Duration
		names := map[string]bool{}
		for _, p := range list(o) {
			if names[p.name] {
				t.Errorf("call %d has %q twice", call, p.name)
			}
			names[p.name] = true
			if p.budget <= 0 || len(p.steps) == 0 {
				t.Errorf("call %d: part %+v", call, p)
			}
			if !p.rest && !strings.HasSuffix(p.name, "CuTe") {
				sum += p.budget
			}
		}
		if sum > callTime || sum < callTime/2 {
			t.Errorf("call %d takes %v of %v", call, sum, callTime)
		}
	}
}

// TestFlags refuses what cannot be meant.
func TestFlags(t *testing.T) {
	for _, args := range [][]string{
		{}, {"-call", "4"}, {"-call", "-1"}, {"-sets", "main"}, {"-call", "1", "more"}, {"-call", "1", "-peer", "x"}, {"-call", "1", "-cutlass", "x"},
	} {
		if err := run(context.Background(), append(args, "-out", filepath.Join(t.TempDir(), "out")), io.Discard, io.Discard); err == nil {
			t.Errorf("%q is accepted", args)
		}
	}
}

// TestCompare finds the worst row, and NaN anywhere.
func TestCompare(t *testing.T) {
	nan := "NaN"
	for _, c := range []struct {
		card, cpu string
		worst     int
		ok        bool
	}{
		{"-4000 -1", "-4000.03 -1", 0, true},
		{"-4000 -1", "-4000.05 -1", 0, false},
		{"-4000 -1", "-4000.01 -1.00001", 1, true},
		{"-4000 -1", "-4000 " + nan, 1, false},
		{nan + " -1", "-4000 -9", 0, false},
		{"-1", "-1 -1", 0, false},
		{"", "", 0, false},
		{"-Inf", "-Inf", 0, false},
	} {
		parse := func(s string) (list []float64) {
			for _, f := range strings.Fields(s) {
				x, err := strconv.ParseFloat(f, 64)
				if err != nil {
					t.Fatal(err)
				}
				list = append(list, x)
			}
			return list
		}
		got, err := compare(parse(c.card), parse(c.cpu))
		if (err == nil) != c.ok || got != nil && got.WorstRow != c.worst {
			t.Errorf("%q and %q: %+v, %v", c.card, c.cpu, got, err)
		}
	}
}
