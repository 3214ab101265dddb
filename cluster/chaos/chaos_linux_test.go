package chaos

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
)

var (
	runs  = flag.Int("runs", 2, "runs with disturbances")
	first = flag.Uint64("seed", 1, "seed of the first run; the others follow")
	tail  = flag.Int("tail", 60, "lines of each log that a failure shows")
)

const (
	// bound is the longest that a run may take.
	bound = 90 * time.Second
	// aftermath is when a run must still not be done for a disturbance to count.
	aftermath = 250 * time.Millisecond
	// mostTries is how often a run is drawn whose disturbances all missed it.
	mostTries = 5
)

// training is a kind of run. Each takes a second or some on a cluster, as its disk is.
type training struct {
	name     string
	settings []string
	epochs   int64
	batches  int64 // steps of an epoch
	shards   int   // of each step
}

var trainings = []training{
	{"mini-batch", []string{"train.batch_size=200", "train.checkpoint.epochs=1", "train.checkpoint.steps=2"}, 50, 3, 8},
	{"full batch", []string{"train.rule=fullbatch-em", "train.checkpoint.epochs=3"}, 80, 1, 24},
}

// longer is the training of a try. On a fast machine a run is over before its disturbances have come and gone: each
// try takes twice as long as the one before it.
func (tr training) longer(try int) *training {
	tr.epochs <<= try
	return &tr
}

// args are the arguments of a command that trains.
func (tr *training) args() []string {
	args := []string{"--config", "preset:hclt"}
	for _, s := range append([]string{
		"name=chaos", "model.latents=8", "data.train=builtin:random?rows=600&vars=36&categories=4",
		"data.valid=builtin:random?rows=20&vars=36&categories=4&seed=2", "data.test=builtin:random?rows=20&vars=36&categories=4&seed=3",
		"train.shard_rows=25", "train.samples=0", fmt.Sprintf("cluster.workers=%d", workers), fmt.Sprintf("train.epochs=%d", tr.epochs),
	}, tr.settings...) {
		args = append(args, "--set", s)
	}
	return args
}

// reference is the directory of a run of plain training.
func (tr *training) reference(t *testing.T, pce string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "plain")
	cmd := exec.Command(pce, append([]string{"train", "--out", dir, "--device", "cpu", "--threads", "1"}, tr.args()...)...)
	cmd.Env = environment()
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("plain training: %v\n%s", err, out)
	}
	return dir
}

// TestChaos trains on clusters while they are disturbed.
func TestChaos(t *testing.T) {
	if testing.Short() {
		skip(t, "it starts processes and trains for minutes: leave -short out")
	}
	if why := missing(); why != "" {
		skip(t, why)
	}
	pce := filepath.Join(t.TempDir(), "pce")
	build := exec.Command("go", "build", "-o", pce, "github.com/pce-engine/pce/cmd/pce")
	build.Env = environment(nestedVariable + "=1")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("building pce: %v\n%s", err, out)
	}
	n := newNetwork(t)
	plain := make([][mostTries]func() string, len(trainings))
	for i := range trainings {
		for try := range mostTries {
			plain[i][try] = sync.OnceValue(func() string { return trainings[i].longer(try).reference(t, pce) })
		}
	}
	for i := range min(*runs, len(trainings)) {
		kind := (int(*first) + i) % len(trainings)
		t.Run("undisturbed/"+trainings[kind].name, func(t *testing.T) {
			newScene(t, n, pce).play(&trainings[kind], plain[kind][0](), nil)
		})
	}
	for i := range *runs {
		seed := *first + uint64(i)
		kind := int(seed % uint64(len(trainings)))
		t.Run(fmt.Sprintf("seed=%d/%s", seed, trainings[kind].name), func(t *testing.T) {
			for try := range mostTries {
				want, hits := plain[kind][try](), 0
				t.Run(fmt.Sprintf("try=%d", try), func(t *testing.T) {
					hits = newScene(t, n, pce).play(trainings[kind].longer(try), want, draw(seed, try))
				})
				if hits > 0 || t.Failed() {
					return
				}
			}
			t.Errorf("seed %d: no disturbance hit the run in %d tries", seed, mostTries)
		})
	}
}

// skip says loudly that nothing was tested.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv(requireVariable) == "1" {
		t.Fatalf("NOT RUN, although %s is 1: %s", requireVariable, why)
	}
	fmt.Fprintf(os.Stderr, "*** TestChaos NOT RUN: %s\n", why)
	t.Skip("NOT RUN: " + why)
}

// play submits a training, disturbs it and checks the result against plain
// training. It returns how many disturbances count.
func (s *scene) play(tr *training, plain string, list []*disturbance) (hits int) {
	t := s.t
	t.Helper()
	limit := time.Now().Add(bound)
	s.eventually("coordinator", limit, func() bool {
		text, err := os.ReadFile(s.logFile("coordinator"))
		return err == nil && bytes.Contains(text, []byte("cluster ready"))
	})
	out, err := s.run(append([]string{"cluster", "submit"}, tr.args()...)...)
	if err != nil {
		t.Fatal(err)
	}
	id := strings.TrimSpace(string(out))
	began := time.Now()
	limit = began.Add(bound)
	dir := filepath.Join(s.dir("coordinator"), "runs", id)
	t.Cleanup(func() {
		for _, d := range list {
			t.Log(d)
		}
	})
	for _, d := range list {
		d.outcome = "not reached"
	}
	for _, d := range list {
		<-time.After(d.after)
		d.at = time.Since(began)
		going := isGoing(dir)
		hit, err := s.disturb(d)
		if err != nil {
			t.Fatalf("%v: %v", d, err)
		}
		<-time.After(aftermath)
		switch {
		case !hit:
			d.outcome = "missed, as nobody was there"
		case !going || !isGoing(dir):
			d.outcome = "does not count, as the run was not going on"
		default:
			d.outcome = fmt.Sprintf("counts, after step %d", steps(dir))
			hits++
		}
	}
	s.await(dir, limit)
	t.Logf("the run took %.1fs", time.Since(began).Seconds())
	if err := s.mend(); err != nil {
		t.Error(err)
	}
	var last error
	s.eventually("end of the run in the status", limit, func() bool {
		var job *jobState
		if job, last = s.status(); last != nil {
			return time.Now().After(limit.Add(-time.Second))
		}
		return job.State == "done" && job.Code == 0
	})
	if last != nil {
		t.Fatal(last)
	}
	tr.check(t, dir, plain)
	return hits
}

// await waits until the run has written its result.
func (s *scene) await(dir string, limit time.Time) {
	s.t.Helper()
	asked := time.Now()
	s.eventually("result of the run", limit, func() bool {
		if time.Since(asked) > 3*time.Second {
			asked = time.Now()
			if job, err := s.status(); err == nil && (job.State == "failed" || job.State == "cancelled") {
				s.t.Fatalf("the run %s with exit code %d: %s", job.State, job.Code, job.Error)
			}
		}
		return exists(filepath.Join(dir, "result.json"))
	})
}

func exists(file string) bool {
	_, err := os.Stat(file)
	return err == nil
}

// isGoing reports whether a run has begun and is not done.
func isGoing(dir string) bool { return exists(dir) && !exists(filepath.Join(dir, "result.json")) }

// steps counts the steps of a run so far.
func steps(dir string) int {
	text, _ := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	return bytes.Count(text, []byte("\n"))
}

// check compares a run to plain training, and looks for shards that are missing
// or count twice.
func (tr *training) check(t *testing.T, dir, plain string) {
	t.Helper()
	for _, file := range []struct {
		name string
		read func(string) ([]byte, error)
	}{{"model.safetensors", os.ReadFile}, {"metrics.jsonl", readMetrics}} {
		want, err := file.read(filepath.Join(plain, file.name))
		if err != nil {
			t.Fatal(err)
		}
		got, err := file.read(filepath.Join(dir, file.name))
		if err != nil {
			t.Error(err)
		} else if !bytes.Equal(got, want) {
			t.Errorf("%s differs from that of plain training", file.name)
		}
	}
	audit, err := os.ReadFile(filepath.Join(dir, "audit.jsonl"))
	if err != nil {
		t.Fatal(err)
	}
	n, err := cluster.CheckAudit(bytes.NewReader(audit))
	if err != nil || n != tr.epochs*tr.batches {
		t.Errorf("the audit has %d steps, want %d (%v)", n, tr.epochs*tr.batches, err)
	}
	for line := range bytes.Lines(audit) {
		var a cluster.AuditLine
		if err := json.Unmarshal(line, &a); err != nil || a.Shards != tr.shards {
			t.Errorf("step %d of the audit has %d shards, want %d (%v)", a.Step, a.Shards, tr.shards, err)
		}
	}
}

// readMetrics reads the lines of metrics without what clocks say.
func readMetrics(file string) ([]byte, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	for line := range bytes.Lines(text) {
		m := map[string]any{}
		if err := json.Unmarshal(line, &m); err != nil {
			return nil, fmt.Errorf("%s: %w", file, err)
		}
		delete(m, "seconds")
		delete(m, "samples_per_second")
		kept, err := json.Marshal(m)
		if err != nil {
			return nil, err
		}
		out.Write(append(kept, '\n'))
	}
	return out.Bytes(), nil
}
