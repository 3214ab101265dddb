package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"syscall"
	"time"
)

const (
	// childGrace is what a child has to finish the shard that it is at.
	childGrace = 30 * time.Second
	// goodLife clears the record of a child that lived this long.
	goodLife = time.Minute
	// maxFaults is how many quick deaths in a row by its own fault end a child's
	// restarts.
	maxFaults = 5
	// firstPause and longestPause bound the pause before a restart.
	firstPause   = 500 * time.Millisecond
	longestPause = 30 * time.Second
	// maxLogBytes is where a child's log is put aside when the child starts.
	maxLogBytes = 16 << 20
)

// child is a process that is kept alive.
type child struct {
	name string
	argv []string // the program first
	env  []string
	dir  string // its own directory; its output goes to the file log there
}

// errGivenUp means that a child died too often to be started again.
var errGivenUp = errors.New("given up")

// keep runs the child, again whenever it ends, until ctx ends: then it asks the
// child to stop and waits for it. An error matches errGivenUp.
func (c *child) keep(ctx context.Context, log *slog.Logger) error {
	var d deaths
	for {
		began := time.Now()
		pid, code, err := c.run(ctx)
		if ctx.Err() != nil {
			return nil
		}
		life := time.Since(began)
		pause, again := d.next(life, code)
		if !again {
			return fmt.Errorf("%w: %s died %d times within %v of its start, the last time with %v; its log %s says why",
				errGivenUp, c.name, maxFaults, goodLife, err, c.logFile())
		}
		log.Warn("worker ended, starting it again", "worker", c.name, "pid", pid, "cause", err, "life", life.Round(time.Millisecond), "pause", pause)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(pause):
		}
	}
}

// deaths is the record of a child since it last lived well.
type deaths struct{ quick, faults int }

// next says how long to wait before a child that died is started again, and
// whether to. Errors that will stay, such as wrong flags or no device, count as
// faults; signals, lost brokers and requests to stop do not.
func (d *deaths) next(life time.Duration, code int) (pause time.Duration, again bool) {
	if life >= goodLife {
		*d = deaths{}
	}
	switch code {
	case exitInternal, exitUsage, exitData, exitMachine:
		d.faults++
	default:
		d.faults = 0
	}
	pause = min(firstPause<<min(d.quick, 10), longestPause)
	d.quick++
	return pause, d.faults < maxFaults
}

func (c *child) logFile() string { return filepath.Join(c.dir, "log") }

// run starts the child once and waits for it. The child leads a process group of
// its own, so that an interrupt at the terminal is for this process alone. It
// dies with this process: its input ends, and on Linux it is killed.
func (c *child) run(ctx context.Context) (pid, code int, err error) {
	// The system sees the thread that starts a child as its parent.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	out, err := openLog(c.dir, c.logFile())
	if err != nil {
		return 0, exitCode(err), err
	}
	defer out.Close()
	cmd := exec.CommandContext(ctx, c.argv[0], c.argv[1:]...)
	cmd.Env = c.env
	cmd.Stdout, cmd.Stderr = out, out
	cmd.SysProcAttr = childAttributes()
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = childGrace
	input, err := cmd.StdinPipe() // never written to
	if err != nil {
		return 0, exitInternal, err
	}
	defer input.Close()
	if err := cmd.Start(); err != nil {
		return 0, exitUsage, err
	}
	err = cmd.Wait()
	if err == nil {
		err = errors.New("exit status 0")
	}
	return cmd.Process.Pid, cmd.ProcessState.ExitCode(), err
}

// openLog opens a child's log for appending; one that has grown large is put
// aside first.
func openLog(dir, file string) (*os.File, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	info, err := os.Stat(file)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err == nil && info.Size() > maxLogBytes {
		if err := os.Rename(file, file+".old"); err != nil {
			return nil, err
		}
	}
	return os.OpenFile(file, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
}
