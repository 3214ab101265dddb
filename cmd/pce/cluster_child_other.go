//go:build !linux

package main

import "syscall"

// childAttributes makes a child leader of a process group.
func childAttributes() *syscall.SysProcAttr { return &syscall.SysProcAttr{Setpgid: true} }
