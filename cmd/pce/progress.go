package main

import (
	"fmt"
	"io"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/pce-engine/pce/em"
)

const (
	barWidth    = 30
	barInterval = 100 * time.Millisecond
	eraseLine   = "\r\x1b[K"
)

// progress is a writer for log lines that keeps a bar below them on a terminal.
type progress struct {
	w   io.Writer
	bar bool // w is a terminal

	mu    sync.Mutex // guards what follows, and writing to w
	shown bool
	last  time.Time // when the bar was drawn
	begin time.Time // when the epoch's first step was seen
	epoch int
	rows  int // of the epoch, since begin
}

func newProgress(w io.Writer, env []string) *progress {
	p := &progress{w: w}
	if f, ok := w.(*os.File); ok {
		info, err := f.Stat()
		p.bar = err == nil && info.Mode()&os.ModeCharDevice != 0 && !hasVariable(env, "TERM=dumb")
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

// Write writes whole log lines; the bar makes room for them.
func (p *progress) Write(line []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
	return p.w.Write(line)
}

func (p *progress) hide() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.erase()
}

// erase is for the holder of the lock.
func (p *progress) erase() {
	if p.shown {
		io.WriteString(p.w, eraseLine) // a terminal that is gone is no reason to stop
		p.shown = false
	}
}

// step draws the bar, not too often.
func (p *progress) step(s em.Progress) {
	if !p.bar {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	now := time.Now()
	if s.Epoch != p.epoch {
		p.epoch, p.rows, p.begin = s.Epoch, 0, now
	} else {
		p.rows += s.Rows
	}
	if now.Sub(p.last) < barInterval {
		return
	}
	p.last, p.shown = now, true
	done := barWidth * s.Step / s.Steps
	rate := float64(p.rows) / max(now.Sub(p.begin).Seconds(), 1e-3)
	fmt.Fprintf(p.w, "%sepoch %d/%d [%s%s] %d/%d  running ll %.4f  %.0f rows/s", eraseLine, s.Epoch, s.Epochs,
		strings.Repeat("=", done), strings.Repeat(" ", barWidth-done), s.Step, s.Steps, s.LL, rate)
}
