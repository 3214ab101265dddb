package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/configs"
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/kernels/tensor"
	"github.com/pce-engine/pce/run"
)

// TestBenchInstructions measures training steps of a circuit with blocks of 32 on the
// emulated card: the output counts instructions by kind, and the multiply-adds of
// the sums, forward, backward and for the weights, are those of matrix
// instructions.
func TestBenchInstructions(t *testing.T) {
	t.Chdir(t.TempDir())
	const batch, warmup, steps = 64, 1, 2
	b := runJSON(t, "bench", "--config", "preset:hclt", "--device", "emulator", "--warmup", "1", "--steps", "2", "--batch", "64",
		"--set", "model.latents=32", "--set", "data.train=builtin:random?rows=200&vars=9&categories=4", "--set", "data.image=[3, 3]",
		"--set", "data.valid=", "--set", "data.test=")
	if b["device"] != "emulator" || number(t, b, "recomputed_tiles") != 0 {
		t.Errorf("bench ends with %v", b)
	}
	counts, ok := b["instructions"].(map[string]any)
	if !ok {
		t.Fatalf("no instructions in %v", b)
	}
	for _, kind := range []string{"integer", "fma", "mma", "load_global", "store_global", "load_shared", "barrier", "control"} {
		if number(t, counts, kind) <= 0 {
			t.Errorf("%v instructions of kind %s", counts[kind], kind)
		}
	}
	edges := number(t, b, "sum_edges") * batch * (warmup + steps)
	matrix, single := 0.0, 0.0
	for _, kernel := range []string{"forward", "backward", "move"} {
		n := number(t, counts, kernel+".multiply_adds")
		if n < edges {
			t.Errorf("%s does %v multiply-adds in matrix instructions, want one at least for each of %v edges of rows", kernel, n, edges)
		}
		matrix += n
		if x, ok := counts[kernel+".fma"].(float64); ok {
			single += x
		}
	}
	if share := matrix / (matrix + single); !(share >= 0.95) {
		t.Errorf("%.3f of the sums' multiply-adds are in matrix instructions, want 0.95 at least; %v of %v are not", share, single, matrix+single)
	} else {
		t.Logf("%.4f of the multiply-adds are in matrix instructions", share)
	}
	if total := number(t, counts, "multiply_adds"); total < matrix {
		t.Errorf("%v multiply-adds in all, %v in three kernels", total, matrix)
	}
}

// TestBenchLargeSteps measures a step of more rows than an engine adds flows of unless it is told.
func TestBenchLargeSteps(t *testing.T) {
	t.Chdir(t.TempDir())
	b := runJSON(t, "bench", "--config", "preset:hclt", "--path", "tensor", "--device", "cpu", "--warmup", "0", "--steps", "1", "--batch", fmt.Sprint(1<<22+1),
		"--set", "model.latents=1", "--set", "train.shard_rows=2048", "--set", "data.train=builtin:random?rows=100&vars=1&categories=2", "--set", "data.image=[]",
		"--set", "data.valid=", "--set", "data.test=")
	if number(t, b, "batch") != 1<<22+1 {
		t.Errorf("bench ends with %v", b)
	}
}

// TestBenchRule: bench measures the rule of a run's first step.
func TestBenchRule(t *testing.T) {
	for _, tc := range []struct {
		set  []string
		want tensor.Rule
	}{
		{[]string{"train.rule=minibatch-em", "train.step_size={from: 0.7, to: 0.1}"}, tensor.Rule{Step: 0.7, Pseudocount: 0.25}},
		{[]string{"train.rule=minibatch-em", "train.step_size={pieces: [{length: 0, from: 0.9, to: 0.9}, {length: 1, from: 0.5, to: 0.1}]}"}, tensor.Rule{Step: 0.5, Pseudocount: 0.25}},
		{[]string{"train.rule=fullbatch-em"}, tensor.Rule{Step: 1, Pseudocount: 0.25}}, // a step of the whole size
		{[]string{"train.rule=anemone", "train.batch_size=96", "train.momentum=0.5", "train.step_size={from: 0.3, to: 0.3}"},
			tensor.Rule{Step: 0.3, Pseudocount: 0.25, Anemone: &tensor.Anemone{Momentum: 0.5, Rows: 96}}},
	} {
		cfg, _, err := configs.Load(configs.Options{Set: append(tc.set, "train.pseudocount=0.25")})
		if err != nil {
			t.Fatal(err)
		}
		if got := benchRule(cfg, 1000); !reflect.DeepEqual(got, tc.want) {
			t.Errorf("%v: the rule is %+v, want %+v", tc.set, got, tc.want)
		}
	}
}

// TestBenchKernels times the kernels of a training step on the emulator, and refuses
// to do so on a device that does not tell.
func TestBenchKernels(t *testing.T) {
	t.Chdir(t.TempDir())
	args := []string{"bench", "--config", "preset:hclt", "--warmup", "0", "--steps", "1", "--batch", "8", "--kernels",
		"--set", "model.latents=2", "--set", "data.train=builtin:random?rows=16&vars=9&categories=4", "--set", "data.image=[3, 3]",
		"--set", "data.valid=", "--set", "data.test="}
	b := runJSON(t, append(args, "--device", "emulator")...)
	list, ok := b["kernel_seconds_per_step"].([]any)
	if !ok {
		t.Fatalf("no kernels in %v", b)
	}
	phases := map[any]bool{}
	for _, k := range list {
		k := k.(map[string]any)
		phases[k["phase"]] = true
		if name, ok := k["kernel"].(string); !ok || name == "" || number(t, k, "launches") < 1 || !(number(t, k, "seconds") > 0) {
			t.Errorf("kernel %v", k)
		}
	}
	if !phases["forward"] || !phases["backward"] || !phases["update"] {
		t.Errorf("kernels of phases %v", phases)
	}
	var out, errs strings.Builder
	if code := Run(t.Context(), append(args, "--device", "cpu"), nil, strings.NewReader(""), &out, &errs); code != 2 || !strings.Contains(errs.String(), "--kernels") {
		t.Errorf("on the CPU: exit %d, %s", code, errs.String())
	}
}

// TestBenchKernelsOfQueries wants --kernels of a model on the tensor path to be refused for what it is, also on a device that tells.
func TestBenchKernelsOfQueries(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, text := range map[string]string{"c.txt": "circuit 1\na = input[2] x0 bernoulli 0.9 / 0.1\ns = sum a : 0.3 0.7\n", "rows.csv": "0\n1\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, device := range []string{"cpu", "emulator"} {
		refused(t, exitUsage, "c.txt is measured on the tensor path; leave it out",
			"bench", "--model", "c.txt", "--data", "rows.csv", "--path", "tensor", "--device", device, "--kernels")
	}
}

// TestBenchModelSettings wants settings of training that change nothing of a model's log-likelihoods to be refused, and those that say how
// many rows a step and a launch have to hold.
func TestBenchModelSettings(t *testing.T) {
	t.Chdir(t.TempDir())
	for path, text := range map[string]string{"c.txt": "circuit 1\na = input[2] x0 bernoulli 0.9 / 0.1\ns = sum a : 0.3 0.7\n", "rows.csv": "0\n1\n"} {
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"bench", "--model", "c.txt", "--data", "rows.csv", "--steps", "1", "--set"}
	for _, set := range []string{"train.epochs=2", "train.rule=anemone", "train={momentum: 0.5}", "precision=fp32"} {
		refused(t, exitUsage, "this changes nothing of c.txt", append(args, set)...)
	}
	if b := runJSON(t, append(args, "train={batch_size: 6, shard_rows: 3}")...); number(t, b, "batch") != 6 {
		t.Errorf("bench ends with %v", b)
	}
}

// TestBenchCode measures the log-likelihoods of a network that runs as code, on the CPU and on the
// emulator, which says what its kernels take of a call; launches there have as many rows as a call.
func TestBenchCode(t *testing.T) {
	dir := t.TempDir()
	model, rows := filepath.Join(dir, "net.spn"), filepath.Join(dir, "rows.csv")
	text := "R SumNode(0.5*A, 0.5*B){\nA Histogram(x|[0., 1., 5.];[0.2,0.2])\nB Histogram(x|[0., 3., 5.];[0.3,0.05])\n}\n"
	for path, s := range map[string]string{model: text, rows: "0\n1\n4\n\n"} {
		if err := os.WriteFile(path, []byte(s), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	args := []string{"bench", "--model", model, "--data", rows, "--set", "data.header=no", "--steps", "2", "--batch", "3000"}
	for _, device := range []string{"cpu", "emulator"} {
		r := runJSON(t, append(args, "--device", device)...)
		if r["device"] != device || number(t, r, "samples") != 6000 || !(number(t, r, "rows_per_second") > 0) || r["kernel_seconds_per_1k_samples"] != nil {
			t.Errorf("%s: bench ends with %v", device, r)
		}
	}
	r := runJSON(t, append(args, "--device", "emulator", "--kernels")...)
	if share := number(t, r, "copy_share"); !(number(t, r, "kernel_seconds_per_1k_samples") > 0) || share < 0 || share >= 1 {
		t.Errorf("bench --kernels ends with %v", r)
	}
	var out, errs strings.Builder
	if code := Run(t.Context(), append(args, "--kernels", "--steps", "0", "--time", "1h"), nil, strings.NewReader(""), &out, &errs); code != exitUsage || !strings.Contains(errs.String(), "wants a card or the emulator") {
		t.Errorf("--kernels on the CPU: exit %d, %s", code, errs.String())
	}
}

// TestBenchCodeRows wants rows that code computes twice to be counted as rows.
func TestBenchCodeRows(t *testing.T) {
	dir := t.TempDir()
	model, rows := filepath.Join(dir, "net.spn"), filepath.Join(dir, "rows.csv")
	for path, s := range map[string]string{model: fiveFloors(), rows: "a,b,c,d,e\n9,9,9,9,9\n0,0,0,0,0\n"} {
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	code, out, stderr := do(t, "", "bench", "--model", model, "--data", rows, "--type", "f32", "--steps", "3", "--batch", "100")
	if code != exitOK || !strings.Contains(out, "\nrecomputed 150 rows\n") {
		t.Errorf("exit %d, %s%s", code, out, stderr)
	}
}

// TestBenchAsked measures a model on rows as queries read them: from standard input, or a file that lacks columns.
func TestBenchAsked(t *testing.T) {
	t.Chdir(t.TempDir())
	text := "S SumNode(0.5*A, 0.5*B){\nA ProductNode(AX, AY){\nAX Bernoulli(x|p=0.2)\nAY Bernoulli(y|p=0.4)\n}\nB ProductNode(BX, BY){\nBX Bernoulli(x|p=0.6)\nBY Bernoulli(y|p=0.3)\n}\n}\n# x;y\n"
	for path, s := range map[string]string{"net.spn": text, "rows.csv": "y\n0\n1\n"} {
		if err := os.WriteFile(path, []byte(s), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, path := range []string{"code", "tensor"} {
		args := []string{"bench", "--model", "net.spn", "--path", path, "--steps", "2", "--batch", "10", "--data"}
		code, out, stderr := do(t, "", append(args, "rows.csv")...)
		if code != exitOK || !strings.Contains(stderr, `rows.csv: the header lacks "x"; they are missing in every row`) || !strings.Contains(out, "speed ") {
			t.Errorf("%s, a file that lacks a column: exit %d, %s%s", path, code, out, stderr)
		}
		if code, out, stderr := do(t, "x,y\n0,1\n1,1\n", append(args, "-")...); code != exitOK || !strings.Contains(out, "speed ") {
			t.Errorf("%s, standard input: exit %d, %s%s", path, code, out, stderr)
		}
	}
}

// TestBenchAsQueries measures a model on a card as queries run it: in float32, which takes three products of matrix instructions for each
// weight and row where the mixed precision of training takes one, and with room for what other queries keep.
func TestBenchAsQueries(t *testing.T) {
	t.Chdir(t.TempDir())
	const rows = "builtin:random?rows=64&vars=9&categories=4"
	plain(t, "train", "--config", "preset:hclt", "--out", "run", "--device", "cpu", "--set", "model.latents=32", "--set", "train.epochs=1",
		"--set", "data.train="+rows, "--set", "data.image=[3, 3]", "--set", "data.valid=", "--set", "data.test=")
	b := runJSON(t, "bench", "--model", "run/model.safetensors", "--data", rows, "--device", "emulator", "--batch", "64", "--warmup", "0", "--steps", "1")
	counts, ok := b["instructions"].(map[string]any)
	if !ok {
		t.Fatalf("no instructions in %v", b)
	}
	if n, weights := number(t, counts, "forward.multiply_adds"), 64*number(t, b, "sum_edges"); !(n >= 2*weights) {
		t.Errorf("%v multiply-adds in matrix instructions for %v weights of rows, want three for each of nearly all", n, weights)
	}
	cfg, _, err := configs.Load(configs.Options{})
	if err != nil {
		t.Fatal(err)
	}
	model, err := run.OpenModel("run/model.safetensors", compileOptions(&cfg.Compile))
	if err != nil {
		t.Fatal(err)
	}
	defer model.Close()
	if l, err := benchLoad(cfg, model, true); err != nil || !l.Queries || l.Train || l.Mixed || l.Rows != 512 {
		t.Errorf("a model runs as %+v, %v", l, err)
	}
}

// ofNoise are the arguments of bench for a small circuit over 100 rows.
var ofNoise = []string{"bench", "--config", "preset:hclt", "--set", "data.train=builtin:random?rows=100&vars=3&categories=2",
	"--set", "data.image=[]", "--set", "data.valid=", "--set", "data.test=", "--set", "model.latents=2"}

// TestPredictBatch predicts for batches of more rows than a launch has, and of as many: a launch has the rows of a shard, as in training,
// whether the batch is a flag's or the config's.
func TestPredictBatch(t *testing.T) {
	for _, tc := range []struct{ batch, shard, launch int }{{300, 0, 300}, {1024, 0, 512}, {2048, 2048, 2048}, {2049, 2048, 2048}} {
		first := ""
		for _, batch := range [][]string{{"--batch", strconv.Itoa(tc.batch)}, {"--set", fmt.Sprintf("train.batch_size=%d", tc.batch)}} {
			args := slices.Concat(ofNoise, []string{"--predict-card", "h200", "--set", fmt.Sprintf("train.shard_rows=%d", tc.shard)}, batch)
			code, got, stderr := do(t, "", args...)
			if code != exitOK {
				t.Fatalf("exit %d, %s", code, stderr)
			}
			more := fmt.Sprintf("a batch of %d rows takes several such", tc.batch)
			if !strings.HasPrefix(got, fmt.Sprintf("a training step of %d rows", tc.launch)) || strings.Contains(got, more) != (tc.batch > tc.launch) {
				t.Errorf("a batch of %d: %s", tc.batch, got)
			}
			if first == "" {
				first = got
			}
			if got != first {
				t.Errorf("%v: %s\n--batch: %s", batch, got, first)
			}
		}
	}
}

// TestBenchFullBatch measures and predicts steps of full-batch EM, which have all rows, or those of a subset, whatever train.batch_size is.
func TestBenchFullBatch(t *testing.T) {
	for _, tc := range []struct {
		args []string
		want float64
	}{{nil, 100}, {[]string{"--set", "train.subsets=3"}, 34}, {[]string{"--batch", "7"}, 7}} {
		for _, how := range [][]string{{"--steps", "1"}, {"--predict-card", "h200"}} {
			args := slices.Concat(ofNoise, []string{"--set", "train.rule=fullbatch-em", "--set", "train.batch_size=64"}, how, tc.args)
			if b := runJSON(t, args...); number(t, b, "batch") != tc.want {
				t.Errorf("%v: a step of %v rows, want %v", args, b["batch"], tc.want)
			}
		}
	}
}

// gathered is a source that keeps the most rows it was asked for at a time, and how often.
type gathered struct {
	dataset.Source
	most, times int
}

func (g *gathered) Gather(ctx context.Context, b *dataset.Batch, rows []int) error {
	g.most, g.times = max(g.most, len(rows)), g.times+1
	return g.Source.Gather(ctx, b, rows)
}

// TestBenchReadsLaunches wants a step of several launches to read the rows of one at a time, as training does, and on a device that works
// while the host does those of the next one meanwhile: all rows of a table, which steps of full-batch EM have, would take as much memory as
// the table once more or twice.
func TestBenchReadsLaunches(t *testing.T) {
	for device, ahead := range map[string]int{"cpu": 0, "emulator": 1} {
		cfg, _, err := configs.Load(configs.Options{Files: []string{"preset:hclt"}, Set: []string{"data.train=builtin:random?rows=100&vars=3&categories=2", "data.image=[]",
			"data.valid=", "data.test=", "model.latents=2", "train.rule=fullbatch-em", "train.shard_rows=16", "device=" + device}})
		if err != nil {
			t.Fatal(err)
		}
		b, err := (&app{stderr: t.Output()}).blueprint(t.Context(), cfg, run.How{Path: run.PathTensor})
		if err != nil {
			t.Fatal(err)
		}
		defer b.Close()
		if err := (&benchFlags{}).setBatch(cfg, b); err != nil {
			t.Fatal(err)
		}
		load, err := benchLoad(cfg, b, false)
		if err != nil {
			t.Fatal(err)
		}
		e, err := b.Engine(t.Context(), load)
		if err != nil {
			t.Fatal(err)
		}
		defer e.Close()
		src := &gathered{Source: b.Train}
		r, err := measure(t.Context(), e, src, cfg, &benchFlags{steps: 2}, load)
		if err != nil {
			t.Fatal(err)
		}
		if want := 2*7 + ahead; src.most != 16 || src.times != want || r.Batch != 100 || r.Samples != 200 {
			t.Errorf("%s: %d rows are read at a time and %d times, want 16 and %d, of %d samples in steps of %d", device, src.most, src.times, want, r.Samples, r.Batch)
		}
	}
}

// TestBenchWithoutRows wants a circuit of a file, which needs no rows to be made, to be refused without rows to measure it on.
func TestBenchWithoutRows(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("c.txt", []byte("circuit 1\na = input[2] x0 bernoulli\ns = sum a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("c.yaml", []byte("model: {structure: file, file: c.txt}\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if code, out, stderr := do(t, "", "bench", "--config", "c.yaml", "--steps", "1"); code != exitUsage || !strings.Contains(stderr, "data.train is not set") {
		t.Errorf("exit %d, %s%s", code, out, stderr)
	}
}

// TestPredictAnemone wants a step of another rule than EM, whose kernels are others, to be refused.
func TestPredictAnemone(t *testing.T) {
	args := slices.Concat(ofNoise, []string{"--predict-card", "h200", "--set", "train.rule=anemone"})
	if code, out, stderr := do(t, "", args...); code != exitUsage || !strings.Contains(stderr, "--predict-card models steps of EM alone") {
		t.Errorf("exit %d, %s%s", code, out, stderr)
	}
}

// TestPredictMeasuresNothing: flags that say how to measure are refused where nothing is measured.
func TestPredictMeasuresNothing(t *testing.T) {
	for _, flag := range []string{"--schedule=none", "--profile=none", "--device=cpu", "--threads=1", "--warmup=1", "--steps=1", "--time=1s", "--kernels"} {
		name, _, _ := strings.Cut(flag, "=")
		refused(t, exitUsage, name+" says how to measure", "bench", "--predict-card", "h200", "--config", "preset:hclt", flag)
	}
}

// TestPredictDiscriminative wants what bench refuses to measure to be refused by its model of a step, too.
func TestPredictDiscriminative(t *testing.T) {
	for _, args := range [][]string{{"--steps", "1"}, {"--predict-card", "h200"}} {
		args = slices.Concat(ofNoise, []string{"--set", "model.class=1", "--set", "train.discriminative=0.5"}, args)
		if code, _, stderr := do(t, "", args...); code != exitUsage || !strings.Contains(stderr, "bench measures steps of EM alone") {
			t.Errorf("%v: exit %d, %s", args, code, stderr)
		}
	}
}

// TestPredictMemory wants a step of several launches to have room for the integers that these add their flows to, as one that is measured takes.
func TestPredictMemory(t *testing.T) {
	var more [2]float64
	for i, how := range [][]string{{"--predict-card", "h200"}, {"--device", "emulator", "--warmup", "0", "--steps", "1"}} {
		memory := func(batch string) float64 {
			args := slices.Concat(ofNoise, how, []string{"--set", "train.shard_rows=8", "--batch", batch})
			return number(t, runJSON(t, args...), "device_memory_bytes")
		}
		more[i] = memory("16") - memory("8")
	}
	if more[0] <= 0 || more[0] != more[1] {
		t.Errorf("a step of two launches takes %v bytes more than one of one, and %v where it is measured", more[0], more[1])
	}
}

// TestPrintBenchOfCard wants what is printed of a card to have its floor, which its model knows, and no zeros where there is nothing: of
// threads, and of the times of kernels that the model does not know.
func TestPrintBenchOfCard(t *testing.T) {
	var out strings.Builder
	a := &app{stdout: &out}
	r := &benchResult{SecondsPer1k: 0.02, FloorPer1k: 0.004, Fraction: 0.2, Device: "NVIDIA H200", KernelPath: "sm_90", PrecisionUsed: "mixed", Batch: 512, Steps: 5,
		Kernels: []kernelTime{{Kernel: "forward", Phase: "forward", Launches: 1, Seconds: 2e-6, Expected: 3e-6, Bound: "issue"}, {Kernel: "count", Phase: "update", Launches: 1, Seconds: 4e-6}}}
	if err := a.printBench(r); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nfloor      0.004 s per 1000 samples by the rates of the card; reached 20 %\n", "\ndevice     NVIDIA H200, sm_90, mixed\n"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%q is missing in\n%s", want, &out)
		}
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	for i, want := range []string{"forward forward 1 2 3 issue", "count update 1 4"} {
		if got := strings.Join(strings.Fields(lines[len(lines)-2+i]), " "); got != want {
			t.Errorf("a kernel's line is %q, want %q", got, want)
		}
	}
}

// TestPrintBenchOfSmall: the speed of a small circuit, and its share of what could be reached, are not printed as 0.
func TestPrintBenchOfSmall(t *testing.T) {
	var out strings.Builder
	r := &benchResult{GFLOPS: 0.02, PeakGFLOPS: 231.7, FloorPer1k: 1e-6, Fraction: 0.003, SumEdges: 84}
	if err := (&app{stdout: &out}).printBench(r); err != nil || !strings.Contains(out.String(), "speed      0.02 GFLOP/s on 84 sum edges\n") || !strings.Contains(out.String(), "reached 0.3 %") {
		t.Errorf("%v\n%s", err, &out)
	}
}

// TestMedian: the median of an even number of times lies between the two in the middle.
func TestMedian(t *testing.T) {
	for _, tc := range []struct {
		times []time.Duration
		want  time.Duration
	}{{[]time.Duration{3}, 3}, {[]time.Duration{2, 6}, 4}, {[]time.Duration{1, 2, 9}, 2}, {[]time.Duration{1, 2, 4, 9}, 3}} {
		if got := median(tc.times); got != tc.want {
			t.Errorf("the median of %v is %v, want %v", tc.times, got, tc.want)
		}
	}
}
