package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// invocation are the words that start this program again, for commands that it prints.
// main sets it to what works on this machine.
var invocation = []string{"pce"}

// command returns a command of this program.
func command(args ...string) []string {
	return append(invocation[:len(invocation):len(invocation)], args...)
}

// findInvocation returns the program's name where a shell finds the program by it, the
// command of go run where that has built it, and else the path that it was started by.
func findInvocation() []string {
	self, err := os.Executable()
	if err != nil {
		return invocation
	}
	if strings.Contains(filepath.ToSlash(self), "/go-build") {
		return []string{"go", "run", "./cmd/pce"}
	}
	name := filepath.Base(os.Args[0])
	if found, err := exec.LookPath(name); err == nil && sameFile(found, self) {
		return []string{name}
	}
	return []string{os.Args[0]}
}

func sameFile(a, b string) bool {
	infoA, errA := os.Stat(a)
	infoB, errB := os.Stat(b)
	return errA == nil && errB == nil && os.SameFile(infoA, infoB)
}
