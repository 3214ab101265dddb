//go:build unix

package simulate

import (
	"os/exec"
	"syscall"
)

// killGroup has the context of a command end what it has started too: verilator, killed alone, leaves compilers that work for minutes.
func killGroup(c *exec.Cmd) {
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	c.Cancel = func() error { return syscall.Kill(-c.Process.Pid, syscall.SIGKILL) }
}
