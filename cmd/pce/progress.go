package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

const (
	leastBar    = 10
	mostBar     = 30
	barInterval = 100 * time.Millisecond
)

// progress shows on stderr how far a run of training is. There are three ways:
//
//   - on a terminal, a line for each stage that has ended, and below them one line that
//     is redrawn in place: what is being done or, while it trains, a bar;
//   - on a terminal that cannot redraw (TERM=dumb), a line for each stage and epoch;
//   - elsewhere, log lines, as log collectors read them. With -v a terminal gets them
//     too, above its bar.
//
// It writes no colours. Its methods may be called from several goroutines.
type progress struct {
	w       io.Writer
	columns func() int // of a line
	people  bool       // w is a terminal
	live    bool       // it can redraw a line
	verbose bool       // log lines, on a terminal too
	log     *slog.Logger

	mu    sync.Mutex // guards what follows, and writing to w
	drawn int        // columns of the line that is redrawn; 0: there is none
	last  time.Time  // when it was drawn
	read  map[string]bool
	train run.Stage
	begin time.Time // when the first step seen had been done
	from  float64   // epochs done then
	steps int64     // seen since begin
	rows  int64     // since begin
	limit int64     // steps that end training early; 0: none
	best  float64   // largest valid_ll so far; NaN: none
}

// newProgress returns the progress of one run. What w is, and env's TERM, decide which of the
// three ways is taken; verbose asks for log lines on a terminal too. The width is asked for at
// each line, as a window may be resized.
func newProgress(w io.Writer, env []string, verbose bool) *progress {
	_, people := columnsOf(w)
	p := &progress{
		w: w, people: people, live: people && !hasVariable(env, "TERM=dumb"), verbose: verbose || !people,
		columns: func() int { n, _ := columnsOf(w); return n },
		read:    map[string]bool{}, best: math.NaN(),
	}
	p.log = slog.New(warnings{p: p})
	if p.verbose {
		p.log = slog.New(slog.NewTextHandler(p, &slog.HandlerOptions{ReplaceAttr: shortened}))
	}
	return p
}

func hasVariable(env []string, kv string) bool {
	for _, e := range env {
		if e == kv {
			return true
		}
	}
	return false
}

// shortened drops the time of log lines, as equal runs log equal lines, and rounds
// their numbers to six digits.
func shortened(groups []string, attr slog.Attr) slog.Attr {
	switch attr.Value.Kind() {
	case slog.KindTime:
		if len(groups) == 0 && attr.Key == slog.TimeKey {
			return slog.Attr{}
		}
	case slog.KindFloat64:
		attr.Value = slog.StringValue(fmt.Sprintf("%.6g", attr.Value.Float64()))
	case slog.KindInt64:
		attr.Value = slog.StringValue(count(attr.Value.Int64()))
	case slog.KindDuration:
		d := attr.Value.Duration()
		for unit := time.Millisecond; unit <= time.Hour; unit *= 10 {
			if d < 1000*unit {
				attr.Value = slog.DurationValue(d.Round(unit))
				break
			}
		}
	}
	return attr
}

// Write writes whole log lines above the line that is redrawn, which the next step draws again.
// It is what a slog handler of the run writes to.
func (p *progress) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	return p.w.Write(line)
}

// logLines returns where a logger that another package makes writes its lines: those of
// warnings and errors alone, unless log lines are wanted.
func (p *progress) logLines() io.Writer {
	if p.verbose {
		return p
	}
	return warningLines{p}
}

// warningLines drops the lines of a slog.TextHandler that are not warnings or errors.
type warningLines struct{ w io.Writer }

func (l warningLines) Write(line []byte) (int, error) {
	for _, level := range []slog.Level{slog.LevelDebug, slog.LevelInfo} {
		if strings.HasPrefix(string(line), "level="+level.String()) {
			return len(line), nil
		}
	}
	return l.w.Write(line)
}

// hide removes the line that is redrawn.
func (p *progress) hide() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
}

// erase is for the holder of the lock. A window that was made narrower since the line
// was drawn shows it on several lines.
func (p *progress) erase() {
	if p.drawn == 0 {
		return
	}
	up := ""
	if n := (p.drawn - 1) / max(1, p.columns()); n > 0 {
		up = fmt.Sprintf("\x1b[%dA", n)
	}
	io.WriteString(p.w, "\r"+up+"\x1b[J") // a terminal that is gone does not stop the run
	p.drawn = 0
}

// draw replaces the line that is redrawn. It leaves the last column free, as some
// terminals move to the next line there.
func (p *progress) draw(text string) {
	if !p.live {
		return
	}
	p.erase()
	if n := p.columns() - 1; len(text) > n {
		text = text[:max(0, n)]
	}
	io.WriteString(p.w, text)
	p.drawn, p.last = len(text), time.Now()
}

// say writes a line that stays, for people.
func (p *progress) say(label, text string) {
	p.erase()
	io.WriteString(p.w, labelled(label, text, p.columns()))
}

// start says what is about to be done, before any of it.
func (p *progress) start(what, to string) {
	p.log.Info("run started", "what", what, "out", to)
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.people && !p.verbose {
		p.say("run", what+", written to "+to)
	}
}

// stage shows a stage of the run that begins or has ended; it is run.TrainOptions.OnStage. A
// terminal shows what is being done on the line that is redrawn, and keeps a line of what has
// ended, with the time that it took. Training is the exception: it has a line when it begins,
// and at its end one with the best validation figure. Rows that are read a second time, to be
// stored otherwise, are shown once.
func (p *progress) stage(s run.Stage) {
	doing, label, text := describe(s)
	p.mu.Lock()
	again := s.Done && s.Name == run.StageRead && p.read[s.Split] // the cells are stored otherwise now
	p.read[s.Split] = p.read[s.Split] || s.Done
	p.mu.Unlock()
	if again {
		return
	}
	if s.Done || s.Name == run.StageTrain {
		var what []any
		if text != "" {
			what = []any{"what", text}
		}
		p.log.Info(label, what...) // without times: equal runs log equal lines
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if s.Name == run.StageTrain {
		p.train = s
		if !s.Done && s.ResumedSteps > 0 {
			p.best = s.ValidLL
		}
		if s.Done && s.ValidLL > p.best { // of the start, than which no epoch was better
			p.best = s.ValidLL
		}
	}
	if !p.people {
		return
	}
	switch {
	case !s.Done:
		p.draw(doing)
		if s.Name != run.StageTrain {
			return
		}
	case s.Name == run.StageTrain && !math.IsNaN(p.best):
		text = "best validation " + p.measure(p.best)
	}
	if p.verbose {
		return
	}
	if s.Done {
		text = strings.TrimPrefix(text+", ", ", ") + span(s.Took)
	}
	p.say(label, text)
}

// describe says what a stage does, and of one that has ended (training also when it
// begins) a label and what came of it, if that is known.
func describe(s run.Stage) (doing, label, text string) {
	switch s.Name {
	case run.StageRead:
		rows := map[string]string{"train": "training", "valid": "validation", "test": "test"}[s.Split]
		return "reading " + rows + " rows ...", "read", fmt.Sprintf("%s %s, %s", rows, plural(int64(s.Rows), "row"), plural(int64(s.Variables), "variable"))
	case run.StageStructure:
		of := s.Structure
		if s.Tree != "" {
			of += " on a " + s.Tree + " tree"
		}
		return "building the structure: " + of + " ...", "structure",
			strings.TrimSuffix(fmt.Sprintf("%s: %s, %s, %s; %s", of, plural(s.Nodes, "node"), plural(s.Edges, "edge"), plural(s.Parameters, "parameter"), s.Learned), "; ")
	case run.StageCompile:
		return "compiling ...", "compiled", plural(int64(s.Layers), "layer")
	case run.StageTrain:
		if s.Done {
			return "", "trained", ""
		}
		text = fmt.Sprintf("%s of %s on %s", plural(int64(s.Epochs), "epoch"), plural(int64(s.Rows), "row"), s.Device)
		if s.Precision != "" { // workers say it once they have begun
			text += " (" + s.Precision + ")"
		}
		if s.Resumed > 0 {
			text += fmt.Sprintf(", resumed after %s", plural(int64(s.Resumed), "epoch"))
		}
		return "starting ...", "training", text
	case run.StageEvaluate:
		return "evaluating the model that was saved ...", "evaluated", "the model that was saved"
	case run.StageDraw:
		return "drawing samples ...", "drawn", "samples"
	}
	return string(s.Name) + " ...", string(s.Name), ""
}

// measure writes a mean log-likelihood in the unit that people compare: bits per
// dimension of images and text, else nats.
func (p *progress) measure(ll float64) string {
	if p.train.Bits {
		return figure(run.BitsPerDimension(ll, p.train.Variables)) + " bits/dim"
	}
	return figure(ll) + " nats"
}

// step counts a step of training and draws the bar; it is em.Options.OnStep, which is called
// after each step. It draws at the first step of each epoch, and else ten times per second at
// most. Rates and the time left are measured from the first step that this process did, so that
// a resumed run and the time of the first launch do not spoil them.
func (p *progress) step(s em.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	done := float64(s.Epoch-1) + float64(s.Step)/float64(s.Steps)
	if p.begin.IsZero() {
		p.begin, p.from = now, done
	} else {
		p.rows += int64(s.Rows)
		p.steps++
	}
	if !p.live || s.Step > 1 && now.Sub(p.last) < barInterval {
		return
	}
	took := now.Sub(p.begin)
	rest := []string{p.measure(s.LL)}
	if !math.IsNaN(p.best) {
		rest = append(rest, "best "+strings.Fields(p.measure(p.best))[0])
	}
	if p.rows > 0 && took > 0 {
		left := took.Seconds() * (float64(s.Epochs) - done) / (done - p.from)
		if p.limit > 0 {
			left = min(left, took.Seconds()/float64(p.steps)*float64(p.limit-p.train.ResumedSteps-p.steps-1))
		}
		rest = append(rest, rate(float64(p.rows)/took.Seconds())+" rows/s",
			span(time.Duration(min(max(0, left), 1e9)*float64(time.Second)))+" left")
	}
	p.draw(barLine(s, rest, p.columns()-1))
}

// barLine joins the parts of the bar that there are columns for: the epoch, then the
// rest from the left, then as much of a bar as is left.
func barLine(s em.Progress, rest []string, columns int) string {
	text := fmt.Sprintf("epoch %d/%d", s.Epoch, s.Epochs)
	used := len(text)
	for i, part := range rest {
		if used += 2 + len(part); used > columns {
			rest = rest[:i]
			break
		}
	}
	tail := strings.Join(append([]string{""}, rest...), "  ")
	if room := min(mostBar, columns-len(text)-len(tail)-4); room >= leastBar {
		done := room * s.Step / max(1, s.Steps)
		text += "  [" + strings.Repeat("=", done) + strings.Repeat(" ", room-done) + "]"
	}
	return text + tail
}

// epoch takes note of an epoch that has ended.
func (p *progress) epoch(m em.Metrics) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if !math.IsNaN(m.ValidLL) && !(m.ValidLL <= p.best) {
		p.best = m.ValidLL
	}
	if p.people && !p.live && !p.verbose {
		ll, of := m.TrainLL, "training"
		if !math.IsNaN(m.ValidLL) {
			ll, of = m.ValidLL, "validation"
		}
		p.say("epoch", fmt.Sprintf("%d/%d, %s %s, %s rows/s", m.Epoch, p.train.Epochs, of, p.measure(ll), rate(m.SamplesPerSecond)))
	}
}

// warnings is the log on a terminal without -v: a sentence for each warning or error.
type warnings struct {
	p     *progress
	attrs []slog.Attr
}

// Enabled leaves out what is not a warning or an error.
func (h warnings) Enabled(_ context.Context, level slog.Level) bool { return level >= slog.LevelWarn }

// Handle writes a record as one sentence, the message and then its attributes, above the line
// that is redrawn.
func (h warnings) Handle(_ context.Context, r slog.Record) error {
	text := r.Message
	add := func(x slog.Attr) bool {
		x = shortened(nil, x)
		text += fmt.Sprintf(", %s %s", strings.ReplaceAll(x.Key, "_", " "), x.Value)
		return true
	}
	for _, x := range h.attrs {
		add(x)
	}
	r.Attrs(add)
	h.p.mu.Lock()
	defer h.p.mu.Unlock()
	h.p.erase()
	_, err := io.WriteString(h.p.w, wrap("warning: "+text, "  ", h.p.columns())+"\n")
	return err
}

// WithAttrs returns a handler whose sentences have these attributes first. The receiver, and
// handlers made from it, are not changed.
func (h warnings) WithAttrs(attrs []slog.Attr) slog.Handler {
	return warnings{h.p, append(h.attrs[:len(h.attrs):len(h.attrs)], attrs...)}
}

// WithGroup drops the name: the trainer's log has no groups.
func (h warnings) WithGroup(string) slog.Handler { return h }
