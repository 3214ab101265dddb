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
	"github.com/pce-engine/pce/cluster/peer"
	"github.com/pce-engine/pce/cluster/simnet"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/run"
)

// testCluster is a broker and workers in this process; bulk data goes over TCP.
type testCluster struct {
	net  *simnet.Network
	stop []context.CancelFunc
	done sync.WaitGroup
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
	dir := t.TempDir()
	l, err := newLoader(dir, roots, run.Options{Device: "cpu", Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	p := testPeers(t, id)
	w, err := cluster.NewWorker(cluster.WorkerOptions{
		ID: id, Bus: c.net.Host(id).Bus(), Peers: []cluster.Peers{p}, Loader: l, Dir: dir,
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

// coordinator returns a coordinator, and where it runs jobs.
func (c *testCluster) coordinator(t *testing.T, dir string, roots ...string) (*cluster.Coordinator, jobEnv) {
	t.Helper()
	const id = "c-1"
	bus := c.net.Host(id).Bus()
	p := testPeers(t, id)
	t.Cleanup(func() { p.Close() })
	files, err := newFileStore(dir, roots)
	if err != nil {
		t.Fatal(err)
	}
	co := cluster.NewCoordinator(cluster.CoordinatorOptions{ID: id, Bus: bus, Peers: []cluster.Peers{p}})
	return co, jobEnv{bus: bus, dir: dir, files: files, local: run.Options{Device: "cpu", Threads: 1}, log: testLog{t}}
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
			co, env := c.coordinator(t, dir, roots...)
			j, err := a.newJob(t.Context(), "run-1", testConfig(t, set...))
			if err != nil {
				t.Fatal(err)
			}
			if roots == nil {
				if _, err := j.uploadMissing(t.Context(), env.bus, true); err != nil {
					t.Fatal(err)
				}
			}
			text, err := j.encode(env.bus.MaxPayload())
			if err != nil {
				t.Fatal(err)
			}
			if err := a.runJob(t.Context(), j.ID, text, co, env); err != nil {
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
			audit, err := os.Open(filepath.Join(out, auditFile))
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

// TestRowJobs asks a cluster what this machine is asked too, and wants the same
// bytes.
func TestRowJobs(t *testing.T) {
	data := t.TempDir()
	set := imageFiles(t, data)
	model := trained(t, set...)
	c := newTestCluster(t, 2, data)
	dir := t.TempDir()
	co, env := c.coordinator(t, dir, data)
	a := testApp()
	rows := []string{filepath.Join(data, "train.csv"), filepath.Join(data, "test.csv")}
	list := fmt.Sprintf("job.data=[%q, %q]", rows[0], rows[1])
	for _, kind := range []struct {
		kind, format, out string
		set               []string
		args              []string
	}{
		{kindLoglik, "csv", "out.csv", []string{list}, []string{"query", "loglik", "--data", rows[0], "--data", rows[1], "--out"}},
		{kindLoglik, "npy", "out.npy", []string{list}, []string{"query", "loglik", "--data", rows[0], "--data", rows[1], "--out"}},
		{kindSample, "csv", "out.csv", []string{"job.rows=100", "job.seed=5"}, []string{"query", "sample", "-n", "100", "--seed", "5", "--out"}},
		{kindSample, "png", "out.png", []string{"job.rows=9"}, []string{"query", "sample", "-n", "9", "--out"}},
		{kindEval, "csv", evaluationFile, []string{list}, []string{"eval", "--data", rows[0], "--data", rows[1], "--json"}},
	} {
		t.Run(kind.kind+"/"+kind.format, func(t *testing.T) {
			id := "run-" + kind.kind + "-" + kind.format
			cfg := testConfig(t, append(append(set, kind.set...), "job.model="+model, "job.kind="+kind.kind, "job.format="+kind.format)...)
			j, err := a.newJob(t.Context(), id, cfg)
			if err != nil {
				t.Fatal(err)
			}
			for i := range j.Files {
				if j.Files[i].Path == model { // it lies in no root
					if err := j.Files[i].upload(t.Context(), env.bus.Blobs(), model); err != nil {
						t.Fatal(err)
					}
				}
			}
			text, err := j.encode(env.bus.MaxPayload())
			if err != nil {
				t.Fatal(err)
			}
			if err := a.runJob(t.Context(), id, text, co, env); err != nil {
				t.Fatal(err)
			}
			got := readFile(t, dir, "runs", id, kind.out)
			args := append(kind.args, "--model", model, "--device", "cpu")
			want := t.TempDir() + "/" + kind.out
			if kind.kind != kindEval {
				args = append(append(kind.args, want), "--model", model, "--device", "cpu")
			}
			var out, errs bytes.Buffer
			if code := Run(t.Context(), args, nil, nil, &out, &errs); code != 0 {
				t.Fatalf("%v: %s", args, &errs)
			}
			if kind.kind != kindEval {
				out.Reset()
				out.Write(readFile(t, want))
			}
			if !bytes.Equal(got, out.Bytes()) {
				t.Errorf("%s differs: %d bytes, want %d", kind.out, len(got), out.Len())
			}
			left, err := filepath.Glob(filepath.Join(dir, "runs", id, "answers*"))
			if err != nil || len(left) > 0 {
				t.Errorf("left behind: %v, %v", left, err)
			}
		})
	}
}

// TestBadJobs refuses jobs with one line, and buries them.
func TestBadJobs(t *testing.T) {
	data, other := t.TempDir(), t.TempDir()
	set := imageFiles(t, data)
	c := newTestCluster(t, 0)
	co, env := c.coordinator(t, t.TempDir(), data)
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
	trainOn := func(path string, list bool) func(*job) {
		return func(j *job) {
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
				r, err := refTo(path)
				if err != nil {
					t.Fatal(err)
				}
				j.Files = append(j.Files, r)
			}
		}
	}
	for name, bad := range map[string]struct {
		edit func(*job)
		want string
		code int
	}{
		"other version":     {func(j *job) { j.Version = 2 }, "it has version 2, this program takes 1", exitData},
		"unknown kind":      {func(j *job) { j.Kind = "mine" }, `its kind is "mine"`, exitData},
		"other id":          {func(j *job) { j.ID = "run-2" }, `says that it is run "run-2"`, exitData},
		"bad config":        {func(j *job) { j.Config = "trian: {}\n" }, "unknown key trian", exitUsage},
		"outside the roots": {trainOn(secret, true), "lies in no root", exitUsage},
		"a link out":        {trainOn(link, true), "link.csv", exitUsage},
		"not listed":        {trainOn(filepath.Join(data, "train.csv")+"x", false), "is not among its files", exitData},
		"relative":          {trainOn("train.csv", false), "does not start at /", exitData},
		"pattern":           {trainOn(data+"/*.csv", false), "is not among its files", exitData},
		"other contents": {func(j *job) {
			j.Files[0].Digest = strings.Repeat("0", 64)
		}, "has other contents here", exitUsage},
		"a name with a path": {func(j *job) { j.Files[0].Name = "../x.csv" }, "is no name of a file", exitData},
	} {
		t.Run(name, func(t *testing.T) {
			j := *good
			j.Files = append([]fileRef(nil), good.Files...)
			bad.edit(&j)
			text, err := j.encode(env.bus.MaxPayload())
			if err != nil {
				t.Fatal(err)
			}
			before, err := env.bus.Jobs().Dead(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // one that is not refused waits for workers
			defer cancel()
			err = a.runJob(ctx, "run-1", text, co, env)
			if !errors.Is(err, cluster.ErrJob) || exitCode(err) != bad.code || !strings.Contains(err.Error(), bad.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, exit %d; want ErrJob, one line with %q and exit %d", err, exitCode(err), bad.want, bad.code)
			}
			after, err := env.bus.Jobs().Dead(t.Context())
			if err != nil || len(after) != len(before)+1 || after[len(after)-1].Run != "run-1" || after[len(after)-1].Shard != -1 {
				t.Errorf("dead letters %+v after %+v, %v", after, before, err)
			}
		})
	}
	if err := a.runJob(t.Context(), "run-1", []byte("{"), co, env); !errors.Is(err, cluster.ErrJob) {
		t.Errorf("no JSON: %v", err)
	}
}

// TestLoaderRefuses wants one line, and the class that says whether another
// worker may do better.
func TestLoaderRefuses(t *testing.T) {
	data := t.TempDir()
	cfg := testConfig(t, imageFiles(t, data)...)
	a := testApp()
	bus := simnet.New(1, simnet.Faults{}).Host("c").Bus()
	lead := &clusterRun{app: a, bus: bus, cfg: cfg, id: "run-1", dir: t.TempDir(), log: slog.New(slog.DiscardHandler), members: []cluster.Member{{ID: "w", Roots: []string{data}}}}
	b, err := a.blueprint(t.Context(), cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer b.Close()
	o := a.trainOptions(cfg)
	describe := func() *description {
		d, err := lead.describe(t.Context(), b, run.TrainLoad(o, b.Train.Rows()), nil, nil)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	for name, bad := range map[string]struct {
		roots []string
		edit  func(*description)
		spec  func(*cluster.Spec)
		final bool
		want  string
	}{
		"good":          {roots: []string{data}},
		"no root":       {want: "lies in no root"},
		"other root":    {roots: []string{t.TempDir()}, want: "lies in no root"},
		"other program": {roots: []string{data}, spec: func(s *cluster.Spec) { s.Program = strings.Repeat("0", 64) }, want: "give all members the same version"},
		"unknown kind":  {roots: []string{data}, edit: func(d *description) { d.Kind = "mine" }, final: true, want: "no runs of kind"},
		"damaged":       {roots: []string{data}, edit: func(d *description) { d.Circuit = d.Circuit[:40] }, final: true, want: "bad model"},
		"no rows":       {roots: []string{data}, edit: func(d *description) { delete(d.Sources, trainSource) }, final: true, want: "no training rows"},
		"no body":       {roots: []string{data}, spec: func(s *cluster.Spec) { s.Body = []byte(`{"x":1}`) }, final: true, want: "its body"},
		"kernel path":   {roots: []string{data}, spec: func(s *cluster.Spec) { s.Path = "abacus" }, want: "abacus"},
		"other contents": {roots: []string{data}, edit: func(d *description) {
			s := d.Sources[trainSource]
			s.Files = append([]fileRef(nil), s.Files...)
			s.Files[0].Digest = strings.Repeat("0", 64)
			d.Sources[trainSource] = s
		}, want: "has other contents here"},
		"other rows": {roots: []string{data}, edit: func(d *description) {
			s := d.Sources[trainSource]
			s.Rows++
			d.Sources[trainSource] = s
		}, want: "rows here"},
		"not with the broker": {edit: func(d *description) {
			s := d.Sources[trainSource]
			s.Files, s.Table = nil, &fileRef{Name: "rows", Digest: strings.Repeat("0", 64), Blob: true}
			d.Sources = map[string]sourceRef{trainSource: s}
		}, want: "no record"},
		"a builtin that is a file": {edit: func(d *description) {
			s := d.Sources[trainSource]
			s.Builtin = "/etc/passwd"
			d.Sources = map[string]sourceRef{trainSource: s}
		}, final: true, want: "no builtin source"},
	} {
		t.Run(name, func(t *testing.T) {
			d := describe()
			if bad.edit != nil {
				bad.edit(d)
			}
			spec, err := lead.publish(t.Context(), d, b.Program.Digest())
			if err != nil {
				t.Fatal(err)
			}
			if bad.spec != nil {
				bad.spec(&spec)
			}
			l, err := newLoader(t.TempDir(), bad.roots, run.Options{Device: "cpu", Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			s, err := l.Load(t.Context(), spec, bus.Blobs())
			if bad.want == "" {
				if err != nil {
					t.Fatal(err)
				}
				s.Close()
				return
			}
			if err == nil || errors.Is(err, cluster.ErrJob) != bad.final || !strings.Contains(err.Error(), bad.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v; want one line with %q, for all workers: %t", err, bad.want, bad.final)
			}
		})
	}
}

// TestFileStore copies from the broker once, notices damage, and forgets what no
// run needs.
func TestFileStore(t *testing.T) {
	bus := simnet.New(1, simnet.Faults{}).Host("c").Bus()
	dir := t.TempDir()
	source := filepath.Join(t.TempDir(), "a.csv")
	if err := os.WriteFile(source, []byte("1,2\n3,4\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	r, err := refTo(source)
	if err != nil {
		t.Fatal(err)
	}
	s, err := newFileStore(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.open(t.Context(), r, bus.Blobs()); !errors.Is(err, dataset.ErrSetting) {
		t.Errorf("a file that is nowhere: %v", err)
	}
	if err := r.upload(t.Context(), bus.Blobs(), source); err != nil {
		t.Fatal(err)
	}
	path, err := s.open(t.Context(), r, bus.Blobs())
	if err != nil || filepath.Ext(path) != ".csv" || string(readFile(t, path)) != "1,2\n3,4\n" {
		t.Fatalf("copy %s, %v", path, err)
	}
	if err := os.WriteFile(path, []byte("1,2\n3,5\n"), 0o644); err != nil { // as many bytes
		t.Fatal(err)
	}
	if path, err = s.open(t.Context(), r, bus.Blobs()); err != nil || string(readFile(t, path)) != "1,2\n3,4\n" {
		t.Errorf("a damaged copy is taken (%v)", err)
	}
	if err := bus.Blobs().Delete(t.Context(), r.Digest); err != nil {
		t.Fatal(err)
	}
	if _, err := s.open(t.Context(), r, bus.Blobs()); err != nil {
		t.Errorf("a copy that is there is fetched: %v", err)
	}
	if err := s.prune(map[string]bool{r.Digest: true}); err != nil {
		t.Fatal(err)
	}
	readFile(t, path)
	if err := s.prune(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(path); err == nil {
		t.Error("a copy that nobody needs is kept")
	}
}
