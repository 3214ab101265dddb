package main

import "syscall"

// childAttributes makes a child leader of a process group and ties its life to
// that of the thread that starts it.
func childAttributes() *syscall.SysProcAttr {
	return &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
}
