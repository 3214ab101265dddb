package em_test

import (
	"bufio"
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/pce-engine/pce/em"
)

// killDir names the environment variable that makes the test binary the victim
// of TestKill: it resumes the run in that directory.
const killDir = "PCE_EM_TEST_KILL_DIR"

// TestMain runs the victim instead of the tests where a parent asks for it.
func TestMain(m *testing.M) {
	if dir := os.Getenv(killDir); dir != "" {
		victim(dir)
		return
	}
	os.Exit(m.Run())
}

// victim trains in dir, writing one byte to stdout before the first step and
// one after each, and leaves params.bits at the end.
func victim(dir string) {
	t := &fatalTB{}
	j := newJob(t)
	fmt.Print("s")
	_, params, err := j.try(t, context.Background(), dir, j.model.table, func(o *em.Options) {
		o.Checkpoints.Steps = 2
		o.OnStep = func(em.Progress) { fmt.Print(".") }
	})
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "params.bits"), fmt.Appendf(nil, "%x", params), 0o644); err != nil {
		t.Fatal(err)
	}
}

// fatalTB is what a victim has for a testing.TB.
type fatalTB struct{ testing.TB }

func (*fatalTB) Helper()        {}
func (*fatalTB) Cleanup(func()) {}
func (*fatalTB) Fatal(args ...any) {
	fmt.Fprintln(os.Stderr, args...)
	os.Exit(1)
}

// TestKill kills runs with SIGKILL at random moments until they end, and wants
// the bits of an unbroken run.
func TestKill(t *testing.T) {
	if testing.Short() {
		t.Skip("kills two dozen runs; run without -short")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	j := newJob(t)
	want := j.unbroken(t)
	wantBits := fmt.Sprintf("%x", want.params)
	rng := rand.New(rand.NewPCG(1, 9))
	kills := 0
	// On a busy machine a victim may end before its parent gets to kill it, so there
	// are as many runs as it takes.
	for run := 0; run < 12 || kills < 24; run++ {
		if run == 200 {
			t.Fatalf("only %d kills hit one of %d living runs", kills, run)
		}
		dir := t.TempDir()
		for round := 0; ; round++ {
			// Later rounds see more steps, so that the run ends.
			steps := 1 + rng.IntN(8+4*round)
			killed, err := runVictim(exe, dir, steps, rng.IntN(200_000))
			if err != nil {
				t.Fatal(err)
			}
			if !killed {
				break
			}
			kills++
		}
		got, err := os.ReadFile(filepath.Join(dir, "params.bits"))
		if err != nil {
			t.Fatal(err)
		}
		if string(got) != wantBits {
			t.Error("a killed run ended with other bits")
		}
		if lines := metricsOf(t, dir); fmt.Sprint(lines) != fmt.Sprint(want.lines) {
			t.Errorf("metrics %q, want %q", lines, want.lines)
		}
	}
}

// runVictim starts a victim and kills it some time after a number of steps. It
// reports whether the kill came before the end.
func runVictim(exe, dir string, steps, spin int) (killed bool, err error) {
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), killDir+"="+dir)
	cmd.Stderr = os.Stderr
	out, err := cmd.StdoutPipe()
	if err != nil {
		return false, err
	}
	if err := cmd.Start(); err != nil {
		return false, err
	}
	r := bufio.NewReader(out)
	for range steps {
		if _, err := r.ReadByte(); err != nil { // it has ended
			return false, cmd.Wait()
		}
	}
	for i := 0; i < spin; i++ { // anywhere between two steps
		if syscall.Getpid() == 0 {
			return false, nil
		}
	}
	if err := cmd.Process.Kill(); err != nil && err != os.ErrProcessDone {
		return false, err
	}
	err = cmd.Wait()
	if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); ok && status.Signaled() {
		return true, nil
	}
	return false, err
}
