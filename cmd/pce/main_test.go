package main

import (
	"os"
	"syscall"
	"testing"
	"time"
)

// TestOneSignal: a signal that comes twice at once, as timeout of GNU sends it, interrupts and does not end the process; one that comes
// later does.
func TestOneSignal(t *testing.T) {
	signals := make(chan os.Signal, 5)
	for range cap(signals) {
		signals <- syscall.SIGTERM
	}
	times := []time.Duration{0, time.Microsecond, oneSignal - 1, oneSignal, time.Hour}
	begin, asked, cancelled := time.Now(), 0, 0
	interrupts(signals, func() { cancelled++ }, func() time.Time {
		asked++
		return begin.Add(times[asked-1])
	})
	if cancelled != 1 || asked != 4 {
		t.Errorf("cancelled %d times, ended by signal %d; want once, and the fourth", cancelled, asked)
	}
	hangups := make(chan os.Signal, 3)
	for range cap(hangups) {
		hangups <- syscall.SIGHUP
	}
	close(hangups)
	minute := 0
	interrupts(hangups, func() { cancelled++ }, func() time.Time {
		minute++
		return begin.Add(time.Duration(minute) * time.Minute)
	})
	if cancelled != 2 || len(hangups) > 0 {
		t.Errorf("hangups cancel %d times, and the process ends before %d of them; want once, and none", cancelled-1, len(hangups))
	}
}
