//go:build unix

package main

import (
	"os"

	"golang.org/x/sys/unix"
)

// windowColumns returns the columns of a terminal, 0 if it does not know; ok is false
// for a file that is not one.
func windowColumns(f *os.File) (columns int, ok bool) {
	size, err := unix.IoctlGetWinsize(int(f.Fd()), unix.TIOCGWINSZ)
	if err != nil {
		return 0, false
	}
	return int(size.Col), true
}
