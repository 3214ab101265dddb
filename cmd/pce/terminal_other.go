//go:build !unix

package main

import "os"

// windowColumns returns 0, not known, for a terminal; ok is false for a file that is
// not one.
func windowColumns(f *os.File) (columns int, ok bool) {
	info, err := f.Stat()
	return 0, err == nil && info.Mode()&os.ModeCharDevice != 0
}
