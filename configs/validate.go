package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strconv"
	"strings"
)

// keyError is what a key's value conflicts with.
type keyError struct{ path, what string }

// Error names the key, what its value is and what it conflicts with, in one line.
func (e *keyError) Error() string { return fmt.Sprintf("%v: %s %s", ErrConfig, e.path, e.what) }

// Unwrap makes the error one that matches ErrConfig.
func (e *keyError) Unwrap() error { return ErrConfig }

// mostName is how many bytes the name of a directory may have on common file systems.
const mostName = 255

// Validate checks what types and ranges of single keys cannot: values that must fit one
// another. Load calls it after all sources are put together. It reads no files, so paths need
// not exist. The first conflict is the error, which names the key and matches ErrConfig.
func (c *Config) Validate() error {
	m, d, t := &c.Model, &c.Data, &c.Train
	bad := func(path, format string, args ...any) error {
		return &keyError{path, fmt.Sprintf(format, args...)}
	}
	if c.Name == "" || c.Name == "." || c.Name == ".." || strings.ContainsAny(c.Name, "/\\\x00") {
		return bad("name", "is %.40q, want a word that can name a directory", c.Name)
	}
	if len(c.Name) > mostName { // also where output is set: a cluster shows the names of all jobs
		return bad("name", "has %d bytes, want %d at most, as names of directories have", len(c.Name), mostName)
	}
	switch m.Structure {
	case "file":
		if m.File == "" {
			return bad("model.structure", "is file, but model.file is empty; name the model or circuit to start from")
		}
	case "equations":
		if m.Equations == "" {
			return bad("model.structure", "is equations, but model.equations is empty; name the file that has them")
		}
		if _, err := m.SizeOf(); err != nil {
			return bad("model.sizes", "%v", err)
		}
	case "hclt":
		if m.HCLT.Tree == "random" && m.HCLT.Inner == 0 {
			return bad("model.hclt.tree", "is random, but model.hclt.inner is 0; say how many variables are inner")
		}
	case "pd":
		if n := len(m.PD.Shape); n != 0 && n != 2 && n != 3 {
			return bad("model.pd.shape", "has %d numbers, want [height, width] or [height, width, channels]", n)
		}
	}
	if m.Class != "" && !slices.Contains([]string{"hclt", "pd", "rat-spn", "file"}, m.Structure) {
		return bad("model.class", "is %.40q, but %s has no root for each class; hclt, pd and rat-spn have", m.Class, m.Structure)
	}
	if t.Discriminative > 0 {
		switch {
		case m.Class == "" && m.Structure != "file":
			return bad("train.discriminative", "is %v, but model.class is empty; name the column of the class", t.Discriminative)
		case t.Rule != "minibatch-em":
			return bad("train.discriminative", "is %v, but train.rule is %s; choose minibatch-em, whose step sizes fall", t.Discriminative, t.Rule)
		case t.Finish.Epochs > 0:
			return bad("train.discriminative", "is %v, but train.finish has epochs of full-batch EM, which has no step sizes; leave them out", t.Discriminative)
		}
	}
	if what := m.Leaf.problem(); what != "" {
		key, rest, _ := strings.Cut(what, " ")
		return bad("model.leaf."+key, "%s", rest)
	}
	if n := len(d.Image); n != 0 && n != 2 && n != 3 {
		return bad("data.image", "has %d numbers, want [height, width] or [height, width, channels]", n)
	}
	names := map[string]bool{}
	for i, col := range d.Columns {
		if col.Name == "" {
			return bad("data.columns", "has no name in entry %d; give the column's name in the header, or its number", i+1)
		}
		if names[col.Name] {
			return bad("data.columns", "names %.40q twice; keep one", col.Name)
		}
		names[col.Name] = true
		bare := col.Leaf.IsZero()
		switch {
		case col.Type == "" && bare:
			return bad("data.columns", "has no type for %.40q; write discrete, continuous, label or skip, or a leaf", col.Name)
		case col.Type == "skip" && !bare:
			return bad("data.columns", "has a leaf for %.40q, which is skipped; drop one of the two", col.Name)
		}
		if what := col.Leaf.problem(); what != "" {
			return bad("data.columns", "has a leaf for %.40q whose %s", col.Name, what)
		}
		if col.Type == "" && col.Categories != 0 {
			return bad("data.columns", "gives categories to column %.40q without a type; drop them or write type: discrete", col.Name)
		}
		if col.Type != "discrete" && col.Categories != 0 {
			return bad("data.columns", "gives categories to column %.40q of type %s; drop them or write type: discrete", col.Name, col.Type)
		}
	}
	if d.Text.Vocabulary == 1 {
		return bad("data.text.vocabulary", "is 1, want at least 2: one token, and one for all others")
	}
	if h := c.Model.HCLT; h.Softening > float64(h.Bins) {
		return bad("model.hclt.softening", "is %v, more than the %d of model.hclt.bins; lower it", h.Softening, h.Bins)
	}
	total := 0.0
	for i, p := range t.StepSize.Pieces {
		if p.From == 0 {
			return bad("train.step_size.pieces", "starts piece %d at step size 0; nothing would be learned", i+1)
		}
		total += p.Length
	}
	if len(t.StepSize.Pieces) > 0 && total == 0 {
		return bad("train.step_size.pieces", "have length 0 altogether; give each its epochs")
	}
	if len(t.StepSize.Pieces) == 0 && t.StepSize.From == 0 && t.Rule != "fullbatch-em" {
		return bad("train.step_size.from", "is 0; nothing would be learned")
	}
	if t.Momentum == 1 {
		return bad("train.momentum", "is 1, want a number below 1: at 1 no row would ever count")
	}
	if t.Patience > 0 && d.Valid.Empty() {
		return bad("train.patience", "is %d, but data.valid names no rows to judge by", t.Patience)
	}
	if t.Rule != "fullbatch-em" && t.Subsets > 1 {
		return bad("train.subsets", "is %d, but only rule fullbatch-em takes subsets; %s uses batch_size", t.Subsets, t.Rule)
	}
	return c.Job.validate()
}

// SizeOf returns the sizes by the names of their parameters. Validate has checked them.
func (m *Model) SizeOf() (map[string]int64, error) {
	sizes := map[string]int64{}
	for _, s := range m.Sizes {
		name, value, ok := strings.Cut(s, "=")
		name = strings.TrimSpace(name)
		n, err := strconv.ParseInt(strings.TrimSpace(value), 10, 64)
		if _, twice := sizes[name]; twice {
			return nil, fmt.Errorf("have %.40q twice; keep one", name)
		}
		if !ok || err != nil || name == "" {
			return nil, fmt.Errorf("have %.40q, want NAME=INTEGER, such as D=4", s)
		}
		sizes[name] = n
	}
	return sizes, nil
}

// IsZero reports whether l says nothing, as where a column leaves its leaf out.
func (l *Leaf) IsZero() bool { return reflect.DeepEqual(*l, Leaf{}) }

// problem says which setting of a leaf conflicts with another, and why.
func (l *Leaf) problem() string {
	switch {
	case l.Type == "bernoulli" && l.Categories != 0 && l.Categories != 2:
		return fmt.Sprintf("categories is %d, but a Bernoulli leaf has 2; leave it out or choose type categorical", l.Categories)
	case len(l.Edges) == 1:
		return "edges are one number; give at least two, or bins"
	}
	for i := range len(l.Edges) - 1 {
		if l.Edges[i] >= l.Edges[i+1] {
			return fmt.Sprintf("edges have %v before %v; write them in ascending order", l.Edges[i], l.Edges[i+1])
		}
	}
	return ""
}

// validate checks that a job has what its kind takes, and nothing that would be ignored: a
// model and rows for queries, columns for those that name some. The error names the key.
func (j *Job) validate() error {
	rows := !j.Data.Empty()
	switch {
	case j.Kind == "train":
		return j.validateTraining(rows)
	case j.Model == "":
		return &keyError{"job.kind", fmt.Sprintf("is %s, but job.model is empty; name a model file", j.Kind)}
	case !rows && j.Kind != "sample":
		return &keyError{"job.kind", fmt.Sprintf("is %s, but job.data is empty; name the rows", j.Kind)}
	case j.Format == "png" && j.Kind != "sample" && j.Kind != "mpe":
		return &keyError{"job.format", fmt.Sprintf("is png, but job.kind is %s; write csv or npy", j.Kind)}
	case j.Format != "csv" && j.Kind == "eval":
		return &keyError{"job.format", fmt.Sprintf("is %s, but job.kind is eval, which writes no rows; leave it out", j.Format)}
	case j.Format != "csv" && j.Kind == "predict":
		return &keyError{"job.format", fmt.Sprintf("is %s, but job.kind is predict; write csv", j.Format)}
	case j.Result != "prediction" && j.Kind != "predict":
		return &keyError{"job.result", fmt.Sprintf("is %s, but job.kind is %s; leave it out", j.Result, j.Kind)}
	}
	usual := Default().Job
	switch {
	case rows && j.Kind == "sample":
		return &keyError{"job.data", "is set, but job.kind is sample, which draws whole rows; complete rows with pce query sample --given, or leave it out"}
	case j.Rows != usual.Rows && j.Kind != "sample":
		return &keyError{"job.rows", fmt.Sprintf("is %d, but job.kind is %s, which draws no rows; leave it out", j.Rows, j.Kind)}
	case j.Seed != usual.Seed && j.Kind != "sample" && j.Kind != "mpe":
		return &keyError{"job.seed", fmt.Sprintf("is %d, but job.kind is %s, which draws nothing; leave it out", j.Seed, j.Kind)}
	case j.Candidates != usual.Candidates && j.Kind != "mpe":
		return &keyError{"job.candidates", fmt.Sprintf("is %d, but job.kind is %s; leave it out", j.Candidates, j.Kind)}
	case j.Search != usual.Search && j.Kind != "mpe":
		return &keyError{"job.search", fmt.Sprintf("is %d, but job.kind is %s; leave it out", j.Search, j.Kind)}
	case j.Probabilities && j.Kind != "classify":
		return &keyError{"job.probabilities", fmt.Sprintf("is true, but job.kind is %s; leave it out", j.Kind)}
	case j.Schedule != "" && j.Kind != "predict":
		return &keyError{"job.schedule", fmt.Sprintf("is set, but job.kind is %s; leave it out", j.Kind)}
	case j.Profile != "" && j.Schedule == "":
		return &keyError{"job.profile", "is set, but job.schedule is empty; name the schedule that uses it, or leave it out"}
	case len(j.Levels) > 0 && j.Kind != "quantiles":
		return &keyError{"job.levels", fmt.Sprintf("are set, but job.kind is %s; leave them out", j.Kind)}
	case slices.ContainsFunc(j.Levels, func(p float64) bool { return !(p > 0 && p < 1) }):
		return &keyError{"job.levels", fmt.Sprintf("are %v, want levels between 0 and 1", j.Levels)}
	case j.Soft && !slices.Contains([]string{"loglik", "conditional", "moments", "expect", "classify", "mpe"}, j.Kind):
		return &keyError{"job.soft", fmt.Sprintf("is true, but job.kind is %s, which takes values only; leave it out", j.Kind)}
	case len(j.Of) > 0 && j.Kind != "expect":
		return &keyError{"job.of", fmt.Sprintf("is set, but job.kind is %s; leave it out", j.Kind)}
	}
	switch j.Kind {
	case "conditional", "covariance", "quantiles":
		if len(j.Columns) == 0 {
			return &keyError{"job.kind", fmt.Sprintf("is %s, but job.columns is empty; name the columns whose distributions are wanted", j.Kind)}
		}
	case "expect":
		if len(j.Of) == 0 {
			return &keyError{"job.kind", "is expect, but job.of is empty; give the functions whose expectations are wanted, such as 2*age - $3^2"}
		}
		if len(j.Columns) > 0 {
			return &keyError{"job.columns", "are set, but job.kind is expect, which names them in job.of; leave them out"}
		}
	case "classify":
		if len(j.Columns) != 1 {
			return &keyError{"job.kind", fmt.Sprintf("is classify, but job.columns has %d columns; name the one of the class", len(j.Columns))}
		}
	case "loglik", "mpe":
	default:
		if len(j.Columns) > 0 {
			return &keyError{"job.columns", fmt.Sprintf("are set, but job.kind is %s, which is about all; leave them out", j.Kind)}
		}
	}
	return nil
}

// validateTraining refuses what a job of training does not read; rows says whether job.data names some.
func (j *Job) validateTraining(rows bool) error {
	usual := usualValues()
	var err error
	schema.child("job").values(reflect.ValueOf(*j), func(f *field, value any) {
		set := fmt.Sprint(value) != usual[f.path]
		if f.path == "job.data" { // which may name nothing
			set = rows
		}
		if set && err == nil {
			err = &keyError{f.path, "is set, but job.kind is train; name the kind, such as loglik, or leave it out"}
		}
	})
	return err
}

// RequireTraining returns an error that says what is expected and how to get
// it if there are no training rows.
func (d *Data) RequireTraining() error {
	if !d.Train.Empty() {
		return nil
	}
	expected := ""
	if d.Expected != "" {
		expected = "it wants " + strings.Join(strings.Fields(d.Expected), " ") + "; "
	}
	return fmt.Errorf("%w: data.train is not set; %ssay --set data.train=PATH, and data.valid and data.test alike", ErrConfig, expected)
}

// Trained returns how many epochs go by the rule, before train.finish.
func (t *Train) Trained() int {
	return t.Epochs - min(t.Finish.Epochs, max(t.Epochs-1, 0))
}
