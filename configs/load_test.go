package configs

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

// badFiles says for each testdata/*.bad.yaml what the user reads, after
// "configs: testdata/".
var badFiles = map[string]string{
	"alias":              `alias.bad.yaml:2:10: threads is an alias (*s), want an integer from 0 to 4096`,
	"bernoulli":          `bernoulli.bad.yaml:1:45: model.leaf.categories is 5, but a Bernoulli leaf has 2; leave it out or choose type categorical`,
	"cluster-workers":    `cluster-workers.bad.yaml:1:36: cluster.workers is 0, want an integer from 1 to 4096`,
	"class":              `class.bad.yaml:1:32: model.class is "kind", but hmm has no root for each class; hclt, pd and rat-spn have`,
	"class-finish":       `class-finish.bad.yaml:2:25: train.discriminative is 1, but train.finish has epochs of full-batch EM, which has no step sizes; leave them out`,
	"class-rule":         `class-rule.bad.yaml:2:40: train.discriminative is 0.5, but train.rule is anemone; choose minibatch-em, whose step sizes fall`,
	"class-unnamed":      `class-unnamed.bad.yaml:1:25: train.discriminative is 1, but model.class is empty; name the column of the class`,
	"columns":            `columns.bad.yaml:3:5: data.columns names "age" twice; keep one`,
	"documents":          `documents.bad.yaml: more than one document; keep what is before the ---`,
	"duration":           `duration.bad.yaml:1:32: train.checkpoint.interval is 5, want a duration such as 90s or 5m`,
	"equations":          `equations.bad.yaml:1:20: model.structure is equations, but model.equations is empty; name the file that has them`,
	"sizes":              `sizes.bad.yaml:1:59: model.sizes have "D:4", want NAME=INTEGER, such as D=4`,
	"sizes-twice":        `sizes-twice.bad.yaml:1:59: model.sizes have "D" twice; keep one`,
	"empty-value":        `empty-value.bad.yaml:2:10: train.epochs is empty, want an integer from 0 to 1000000`,
	"far":                `far.bad.yaml:1:11: unknown key compile.zzzzzz; known keys: max_groups, padding_tolerance, block_size`,
	"leaf-categories":    `leaf-categories.bad.yaml:3:5: data.columns gives categories to column "a" without a type; drop them or write type: discrete`,
	"leaf-edges":         `leaf-edges.bad.yaml:3:5: data.columns has a leaf for "a" whose edges have 2 before 1; write them in ascending order`,
	"leaf-skip":          `leaf-skip.bad.yaml:3:5: data.columns has a leaf for "a", which is skipped; drop one of the two`,
	"leaf-type":          `leaf-type.bad.yaml:3:30: data.columns.leaf.type is "lognormal", want one of auto, categorical, bernoulli, binomial, gaussian, log-normal, discretised-logistic, histogram, poisson; did you mean log-normal?`,
	"file":               `file.bad.yaml:1:20: model.structure is file, but model.file is empty; name the model or circuit to start from`,
	"float-for-int":      `float-for-int.bad.yaml:1:18: model.latents is 1.5, want an integer from 0 to 65536`,
	"inner":              `inner.bad.yaml:1:22: model.hclt.tree is random, but model.hclt.inner is 0; say how many variables are inner`,
	"job-class":          `job-class.bad.yaml:1:13: job.kind is classify, but job.columns has 2 columns; name the one of the class`,
	"job-columns":        `job-columns.bad.yaml:1:54: job.columns are set, but job.kind is moments, which is about all; leave them out`,
	"job-levels":         `job-levels.bad.yaml:1:53: job.levels are set, but job.kind is moments; leave them out`,
	"job-of":             `job-of.bad.yaml:1:48: job.of is set, but job.kind is loglik; leave it out`,
	"job-expect":         `job-expect.bad.yaml:1:13: job.kind is expect, but job.of is empty; give the functions whose expectations are wanted, such as 2*age - $3^2`,
	"job-expect-columns": `job-expect-columns.bad.yaml:1:64: job.columns are set, but job.kind is expect, which names them in job.of; leave them out`,
	"job-data":           `job-data.bad.yaml:1:13: job.kind is loglik, but job.data is empty; name the rows`,
	"job-format":         `job-format.bad.yaml:1:55: job.format is png, but job.kind is loglik; write csv or npy`,
	"job-kind":           `job-kind.bad.yaml:1:13: job.kind is "guess", want one of train, eval, loglik, conditional, moments, covariance, expect, quantiles, classify, mpe, sample, predict`,
	"job-predict":        `job-predict.bad.yaml:1:63: job.format is npy, but job.kind is predict; write csv`,
	"job-schedule":       `job-schedule.bad.yaml:1:58: job.schedule is set, but job.kind is loglik; leave it out`,
	"job-profile":        `job-profile.bad.yaml:1:59: job.profile is set, but job.schedule is empty; name the schedule that uses it, or leave it out`,
	"job-result":         `job-result.bad.yaml:1:56: job.result is margin, but job.kind is loglik; leave it out`,
	"job-soft":           `job-soft.bad.yaml:1:48: job.soft is true, but job.kind is eval, which takes values only; leave it out`,
	"job-given":          `job-given.bad.yaml:1:49: job.data is set, but job.kind is sample, which draws whole rows; complete rows with pce query sample --given, or leave it out`,
	"job-level":          `job-level.bad.yaml:1:69: job.levels are [0.5 1], want levels between 0 and 1`,
	"job-probabilities":  `job-probabilities.bad.yaml:1:59: job.probabilities is true, but job.kind is loglik; leave it out`,
	"job-rows":           `job-rows.bad.yaml:1:50: job.rows is 9, but job.kind is loglik, which draws no rows; leave it out`,
	"job-seed":           `job-seed.bad.yaml:1:50: job.seed is 9, but job.kind is loglik, which draws nothing; leave it out`,
	"job-candidates":     `job-candidates.bad.yaml:1:56: job.candidates is 9, but job.kind is loglik; leave it out`,
	"job-search":         `job-search.bad.yaml:1:51: job.search is 9, but job.kind is sample; leave it out`,
	"job-train":          `job-train.bad.yaml:1:14: job.model is set, but job.kind is train; name the kind, such as loglik, or leave it out`,
	"job-train-data":     `job-train-data.bad.yaml:1:13: job.data is set, but job.kind is train; name the kind, such as loglik, or leave it out`,
	"job-train-seed":     `job-train-seed.bad.yaml:1:13: job.seed is set, but job.kind is train; name the kind, such as loglik, or leave it out`,
	"job-eval":           `job-eval.bad.yaml:1:50: job.format is npy, but job.kind is eval, which writes no rows; leave it out`,
	"name-long":          `name-long.bad.yaml:1:7: name has 256 bytes, want 255 at most, as names of directories have`,
	"name-dots":          `name-dots.bad.yaml:1:7: name is "..", want a word that can name a directory`,
	"job-model":          `job-model.bad.yaml:1:13: job.kind is eval, but job.model is empty; name a model file`,
	"key-not-a-word":     `key-not-a-word.bad.yaml:1:3: a key must be a word`,
	"list":               `list.bad.yaml:1:1: the file is a list, want a section of keys`,
	"misplaced":          `misplaced.bad.yaml:2:1: unknown key epochs; did you mean train.epochs?`,
	"momentum":           `momentum.bad.yaml:1:34: train.momentum is 1, want a number below 1: at 1 no row would ever count`,
	"momentum-range":     `momentum-range.bad.yaml:1:34: train.momentum is -0.1, want a number from 0 to 1`,
	"name":               `name.bad.yaml:1:7: name is "a/b", want a word that can name a directory`,
	"nan":                `nan.bad.yaml:1:22: train.pseudocount is .nan, want a number from 0 to 1000000`,
	"number-in-list":     `number-in-list.bad.yaml:2:37: data.missing has -999 in its list, want texts; put it in quotes`,
	"null-in-list":       `null-in-list.bad.yaml:2:36: data.missing has NULL in its list, want texts; put it in quotes`,
	"number-for-path":    `number-for-path.bad.yaml:1:15: data.train is 5, want a path or a list of paths`,
	"octal":              `octal.bad.yaml:1:17: train.epochs is 010, which may be octal or decimal; write it without the 0 in front, or as 0o10 if it is octal`,
	"octal-list":         `octal-list.bad.yaml:1:20: data.image is 034, which may be octal or decimal; write it without the 0 in front, or as 0o34 if it is octal`,
	"patience":           `patience.bad.yaml:1:19: train.patience is 3, but data.valid names no rows to judge by`,
	"pieces":             `pieces.bad.yaml:5:10: unknown key train.step_size.pieces.lenght; did you mean train.step_size.pieces.length?`,
	"range":              `range.bad.yaml:1:30: compile.padding_tolerance is -0.1, want a number from 0 to 100`,
	"section-is-word":    `section-is-word.bad.yaml:1:8: train is "fast", want a section of keys`,
	"section-twice":      `section-twice.bad.yaml:2:1: train is set twice, first on line 1; keep one`,
	"shape":              `shape.bad.yaml:3:15: model.pd.shape has 1 numbers, want [height, width] or [height, width, channels]`,
	"bins":               `bins.bad.yaml:1:22: model.hclt.bins is 255, want an integer from 2 to 254`,
	"shards":             `shards.bad.yaml:1:21: train.shard_rows is 2049, want an integer from 0 to 2048`,
	"softening":          `softening.bad.yaml:2:30: model.hclt.softening is 5, more than the 4 of model.hclt.bins; lower it`,
	"subsets":            `subsets.bad.yaml:1:18: train.subsets is 3, but only rule fullbatch-em takes subsets; minibatch-em uses batch_size`,
	"syntax":             `syntax.bad.yaml:2: did not find expected ',' or ']'; this is not valid YAML`,
	"tabs":               `tabs.bad.yaml:2: found character that cannot start any token; this is not valid YAML`,
	"twice":              `twice.bad.yaml:4:3: train.epochs is set twice, first on line 3; keep one`,
	"unknown-key":        `unknown-key.bad.yaml:3:3: unknown key train.batchsize; did you mean train.batch_size?`,
	"unknown-section":    `unknown-section.bad.yaml:1:1: unknown key modle; did you mean model?`,
	"value-is-section":   `value-is-section.bad.yaml:1:7: seed is a section, want an integer from 0 to 18446744073709551615`,
	"vocabulary":         `vocabulary.bad.yaml:1:27: data.text.vocabulary is 1, want at least 2: one token, and one for all others`,
	"word":               `word.bad.yaml:2:14: model.structure is "ratspn", want one of hclt, hmm, pd, rat-spn, learnspn, equations, file; did you mean rat-spn?`,
	"wrong-type":         `wrong-type.bad.yaml:2:11: train.epochs is "20", want an integer from 0 to 1000000`,
}

func TestBadFiles(t *testing.T) {
	files, err := filepath.Glob("testdata/*.bad.yaml")
	if err != nil || len(files) != len(badFiles) {
		t.Fatalf("%d bad files, %d messages (%v)", len(files), len(badFiles), err)
	}
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".bad.yaml")
		_, _, err := Load(Options{Files: []string{file}})
		if !errors.Is(err, ErrConfig) {
			t.Errorf("%s: error %v does not match ErrConfig", file, err)
			continue
		}
		got, want := strings.ReplaceAll(err.Error(), "testdata/", ""), "configs: "+badFiles[name]
		if got != want {
			t.Errorf("%s:\n got %s\nwant %s", name, got, want)
		}
		if strings.Contains(got, "\n") {
			t.Errorf("%s: more than one line", name)
		}
	}
}

// TestGoodFiles loads every good file, prints it and loads what was printed.
func TestGoodFiles(t *testing.T) {
	for _, pattern := range []string{"testdata/*.good.yaml", "*.yaml", "bench/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil || len(files) == 0 {
			t.Fatalf("no files match %s (%v)", pattern, err)
		}
		for _, file := range files {
			cfg, notes, err := Load(Options{Files: []string{file}})
			if err != nil || len(notes) != 0 {
				t.Errorf("%s: %v, notes %q", file, err, notes)
				continue
			}
			roundTrip(t, cfg)
		}
	}
}

func roundTrip(t *testing.T, cfg *Config) {
	t.Helper()
	text, err := cfg.YAML()
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "config.yaml")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	again, notes, err := Load(Options{Files: []string{file}})
	// What has no effect is printed all the same.
	if err != nil || slices.ContainsFunc(notes, func(n string) bool { return !strings.Contains(n, " is ignored: ") }) {
		t.Fatalf("%v, notes %q, of\n%s", err, notes, text)
	}
	second, err := again.YAML()
	if err != nil || string(second) != string(text) {
		t.Errorf("printed again (%v):\n%s\nfirst:\n%s", err, second, text)
	}
	// Sections of other structures are not printed: compare without them.
	want := *cfg
	d := Default().Model
	if want.Model.Structure != "hclt" {
		want.Model.HCLT = d.HCLT
	}
	if want.Model.Structure != "hmm" {
		want.Model.HMM = d.HMM
	}
	if want.Model.Structure != "pd" {
		want.Model.PD = d.PD
	}
	if want.Model.Structure != "rat-spn" {
		want.Model.RATSPN = d.RATSPN
	}
	if want.Model.Structure != "learnspn" {
		want.Model.LearnSPN = d.LearnSPN
	}
	if want.Model.Structure != "equations" {
		want.Model.Equations, want.Model.Sizes = "", nil
	}
	if want.Model.Structure != "file" {
		want.Model.File = ""
	}
	if !reflect.DeepEqual(normal(want), normal(*again)) {
		t.Errorf("round trip:\n got %+v\nwant %+v", *again, want)
	}
}

// normal makes empty lists nil.
func normal(c Config) Config {
	for _, p := range []*Paths{&c.Data.Train, &c.Data.Valid, &c.Data.Test, &c.Job.Data} {
		if len(*p) == 0 {
			*p = nil
		}
	}
	for _, p := range []*[]int{&c.Data.Image, &c.Model.PD.Shape} {
		if len(*p) == 0 {
			*p = nil
		}
	}
	if len(c.Model.Leaf.Edges) == 0 {
		c.Model.Leaf.Edges = nil
	}
	if len(c.Data.Columns) == 0 {
		c.Data.Columns = nil
	}
	if len(c.Train.StepSize.Pieces) == 0 {
		c.Train.StepSize.Pieces = nil
	}
	if len(c.Job.Columns) == 0 {
		c.Job.Columns = nil
	}
	if len(c.Job.Levels) == 0 {
		c.Job.Levels = nil
	}
	if len(c.Job.Of) == 0 {
		c.Job.Of = nil
	}
	if len(c.Data.Missing) == 0 {
		c.Data.Missing = nil
	}
	return c
}

// TestFullFile sees that full.good.yaml reaches every field.
func TestFullFile(t *testing.T) {
	cfg, _, err := Load(Options{Files: []string{"testdata/full.good.yaml"}})
	if err != nil {
		t.Fatal(err)
	}
	defaults := map[string]any{}
	schema.values(reflect.ValueOf(*Default()), func(f *field, v any) { defaults[f.path] = v })
	// Keys that the rule, the pieces, the edges or the kind of job of the file refuses, or leaves without effect.
	refused := []string{"model.leaf.bins", "train.subsets", "train.step_size.from", "train.step_size.to", "train.discriminative", "job.of", "job.soft", "job.result", "job.schedule", "job.profile", "job.rows", "job.seed", "job.probabilities", "job.candidates", "job.search"}
	schema.values(reflect.ValueOf(*cfg), func(f *field, v any) {
		other := f.structure != "" && f.structure != cfg.Model.Structure
		if !other && !slices.Contains(refused, f.path) && reflect.DeepEqual(v, defaults[f.path]) {
			t.Errorf("%s is still at its default %v", f.path, v)
		}
	})
	if !slices.Equal(cfg.Data.Train, Paths{"a.csv", "b, c.csv"}) || cfg.Train.Checkpoint.Interval != 90*time.Second ||
		!reflect.DeepEqual(cfg.Data.Columns[1], Column{Name: "7", Type: "discrete", Categories: 4}) || cfg.Seed != 1<<64-1 || cfg.Data.Header != "yes" {
		t.Errorf("values are off: %+v", cfg)
	}
}

// TestUnused wants a note for each key that others leave without effect, and none for its usual value.
func TestUnused(t *testing.T) {
	for _, tc := range []struct {
		set  []string
		want []string
	}{
		{[]string{"train.momentum=0.25"}, []string{"--set train.momentum=0.25: train.momentum is ignored: it belongs to train.rule anemone, this is minibatch-em"}},
		{[]string{"train.momentum=0.5"}, nil},
		{[]string{"train.rule=anemone", "train.momentum=0.25", "train.step_size.from=0.3"}, nil},
		{[]string{"train.rule=fullbatch-em", "train.step_size.from=0.3"}, []string{"--set train.step_size.from=0.3: train.step_size.from is ignored: steps of train.rule fullbatch-em have no size"}},
		{[]string{"train.rule=fullbatch-em", "train.batch_size=64"}, []string{"--set train.batch_size=64: train.batch_size is ignored: a step of train.rule fullbatch-em has all rows, or those of one of train.subsets"}},
		{[]string{"train.step_size={from: 0.3, pieces: [{length: 1, from: 0.5, to: 0.1}]}"}, []string{"--set train.step_size={from: 0.3, pieces: [{length: 1, from: 0.5, …: train.step_size.from is ignored: train.step_size.pieces have their own"}},
		{[]string{"train.step_size.pieces=[{from: 0.5, to: 0.1}, {length: 1, from: 0.5, to: 0.1}]"}, []string{"--set train.step_size.pieces=[{from: 0.5, to: 0.1}, {length: 1, fr…: piece 1 of train.step_size.pieces is ignored: it has no length"}},
		{[]string{"train.step_size={schedule: constant, from: 0.3, to: 0.2}"}, []string{"--set train.step_size={schedule: constant, from: 0.3, to: 0.2}: train.step_size.to is ignored: train.step_size.schedule constant stays at from"}},
		{[]string{"train.finish.pseudocount=3"}, []string{"--set train.finish.pseudocount=3: train.finish.pseudocount is ignored: train.finish.epochs is 0"}},
		{[]string{"train.finish.pseudocount=3", "train.finish.epochs=1"}, nil},
		{[]string{"model.hclt.inner=3"}, []string{"--set model.hclt.inner=3: model.hclt.inner is ignored: it belongs to model.hclt.tree random, this is chow-liu"}},
		{[]string{"model.hclt={tree: random, inner: 3, bins: 8}"}, []string{"--set model.hclt={tree: random, inner: 3, bins: 8}: model.hclt.bins is ignored: it belongs to model.hclt.tree chow-liu, this is random"}},
		{[]string{"model.leaf.bins=8"}, []string{"--set model.leaf.bins=8: model.leaf.bins is ignored: no leaf is of type histogram"}},
		{[]string{"model.leaf.bins=8", `data.columns=[{name: a, leaf: {type: histogram}}]`}, nil},
		{[]string{"model.leaf={min_sigma: 1, min_scale: 2}"}, []string{"--set model.leaf={min_sigma: 1, min_scale: 2}: model.leaf.min_scale is ignored: no leaf is of type discretised-logistic"}},
		{[]string{`data.columns=[{name: a, leaf: {bins: 8}}, {name: b, leaf: {type: histogram, bins: 8}}]`}, []string{`--set data.columns=[{name: a, leaf: {bins: 8}}, {name: b, leaf: {t…: bins of the leaf of column "a" is ignored: it belongs to type histogram, this is auto`}},
		{[]string{`data.columns=[{name: b, type: label}]`, `data.columns=[{name: a, leaf: {bins: 8}}]`}, []string{`--set data.columns=[{name: a, leaf: {bins: 8}}]: bins of the leaf of column "a" is ignored: it belongs to type histogram, this is auto`}},
		{[]string{"model.structure=pd", "model.latents=48", "model.pd.max_product_blocks=1"}, []string{"--set model.pd.max_product_blocks=1: model.pd.max_product_blocks is ignored: with model.latents below 64, or not a multiple of 32, a sum sees all products of its rectangle"}},
		{[]string{"model.structure=pd", "model.latents=64", "model.pd.max_product_blocks=1"}, nil},
		{[]string{"model.structure=learnspn", "model.latents=3"}, []string{"--set model.latents=3: model.latents is ignored: model.structure learnspn has as many units as the rows give it"}},
		{[]string{`data.columns=[{name: a, leaf: {type: histogram, bins: 8, edges: [1, 2]}}]`}, []string{`--set data.columns=[{name: a, leaf: {type: histogram, bins: 8, edg…: bins of the leaf of column "a" is ignored: its edges are in place of bins`}},
		{[]string{"model.leaf={type: histogram, bins: 9, edges: [1, 2]}"}, []string{"--set model.leaf={type: histogram, bins: 9, edges: [1, 2]}: model.leaf.bins is ignored: model.leaf.edges are in place of bins"}},
		{[]string{"model.leaf={type: gaussian, categories: 5}"}, []string{"--set model.leaf={type: gaussian, categories: 5}: model.leaf.categories is ignored: no leaf is of type categorical"}},
		{[]string{"model.leaf={type: gaussian, categories: 5}", `data.columns=[{name: a, leaf: {type: binomial}}]`}, nil},
		{[]string{`data.columns=[{name: a, leaf: {type: poisson, categories: 5}}]`}, []string{`--set data.columns=[{name: a, leaf: {type: poisson, categories: 5}…: categories of the leaf of column "a" is ignored: it belongs to type categorical, this is poisson`}},
		{[]string{"model.structure=learnspn", "model.init.seed=3"}, []string{"--set model.init.seed=3: model.init.seed is ignored: model.structure learnspn learns the parameters too"}},
		{[]string{"model.structure=learnspn", "model.learnspn={max_multipliers: 40, smoothing: 1, min_rows: 20}"}, []string{"--set model.learnspn={max_multipliers: 40, smoothing: 1, min_rows:…: model.learnspn.min_rows is ignored: of the settings beside model.learnspn.max_multipliers only smoothing has an effect"}},
		{[]string{"model.structure=learnspn", "model.learnspn={smoothing: 1, min_rows: 20}"}, nil},
	} {
		if _, notes, err := Load(Options{Set: tc.set}); err != nil || !slices.Equal(notes, tc.want) {
			t.Errorf("%q: notes %q, %v, want %q", tc.set, notes, err, tc.want)
		}
	}
}

func TestPrecedence(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	first := write("1.yaml", "train: {epochs: 1, steps: 1, subsets: 1, batch_size: 1}\ndata: {missing: [a, b, c]}\n")
	second := write("2.yaml", "train: {steps: 2, batch_size: 2}\ndata: {missing: [z]}\n")
	cfg, _, err := Load(Options{
		Files: []string{first, second},
		Env:   []string{"HOME=/", "PCE_CPU=avx2", "PCE_SERVE_TOKEN=s3cret", "PCE_TRAIN__STEPS=3", "PCE_TRAIN__BATCH_SIZE=3", "PCE_SEED=", "PCE_DATA__TRAIN=x: [y"},
		Set:   []string{"train.batch_size=4", "train.batch_size=5", "name=007", "data.image=4,5", "train.step_size={from: 0.5, schedule: constant}"},
	})
	if err != nil {
		t.Fatal(err)
	}
	got := []any{cfg.Train.Pseudocount, cfg.Train.Epochs, cfg.Train.Steps, cfg.Train.BatchSize, cfg.Name, cfg.Seed}
	if want := []any{0.01, 1, 3, 5, "007", uint64(42)}; !reflect.DeepEqual(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
	if !slices.Equal(cfg.Data.Train, Paths{"x: [y"}) || !slices.Equal(cfg.Data.Image, []int{4, 5}) ||
		!slices.Equal(cfg.Data.Missing, []string{"z"}) {
		t.Errorf("lists: %q %v %q", cfg.Data.Train, cfg.Data.Image, cfg.Data.Missing)
	}
	if s := cfg.Train.StepSize; s.From != 0.5 || s.To != 0.05 || s.Schedule != "constant" {
		t.Errorf("step size %+v: a section that is set must keep its other keys", s)
	}
	if cfg.Output != "runs/007" {
		t.Errorf("output %q", cfg.Output)
	}
}

func TestBadSettings(t *testing.T) {
	for _, tc := range []struct {
		opts Options
		want string
	}{
		{Options{Set: []string{"train.epochs"}}, `configs: --set train.epochs: no = in it; write --set key=value`},
		{Options{Set: []string{"train.epoch=3"}}, `configs: --set train.epoch=3: unknown key train.epoch; did you mean train.epochs?`},
		{Options{Set: []string{"train.epochs.x=3"}}, `configs: --set train.epochs.x=3: unknown key train.epochs.x; train.epochs has no keys of its own`},
		{Options{Set: []string{"train.epochs=three"}}, `configs: --set train.epochs=three: train.epochs is "three", want an integer from 0 to 1000000`},
		{Options{Set: []string{"train.epochs="}}, `configs: --set train.epochs=: train.epochs is empty, want an integer from 0 to 1000000`},
		{Options{Set: []string{"train={epoch: 1}"}}, `configs: --set train={epoch: 1}: unknown key train.epoch; did you mean train.epochs?`},
		{Options{Set: []string{"data.image=[1"}}, `configs: --set data.image=[1: data.image wants a list of integers from 1 to 65536`},
		{Options{Set: []string{"train.patience=2"}}, `configs: --set train.patience=2: train.patience is 2, but data.valid names no rows to judge by`},
		{Options{Set: []string{"data.valid=", "train.patience=2"}}, `configs: --set train.patience=2: train.patience is 2, but data.valid names no rows to judge by`},
		{Options{Env: []string{"PCE_TRAIN_EPOCHS=2"}}, `configs: variable PCE_TRAIN_EPOCHS: unknown key train_epochs; write PCE_TRAIN__EPOCHS, with two underscores between a section and its keys`},
		{Options{Env: []string{"PCE_TRAIN_BATCH__SIZE=2"}}, `configs: variable PCE_TRAIN_BATCH__SIZE: unknown key train_batch.size; write PCE_TRAIN__BATCH_SIZE, with two underscores between a section and its keys`},
		{Options{Env: []string{"PCE_SEED=-1"}}, `configs: variable PCE_SEED: seed is -1, want an integer from 0 to 18446744073709551615`},
		{Options{Files: []string{"preset:hctl"}}, `configs: no preset "hctl"; there are ` + strings.Join(Presets(), ", ")},
		{Options{Files: []string{"none.yaml"}}, `configs: none.yaml: no such file or directory; name a .yaml file, or one of the program's own: ` + strings.Join(Presets(), ", ")},
	} {
		_, _, err := Load(tc.opts)
		if !errors.Is(err, ErrConfig) || err.Error() != tc.want {
			t.Errorf("%+v:\n got %v\nwant %s", tc.opts, err, tc.want)
		}
	}
}

// TestOtherStructure sets every structure on every preset: keys of the others
// are notes, never errors.
func TestOtherStructure(t *testing.T) {
	for _, preset := range Presets() {
		for _, structure := range []string{"hclt", "hmm", "pd", "rat-spn", "learnspn"} {
			cfg, _, err := Load(Options{Files: []string{preset}, Set: []string{"model.structure=" + structure}})
			if err != nil || cfg.Model.Structure != structure {
				t.Errorf("%s as %s: %v", preset, structure, err)
				continue
			}
			roundTrip(t, cfg)
		}
	}
	_, notes, err := Load(Options{Files: []string{"pd.yaml"}, Set: []string{"model.structure=hmm"}})
	want := []string{
		"pd.yaml:7:24: model.pd.split_interval is ignored: it belongs to model.structure pd, this is hmm",
		"pd.yaml:7:47: model.pd.max_product_blocks is ignored: it belongs to model.structure pd, this is hmm",
	}
	if err != nil || !slices.Equal(notes, want) {
		t.Errorf("notes %q, want %q (%v)", notes, want, err)
	}
}

// TestSettledByFile notes the keys that do nothing where the circuit comes from a file, not those that
// are as usual.
func TestSettledByFile(t *testing.T) {
	set := []string{"model.structure=file", "model.file=m", "model.latents=4", "model.leaf.type=auto", "model.leaf.edges=[1, 2]",
		"data.columns=[{name: x, type: label, leaf: {bins: 4}}]", "data.header=yes", "data.image=2,2", "data.text.length=9", "model.class=x"}
	_, notes, err := Load(Options{Text: []byte("data: {columns: [{name: x, type: label}]}"), Set: set})
	want := []string{
		"--set model.latents=4: model.latents is ignored: the circuit of model.file has its own",
		"--set model.leaf.edges=[1, 2]: model.leaf.edges is ignored: the circuit of model.file has its own",
		"--set data.columns=[{name: x, type: label, leaf: {bins: 4}}]: leaf in data.columns is ignored: the circuit of model.file has its own",
		"--set data.columns=[{name: x, type: label, leaf: {bins: 4}}]: type in data.columns is ignored: the circuit of model.file has its own",
		"--set data.image=2,2: data.image is ignored: the circuit of model.file has its own",
		"--set data.text.length=9: data.text.length is ignored: the circuit of model.file has its own",
		"--set model.class=x: model.class is ignored: train.discriminative is 0, and the circuit of model.file has its own roots",
	}
	if err != nil || !slices.Equal(notes, want) {
		t.Errorf("notes %q, want %q (%v)", notes, want, err)
	}
	set[5] = "data.columns=[{name: x, type: skip}]"
	cfg, notes, err := Load(Options{Set: slices.Delete(set[:7], 2, 5)})
	if err != nil || len(notes) > 0 {
		t.Fatalf("notes %q (%v)", notes, err)
	}
	text, err := cfg.YAML()
	if err != nil {
		t.Fatal(err)
	}
	if _, notes, err = Load(Options{Text: text}); err != nil || len(notes) > 0 {
		t.Errorf("of all keys: notes %q (%v)", notes, err)
	}
}

func TestRequireTraining(t *testing.T) {
	cfg, _, err := Load(Options{Files: []string{"preset:nltcs"}})
	if err != nil {
		t.Fatal(err)
	}
	err = cfg.Data.RequireTraining()
	if !errors.Is(err, ErrConfig) || !strings.Contains(err.Error(), "nltcs.train.data") || !strings.Contains(err.Error(), "--set data.train=PATH") {
		t.Errorf("RequireTraining = %v", err)
	}
	cfg.Data.Train = Paths{"x"}
	if err := cfg.Data.RequireTraining(); err != nil {
		t.Error(err)
	}
}

func TestTrained(t *testing.T) {
	for _, tc := range [][3]int{{351, 1, 350}, {1, 1, 1}, {2, 1, 1}, {2, 9, 1}, {0, 1, 0}, {5, 0, 5}} {
		train := Train{Epochs: tc[0], Finish: Finish{Epochs: tc[1]}}
		if got := train.Trained(); got != tc[2] {
			t.Errorf("epochs %d, finish %d: %d, want %d", tc[0], tc[1], got, tc[2])
		}
	}
}

// TestText loads a config that is no file; files and settings win over it.
func TestText(t *testing.T) {
	text := []byte("name: job\ntrain: {epochs: 7, batch_size: 5, subsets: 1}\n")
	cfg, _, err := Load(Options{Text: text, Files: []string{"testdata/empty.good.yaml"}, Set: []string{"train.batch_size=6"}})
	if err != nil || cfg.Name != "job" || cfg.Train.Epochs != 7 || cfg.Train.BatchSize != 6 {
		t.Errorf("%+v, %v", cfg, err)
	}
	_, _, err = Load(Options{Text: []byte("name: a\ntrian: {}\n")})
	if want := "configs: config:2:1: unknown key trian; did you mean train?"; !errors.Is(err, ErrConfig) || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}
