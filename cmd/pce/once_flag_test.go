package main

import (
	"strings"
	"testing"
)

// TestFlagsGivenTwice refuses a second file where a command reads one.
func TestFlagsGivenTwice(t *testing.T) {
	for _, command := range []string{
		"query sample --given a --given b", "query loglik --model a --model b", "query kl --other a --other b", "check m --expected a --expected b",
		"predict --density a --density b", "bench --data a --data b", "reduce run p --data a --data b",
	} {
		args := strings.Fields(command)
		refused(t, exitUsage, `invalid argument "b" for "`+args[len(args)-2]+`" flag: it is given twice; give one`, args...)
	}
}
