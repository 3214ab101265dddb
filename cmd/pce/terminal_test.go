package main

import (
	"bytes"
	"log/slog"
	"math"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// TestFigures wants at most six digits of every number that people read.
func TestFigures(t *testing.T) {
	for _, tc := range []struct{ got, want string }{
		{count(0), "0"}, {count(-7), "-7"}, {count(999999), "999999"}, {count(1000000), "1.00M"}, {count(14196800), "14.2M"},
		{count(999499999), "999M"}, {count(999500000), "1.00G"}, {count(-2500000), "-2.50M"}, {count(math.MaxInt64), "9.22E"}, {count(math.MinInt64), "-9.22E"},
		{figure(0), "0.0000"}, {figure(-883.6873399939766), "-883.687"}, {figure(1.36533), "1.3653"}, {figure(9.99999999), "10.0000"},
		{figure(-99999.96), "-100000"}, {figure(123456.4), "123456"}, {figure(1234567), "1.235e+06"}, {figure(math.NaN()), "NaN"}, {figure(math.Inf(-1)), "-Inf"},
		{span(0), "0.0s"}, {span(9940 * time.Millisecond), "9.9s"}, {span(9950 * time.Millisecond), "10s"}, {span(99 * time.Second), "99s"},
		{span(99600 * time.Millisecond), "1m40s"}, {span(3599 * time.Second), "59m59s"}, {span(3599500 * time.Millisecond), "1h00m"},
		{span(99*time.Hour + 59*time.Minute), "99h59m"}, {span(240 * time.Hour), "10d"},
		{plural(1, "row"), "1 row"}, {plural(0, "row"), "0 rows"},
	} {
		if tc.got != tc.want {
			t.Errorf("got %q, want %q", tc.got, tc.want)
		}
		if long.MatchString(tc.got) {
			t.Errorf("%q has more than six digits", tc.got)
		}
	}
}

// long matches numbers of more than six digits.
var long = regexp.MustCompile(`[0-9]\.?[0-9]\.?[0-9]\.?[0-9]\.?[0-9]\.?[0-9]\.?[0-9]`)

// TestShellLines breaks commands to a width, and quotes what a shell would read.
func TestShellLines(t *testing.T) {
	for _, tc := range []struct {
		args    []string
		columns int
		want    string
	}{
		{[]string{"pce", "report", "runs/a"}, 100, "pce report runs/a"},
		{[]string{"pce", "report", "runs/a"}, 14, "pce report \\\n      runs/a"},
		{[]string{"a", "", "b c", "it's", "x?y&z=1", "$HOME", "é"}, 100, `a '' 'b c' 'it'\''s' 'x?y&z=1' '$HOME' 'é'`},
		{[]string{"a", "longer-than-the-line", "b"}, 10, "a \\\n      longer-than-the-line \\\n      b"},
	} {
		if got := shellLines(tc.args, 2, tc.columns); got != tc.want {
			t.Errorf("%q in %d columns: %q, want %q", tc.args, tc.columns, got, tc.want)
		}
	}
}

// TestResumedBest resumes a run after two epochs: the best figure of the bar is what the run says of these, not that of the rest alone.
func TestResumedBest(t *testing.T) {
	var b bytes.Buffer
	p := newProgress(&b, nil, false)
	p.people, p.live, p.verbose, p.columns = true, true, false, func() int { return 99 }
	p.log = slog.New(slog.DiscardHandler)
	p.start("small", "run")
	p.stage(run.Stage{Name: run.StageTrain, Resumed: 2, ResumedSteps: 4, ValidLL: -9.5, Epochs: 4})
	p.epoch(em.Metrics{Epoch: 3, ValidLL: -9.75})
	p.step(em.Progress{Epoch: 4, Epochs: 4, Step: 1, Steps: 2, Rows: 10, LL: -8})
	if want := "-8.0000 nats  best -9.5000"; !strings.HasSuffix(b.String(), want) {
		t.Errorf("%q, want %q at the end", &b, want)
	}
}

// TestBarLine draws the bar in windows of all widths: it fits, and the last step
// fills it.
func TestBarLine(t *testing.T) {
	s := em.Progress{Epoch: 10, Epochs: 10, Step: 118, Steps: 118}
	rest := []string{"1.3653 bits/dim", "best 1.3601", "1543 rows/s", "2m10s left"}
	for columns := range 120 {
		text := barLine(s, rest, columns)
		if columns >= len("epoch 10/10") && len(text) > columns {
			t.Errorf("%d columns in %d: %q", len(text), columns, text)
		}
		if strings.Contains(text, "[") && (strings.Contains(text, " ]") || !strings.Contains(text, "==========]")) {
			t.Errorf("the bar is not full: %q", text)
		}
	}
	if got, want := barLine(s, rest, 99), "epoch 10/10  ["+strings.Repeat("=", 29)+"]  "+strings.Join(rest, "  "); got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got, want := barLine(s, rest, 39), "epoch 10/10  1.3653 bits/dim"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	if got := barLine(em.Progress{Epoch: 1, Epochs: 2, Step: 5, Steps: 10}, nil, 99); !strings.Contains(got, "["+strings.Repeat("=", 15)+strings.Repeat(" ", 15)+"]") {
		t.Errorf("half a bar: %q", got)
	}
}

// TestBestStart wants the best validation figure of a run to be that of its start where no epoch was better, and else that of
// the best epoch.
func TestBestStart(t *testing.T) {
	for kept, want := range map[float64]string{-2.5: "best validation -2.5000 nats", -4: "best validation -3.0000 nats", math.NaN(): "best validation -3.0000 nats"} {
		var b bytes.Buffer
		p := &progress{w: &b, people: true, columns: func() int { return 100 }, best: math.NaN(), read: map[string]bool{}, log: slog.New(slog.DiscardHandler)}
		p.stage(run.Stage{Name: run.StageTrain, Variables: 1})
		p.epoch(em.Metrics{Epoch: 1, ValidLL: -3})
		p.stage(run.Stage{Name: run.StageTrain, Variables: 1, Done: true, ValidLL: kept})
		if !strings.Contains(b.String(), want) {
			t.Errorf("%v was kept: %q, want %q", kept, &b, want)
		}
	}
}

// TestRates: a rate below one row in a second is not 0, in the lines of epochs, at the end of training and in the figures of a cluster.
func TestRates(t *testing.T) {
	var b bytes.Buffer
	p := &progress{w: &b, people: true, columns: func() int { return 100 }, best: math.NaN()}
	p.epoch(em.Metrics{Epoch: 1, TrainLL: -3, ValidLL: math.NaN(), SamplesPerSecond: 0.25})
	a := &app{stdout: &b}
	if err := a.printResult(&configs.Config{}, &run.Result{SamplesPerSecond: 9.96}); err != nil {
		t.Fatal(err)
	}
	slow := 0.5
	b.WriteString(figures(&cluster.RunStatus{RowsPerSecond: &slow}))
	for _, want := range []string{" 0.25 rows/s", " 10 rows/s", "0.5 rows/s"} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("no %q in %s", want, &b)
		}
	}
	for x, want := range map[float64]string{0: "0", 0.004: "0.004", 9.94: "9.9", 9.96: "10", 1234567: "1.23M"} {
		if got := rate(x); got != want {
			t.Errorf("rate %v: %s, want %s", x, got, want)
		}
	}
}

// TestOne: what is printed of one thing does not call it several.
func TestOne(t *testing.T) {
	var b bytes.Buffer
	a, one := &app{stdout: &b, stderr: &b}, 1.0
	c := classification{Rows: 1, Classified: 1, Accuracy: &one, ClassLL: &one}
	for _, err := range []error{
		a.printForestBench(&forestBench{Threads: 1, Batch: 1, Steps: 1, Trees: 1}), a.printBench(&benchResult{Threads: 1, Batch: 1, Steps: 1, SumEdges: 1}),
		a.tellResized(&resizeFlags{}, &run.Resized{After: run.Size{Nodes: 1, SumEdges: 1, Parameters: 1}}, nil),
		a.printForestCheck(&forestCheck{Rows: 1, Trees: 1, Paths: []scoreCheck{{Row: 1, Leaves: 1}}}), c.print(&b),
		(&diagnosis{Cores: 1}).print(a),
	} {
		if err != nil {
			t.Fatal(err)
		}
	}
	var impossible em.Evaluation
	impossible.Add([]float64{math.Inf(-1)})
	b.WriteString(run.Warnings("", impossible, &dataset.Schema{})[0])
	if wrong := regexp.MustCompile(`(^|[^0-9.])1 (rows|steps|threads|trees|sum edges|edges|units|parameters|cores|leaves|schedules|of them have)\b`).FindAllString(b.String(), -1); wrong != nil {
		t.Errorf("%q in\n%s", wrong, &b)
	}
}

// TestKept: a circuit of which little was left out is not said to be kept whole.
func TestKept(t *testing.T) {
	for flow, want := range map[float64]string{1: "kept 100 % of", 0.999999: "kept over 99.99 % of", 0.9999: "kept 99.99 % of", 0.5: "kept 50 % of"} {
		var b bytes.Buffer
		if err := (&app{stderr: &b}).tellResized(&resizeFlags{}, &run.Resized{Flow: &flow, Rows: 2}, nil); err != nil || !strings.HasPrefix(b.String(), want) {
			t.Errorf("a flow of %v: %s, error %v; want %q", flow, &b, err, want)
		}
	}
}

// TestErase wants a line that a narrower window shows on three lines to be removed.
func TestErase(t *testing.T) {
	var b bytes.Buffer
	columns := 100
	p := &progress{w: &b, people: true, live: true, columns: func() int { return columns }, best: math.NaN()}
	p.draw(strings.Repeat("x", 150))
	if got := b.String(); got != strings.Repeat("x", 99) {
		t.Errorf("drawn %q", got)
	}
	b.Reset()
	columns = 40
	p.hide()
	if got := b.String(); got != "\r\x1b[2A\x1b[J" {
		t.Errorf("erased by %q", got)
	}
	b.Reset()
	p.hide()
	if b.Len() > 0 {
		t.Errorf("erased twice: %q", &b)
	}
}

// TestWarnings writes warnings in words where log lines are not wanted.
func TestWarnings(t *testing.T) {
	var b bytes.Buffer
	p := &progress{w: &b, people: true, columns: func() int { return 40 }, best: math.NaN()}
	log := slog.New(warnings{p: p}).With("epoch", 3)
	log.Info("epoch done")
	log.Warn("validation rows have probability 0", "first_row", 1234567, "ll", -1.0/3)
	if got, want := b.String(), "warning: validation rows have\n  probability 0, epoch 3, first row\n  1.23M, ll -0.333333\n"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

// TestLogLines keeps the lines of warnings and errors of another logger.
func TestLogLines(t *testing.T) {
	for _, verbose := range []bool{false, true} {
		var b bytes.Buffer
		p := &progress{w: &b, people: true, verbose: verbose, columns: func() int { return 100 }}
		log := slog.New(slog.NewTextHandler(p.logLines(), &slog.HandlerOptions{ReplaceAttr: shortened, Level: slog.LevelDebug}))
		log.Debug("a")
		log.Info("b")
		log.Warn("c")
		log.Error("d")
		want := "level=WARN msg=c\nlevel=ERROR msg=d\n"
		if verbose {
			want = "level=DEBUG msg=a\nlevel=INFO msg=b\n" + want
		}
		if b.String() != want {
			t.Errorf("verbose %v: %q, want %q", verbose, &b, want)
		}
	}
}

// TestTimeLeft wants the time that is left to follow from the steps that were seen,
// also where training ends after some steps, of which an earlier part of the run may have done a few.
func TestTimeLeft(t *testing.T) {
	for _, tc := range []struct {
		limit, done int64
		want        string
	}{{0, 0, "15m00s left"}, {40, 0, "5m00s left"}, {0, 20, "15m00s left"}, {60, 20, "5m00s left"}} {
		var b bytes.Buffer
		p := &progress{w: &b, live: true, columns: func() int { return 100 }, best: -2, limit: tc.limit, train: run.Stage{Variables: 1, ResumedSteps: tc.done}}
		p.step(em.Progress{Epoch: 1, Epochs: 10, Step: 1, Steps: 10, Rows: 5, LL: -3})
		for step := 2; step <= 10; step++ {
			p.begin = time.Now().Add(-time.Duration(step-1) * 100 * time.Second / 10)
			p.last = time.Time{}
			p.step(em.Progress{Epoch: 1, Epochs: 10, Step: step, Steps: 10, Rows: 5, LL: -3})
		}
		_, last, _ := strings.Cut(b.String(), "epoch 1/10  [="+strings.Repeat("=", 20))
		if !strings.Contains(b.String(), "-3.0000 nats  best -2.0000") || !strings.Contains(last, tc.want) {
			t.Errorf("limit %d, %d of them done: no %q in %q", tc.limit, tc.done, tc.want, b.String())
		}
	}
}
