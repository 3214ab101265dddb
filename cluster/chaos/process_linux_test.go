package chaos

import (
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// usualPause is before a process that ended by itself is started again.
const usualPause = 300 * time.Millisecond

// spawner starts processes from one thread. The system kills them when that
// thread ends, which is when this process does, however it does.
var spawner = sync.OnceValue(func() chan<- func() {
	work := make(chan func())
	go func() {
		runtime.LockOSThread()
		for f := range work {
			f()
		}
	}()
	return work
})

func spawn(cmd *exec.Cmd) error {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	started := make(chan error)
	spawner() <- func() { started <- cmd.Start() }
	return <-started
}

// service is a process on a host that is started again whenever it ends.
type service struct {
	host string
	argv []string // ip netns exec SPACE PROGRAM ..., which becomes PROGRAM
	env  []string
	out  *os.File // gets its output, of all lives

	mu      sync.Mutex
	cmd     *exec.Cmd // nil: it does not run
	asked   bool      // the end of this life is wanted
	pause   time.Duration
	closed  bool
	odd     []string // ends that nothing outside explains
	wake    chan struct{}
	stopped chan struct{}
}

// serve starts a service.
func serve(host string, argv, env []string, out *os.File) *service {
	s := &service{host: host, argv: argv, env: env, out: out, wake: make(chan struct{}), stopped: make(chan struct{})}
	go s.keep()
	return s
}

func (s *service) keep() {
	defer close(s.stopped)
	for {
		cmd := exec.Command(s.argv[0], s.argv[1:]...)
		cmd.Env, cmd.Stdout, cmd.Stderr = s.env, s.out, s.out
		s.mu.Lock()
		if s.closed {
			s.mu.Unlock()
			return
		}
		err := spawn(cmd)
		if err != nil {
			s.odd = append(s.odd, fmt.Sprintf("%s: %v", s.host, err))
			s.mu.Unlock()
			return
		}
		s.cmd, s.asked, s.pause = cmd, false, usualPause
		s.mu.Unlock()
		s.note("process %d started", cmd.Process.Pid)
		cmd.Wait()
		s.mu.Lock()
		s.cmd = nil
		if code := cmd.ProcessState.ExitCode(); !s.asked && !s.closed && explained[code] == "" {
			s.odd = append(s.odd, fmt.Sprintf("%s ended by itself: %v", s.host, cmd.ProcessState))
		}
		pause := s.pause
		s.mu.Unlock()
		s.note("process %d ended: %v", cmd.Process.Pid, cmd.ProcessState)
		select {
		case <-time.After(pause):
		case <-s.wake:
			return
		}
	}
}

// explained are the exit codes with which a process may end by itself.
var explained = map[int]string{
	4:  "a full disk",
	5:  "no broker",
	75: "told to stop",
}

// note writes a line of the test's own to the service's log.
func (s *service) note(format string, args ...any) {
	fmt.Fprintf(s.out, "=== %s "+format+"\n", append([]any{time.Now().UTC().Format("15:04:05.000")}, args...)...)
}

// signal reports whether the process was there to get it. If it ends by that, it
// is started again after the pause.
func (s *service) signal(sig syscall.Signal, pause time.Duration) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.cmd == nil {
		return false
	}
	if sig == syscall.SIGKILL || sig == syscall.SIGTERM {
		s.asked, s.pause = true, pause
	}
	s.note("signal: %v", sig)
	return s.cmd.Process.Signal(sig) == nil
}

func (s *service) alive() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cmd != nil
}

// close kills the process for good and returns what was odd about its ends.
func (s *service) close() []string {
	s.mu.Lock()
	if !s.closed {
		s.closed = true
		close(s.wake)
	}
	if s.cmd != nil {
		s.cmd.Process.Kill()
	}
	s.mu.Unlock()
	<-s.stopped
	return s.odd
}
