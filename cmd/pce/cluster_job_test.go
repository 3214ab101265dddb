package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/cluster/peer"
	"github.com/pce-engine/pce/cluster/query"
	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/run"
)

// testCluster is a broker and workers in this process; bulk data goes over TCP.
type testCluster struct {
	net   *simnet.Network
	lease time.Duration // 0: the default
	stop  []context.CancelFunc
	done  sync.WaitGroup
}

// newTestCluster starts n workers that may read in the roots.
func newTestCluster(t *testing.T, n int, roots ...string) *testCluster {
	c := &testCluster{net: simnet.New(1, simnet.Faults{})}
	for i := range n {
		c.start(t, fmt.Sprintf("worker-%03d", i), roots)
	}
	t.Cleanup(func() {
		for _, stop := range c.stop {
			stop()
		}
		c.done.Wait()
	})
	return c
}

func testPeers(t *testing.T, id string) *peer.Peers {
	t.Helper()
	p, err := peer.Listen(peer.Options{ID: id})
	if err != nil {
		t.Fatal(err)
	}
	return p
}

func (c *testCluster) start(t *testing.T, id string, roots []string) {
	t.Helper()
	c.startWith(t, id, roots, testApp().jobKinds(run.Options{Device: "cpu", Threads: 1}))
}

// startWith starts a worker that knows these kinds of jobs.
func (c *testCluster) startWith(t *testing.T, id string, roots []string, kinds job.Kinds) {
	t.Helper()
	dir := t.TempDir()
	files, err := job.NewFiles(dir, roots)
	if err != nil {
		t.Fatal(err)
	}
	compute := run.Options{Device: "cpu", Threads: 1}
	l, err := job.NewLoader(kinds, files, compute)
	if err != nil {
		t.Fatal(err)
	}
	p := testPeers(t, id)
	w, err := cluster.NewWorker(cluster.WorkerOptions{
		ID: id, Bus: c.net.Host(id).Bus(), Peers: []cluster.Peers{p}, Loader: l, Dir: dir, Lease: c.lease,
		Member: cluster.Member{Device: "cpu", Paths: l.Paths(), Roots: roots, Threads: 1},
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	c.stop = append(c.stop, cancel)
	c.done.Go(func() {
		defer p.Close()
		if err := w.Run(ctx); err != nil && ctx.Err() == nil {
			t.Errorf("%s: %v", id, err)
		}
	})
}

// runner returns a coordinator that does jobs.
func (c *testCluster) runner(t *testing.T, dir string, roots ...string) *job.Runner {
	t.Helper()
	const id = "c-1"
	bus := c.net.Host(id).Bus()
	p := testPeers(t, id)
	t.Cleanup(func() { p.Close() })
	files, err := job.NewFiles(dir, roots)
	if err != nil {
		t.Fatal(err)
	}
	co := cluster.NewCoordinator(cluster.CoordinatorOptions{ID: id, Bus: bus, Peers: []cluster.Peers{p}, Lease: c.lease})
	return &job.Runner{
		Coordinator: co, Bus: bus, Kinds: testApp().jobKinds(run.Options{Device: "cpu", Threads: 1}), Dir: dir, Files: files, Log: testLog{t},
	}
}

// testTraining returns a run of training that the coordinator of r leads.
func testTraining(r *job.Runner, cfg *configs.Config, log *slog.Logger) *clusterTraining {
	l := &job.Lead{Coordinator: r.Coordinator, Bus: r.Bus, ID: "run-1", Kind: kindTrain, Dir: cfg.Output, Log: log}
	configure(l, cfg)
	return &clusterTraining{app: testApp(), Lead: l, cfg: cfg, written: cfg}
}

// testLog is a writer to the log of a test.
type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Logf("%s", bytes.TrimSpace(p))
	return len(p), nil
}

// TestTrainJob trains on a cluster of three and wants the files of a run on this
// machine.
func TestTrainJob(t *testing.T) {
	data := t.TempDir()
	set := append(imageFiles(t, data), "cluster.workers=3")
	here := testConfig(t, set...)
	a := testApp()
	if _, err := run.Train(t.Context(), a.trainOptions(here)); err != nil {
		t.Fatal(err)
	}
	for name, roots := range map[string][]string{"shared": {data}, "uploaded": nil} {
		t.Run(name, func(t *testing.T) {
			c := newTestCluster(t, 3, roots...)
			dir := t.TempDir()
			r := c.runner(t, dir, roots...)
			j, err := a.newJob(t.Context(), "run-1", testConfig(t, set...))
			if err != nil {
				t.Fatal(err)
			}
			if roots == nil {
				if _, err := uploadMissing(t.Context(), r.Bus, j, true); err != nil {
					t.Fatal(err)
				}
			}
			text, err := j.Encode(r.Bus.MaxPayload())
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Do(t.Context(), j.ID, text); err != nil {
				t.Fatal(err)
			}
			out := filepath.Join(dir, "runs", j.ID)
			for _, file := range []string{run.ModelFile, run.SamplesFile} {
				if !bytes.Equal(readFile(t, out, file), readFile(t, here.Output, file)) {
					t.Errorf("%s differs", file)
				}
			}
			var end struct {
				Steps  int64
				Device string
			}
			if err := json.Unmarshal(readFile(t, out, run.ResultFile), &end); err != nil || end.Steps != 12 || !strings.HasPrefix(end.Device, "cluster: 3 × cpu") {
				t.Errorf("result %+v, %v", end, err)
			}
			audit, err := os.Open(filepath.Join(out, job.AuditFile))
			if err != nil {
				t.Fatal(err)
			}
			defer audit.Close()
			if steps, err := cluster.CheckAudit(audit); err != nil || steps != 12 {
				t.Errorf("audit: %d steps, %v", steps, err)
			}
		})
	}
}

// trained trains a tiny model and returns its file.
func trained(t *testing.T, set ...string) string {
	t.Helper()
	cfg := testConfig(t, set...)
	if _, err := run.Train(t.Context(), testApp().trainOptions(cfg)); err != nil {
		t.Fatal(err)
	}
	return filepath.Join(cfg.Output, run.ModelFile)
}

// softRows writes the rows of a file with ranges, sets and likelihoods in place of some cells,
// and returns its path.
func softRows(t *testing.T, dir, rows string) string {
	t.Helper()
	var out strings.Builder
	at := 0
	for line := range strings.Lines(string(readFile(t, rows))) {
		cells := strings.Split(strings.TrimSpace(line), ",")
		for i := range cells {
			switch at++; at % 7 {
			case 1:
				cells[i] = "0..2"
			case 2:
				cells[i] = "{1|3}"
			case 3:
				cells[i] = ""
			}
		}
		fmt.Fprintln(&out, strings.Join(cells, ","))
	}
	path := filepath.Join(dir, "soft.csv")
	if err := os.WriteFile(path, []byte(out.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestRowJobs asks a cluster what this machine is asked too, and wants the same
// bytes.
func TestRowJobs(t *testing.T) {
	data := t.TempDir()
	set := imageFiles(t, data)
	model := trained(t, set...)
	c := newTestCluster(t, 2, data)
	dir := t.TempDir()
	r := c.runner(t, dir, data)
	a := testApp()
	rows := []string{filepath.Join(data, "train.csv"), filepath.Join(data, "test.csv")}
	list := fmt.Sprintf("job.data=[%q, %q]", rows[0], rows[1])
	soft := softRows(t, data, rows[0])
	softList := "job.data=" + soft
	for _, kind := range []struct {
		kind, format, out string
		set               []string
		args              []string
	}{
		{"loglik", "csv", "out.csv", []string{list}, []string{"query", "loglik", "--data", rows[0], "--data", rows[1], "--out"}},
		{"loglik", "npy", "out.npy", []string{list}, []string{"query", "loglik", "--data", rows[0], "--data", rows[1], "--out"}},
		{"loglik", "given.csv", "out.csv", []string{list, `job.columns=["3", "5"]`}, []string{"query", "loglik", "--given", "3,5", "--data", rows[0], "--data", rows[1], "--out"}},
		{"conditional", "csv", "out.csv", []string{list, `job.columns=["3", "5"]`}, []string{"query", "conditional", "--of", "3,5", "--data", rows[0], "--data", rows[1], "--out"}},
		{"conditional", "npy", "out.npy", []string{list, `job.columns=["5"]`}, []string{"query", "conditional", "--of", "5", "--data", rows[0], "--data", rows[1], "--out"}},
		{"moments", "csv", "out.csv", []string{list}, []string{"query", "moments", "--data", rows[0], "--data", rows[1], "--out"}},
		{"classify", "csv", "out.csv", []string{list, `job.columns=["2"]`}, []string{"query", "classify", "--class", "2", "--data", rows[0], "--data", rows[1], "--out"}},
		{"classify", "npy", "out.npy", []string{list, `job.columns=["2"]`, "job.probabilities=true"}, []string{"query", "classify", "--class", "2", "--probabilities", "--data", rows[0], "--data", rows[1], "--out"}},
		{"covariance", "csv", "out.csv", []string{list, `job.columns=["3", "5"]`}, []string{"query", "moments", "--covariance", "3,5", "--data", rows[0], "--data", rows[1], "--out"}},
		{"quantiles", "csv", "out.csv", []string{list, `job.columns=["3", "5"]`}, []string{"query", "quantiles", "--of", "3,5", "--data", rows[0], "--data", rows[1], "--out"}},
		{"quantiles", "npy", "out.npy", []string{list, `job.columns=["4"]`, "job.levels=[0.25, 0.75]"}, []string{"query", "quantiles", "--of", "4", "--at", "0.25,0.75", "--data", rows[0], "--data", rows[1], "--out"}},
		{"expect", "csv", "out.csv", []string{list, `job.of=["2*$1 - $3^2", "$2*$4 + 1"]`}, []string{"query", "expect", "--of", "2*$1 - $3^2", "--of", "$2*$4 + 1", "--data", rows[0], "--data", rows[1], "--out"}},
		{"loglik", "soft.csv", "out.csv", []string{softList, "job.soft=true"}, []string{"query", "loglik", "--soft", "--data", soft, "--out"}},
		{"conditional", "soft.csv", "out.csv", []string{softList, "job.soft=true", `job.columns=["1", "4"]`}, []string{"query", "conditional", "--soft", "--of", "1,4", "--data", soft, "--out"}},
		{"mpe", "soft.csv", "out.csv", []string{softList, "job.soft=true"}, []string{"query", "mpe", "--soft", "--data", soft, "--out"}},
		{"mpe", "csv", "out.csv", []string{list}, []string{"query", "mpe", "--data", rows[0], "--data", rows[1], "--out"}},
		{"mpe", "of.csv", "out.csv", []string{softList, "job.soft=true", `job.columns=["1", "4"]`, "job.search=3"}, []string{"query", "mpe", "--soft", "--of", "1,4", "--search", "3", "--data", soft, "--out"}},
		{"mpe", "npy", "out.npy", []string{list, "job.candidates=2", "job.seed=4"}, []string{"query", "mpe", "--candidates", "2", "--seed", "4", "--data", rows[0], "--data", rows[1], "--out"}},
		{"mpe", "png", "out.png", []string{softList, "job.soft=true"}, []string{"query", "mpe", "--soft", "--data", soft, "--out"}},
		{"sample", "csv", "out.csv", []string{"job.rows=100", "job.seed=5"}, []string{"query", "sample", "-n", "100", "--seed", "5", "--out"}},
		{"sample", "png", "out.png", []string{"job.rows=9"}, []string{"query", "sample", "-n", "9", "--out"}},
		{"eval", "csv", query.EvaluationFile, []string{list}, []string{"eval", "--data", rows[0], "--data", rows[1], "--json"}},
	} {
		t.Run(kind.kind+"/"+kind.format, func(t *testing.T) {
			id := "run-" + kind.kind + "-" + strings.ReplaceAll(kind.format, ".", "-")
			kind.format = kind.format[strings.LastIndexByte(kind.format, '.')+1:]
			cfg := testConfig(t, append(append(set, kind.set...), "job.model="+model, "job.kind="+kind.kind, "job.format="+kind.format)...)
			j, err := a.newJob(t.Context(), id, cfg)
			if err != nil {
				t.Fatal(err)
			}
			for i := range j.Files {
				if j.Files[i].Path == model { // it lies in no root
					if err := j.Files[i].Upload(t.Context(), r.Bus.Blobs(), model); err != nil {
						t.Fatal(err)
					}
				}
			}
			text, err := j.Encode(r.Bus.MaxPayload())
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Do(t.Context(), id, text); err != nil {
				t.Fatal(err)
			}
			got := readFile(t, dir, "runs", id, kind.out)
			args := append(kind.args, "--model", model, "--device", "cpu")
			want := t.TempDir() + "/" + kind.out
			if kind.kind != "eval" {
				args = append(append(kind.args, want), "--model", model, "--device", "cpu")
			}
			var out, errs bytes.Buffer
			if code := Run(t.Context(), args, nil, nil, &out, &errs); code != 0 {
				t.Fatalf("%v: %s", args, &errs)
			}
			if kind.kind != "eval" {
				out.Reset()
				out.Write(readFile(t, want))
			}
			if !bytes.Equal(got, out.Bytes()) {
				t.Errorf("%s differs: %d bytes, want %d", kind.out, len(got), out.Len())
			}
			var log strings.Builder
			if err := r.Bus.Events().Read(t.Context(), id, func(event []byte) bool { fmt.Fprintln(&log, string(event)); return true }); err != nil {
				t.Fatal(err)
			}
			noted := strings.Count(log.String(), `"level":"WARN"`) + strings.Count(log.String(), "nothing is likelier") + strings.Count(log.String(), "approximate: ")
			if noted != strings.Count(errs.String(), "note: ") {
				t.Errorf("the run's log says\n%sand the command\n%s", &log, &errs)
			}
			for line := range strings.Lines(errs.String()) {
				if note, ok := strings.CutPrefix(strings.TrimSpace(line), "note: "); ok && !strings.Contains(log.String(), note) {
					t.Errorf("the run's log lacks %q:\n%s", note, &log)
				}
			}
			left, err := filepath.Glob(filepath.Join(dir, "runs", id, "answers*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestToldOfRows wants what may be wrong with the rows of a job in the log of its run, with the names under which they were submitted.
func TestToldOfRows(t *testing.T) {
	data := t.TempDir()
	write := func(name, text string) string {
		t.Helper()
		path := filepath.Join(data, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	far := write("far.csv", "x,y\n"+strings.Repeat("0.5,1\n1.25,2\n-0.75,1.5\n", 30)+"-999999,1\n")
	near := write("near.csv", strings.ReplaceAll(string(readFile(t, far)), "-999999", "0.25"))
	model := trained(t, "data.train="+near)
	c := newTestCluster(t, 1)
	r := c.runner(t, t.TempDir())
	for id, tc := range map[string]struct {
		set  []string
		want string
	}{
		"train":  {[]string{"data.train=" + far}, far + `: \"x\" has numbers such as -999999`},
		"loglik": {[]string{"job.kind=loglik", "job.model=" + model, "job.data=" + write("part.csv", "x\n1\n")}, filepath.Join(data, "part.csv") + `: the header lacks \"y\"`},
	} {
		j, err := testApp().newJob(t.Context(), id, testConfig(t, tc.set...))
		if err != nil {
			t.Fatal(err)
		}
		for i := range j.Files {
			if err := j.Files[i].Upload(t.Context(), r.Bus.Blobs(), j.Files[i].Path); err != nil {
				t.Fatal(err)
			}
		}
		text, err := j.Encode(r.Bus.MaxPayload())
		if err == nil {
			err = r.Do(t.Context(), id, text)
		}
		if err != nil {
			t.Fatal(err)
		}
		var log strings.Builder
		if err := r.Bus.Events().Read(t.Context(), id, func(event []byte) bool { fmt.Fprintln(&log, string(event)); return true }); err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(log.String(), `"level":"WARN","msg":"`+tc.want) {
			t.Errorf("the log of %s lacks %s:\n%s", id, tc.want, &log)
		}
	}
}

// TestRefusedRows wants a job to end at the first worker that finds what no worker computes.
func TestRefusedRows(t *testing.T) {
	data := t.TempDir()
	set := imageFiles(t, data)
	model := trained(t, set...)
	c := newTestCluster(t, 2, data, filepath.Dir(model))
	r := c.runner(t, t.TempDir(), data, filepath.Dir(model))
	soft := softRows(t, data, filepath.Join(data, "train.csv"))
	cfg := testConfig(t, append(set, "job.data="+soft, "job.soft=true", `job.of=["$2*$4"]`, "job.model="+model, "job.kind=expect")...)
	j, err := testApp().newJob(t.Context(), "run-1", cfg)
	if err != nil {
		t.Fatal(err)
	}
	text, err := j.Encode(r.Bus.MaxPayload())
	if err != nil {
		t.Fatal(err)
	}
	err = r.Do(t.Context(), "run-1", text)
	if !errors.Is(err, cluster.ErrJob) || errors.Is(err, cluster.ErrDead) || !strings.HasPrefix(err.Error(), "cluster: bad job: dataset: bad setting: covariances of rows with ranges") {
		t.Errorf("error %v, exit %d; want ErrJob that says what rows do not have", err, exitCode(err))
	}
}

// TestChangedRows wants no result of a job whose rows were replaced while the workers were asked about them.
func TestChangedRows(t *testing.T) {
	data := t.TempDir()
	set := imageFiles(t, data)
	model := filepath.Join(data, "model.safetensors")
	if err := os.Rename(trained(t, set...), model); err != nil {
		t.Fatal(err)
	}
	c := newTestCluster(t, 1, data)
	rows := filepath.Join(data, "test.csv")
	before := readFile(t, rows)
	for _, kind := range []string{"loglik", "mpe", "loglik uploaded"} {
		t.Run(kind, func(t *testing.T) {
			kind, uploaded := strings.CutSuffix(kind, " uploaded")
			if err := os.WriteFile(rows, before, 0o600); err != nil {
				t.Fatal(err)
			}
			dir := t.TempDir()
			r := c.runner(t, dir, data)
			kinds := job.Kinds{}
			kinds.Register(kind, changingKind{queryKind{query.Kinds()[kind], testApp()}, func() error {
				return os.WriteFile(rows, bytes.Replace(before, []byte("0"), []byte("1"), 1), 0o600)
			}})
			r.Kinds = kinds
			j, err := testApp().newJob(t.Context(), "run-1", testConfig(t, append(set, "job.data="+rows, "job.model="+model, "job.kind="+kind, "job.format=csv")...))
			if err != nil {
				t.Fatal(err)
			}
			for i := range j.Files {
				if uploaded { // what the broker has is not what is read
					if err := j.Files[i].Upload(t.Context(), r.Bus.Blobs(), j.Files[i].Path); err != nil {
						t.Fatal(err)
					}
				}
			}
			text, err := j.Encode(r.Bus.MaxPayload())
			if err != nil {
				t.Fatal(err)
			}
			if err := r.Do(t.Context(), "run-1", text); !errors.Is(err, cluster.ErrJob) || !strings.Contains(err.Error(), rows+" changed while the job read it") {
				t.Errorf("%v, want ErrJob and the file", err)
			}
			if _, err := os.Stat(filepath.Join(dir, "runs", "run-1", "out.csv")); !errors.Is(err, os.ErrNotExist) {
				t.Errorf("a result is there: %v", err)
			}
		})
	}
}

// changingKind is a kind of query before whose result is written something changes.
type changingKind struct {
	queryKind
	change func() error
}

func (k changingKind) Lead(ctx context.Context, l *job.Lead, j *job.Job) error {
	k.Kind = changingQuery{k.Kind, k.change}
	return k.queryKind.Lead(ctx, l, j)
}

type changingQuery struct {
	query.Kind
	change func() error
}

func (q changingQuery) Open(ctx context.Context, query *query.Job) (query.Subject, error) {
	s, err := q.Kind.Open(ctx, query)
	return changingSubject{s, q.change}, err
}

type changingSubject struct {
	query.Subject
	change func() error
}

func (s changingSubject) Answers(l *job.Lead) job.Answers {
	if err := s.change(); err != nil { // the rows are open by now
		panic(err)
	}
	return s.Subject.Answers(l)
}

// TestBadJobs refuses jobs with one line, and buries them.
func TestBadJobs(t *testing.T) {
	data, other := t.TempDir(), t.TempDir()
	set := imageFiles(t, data)
	c := newTestCluster(t, 0)
	r := c.runner(t, t.TempDir(), data)
	a := testApp()
	good, err := a.newJob(t.Context(), "run-1", testConfig(t, set...))
	if err != nil {
		t.Fatal(err)
	}
	secret := filepath.Join(other, "secret.csv")
	if err := os.WriteFile(secret, []byte("1,2\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(data, "link.csv")
	if err := os.Symlink(secret, link); err != nil {
		t.Fatal(err)
	}
	// trainOn makes a job whose training rows are a file, which it may list.
	trainOn := func(path string, list bool) func(*job.Job) {
		return func(j *job.Job) {
			cfg, _, err := configs.Load(configs.Options{Text: []byte(j.Config), Set: []string{"data.train=" + path}})
			if err != nil {
				t.Fatal(err)
			}
			text, err := cfg.YAML()
			if err != nil {
				t.Fatal(err)
			}
			j.Config = string(text)
			if list {
				r, err := job.FileAt(t.Context(), path)
				if err != nil {
					t.Fatal(err)
				}
				j.Files = append(j.Files, r)
			}
		}
	}
	for name, bad := range map[string]struct {
		edit func(*job.Job)
		want string
		code int
	}{
		"other version":     {func(j *job.Job) { j.Version = 2 }, "it has version 2, this program takes 1", exitData},
		"unknown kind":      {func(j *job.Job) { j.Kind = "mine" }, `unknown kind "mine", want one of classify, conditional, covariance, eval, expect, loglik, moments, mpe, predict, quantiles, sample, train`, exitData},
		"other kind":        {func(j *job.Job) { j.Kind = "eval" }, `its kind is "eval", its config's train`, exitData},
		"other id":          {func(j *job.Job) { j.ID = "run-2" }, `says that it is run "run-2"`, exitData},
		"bad config":        {func(j *job.Job) { j.Config = "trian: {}\n" }, "unknown key trian", exitUsage},
		"outside the roots": {trainOn(secret, true), "lies in no root", exitUsage},
		"a link out":        {trainOn(link, true), "link.csv is a link, or lies behind one, that leads out of the root", exitUsage},
		"not listed":        {trainOn(filepath.Join(data, "train.csv")+"x", false), "is not among its files", exitData},
		"relative":          {trainOn("train.csv", false), "does not start at /", exitData},
		"pattern":           {trainOn(data+"/*.csv", false), "is not among its files", exitData},
		"other contents": {func(j *job.Job) {
			j.Files[0].Digest = strings.Repeat("0", 64)
		}, "has other contents here", exitData},
		"a name with a path": {func(j *job.Job) { j.Files[0].Name = "../x.csv" }, "is not the name of a file", exitData},
	} {
		t.Run(name, func(t *testing.T) {
			j := *good
			j.Files = append([]job.FileRef(nil), good.Files...)
			bad.edit(&j)
			text, err := j.Encode(r.Bus.MaxPayload())
			if err != nil {
				t.Fatal(err)
			}
			before, err := r.Bus.Jobs().Dead(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // one that is not refused waits for workers
			defer cancel()
			err = r.Do(ctx, "run-1", text)
			if !errors.Is(err, cluster.ErrJob) || exitCode(err) != bad.code || !strings.Contains(err.Error(), bad.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, exit %d; want ErrJob, one line with %q and exit %d", err, exitCode(err), bad.want, bad.code)
			}
			after, err := r.Bus.Jobs().Dead(t.Context())
			if err != nil || len(after) != len(before)+1 || after[len(after)-1].Run != "run-1" || after[len(after)-1].Shard != -1 {
				t.Errorf("dead letters %+v after %+v, %v", after, before, err)
			}
		})
	}
	if err := r.Do(t.Context(), "run-1", []byte("{")); !errors.Is(err, cluster.ErrJob) {
		t.Errorf("no JSON: %v", err)
	}
}
