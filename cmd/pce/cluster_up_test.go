package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pce-engine/pce/cluster/job"
)

// upProcess is a pce cluster up of its own.
type upProcess struct {
	t       *testing.T
	cmd     *exec.Cmd
	urlFile string
	errs    string // file with its stderr
}

// startUp runs cluster up and waits until it is ready.
func startUp(t *testing.T, dir string, args ...string) *upProcess {
	t.Helper()
	p := &upProcess{t: t, urlFile: filepath.Join(filepath.Dir(dir), "url"), errs: dir + ".log"}
	errs, err := os.OpenFile(p.errs, os.O_WRONLY|os.O_CREATE|os.O_APPEND, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer errs.Close()
	p.cmd = exec.Command(os.Args[0], append([]string{"cluster", "up", "--dir", dir, "--url-file", p.urlFile, "--lease", "2s"}, args...)...)
	p.cmd.Env = append(os.Environ(), roleVariable+"=pce")
	p.cmd.Stderr = errs
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if p.cmd.ProcessState == nil {
			p.cmd.Process.Kill()
			p.cmd.Wait()
		}
		if t.Failed() {
			text, _ := os.ReadFile(p.errs)
			logs, _ := filepath.Glob(filepath.Join(dir, "workers", "*", "log"))
			for _, l := range logs {
				b, _ := os.ReadFile(l)
				text = append(append(text, "== "+l+"\n"...), b...)
			}
			t.Logf("cluster up wrote\n%s", text)
		}
	})
	eventually(t, "the url file", func() bool {
		_, err := os.Stat(p.urlFile)
		return err == nil
	})
	return p
}

// stop interrupts the cluster and wants an exit code.
func (p *upProcess) stop(want int) {
	p.t.Helper()
	if got := p.interrupt(); got != want {
		p.t.Errorf("cluster up ended with %v, want exit code %d", p.cmd.ProcessState, want)
	}
}

// interrupt interrupts the cluster and returns its exit code. It wants no warning: what
// ends then was meant to.
func (p *upProcess) interrupt() int {
	p.t.Helper()
	before, err := os.ReadFile(p.errs)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		p.t.Fatal(err)
	}
	p.cmd.Wait()
	if _, err := os.Stat(p.urlFile); err == nil {
		p.t.Error("the url file is still there")
	}
	after, err := os.ReadFile(p.errs)
	if err != nil {
		p.t.Fatal(err)
	}
	for _, level := range []string{"level=WARN", "level=ERROR"} {
		if text := after[len(before):]; bytes.Contains(text, []byte(level)) {
			p.t.Errorf("the interrupted cluster says\n%s", text)
		}
	}
	return p.cmd.ProcessState.ExitCode()
}

// status asks for the status as a user does.
func (p *upProcess) status() clusterStatus {
	p.t.Helper()
	var out, errs bytes.Buffer
	eventually(p.t, "a status", func() bool { // a broker that gets no processor does not answer in time
		out.Reset()
		errs.Reset()
		code := Run(p.t.Context(), []string{"cluster", "status", "--cluster", "@" + p.urlFile, "--json"}, nil, nil, &out, &errs)
		if code != 0 && code != exitCluster {
			p.t.Fatalf("status: exit %d: %s", code, &errs)
		}
		return code == 0
	})
	var s clusterStatus
	if err := json.Unmarshal(out.Bytes(), &s); err != nil {
		p.t.Fatal(err)
	}
	return s
}

// submit puts a job into the queue and returns the id of its run.
func (p *upProcess) submit(args ...string) string {
	p.t.Helper()
	s := runJSON(p.t, append([]string{"cluster", "submit", "--cluster", "@" + p.urlFile}, args...)...)
	id, ok := s["run"].(string)
	if !ok || job.CheckID(id) != nil {
		p.t.Fatalf("submit says %v", s)
	}
	return id
}

// clusterTiny are the arguments of a run that takes some seconds on a cluster.
func clusterTiny(epochs int) []string {
	return []string{
		"--config", "preset:hclt", "--set", "name=tiny", "--set", "model.latents=3",
		"--set", "data.train=builtin:random?rows=600&vars=16&categories=4", "--set", "data.image=[4, 4]",
		"--set", "data.valid=builtin:random?rows=20&vars=16&categories=4&seed=2",
		"--set", "data.test=builtin:random?rows=20&vars=16&categories=4&seed=3",
		"--set", fmt.Sprintf("train.epochs=%d", epochs), "--set", "train.batch_size=200", "--set", "train.shard_rows=25", "--set", "train.samples=9",
		"--set", "cluster.workers=2",
	}
}

// TestUp trains on a cluster of processes, kills a worker, interrupts the
// cluster and starts it again, and wants the model of plain training, bit by bit.
func TestUp(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes and trains for some seconds")
	}
	// How many epochs outlast what is done to the cluster depends on the machine.
	for _, epochs := range []int{50, 500, 5000} {
		if upOutlasts(t, epochs) {
			return
		}
	}
	t.Error("the run was always done before the cluster was interrupted")
}

// upOutlasts does what TestUp says with a run of some epochs. It reports false if the
// run was done before the cluster was interrupted.
func upOutlasts(t *testing.T, epochs int) bool {
	base := t.TempDir()
	t.Chdir(base)
	tiny := clusterTiny(epochs)
	runJSON(t, append([]string{"train", "--out", "plain", "--threads", "1"}, tiny...)...)

	dir := filepath.Join(base, "cluster")
	up := startUp(t, dir, "--workers", "2")
	first, err := os.ReadFile(up.urlFile)
	if err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"cluster", "up", "--dir", dir}, nil, nil, &out, &errs); code != exitUsage || strings.Count(errs.String(), "\n") != 1 || !strings.Contains(errs.String(), "is held by") {
		t.Errorf("a second cluster on the directory: exit %d, %s", code, &errs)
	}
	eventually(t, "two workers", func() bool { return len(up.status().Workers) == 2 })
	id := up.submit(tiny...)
	var s clusterStatus
	reaches := func(step int64) {
		t.Helper()
		eventually(t, fmt.Sprintf("step %d", step), func() bool {
			s = up.status()
			if s.State == job.StateFailed {
				t.Fatalf("the run failed: %s", s.Jobs[0].Error)
			}
			return s.Run == id && s.Step >= step
		})
	}
	reaches(5)
	if s.Transport != "tcp" || s.Lead == nil || s.Lead.Run != id || s.Term.Fence == 0 || s.Epochs != epochs {
		t.Errorf("status of a running cluster: %+v", s)
	}
	victim := s.Workers[0]
	if err := syscall.Kill(victim.PID, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	reaches(s.Step + 5)
	eventually(t, "another life of the worker", func() bool {
		s = up.status()
		return len(s.Workers) == 2 && s.Workers[0].Alive && s.Workers[0].PID != victim.PID
	})
	// What the kill has the coordinator warn of must be over before the interrupt, which must
	// cause no warning.
	eventually(t, "a second term with both workers", func() bool {
		text, err := os.ReadFile(up.errs)
		if err != nil {
			t.Fatal(err)
		}
		s = up.status()
		return s.State != job.StateRunning || bytes.Count(text, []byte("members=2")) >= 2
	})
	if s.State != job.StateRunning {
		up.stop(0)
		return false
	}
	if code := up.interrupt(); code == 0 { // the run was done in the meantime
		return false
	} else if code != exitCheckpointed {
		t.Errorf("the interrupted cluster ends with %d, want %d", code, exitCheckpointed)
	}

	up = startUp(t, dir, "--workers", "2")
	if again, err := os.ReadFile(up.urlFile); err != nil || !bytes.Equal(again, first) {
		t.Errorf("the url file has %q, had %q (%v)", again, first, err)
	}
	eventually(t, "the end of the run", func() bool {
		s = up.status()
		return (s.State == job.StateDone || s.State == job.StateFailed) && s.Lead == nil
	})
	shards := 0
	for _, w := range s.Workers {
		shards += w.Shards
	}
	if s.State != job.StateDone || s.Epoch != epochs || shards == 0 || len(s.Dead) != 0 || s.Jobs[0].Code != 0 {
		t.Errorf("status after the run: %+v", s)
	}
	for _, name := range []string{"model.safetensors", "samples.png"} {
		a, errA := os.ReadFile(filepath.Join("plain", name))
		b, errB := os.ReadFile(filepath.Join(dir, "runs", id, name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s differs from that of plain training (%v, %v)", name, errA, errB)
		}
	}
	got := runJSON(t, "cluster", "fetch", "--cluster", "@"+up.urlFile, id, "fetched")
	for _, f := range got["files"].([]any) {
		name := fmt.Sprint(f.(map[string]any)["name"])
		a, errA := os.ReadFile(filepath.Join("fetched", name))
		b, errB := os.ReadFile(filepath.Join(dir, "runs", id, name))
		if errA != nil || errB != nil || !bytes.Equal(a, b) {
			t.Errorf("%s was fetched with other bytes (%v, %v)", name, errA, errB)
		}
	}
	for _, name := range []string{"model.safetensors", "metrics.jsonl", "config.yaml", "result.json"} {
		if _, err := os.Stat(filepath.Join("fetched", name)); err != nil {
			t.Errorf("fetch: %v", err)
		}
	}
	if s.TrainLL == nil || s.ValidLL == nil || s.TestLL == nil || s.Speed == nil || s.Left != nil {
		t.Errorf("the status lacks figures of the run: %+v", s)
	}
	out.Reset()
	if code := Run(t.Context(), []string{"cluster", "logs", "--cluster", "@" + up.urlFile, id}, nil, nil, &out, &errs); code != 0 ||
		strings.Count(out.String(), "epoch done") < epochs || !strings.Contains(out.String(), job.EndMessage) {
		t.Errorf("logs: exit %d\n%s%s", code, &out, &errs)
	}
	up.stop(0)
	return true
}

// TestUpJobs wants the exit codes of jobs that fail and of jobs that are
// cancelled, data that is uploaded, and the same over TLS.
func TestUpJobs(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes and trains for some seconds")
	}
	base := t.TempDir()
	t.Chdir(base)
	var rows bytes.Buffer
	for i := range 60 {
		fmt.Fprintf(&rows, "%d,%d,%d\n", i%2, i/2%2, i*i%2)
	}
	if err := os.WriteFile("rows.data", rows.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	own := []string{"--config", "preset:hclt", "--set", "model.latents=2", "--set", "data.train=rows.data", "--set", "data.valid=rows.data", "--set", "data.test=rows.data", "--set", "train.epochs=2"}
	end := runJSON(t, append([]string{"train", "--out", "plain"}, own...)...)
	if end["steps"] == nil {
		t.Fatal(end)
	}
	selfSigned(t)
	up := startUp(t, filepath.Join(base, "cluster"), "--workers", "1", "--seats", "1", "--tls-cert", "tls.crt", "--tls-key", "tls.key")
	at := []string{"cluster", "submit", "--cluster", "@" + up.urlFile, "--wait", "--json"}
	done := runJSON(t, append(at[:4:4], append([]string{"--wait"}, own...)...)...)
	if done["state"] != job.StateDone || done["code"] != 0.0 || done["uploaded_bytes"] != float64(rows.Len()) {
		t.Errorf("submit --wait ends with %v", done)
	}
	if ll := number(t, done, "test_ll"); ll != number(t, end, "test_ll") {
		t.Errorf("submit --wait says test_ll %v, plain training %v", ll, end["test_ll"])
	}
	a, errA := os.ReadFile("plain/model.safetensors")
	b, errB := os.ReadFile(filepath.Join(fmt.Sprint(done["out"]), "model.safetensors"))
	if errA != nil || errB != nil || !bytes.Equal(a, b) {
		t.Errorf("the model differs from that of plain training (%v, %v)", errA, errB)
	}

	id := up.submit(append(clusterTiny(100000), "--set", "cluster.workers=1")...)
	eventually(t, "the long run", func() bool { s := up.status(); return s.Run == id && s.Step > 0 })
	waits := up.submit(own...)
	for _, run := range []string{waits, id} {
		if got := converse([]string{"cluster", "cancel", "--cluster", "@" + up.urlFile, run}, nil, ""); !strings.HasPrefix(got, "run "+run+": ") {
			t.Errorf("cancel: %s", got)
		}
	}
	eventually(t, "the end of the cancelled runs", func() bool {
		n := 0
		for _, j := range up.status().Jobs {
			if j.State == job.StateCancelled && j.Code == exitInterrupted {
				n++
			}
		}
		return n == 2
	})
	if got := converse([]string{"cluster", "logs", "--cluster", "@" + up.urlFile, "-f", id}, nil, ""); !strings.Contains(got, `"state":"cancelled"`) || strings.Contains(got, "exit") {
		t.Errorf("logs -f of the cancelled run: %s", got)
	}

	// A category out of range is seen by the run only.
	if err := os.WriteFile("bad.data", []byte("0,1,7\n1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var out, errs bytes.Buffer
	code := Run(t.Context(), append(at, append(own, "--set", "data.valid=bad.data")...), nil, nil, &out, &errs)
	var failed submission
	if err := json.Unmarshal(out.Bytes(), &failed); err != nil || code != exitData || failed.State != job.StateFailed || *failed.Code != exitData || failed.Error == "" {
		t.Errorf("a job with bad data: exit %d, %+v, %v\n%s", code, failed, err, &errs)
	}
	up.stop(0)
}

// TestUpAddress wants one line for a port in use.
func TestUpAddress(t *testing.T) {
	t.Parallel()
	base := t.TempDir()
	up := startUp(t, filepath.Join(base, "a"), "--workers", "0")
	at, err := readURLFile(t.Context(), up.urlFile)
	if err != nil {
		t.Fatal(err)
	}
	addr := strings.TrimPrefix(at.url, "nats://")
	var out, errs bytes.Buffer
	code := Run(t.Context(), []string{"cluster", "up", "--dir", filepath.Join(base, "b"), "--workers", "0", "--addr", addr}, nil, nil, &out, &errs)
	if code != exitCluster || strings.Count(errs.String(), "\n") != 1 || !strings.Contains(errs.String(), addr) || !strings.Contains(errs.String(), "give --addr") {
		t.Errorf("a port in use: exit %d: %s", code, &errs)
	}
	bad := filepath.Join(base, "bad.pem")
	if err := os.WriteFile(bad, []byte("no key\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	errs.Reset()
	code = Run(t.Context(), []string{"cluster", "up", "--dir", filepath.Join(base, "c"), "--workers", "0", "--tls-cert", bad, "--tls-key", bad}, nil, nil, &out, &errs)
	if code != exitUsage || !strings.Contains(errs.String(), fmt.Sprintf("--tls-cert %q and --tls-key %q", bad, bad)) {
		t.Errorf("a bad certificate: exit %d: %s", code, &errs)
	}
	for _, flag := range []string{"--ca", "--credentials"} {
		errs.Reset()
		code = Run(t.Context(), []string{"worker", "--cluster", at.url, "--id", "worker-000", "--dir", filepath.Join(base, "w"), flag, bad}, nil, nil, &out, &errs)
		if code != exitData || strings.Count(errs.String(), "\n") != 1 || !strings.Contains(errs.String(), bad) {
			t.Errorf("%s with another file: exit %d: %s", flag, code, &errs)
		}
	}
	errs.Reset()
	code = Run(t.Context(), []string{"cluster", "status", "--cluster", at.url}, nil, nil, &out, &errs)
	if code != exitCluster || !strings.Contains(errs.String(), "without a key: give --credentials FILE") {
		t.Errorf("without a key: exit %d: %s", code, &errs)
	}
	up.stop(0)

	// Nobody answers there now.
	errs.Reset()
	code = Run(t.Context(), []string{"cluster", "status", "--cluster", at.url, "--credentials", at.credentials}, nil, nil, &out, &errs)
	if code != exitCluster || strings.Count(errs.String(), "\n") != 1 {
		t.Errorf("no broker: exit %d: %s", code, &errs)
	}
}
