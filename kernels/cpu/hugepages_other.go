//go:build !linux

package cpu

func preferHugePages([]byte) {}
