// Package bustest checks that a cluster.Bus keeps the promises of its comments.
// Every implementation runs the same checks.
//
// # Shapes and units
//
// Time is what the sleep of a Bench passes: that of a clock, or simulated.
//
// # Errors
//
// What is wrong is reported to the test.
//
// # Goroutines
//
// A check may start goroutines, and waits for them.
//
// # Source
//
// The contract is in package cluster.
package bustest

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
)

// Bench is what a check works with.
type Bench struct {
	// Open returns a member's bus, each time that of another member of the same
	// cluster. It closes when the test ends.
	Open func(t *testing.T) cluster.Bus
	// Lease is how long records of members and the lead live. Twenty of them are
	// more than it takes until a job is given to another taker.
	Lease time.Duration
	// Sleep waits.
	Sleep func(time.Duration)
}

// Check is one promise. Checks use keys of their own, so one cluster will do.
type Check struct {
	Name string
	Run  func(t *testing.T, b Bench)
}

// Checks are all of them, for those who have to wrap each.
var Checks = []Check{
	{"Messages", messages},
	{"MessageSize", messageSize},
	{"Addresses", addresses},
	{"Records", records},
	{"Revisions", revisions},
	{"Keys", keys},
	{"Race", race},
	{"Expiry", expiry},
	{"Lead", lead},
	{"Jobs", jobs},
	{"JobRedelivery", jobRedelivery},
	{"JobOnce", jobOnce},
	{"DeadLetters", deadLetters},
	{"Blobs", blobs},
	{"BlobErrors", blobErrors},
	{"Events", eventsCheck},
	{"EndedContext", endedContext},
}

// Run runs all checks as subtests.
func Run(t *testing.T, open func(t *testing.T) cluster.Bus, lease time.Duration, sleep func(time.Duration)) {
	for _, c := range Checks {
		t.Run(c.Name, func(t *testing.T) { c.Run(t, Bench{open, lease, sleep}) })
	}
}

// eventually polls until done reports true.
func (b Bench) eventually(t *testing.T, what string, done func() bool) {
	t.Helper()
	for range 4000 { // of which a busy machine may need many
		if done() {
			return
		}
		b.Sleep(b.Lease / 20)
	}
	t.Fatalf("%s: not within two hundred leases", what)
}

// limited is a context for calls that must not wait for long.
func (b Bench) limited(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(t.Context(), 400*b.Lease)
	t.Cleanup(cancel)
	return ctx
}

func fatal(t *testing.T, what string, err error) {
	t.Helper()
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// matches wants an error of a class, in one line.
func matches(t *testing.T, what string, err, class error) {
	t.Helper()
	if !errors.Is(err, class) {
		t.Fatalf("%s: error %v, want one that matches %q", what, err, class)
	}
	if class != nil {
		oneLine(t, what, err)
	}
}

func oneLine(t *testing.T, what string, err error) {
	t.Helper()
	if err == nil {
		t.Fatalf("%s: no error", what)
	}
	for _, c := range err.Error() {
		if c == '\n' {
			t.Fatalf("%s: error of several lines: %q", what, err)
		}
	}
}

func name(prefix string, i int) string { return fmt.Sprintf("%s-%d", prefix, i) }
