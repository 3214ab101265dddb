package main

import (
	"bufio"
	"fmt"
	"io"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/run"
)

// printResult prints the figures of the model that was saved, what lies in the run's
// directory, and what can be done with it.
func (a *app) printResult(cfg *configs.Config, r *run.Result) error {
	var b strings.Builder
	columns, _ := columnsOf(a.stdout)
	line := func(label, format string, args ...any) {
		b.WriteString(labelled(label, fmt.Sprintf(format, args...), columns))
	}
	line("circuit", "%s, %s, %s", plural(r.Nodes, "node"), plural(r.Edges, "edge"), plural(r.Parameters, "parameter"))
	measure := func(m *run.Measure) float64 {
		if m == nil {
			return math.NaN()
		}
		return float64(*m)
	}
	for _, x := range []struct {
		name  string
		value float64
	}{
		{"train ll", r.TrainLL}, {"valid ll", r.ValidLL}, {"test ll", r.TestLL},
		{"test bpd", measure(r.TestBPD)}, {"test perp.", measure(r.TestPerplexity)},
	} {
		if !math.IsNaN(x.value) {
			line(x.name, "%.6g", x.value)
		}
	}
	if r.Objective != "" {
		line("ll are of", "%s", r.Objective)
	}
	line("epoch", "%d of %d", r.BestEpoch, r.Epochs)
	line("trained", "%s in %s, %s rows/s on %s (%s)", plural(r.Steps, "step"), span(time.Duration(r.TrainSeconds*float64(time.Second))), rate(r.SamplesPerSecond), r.Device, r.PrecisionUsed)
	line("recomputed", "%s in log space", plural(r.Recomputed, "tile"))
	line("written", "%s", r.Out)
	for _, f := range []struct{ label, name string }{{"model", run.ModelFile}, {"figures", run.ResultFile}, {"samples", run.SamplesFile}, {"samples", run.TextSamplesFile}} {
		if isFile(r.Out, f.name) {
			line(f.label, "%s", filepath.Join(r.Out, f.name))
		}
	}
	for _, sample := range firstLines(filepath.Join(r.Out, run.TextSamplesFile), shownSamples, 2*columns) {
		line("sample", "%s", sample)
	}
	b.WriteString("what to do next:\n")
	for _, words := range next(cfg, r) {
		b.WriteString("  " + shellLines(words, 2, columns) + "\n")
	}
	_, err := io.WriteString(a.stdout, b.String())
	return err
}

// shownSamples is how many samples of text are printed at the end of training.
const shownSamples = 3

// firstLines returns the first lines of a text file, at most n, each cut to most characters.
// A file that cannot be read has none: its path is printed, and says more.
func firstLines(path string, n, most int) (lines []string) {
	f, err := os.Open(path)
	if err != nil {
		return nil
	}
	defer f.Close()
	r := bufio.NewReaderSize(f, (most+1)*utf8.UTFMax)
	for len(lines) < n {
		part, more, err := r.ReadLine()
		if err != nil {
			break
		}
		line := []rune(string(part))
		if len(line) > most {
			line = append(line[:most-3], []rune("...")...)
		}
		lines = append(lines, string(line))
		for more && err == nil { // the rest of a line that is longer than the buffer
			_, more, err = r.ReadLine()
		}
	}
	return lines
}

// next returns three commands that work on a run which has just ended.
func next(cfg *configs.Config, r *run.Result) [][]string {
	model := filepath.Join(r.Out, run.ModelFile)
	sample := command("query", "sample", "--model", model, "-n", "5")
	if isFile(r.Out, run.SamplesFile) { // the rows are images that can be drawn
		sample = command("query", "sample", "--model", model, "-n", "16", "--out", filepath.Join(r.Out, "more.png"))
	}
	// The rows are read as the run read them: its config says how.
	rows := slices.DeleteFunc(slices.Clone(cfg.Data.Test), func(p string) bool { return p == "" })
	if len(rows) == 0 {
		rows = slices.DeleteFunc(slices.Clone(cfg.Data.Train), func(p string) bool { return p == "" })
	}
	eval := command("eval", "--model", model, "--config", filepath.Join(r.Out, run.ConfigFile))
	if r.Class != "" { // of which the run's own figures are, where its share is 1
		eval = append(eval, "--class", r.Class)
	}
	for _, path := range rows {
		eval = append(eval, "--data", path)
	}
	return [][]string{sample, eval, command("report", r.Out)}
}

// isFile reports whether a directory has a file.
func isFile(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// hinted is an error with a command that the user may want to run now.
type hinted struct {
	error
	hint    string
	command []string
}

// Unwrap returns the error itself, so that the hint does not change the exit code.
func (h *hinted) Unwrap() error { return h.error }
