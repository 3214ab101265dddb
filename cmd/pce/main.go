// Command pce trains and queries probabilistic circuits.
//
// # Shapes and units
//
// Results go to stdout, logs and progress to stderr. With --json the last line
// of stdout is one JSON object. Log-likelihoods are natural logarithms.
//
// # Errors
//
// An error is one line on stderr that says what, where and what to do. The exit
// code says the class: 0 ok, 1 internal, 2 usage or config, 3 data or model, 4
// device, memory or disk, 5 cluster, 75 checkpointed: run again, 130 interrupted.
//
// # Source
//
// One file per command; run.go builds the tree, exit.go maps errors to codes.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"
	"time"
)

func main() {
	invocation = findInvocation()
	total, _ := memory()
	boundHeap(os.Environ(), total)
	os.Exit(Run(interruptible(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// interruptible returns a context that the first SIGINT, SIGTERM or SIGHUP cancels; a second
// SIGINT or SIGTERM ends the process.
func interruptible() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	if !signal.Ignored(syscall.SIGHUP) { // as nohup has it
		signal.Notify(signals, syscall.SIGHUP)
	}
	go func() {
		interrupts(signals, func() {
			signal.Ignore(syscall.SIGPIPE) // a Ctrl-C also ends the tee that reads the log, and a line of it would end the run before its checkpoint
			cancel()
		}, time.Now)
		os.Exit(exitInterrupted)
	}()
	return ctx
}

// oneSignal is how long signals count as the first: timeout of GNU sends its signal two times, to the process and to its group, and
// the second would end a run without a checkpoint.
const oneSignal = 200 * time.Millisecond

// interrupts cancels at the first signal and returns at the second. A hangup is none of a user who will not wait: a terminal that closes
// gives several, from its shell and from the system, also after a Ctrl-C, and a checkpoint may take longer to write than lies between them.
func interrupts(signals <-chan os.Signal, cancel func(), now func() time.Time) {
	<-signals
	first := now()
	cancel()
	for s := range signals {
		if s != syscall.SIGHUP && now().Sub(first) >= oneSignal {
			return
		}
	}
}
