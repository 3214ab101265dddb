package main

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
	"github.com/pce-engine/pce/cluster/query"
	"github.com/pce-engine/pce/compile/forest/tune"
	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format/xgboost"
	"github.com/pce-engine/pce/kernels/cpu/micro"
	"github.com/pce-engine/pce/run"
)

// forestRows writes files of rows for doubleForest and singleForest: without a header, with the
// columns in another order, and with one column missing. Cells are missing here and there.
func forestRows(t *testing.T, dir string, rows int) map[string]string {
	t.Helper()
	rng := rand.New(rand.NewPCG(8, 1))
	var plain, pair strings.Builder
	turned, lacking := strings.Builder{}, strings.Builder{}
	turned.WriteString("c,a,b\n")
	lacking.WriteString("b,c\n")
	for range rows {
		cells := []string{fmt.Sprint(rng.Float64() / 5), fmt.Sprint(rng.NormFloat64() * 3), fmt.Sprint(rng.IntN(40))}
		for i := range cells {
			switch rng.IntN(12) {
			case 0:
				cells[i] = "nan"
			case 1:
				cells[i] = ""
			}
		}
		if cells[0]+cells[1] == "" {
			cells[0] = "?" // a line without anything is skipped
		}
		fmt.Fprintln(&plain, strings.Join(cells, ","))
		fmt.Fprintf(&turned, "%s,%s,%s\n", cells[2], cells[0], cells[1])
		fmt.Fprintf(&lacking, "%s,%s\n", cmp.Or(cells[1], "?"), cells[2])
		fmt.Fprintf(&pair, "%s,%v\n", cells[0], rng.Float64()*11)
	}
	files := map[string]string{}
	for name, text := range map[string]string{
		"plain.csv": plain.String(), "turned.csv": turned.String(), "lacking.csv": lacking.String(), "pair.csv": pair.String(),
		"double.txt": doubleForest, "single.json": singleForest, "tiles.schedule": "represent sparse\ninterleave tree 2",
		"likely.schedule": "tileNodes 2 probability",
	} {
		files[name] = filepath.Join(dir, name)
		if err := os.WriteFile(files[name], []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return files
}

// encoded makes a job of settings.
func encoded(t *testing.T, r *job.Runner, id string, set ...string) []byte {
	t.Helper()
	j, err := testApp().newJob(t.Context(), id, testConfig(t, set...))
	if err != nil {
		t.Fatal(err)
	}
	text, err := j.Encode(r.Bus.MaxPayload())
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// predicted is what pce predict prints.
func predicted(t *testing.T, args ...string) []byte {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Run(t.Context(), append([]string{"predict"}, args...), nil, nil, &out, &errs); code != exitOK {
		t.Fatalf("predict %v: %s", args, &errs)
	}
	return out.Bytes()
}

// profiled writes the profile of a forest for rows, and returns its path.
func profiled(t *testing.T, dir, model, rows string) string {
	t.Helper()
	var out, errs bytes.Buffer
	if code := Run(t.Context(), []string{"forest", "profile", model, "--data", rows}, nil, nil, &out, &errs); code != exitOK {
		t.Fatal(&errs)
	}
	path := filepath.Join(dir, "profile.json")
	if err := os.WriteFile(path, out.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestPredictJobs asks a cluster about rows of forests, and wants the bytes of pce predict: for
// every kind of result, columns in another order or missing, several files, cells of both types.
func TestPredictJobs(t *testing.T) {
	data := t.TempDir()
	files := forestRows(t, data, 5000) // more than a request
	profile := profiled(t, data, files["double.txt"], files["plain.csv"])
	c := newTestCluster(t, 2, data)
	dir := t.TempDir()
	r := c.runner(t, dir, data)
	for name, tt := range map[string]struct {
		model, result string
		rows          []string
		set           []string
	}{
		"prediction":  {"double.txt", "prediction", []string{"plain.csv"}, nil},
		"margin":      {"double.txt", "margin", []string{"turned.csv", "plain.csv", "lacking.csv"}, nil},
		"leaf":        {"double.txt", "leaf", []string{"lacking.csv"}, nil},
		"class":       {"double.txt", "class", []string{"turned.csv"}, nil},
		"single":      {"single.json", "prediction", []string{"pair.csv"}, []string{"data.header=no"}},
		"auto":        {"single.json", "margin", []string{"pair.csv"}, []string{"job.schedule=auto"}},
		"single-leaf": {"single.json", "leaf", []string{"pair.csv"}, nil},
		"scheduled":   {"double.txt", "margin", []string{"turned.csv"}, []string{"job.schedule=preset:sorted"}},
		"leaves":      {"double.txt", "leaf", []string{"plain.csv"}, []string{"job.schedule=" + files["tiles.schedule"]}},
		"profiled":    {"double.txt", "margin", []string{"plain.csv"}, []string{"job.schedule=" + files["likely.schedule"], "job.profile=" + profile}},
		"inline":      {"single.json", "class", []string{"pair.csv"}, []string{"job.schedule=tile batch b0 b1 64\n# \"remark\": \n\tparallel b0\n"}},
	} {
		t.Run(name, func(t *testing.T) {
			var list []string
			args := []string{"--model", files[tt.model]}
			for _, f := range tt.rows {
				list, args = append(list, fmt.Sprintf("%q", files[f])), append(args, "--data", files[f])
			}
			for _, s := range tt.set {
				if !strings.HasPrefix(s, "job.") {
					args = append(args, "--set", s)
				}
			}
			if tt.result != "prediction" {
				args = append(args, "--"+tt.result)
			}
			id := "run-" + name
			set := append(tt.set, "job.kind=predict", "job.model="+files[tt.model], "job.data=["+strings.Join(list, ",")+"]", "job.result="+tt.result)
			if err := r.Do(t.Context(), id, encoded(t, r, id, set...)); err != nil {
				t.Fatal(err)
			}
			want := predicted(t, args...)
			if got := readFile(t, dir, "runs", id, "out.csv"); !bytes.Equal(got, want) || bytes.Count(want, []byte("\n")) != 5000*len(tt.rows) {
				t.Errorf("%d bytes, want the %d of the command\n%.200s\n%.200s", len(got), len(want), got, want)
			}
		})
	}
}

// watchedKind is a kind of job whose requests are told before they are answered, with their number from 1.
type watchedKind struct {
	job.Kind
	tell func(ctx context.Context, n int)
}

func (k watchedKind) Load(ctx context.Context, in *job.Loading) (cluster.Session, error) {
	s, err := k.Kind.Load(ctx, in)
	if err != nil {
		return nil, err
	}
	return &watchedSession{Session: s, tell: k.tell}, nil
}

type watchedSession struct {
	cluster.Session
	tell  func(ctx context.Context, n int)
	asked int
}

func (s *watchedSession) Query(ctx context.Context, request []byte) ([]byte, error) {
	s.asked++
	s.tell(ctx, s.asked)
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	return s.Session.Query(ctx, request)
}

// TestPredictKilled kills a worker that has a part of a job: the other one answers for it, and
// the result is the same. The other one's second answer waits for that, so that it has not done all before.
func TestPredictKilled(t *testing.T) {
	data := t.TempDir()
	files := forestRows(t, data, 20_000)
	c := newTestCluster(t, 0)
	c.lease = 3 * time.Second // after which the other one gets what it had
	killed := make(chan struct{})
	watched := func(tell func(ctx context.Context, n int)) job.Kinds {
		kinds := testApp().jobKinds(run.Options{Device: "cpu", Threads: 1})
		kinds[query.Predict] = watchedKind{kinds[query.Predict], tell}
		return kinds
	}
	c.startWith(t, "worker-000", []string{data}, watched(func(ctx context.Context, n int) {
		if n > 1 {
			select {
			case <-killed:
			case <-ctx.Done():
			}
		}
	}))
	kinds := watched(func(ctx context.Context, n int) {
		if n > 1 {
			c.net.Crash("worker-dying")
			c.stop[1]()
			close(killed)
			<-ctx.Done()
		}
	})
	c.startWith(t, "worker-dying", []string{data}, kinds)
	dir := t.TempDir()
	r := c.runner(t, dir, data)
	set := []string{"job.kind=predict", "job.model=" + files["double.txt"], fmt.Sprintf("job.data=[%q, %q]", files["plain.csv"], files["turned.csv"]), "cluster.workers=2"}
	if err := r.Do(t.Context(), "run-1", encoded(t, r, "run-1", set...)); err != nil {
		t.Fatal(err)
	}
	want := predicted(t, "--model", files["double.txt"], "--data", files["plain.csv"], "--data", files["turned.csv"])
	select {
	case <-killed:
	default:
		t.Error("no worker was killed")
	}
	if got := readFile(t, dir, "runs", "run-1", "out.csv"); !bytes.Equal(got, want) {
		t.Errorf("%d bytes, want the %d of the command", len(got), len(want))
	}
}

// TestSubmittedSchedule: a job has the text of its schedule, whatever its config names it by, and one that is illegal, or that
// its forest cannot have, is refused before the job is queued.
func TestSubmittedSchedule(t *testing.T) {
	files := forestRows(t, t.TempDir(), 3)
	for given, want := range map[string]string{
		files["tiles.schedule"]:     "represent sparse\ninterleave tree 2\n",
		"parallel batch\n":          "parallel batch\n",
		"preset:one-tree-at-a-time": "",
	} {
		j, err := testApp().newJob(t.Context(), "run-1", testConfig(t, "job.kind=predict", "job.model="+files["single.json"], "job.data="+files["pair.csv"], "job.schedule="+given))
		if err != nil {
			t.Fatal(err)
		}
		cfg, _, err := configs.Load(configs.Options{Text: []byte(j.Config)})
		if err != nil || want != "" && cfg.Job.Schedule != want || !strings.HasSuffix(cfg.Job.Schedule, "\n") || len(j.Files) != 2 {
			t.Errorf("%q: %v, %q with %d files", given, err, cfg.Job.Schedule, len(j.Files))
		}
	}
	notes := new(bytes.Buffer)
	a := &app{stdout: io.Discard, stderr: notes, env: []string{"XDG_CACHE_HOME=" + t.TempDir(), "HOME=" + t.TempDir()}}
	f, err := run.OpenForest(files["single.json"])
	if err != nil {
		t.Fatal(err)
	}
	chosen, err := pce.GuessSchedule(f, pce.Options{}, jobRows)
	if err != nil {
		t.Fatal(err)
	}
	own := &configs.Job{Kind: "predict", Model: files["single.json"], Schedule: "auto"}
	if got, err := a.jobSchedule(own); err != nil || got != chosen+"\n" || !strings.Contains(notes.String(), quoted(chosen)) {
		t.Errorf("auto: %v, %q, want the cost model's %q; it says %q", err, got, chosen, notes)
	}
	dir, err := a.scheduleCache()
	if err != nil {
		t.Fatal(err)
	}
	set, err := micro.Select()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tune.Save(dir, f.Digest(), tune.Kept{Path: set.Name, Batch: 256, Threads: 1, RowsPerSecond: 1, When: time.Now(), Schedule: "exact\nrepresent reorg"}); err != nil {
		t.Fatal(err)
	}
	if got, err := a.jobSchedule(own); err != nil || got != "exact\nrepresent reorg\n" {
		t.Errorf("auto: %v, %q, want what is kept", err, got)
	}
	for given, want := range map[string]string{
		"parallel rows\n":             "job.schedule: schedule: illegal",
		"paralel batch\n":             `"paralel" is not a verb`,
		"preset:none":                 "none",
		files["double.txt"]:           "is not a verb",
		files["tiles.schedule"] + "x": "no such file",
		"gpuDimension batch grid.x\n": "is for cards",
		"tileNodes 2 hybrid\n":        "wants to know how many rows",
	} {
		_, err := testApp().newJob(t.Context(), "run-1", testConfig(t, "job.kind=predict", "job.model="+files["single.json"], "job.data="+files["pair.csv"], "job.schedule="+given))
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%q: %v, want one line with %q", given, err, want)
		}
	}
}

// TestSubmittedSliced: a job whose forest has too many thresholds for represent sliced is refused before it is queued.
func TestSubmittedSliced(t *testing.T) {
	tree := forest.Tree{Weight: 1, Values: []forest.Value{{Value: 1}}}
	const thresholds = 65534
	for i := range int32(thresholds) { // a node, and the leaf on its left
		tree.Nodes = append(tree.Nodes, forest.Node{Test: forest.Less, Threshold: float64(i), Yes: 2*i + 1, No: 2*i + 2, ID: 2 * i}, forest.Node{Last: 1, ID: 2*i + 1})
	}
	tree.Nodes = append(tree.Nodes, forest.Node{ID: 2 * thresholds})
	f := &forest.Forest{Target: "reg:squarederror", Features: 1, Outputs: 1, Base: []float64{0}, Trees: []forest.Tree{tree}}
	var b bytes.Buffer
	if err := xgboost.Write(&b, f); err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(t.TempDir(), "model.json")
	if err := os.WriteFile(model, b.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := testApp().jobSchedule(&configs.Job{Kind: "predict", Model: model, Schedule: "represent sliced\n"})
	if err == nil || !strings.Contains(err.Error(), "job.schedule") || !strings.Contains(err.Error(), "65534 cut points") {
		t.Errorf("%v", err)
	}
}

// TestSubmittedProfile: a job carries the file of its profile, and one that is not its forest's is
// refused before the job is queued.
func TestSubmittedProfile(t *testing.T) {
	dir := t.TempDir()
	files := forestRows(t, dir, 3)
	profile := profiled(t, dir, files["double.txt"], files["plain.csv"])
	settings := func(model, profile string) []string {
		return []string{"job.kind=predict", "job.model=" + files[model], "job.data=" + files["plain.csv"], "job.schedule=" + files["likely.schedule"], "job.profile=" + profile}
	}
	j, err := testApp().newJob(t.Context(), "run-1", testConfig(t, settings("double.txt", profile)...))
	if err != nil {
		t.Fatal(err)
	}
	if len(j.Files) != 3 || j.Files[2].Path != profile {
		t.Errorf("files %+v, want the rows, the forest and the profile", j.Files)
	}
	for name, tt := range map[string]struct{ model, profile, want string }{
		"of another forest": {"single.json", profile, "is the profile of another forest"},
		"not a profile":     {"double.txt", files["plain.csv"], "write it with pce forest profile"},
		"not there":         {"double.txt", profile + "x", "no such file"},
	} {
		_, err := testApp().newJob(t.Context(), "run-1", testConfig(t, settings(tt.model, tt.profile)...))
		if err == nil || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v, want one line with %q", name, err, tt.want)
		}
	}
}

// TestBadPredictJobs refuses with one line what cannot be predicted, and forests in jobs of
// circuits.
func TestBadPredictJobs(t *testing.T) {
	data := t.TempDir()
	files := forestRows(t, data, 3)
	save := func(name, text string) string {
		path := filepath.Join(data, name)
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return path
	}
	circuit := trained(t, imageFiles(t, t.TempDir())...)
	model, err := os.ReadFile(circuit)
	if err != nil {
		t.Fatal(err)
	}
	circuit = save("circuit.safetensors", string(model))
	c := newTestCluster(t, 0)
	r := c.runner(t, t.TempDir(), data)
	for name, tt := range map[string]struct {
		kind, model, rows, result, want string
	}{
		"a circuit":     {"predict", circuit, files["plain.csv"], "prediction", "a circuit, which has no trees; ask it with pce query"},
		"neither":       {"predict", save("model.bin", "neither of them"), files["plain.csv"], "prediction", "its first bytes are those of no known"},
		"for loglik":    {"loglik", files["single.json"], files["pair.csv"], "prediction", "a forest (xgboost-json), which this cannot use; ask it with pce predict"},
		"no classes":    {"predict", save("regression.json", strings.Replace(singleForest, "binary:logistic", "reg:squarederror", 1)), files["pair.csv"], "class", "it gives no classes"},
		"text":          {"predict", files["single.json"], save("bad.csv", "1,2\n3,wet\n"), "prediction", `"wet" is not a number`},
		"short":         {"predict", files["single.json"], save("short.csv", "1,2\n3\n"), "prediction", "short.csv:2"},
		"other columns": {"predict", files["double.txt"], save("names.csv", "a,b,wind\n1,2,3\n"), "prediction", "wind"},
		"no table":      {"predict", files["double.txt"], save("words.txt", "a b"), "prediction", "text has no columns of numbers"},
		"no rows":       {"predict", files["double.txt"], save("empty.csv", "a,b,c\n"), "prediction", "empty.csv has no rows"},
	} {
		t.Run(name, func(t *testing.T) {
			text := encoded(t, r, "run-1", "job.kind="+tt.kind, "job.model="+tt.model, fmt.Sprintf("job.data=[%q]", tt.rows), "job.result="+tt.result)
			ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // one that is not refused waits for workers
			defer cancel()
			err := r.Do(ctx, "run-1", text)
			if !errors.Is(err, cluster.ErrJob) || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error %v, exit %d; want ErrJob and one line with %q", err, exitCode(err), tt.want)
			}
		})
	}
}
