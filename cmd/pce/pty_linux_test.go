package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"
)

// pty is a pseudoterminal: what a command writes to slave is kept.
type pty struct {
	slave *os.File
	cols  int
	first chan struct{} // closed with the first line end
	done  chan struct{} // closed when nothing more comes

	mu   sync.Mutex
	text bytes.Buffer
	on   string // text that calls do, once
	do   func()
}

// openPTY opens a pseudoterminal of some columns.
func openPTY(t *testing.T, cols int) *pty {
	t.Helper()
	master, err := os.OpenFile("/dev/ptmx", os.O_RDWR, 0)
	if err != nil {
		t.Skipf("no pseudoterminal: %v", err)
	}
	t.Cleanup(func() { master.Close() })
	fd := int(master.Fd())
	if err := unix.IoctlSetPointerInt(fd, unix.TIOCSPTLCK, 0); err != nil {
		t.Skipf("no pseudoterminal: %v", err)
	}
	n, err := unix.IoctlGetInt(fd, unix.TIOCGPTN)
	if err != nil {
		t.Fatal(err)
	}
	slave, err := os.OpenFile(fmt.Sprintf("/dev/pts/%d", n), os.O_RDWR|unix.O_NOCTTY, 0)
	if err != nil {
		t.Skipf("no pseudoterminal: %v", err)
	}
	if err := unix.IoctlSetWinsize(fd, unix.TIOCSWINSZ, &unix.Winsize{Row: 24, Col: uint16(cols)}); err != nil {
		t.Fatal(err)
	}
	p := &pty{slave: slave, cols: cols, first: make(chan struct{}), done: make(chan struct{})}
	go p.keep(master)
	return p
}

// keep reads until the slave is closed.
func (p *pty) keep(master *os.File) {
	defer close(p.done)
	first := true
	buf := make([]byte, 4096)
	for {
		n, err := master.Read(buf)
		p.mu.Lock()
		p.text.Write(buf[:n])
		if first && bytes.IndexByte(p.text.Bytes(), '\n') >= 0 {
			close(p.first)
			first = false
		}
		if p.do != nil && bytes.Contains(p.text.Bytes(), []byte(p.on)) {
			p.do()
			p.do = nil
		}
		p.mu.Unlock()
		if err != nil {
			return
		}
	}
}

// play runs a command on the terminal, and returns all that it wrote. When it writes
// on, it is interrupted; "" does not.
func (p *pty) play(t *testing.T, args, env []string, on string) (text string, code int) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if on != "" {
		p.on, p.do = on, cancel
	}
	code = Run(ctx, args, env, strings.NewReader(""), p.slave, p.slave)
	p.slave.Close()
	<-p.done
	return p.text.String(), code
}

// screen is a terminal as far as pce needs one.
type screen struct {
	lines [][]rune
	row   int
	col   int
	cols  int
	wraps int // lines that were longer than the screen
}

func (s *screen) line() *[]rune {
	for len(s.lines) <= s.row {
		s.lines = append(s.lines, nil)
	}
	return &s.lines[s.row]
}

// show plays what a command wrote, and returns what can be read then.
func show(t *testing.T, text string, cols int) (lines []string, wraps int) {
	t.Helper()
	s := &screen{cols: cols}
	for i := 0; i < len(text); i++ {
		switch c := text[i]; {
		case c == '\r':
			s.col = 0
		case c == '\n':
			s.row++
		case c == 0x1b:
			end := strings.IndexAny(text[i:], "AJKm")
			if end < 0 || text[i+1] != '[' {
				t.Fatalf("unknown sequence %.10q", text[i:])
			}
			s.escape(t, text[i+2:i+end], text[i+end])
			i += end
		case c < 0x20 || c >= 0x80:
			t.Fatalf("unexpected byte %q before %.20q", c, text[i:])
		default:
			if s.col == s.cols {
				s.row, s.col, s.wraps = s.row+1, 0, s.wraps+1
			}
			l := s.line()
			for len(*l) <= s.col {
				*l = append(*l, ' ')
			}
			(*l)[s.col] = rune(c)
			s.col++
		}
	}
	for _, l := range s.lines {
		lines = append(lines, strings.TrimRight(string(l), " "))
	}
	return lines, s.wraps
}

func (s *screen) escape(t *testing.T, arg string, verb byte) {
	t.Helper()
	switch verb {
	case 'A':
		n := 0
		fmt.Sscan(arg, &n)
		s.row = max(0, s.row-n)
	case 'J': // from here to the end
		if l := s.line(); len(*l) > s.col {
			*l = (*l)[:s.col]
		}
		s.lines = s.lines[:s.row+1]
	default:
		t.Fatalf("unexpected sequence ESC[%s%c", arg, verb)
	}
}
