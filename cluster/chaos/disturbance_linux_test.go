package chaos

import (
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"syscall"
	"time"
)

// disturbance is something that goes wrong at a moment.
type disturbance struct {
	after  time.Duration // the one before
	kind   string
	host   string
	other  string // the second host of a cut
	silent bool   // nobody is told that packets do not arrive
	hold   time.Duration

	at      time.Duration // since the run was submitted
	outcome string
}

func (d *disturbance) String() string {
	text := fmt.Sprintf("%6.2fs  %s %s", d.at.Seconds(), d.kind, d.host)
	if d.other != "" {
		text += " from " + d.other
	}
	if d.silent {
		text += ", silently"
	}
	return fmt.Sprintf("%s, for %.2fs: %s", text, d.hold.Seconds(), d.outcome)
}

// kinds are what can go wrong, the frequent ones several times.
var kinds = []struct {
	name     string
	likely   int
	from, to time.Duration // how long it lasts; of what ends a process: until it is started again
}{
	{"kill worker", 4, 0, 3 * time.Second},
	{"kill coordinator", 3, 0, 2 * time.Second},
	{"kill broker", 3, 0, 2 * time.Second},
	{"stop worker", 1, 0, 2 * time.Second},
	{"freeze", 2, 500 * time.Millisecond, 5 * time.Second},
	{"unplug", 3, 500 * time.Millisecond, 6 * time.Second},
	{"cut", 3, 500 * time.Millisecond, 6 * time.Second},
	{"fill disk of coordinator", 2, time.Second, 4 * time.Second},
	{"fill disk of worker", 1, time.Second, 4 * time.Second},
}

// draw draws the disturbances of a run. Later tries have earlier ones, in longer runs.
func draw(seed uint64, try int) []*disturbance {
	r := rand.New(rand.NewPCG(seed, uint64(try)))
	span := func(from, to time.Duration) time.Duration { return from + time.Duration(r.Int64N(int64(to-from))) }
	var deck []int
	for i, k := range kinds {
		for range k.likely {
			deck = append(deck, i)
		}
	}
	list := make([]*disturbance, 1+r.IntN(4))
	for i := range list {
		k := kinds[deck[r.IntN(len(deck))]]
		d := &disturbance{kind: k.name, after: span(0, 2*time.Second) >> try, hold: span(k.from, k.to), silent: r.IntN(2) == 0}
		worker, any := hosts[2+r.IntN(workers)], r.IntN(len(hosts))
		switch k.name {
		case "kill coordinator", "fill disk of coordinator":
			d.host = "coordinator"
		case "kill broker":
			d.host = "broker"
		case "kill worker", "stop worker", "fill disk of worker":
			d.host = worker
		default:
			d.host = hosts[any]
		}
		if k.name == "cut" {
			d.other = hosts[(any+1+r.IntN(len(hosts)-1))%len(hosts)]
		} else if k.name != "unplug" {
			d.silent = false
		}
		list[i] = d
	}
	return list
}

// disturb begins a disturbance and sees to its end. It reports whether there was
// anybody to disturb.
func (s *scene) disturb(d *disturbance) (hit bool, err error) {
	victim := s.services[d.host]
	switch d.kind {
	case "kill worker", "kill coordinator", "kill broker":
		return victim.signal(syscall.SIGKILL, d.hold), nil
	case "stop worker":
		return victim.signal(syscall.SIGTERM, d.hold), nil
	}
	if !victim.alive() {
		return false, nil
	}
	var undo func() error
	switch d.kind {
	case "freeze":
		hit = victim.signal(syscall.SIGSTOP, 0)
		undo = func() error { victim.signal(syscall.SIGCONT, 0); return nil }
	case "unplug":
		err = s.net.setLink(d.host, "down", d.silent)
		undo = func() error { return s.net.setLink(d.host, "up", d.silent) }
	case "cut":
		err = s.net.cut(d.host, d.other, d.silent)
		undo = func() error {
			s.net.join(d.host, d.other, d.silent) // fails if the link was down meanwhile, which ends it too
			return nil
		}
	case "fill disk of coordinator", "fill disk of worker":
		file := filepath.Join(s.dir(d.host), "filler")
		err = fill(file)
		undo = func() error { return os.RemoveAll(file) }
	default:
		panic("chaos: unknown disturbance " + d.kind)
	}
	s.later(d.hold, undo)
	return err == nil && (hit || d.kind != "freeze"), err
}

// fill writes to a file until the disk is full.
func fill(file string) error {
	f, err := os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		return err
	}
	defer f.Close()
	for size := 1 << 20; size > 0; size /= 2 {
		for err = nil; err == nil; {
			_, err = f.Write(make([]byte, size))
		}
		if !errors.Is(err, syscall.ENOSPC) && !errors.Is(err, io.ErrShortWrite) {
			return err
		}
	}
	return nil
}
