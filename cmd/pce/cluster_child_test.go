package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"
)

// roleVariable makes the test binary another program.
const roleVariable = "TEST_ROLE"

// nestedVariable is set in all processes that the tests start.
const nestedVariable = "TEST_NESTED"

// TestMain is pce itself, or one of the programs below, where the role says so.
func TestMain(m *testing.M) {
	role, arg, _ := strings.Cut(os.Getenv(roleVariable), " ")
	switch role {
	case "":
		// A program that lost its role must not run the tests, which start programs.
		if os.Getenv(nestedVariable) != "" {
			fmt.Fprintln(os.Stderr, "no role for", os.Args)
			os.Exit(exitUsage)
		}
		os.Setenv(nestedVariable, "yes")
		peakTime = 2 * time.Millisecond
		os.Exit(m.Run())
	case "pce":
		main()
	case "exit": // with a code
		code, err := strconv.Atoi(arg)
		if err != nil {
			panic(err)
		}
		fmt.Println("ends with", code)
		os.Exit(code)
	case "wait": // for a signal, or the end of the input
		signals := make(chan os.Signal, 1)
		signal.Notify(signals, syscall.SIGTERM)
		go func() {
			io.Copy(io.Discard, os.Stdin)
			signals <- nil
		}()
		fmt.Println("waits as", os.Getpid())
		if s := <-signals; s != nil {
			fmt.Println("stops by", s)
		}
		os.Exit(exitCheckpointed)
	case "parent": // of a waiting child in the directory arg; it never ends it
		c := &child{name: "w", argv: []string{os.Args[0]}, env: append(os.Environ(), roleVariable+"=wait"), dir: arg}
		c.keep(context.Background(), slog.New(slog.DiscardHandler))
	default:
		panic("unknown role " + role)
	}
}

// roleOf makes a child of the test binary.
func roleOf(t *testing.T, role string) *child {
	return &child{name: "worker-001", argv: []string{os.Args[0]}, env: append(os.Environ(), roleVariable+"="+role), dir: filepath.Join(t.TempDir(), "w")}
}

// eventually polls until ok is true.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	const patience = 4 * time.Minute // of a machine with other things to do
	for deadline := time.Now().Add(patience); !ok(); {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for %s", patience, what)
		}
		<-time.After(5 * time.Millisecond)
	}
}

func TestDeaths(t *testing.T) {
	type death struct {
		life  time.Duration
		code  int
		pause time.Duration
		again bool
	}
	const quick = time.Second
	for name, list := range map[string][]death{
		"own faults": {
			{quick, exitUsage, 500 * time.Millisecond, true}, {quick, exitMachine, time.Second, true}, {quick, exitUsage, 2 * time.Second, true},
			{quick, exitInternal, 4 * time.Second, true}, {quick, exitUsage, 8 * time.Second, false},
		},
		"killed": {
			{quick, -1, 500 * time.Millisecond, true}, {quick, -1, time.Second, true}, {quick, -1, 2 * time.Second, true}, {quick, -1, 4 * time.Second, true},
			{quick, -1, 8 * time.Second, true}, {quick, -1, 16 * time.Second, true}, {quick, -1, 30 * time.Second, true}, {quick, -1, 30 * time.Second, true},
		},
		"a minute of life": {
			{quick, exitUsage, 500 * time.Millisecond, true}, {quick, exitUsage, time.Second, true}, {quick, exitUsage, 2 * time.Second, true},
			{quick, exitUsage, 4 * time.Second, true}, {goodLife, exitUsage, 500 * time.Millisecond, true},
		},
		"no broker": {
			{quick, exitUsage, 500 * time.Millisecond, true}, {quick, exitUsage, time.Second, true}, {quick, exitUsage, 2 * time.Second, true},
			{quick, exitUsage, 4 * time.Second, true}, {quick, exitCluster, 8 * time.Second, true}, {quick, exitUsage, 16 * time.Second, true},
		},
	} {
		var d deaths
		for i, want := range list {
			if pause, again := d.next(want.life, want.code); pause != want.pause || again != want.again {
				t.Errorf("%s, death %d: %v and %v, want %v and %v", name, i+1, pause, again, want.pause, want.again)
			}
		}
	}
	d := deaths{}
	for range 100 { // no overflow
		if pause, _ := d.next(quick, -1); pause <= 0 || pause > longestPause {
			t.Fatalf("pause of %v", pause)
		}
	}
}

// TestKeep runs a child that waits, kills it, wants another, and stops that one
// in order.
func TestKeep(t *testing.T) {
	c := roleOf(t, "wait")
	ctx, cancel := context.WithCancel(t.Context())
	var logs bytes.Buffer
	ended := make(chan error, 1)
	go func() { ended <- c.keep(ctx, slog.New(slog.NewTextHandler(&logs, nil))) }()
	text := func() string {
		b, _ := os.ReadFile(c.logFile())
		return string(b)
	}
	eventually(t, "the first child", func() bool { return strings.Count(text(), "waits as") == 1 })
	var pid int
	if _, err := fmt.Sscanf(text(), "waits as %d", &pid); err != nil {
		t.Fatal(err)
	}
	if group, err := syscall.Getpgid(pid); err != nil || group != pid {
		t.Errorf("process group %d, %v; want the child's own %d", group, err, pid)
	}
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the second child", func() bool { return strings.Count(text(), "waits as") == 2 })
	cancel()
	if err := <-ended; err != nil {
		t.Errorf("keep = %v", err)
	}
	if !strings.Contains(text(), "stops by terminated") {
		t.Errorf("the child was not asked to stop; its log:\n%s", text())
	}
	if !strings.Contains(logs.String(), "signal: killed") || !strings.Contains(logs.String(), "worker=worker-001") {
		t.Errorf("log: %s", &logs)
	}
}

// TestKeepGivesUp has a child that refuses its flags each time.
func TestKeepGivesUp(t *testing.T) {
	if testing.Short() {
		t.Skip("waits through the pauses of five restarts, about 8 s")
	}
	t.Parallel()
	c := roleOf(t, "exit 2")
	err := c.keep(t.Context(), slog.New(slog.DiscardHandler))
	if !errors.Is(err, errGivenUp) || !strings.Contains(err.Error(), "exit status 2") || !strings.Contains(err.Error(), c.logFile()) {
		t.Errorf("keep = %v", err)
	}
	if b, err := os.ReadFile(c.logFile()); err != nil || strings.Count(string(b), "ends with 2") != maxFaults {
		t.Errorf("log %q, %v", b, err)
	}
}

// TestOrphan kills a parent and wants its child to be gone.
func TestOrphan(t *testing.T) {
	dir := t.TempDir()
	parent := exec.Command(os.Args[0])
	parent.Env = append(os.Environ(), roleVariable+"=parent "+dir)
	if err := parent.Start(); err != nil {
		t.Fatal(err)
	}
	pid := 0
	eventually(t, "the child", func() bool {
		b, _ := os.ReadFile(filepath.Join(dir, "log"))
		line, err := bufio.NewReader(bytes.NewReader(b)).ReadString('\n')
		if err != nil {
			return false
		}
		_, err = fmt.Sscanf(line, "waits as %d", &pid)
		return err == nil
	})
	if err := parent.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	parent.Wait()
	eventually(t, "the orphan to end", func() bool {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
		return err != nil && errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) || strings.Contains(string(stat), ") Z ")
	})
}

// TestOpenLog puts a large log aside.
func TestOpenLog(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "log")
	if err := os.WriteFile(file, []byte("a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, size := range []int64{2, maxLogBytes + 1} {
		if err := os.Truncate(file, size); err != nil {
			t.Fatal(err)
		}
		f, err := openLog(dir, file)
		if err != nil {
			t.Fatal(err)
		}
		info, err := f.Stat()
		if want := map[bool]int64{true: 0, false: size}[size > maxLogBytes]; err != nil || info.Size() != want {
			t.Errorf("log of %d bytes is opened with %d, want %d (%v)", size, info.Size(), want, err)
		}
		f.Close()
	}
	if info, err := os.Stat(file + ".old"); err != nil || info.Size() != maxLogBytes+1 {
		t.Errorf("old log: %v", err)
	}
}

// TestChildrenLease: workers of a cluster whose broker was started elsewhere are given a lease only if --lease has one. One that was read when
// the command began may be another by the time a worker is started again, and would be set anew.
func TestChildrenLease(t *testing.T) {
	for lease, want := range map[time.Duration]bool{0: false, 2 * time.Second: true} {
		f := upFlags{dir: t.TempDir(), addr: "127.0.0.1:0", lease: lease}
		if argv := f.children(&connections{workers: []string{""}}, "c-up-a", "pce", nil)[0].argv; slices.Contains(argv, "--lease") != want {
			t.Errorf("--lease %v: the worker is started with %q", lease, argv)
		}
	}
}

// TestChildrenIDs wants ids of workers that differ between coordinators of a broker without keys,
// and those of the keys where there are any.
func TestChildrenIDs(t *testing.T) {
	f := upFlags{dir: t.TempDir(), addr: "127.0.0.1:0"}
	for _, tc := range []struct{ key, coordinator, want string }{
		{"", "c-up-20260102-030405-abcd", "abcd-worker-001"},
		{"", "c-up-20260102-030405-efgh", "efgh-worker-001"},
		{"seats/worker-001.nk", "c-up-20260102-030405-abcd", "worker-001"},
	} {
		list := f.children(&connections{workers: []string{tc.key, tc.key}}, tc.coordinator, "pce", nil)
		if got := list[1]; got.name != tc.want || got.argv[slices.Index(got.argv, "--id")+1] != tc.want {
			t.Errorf("coordinator %s, key %q: worker %s with %q, want %s", tc.coordinator, tc.key, got.name, got.argv, tc.want)
		}
	}
}
