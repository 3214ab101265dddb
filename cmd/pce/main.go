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
)

func main() {
	invocation = findInvocation()
	os.Exit(Run(interruptible(), os.Args[1:], os.Environ(), os.Stdin, os.Stdout, os.Stderr))
}

// interruptible returns a context that the first SIGINT or SIGTERM cancels; the
// second one ends the process.
func interruptible() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	go func() {
		<-signals
		cancel()
		<-signals
		os.Exit(exitInterrupted)
	}()
	return ctx
}
