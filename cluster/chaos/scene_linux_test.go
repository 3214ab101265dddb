package chaos

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// diskBytes is the size of the disk of the coordinator and of each worker.
const diskBytes = 16 << 20

// lease is after how much silence a member is given up.
const lease = "2s"

// scene is a cluster of processes on the hosts of a network.
type scene struct {
	t        *testing.T
	net      *network
	pce      string // the program
	base     string // its files, and keys; DIR/HOST is the disk of a host
	services map[string]*service
	order    []string // of services

	heal    chan struct{} // closed: what was disturbed ends now
	healing sync.WaitGroup
	mu      sync.Mutex
	faults  []error // of the test's own means
}

// newScene starts the cluster, which lives until the end of the test.
func newScene(t *testing.T, n *network, pce string) *scene {
	t.Helper()
	s := &scene{t: t, net: n, pce: pce, base: t.TempDir(), services: map[string]*service{}, heal: make(chan struct{})}
	writeKeys(t, s.base)
	for _, host := range hosts[1:] {
		if err := os.Mkdir(s.dir(host), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := syscall.Mount(n.space(host), s.dir(host), "tmpfs", 0, fmt.Sprintf("size=%d,mode=700", diskBytes)); err != nil {
			t.Fatalf("mounting a disk for %s: %v", host, err)
		}
		t.Cleanup(func() {
			if err := syscall.Unmount(s.dir(host), syscall.MNT_DETACH); err != nil {
				t.Error(err)
			}
		})
	}
	t.Cleanup(s.close)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	s.start("broker", append([]string{self}, brokerArgs(s.base)...), roleVariable+"=broker", nestedVariable+"=1")
	s.start("coordinator", s.command("coordinator", "cluster", "up", "--workers", "0", "--dir", s.dir("coordinator"),
		"--advertise", address("coordinator"), "--device", "cpu", "--threads", "1", "--lease", lease))
	for _, host := range hosts[2:] {
		s.start(host, s.command(host, "worker", "--peer-addr", address(host)+":0", "--dir", s.dir(host),
			"--device", "cpu", "--threads", "1", "--lease", lease))
	}
	return s
}

// dir is the disk of a host.
func (s *scene) dir(host string) string { return filepath.Join(s.base, host+"-disk") }

// logFile has the output of a host's process.
func (s *scene) logFile(host string) string { return filepath.Join(s.base, host+".log") }

// command is a command line of pce that talks to the cluster.
func (s *scene) command(as string, args ...string) []string {
	return append(append([]string{s.pce}, args...), "--cluster", fmt.Sprintf("tls://%s:%d", address("broker"), brokerPort),
		"--credentials", filepath.Join(s.base, "seats", as+".nk"), "--ca", filepath.Join(s.base, "ca.crt"))
}

// on is a command line that runs on a host.
func (s *scene) on(host string, argv []string) []string {
	return append([]string{"ip", "netns", "exec", s.net.space(host)}, argv...)
}

func (s *scene) start(host string, argv []string, env ...string) {
	out, err := os.OpenFile(s.logFile(host), os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { out.Close() })
	s.services[host] = serve(host, s.on(host, argv), environment(env...), out)
	s.order = append(s.order, host)
}

// run does a command of pce on the coordinator's host, as a user would.
func (s *scene) run(args ...string) (stdout []byte, err error) {
	argv := s.on("coordinator", s.command("client", args...))
	cmd := exec.Command(argv[0], argv[1:]...)
	var out, errs bytes.Buffer
	cmd.Env, cmd.Stdout, cmd.Stderr = environment(), &out, &errs
	if err := spawn(cmd); err != nil {
		return nil, err
	}
	if err := cmd.Wait(); err != nil {
		return nil, fmt.Errorf("pce %s: %v: %s", strings.Join(args[:2], " "), err, strings.TrimSpace(errs.String()))
	}
	return out.Bytes(), nil
}

// jobState is how the one job of the cluster stands.
type jobState struct {
	Run   string `json:"run"`
	State string `json:"state"`
	Code  int    `json:"code"`
	Step  int64  `json:"step"`
	Error string `json:"error"`
}

// status asks for the job's state.
func (s *scene) status() (*jobState, error) {
	text, err := s.run("cluster", "status", "--json")
	if err != nil {
		return nil, err
	}
	var all struct {
		Jobs []jobState        `json:"jobs"`
		Dead []json.RawMessage `json:"dead_letters"`
	}
	if err := json.Unmarshal(text, &all); err != nil {
		return nil, err
	}
	if len(all.Jobs) != 1 {
		return nil, fmt.Errorf("the status has %d jobs, want 1", len(all.Jobs))
	}
	if len(all.Dead) > 0 {
		return &all.Jobs[0], fmt.Errorf("dead letters: %s", all.Dead)
	}
	return &all.Jobs[0], nil
}

// later does something when the time is over, or as soon as all is to heal.
func (s *scene) later(d time.Duration, f func() error) {
	s.healing.Go(func() {
		select {
		case <-time.After(d):
		case <-s.heal:
		}
		if err := f(); err != nil {
			s.mu.Lock()
			s.faults = append(s.faults, err)
			s.mu.Unlock()
		}
	})
}

// mend ends all disturbances, and returns what went wrong with that.
func (s *scene) mend() error {
	select {
	case <-s.heal:
	default:
		close(s.heal)
	}
	s.healing.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return errors.Join(s.faults...)
}

// close ends all processes.
func (s *scene) close() {
	if err := s.mend(); err != nil {
		s.t.Error(err)
	}
	for _, host := range s.order {
		for _, odd := range s.services[host].close() {
			s.t.Error(odd)
		}
		text, err := os.ReadFile(s.logFile(host))
		if err != nil {
			s.t.Error(err)
		}
		for _, sign := range []string{"panic:", "fatal error:", "BUG:"} {
			if bytes.Contains(text, []byte(sign)) {
				s.t.Errorf("the log of %s has %q", host, sign)
			}
		}
	}
	if !s.t.Failed() {
		return
	}
	for _, host := range s.order {
		text, _ := os.ReadFile(s.logFile(host))
		lines := strings.SplitAfter(string(text), "\n")
		s.t.Logf("the end of the log of %s:\n%s", host, strings.Join(lines[max(0, len(lines)-*tail):], ""))
	}
}

// eventually polls until the condition holds; it fails the test after the limit.
func (s *scene) eventually(what string, limit time.Time, holds func() bool) {
	s.t.Helper()
	for !holds() {
		if time.Now().After(limit) {
			s.t.Fatalf("no %s in time", what)
		}
		<-time.After(20 * time.Millisecond)
	}
}
