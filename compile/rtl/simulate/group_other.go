//go:build !unix

package simulate

import "os/exec"

// killGroup does nothing: the command is killed alone.
func killGroup(*exec.Cmd) {}
