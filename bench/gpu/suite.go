package main

import (
	"bytes"
	"errors"
	"strings"
	"time"
)

// suiteTest is the test that runs the conformance suite on a card.
const suiteTest = "TestConformanceOnCard"

// suitePart runs the conformance suite to a depth, "brief" or "full".
func (o *options) suitePart(depth string, budget time.Duration) part {
	s := step{
		name:    "suite",
		command: []string{o.suite, "-test.run", "^" + suiteTest + "$", "-test.v", "-depth", depth},
		env:     append(o.env[:len(o.env):len(o.env)], "PCE_CARD="+o.device),
		log:     o.suiteLog(),
		read:    readSuite,
	}
	return part{name: "suite " + depth, budget: budget, steps: []step{s}}
}

// isSuite reports whether a part is the conformance suite.
func isSuite(part string) bool { return strings.HasPrefix(part, "suite ") }

// suiteLog is the file of what the conformance suite prints, written as it comes.
func (o *options) suiteLog() string { return o.out + ".suite.log" }

// readSuite wants the line of a test that has passed: a program without CUDA skips it
// and ends well.
func readSuite(output []byte) (any, error) {
	if !bytes.Contains(output, []byte("--- PASS: "+suiteTest)) {
		return nil, errors.New("the suite has not run: " + tail(output))
	}
	return map[string]int{"passed": bytes.Count(output, []byte("--- PASS: "))}, nil
}
