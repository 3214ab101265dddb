//go:build !linux

package main

// memory returns 0, 0: this system is not asked.
func memory() (total, available uint64) { return 0, 0 }

// diskFree does not know: this system is not asked.
func diskFree(string) (bytes uint64, known bool) { return 0, false }
