package configs

import (
	"bytes"
	"cmp"
	"context"
	"embed"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"reflect"
	"slices"
	"strings"

	"github.com/go-viper/mapstructure/v2"
	"github.com/spf13/viper"
)

//go:embed *.yaml
var presets embed.FS

// PresetPrefix marks a config file that is built into the program.
const PresetPrefix = "preset:"

// Options are the sources of a Config, weakest first: each key takes the value of the last
// source that has it.
type Options struct {
	Text  []byte   // of a config file, such as a job's; nil: none
	Files []string // paths, or names such as preset:hclt; later ones win
	Env   []string // the environment, as os.Environ returns it
	Set   []string // key=value

	Open func(name string) (io.ReadCloser, error) // opens Files, which may be pipes; nil: os.Open
}

// Load puts the sources together and checks the result. The notes say which of
// the given keys have no effect.
func Load(o Options) (cfg *Config, notes []string, err error) {
	v := viper.New()
	schema.values(reflect.ValueOf(*Default()), func(f *field, value any) {
		v.SetDefault(f.path, value)
	})
	sources, files, err := o.sources()
	if err != nil {
		return nil, nil, err
	}
	notes = ofOtherRules(sources)
	var given []setting
	for i, settings := range sources {
		given = append(given, settings...)
		if i < files {
			if err := v.MergeConfigMap(nest(settings)); err != nil {
				return nil, nil, fmt.Errorf("%w: %v", ErrConfig, err)
			}
			continue
		}
		for _, s := range settings {
			v.Set(s.field.path, s.value)
		}
	}
	if v.GetString("train.rule") == "anemone" {
		for path, value := range anemoneDefaults {
			v.SetDefault(path, value)
		}
	}

	cfg = new(Config)
	if err := v.UnmarshalExact(cfg, func(dc *mapstructure.DecoderConfig) {
		dc.TagName = "yaml"
		dc.WeaklyTypedInput = false
		dc.DecodeHook = nil
	}); err != nil {
		return nil, nil, fmt.Errorf("configs: merged settings do not fit Config: %v", err)
	}
	if cfg.Output == "" {
		cfg.Output = "runs/" + cfg.Name
	}
	if err := cfg.Validate(); err != nil {
		return nil, nil, placed(err, given)
	}
	return cfg, slices.Concat(notes, ignored(cfg, given), heavy(cfg, given)), nil
}

// sources reads all sources, weakest first. The first files of them are merged
// section by section, the others key by key.
func (o *Options) sources() (all [][]setting, files int, err error) {
	add := func(settings []setting, err error) error {
		all = append(all, settings)
		return err
	}
	if o.Text != nil {
		if err := add(parseFile("config", bytes.NewReader(o.Text))); err != nil {
			return nil, 0, err
		}
	}
	for _, name := range o.Files {
		if err := add(o.loadFile(name)); err != nil {
			return nil, 0, err
		}
	}
	files = len(all)
	if err := add(parseEnv(o.Env)); err != nil {
		return nil, 0, err
	}
	return all, files, add(parseSet(o.Set))
}

// anemoneDefaults hold instead of those of Default where the rule is anemone.
var anemoneDefaults = map[string]any{
	"train.pseudocount": 5e-6,
}

// heavyPseudocount is what a pseudocount of anemone should stay below: it stands
// beside the visits of a unit in one row, of which there are few for each of many.
const heavyPseudocount = 1e-3

// heavy notes a pseudocount that was meant for the counts of a batch.
func heavy(cfg *Config, given []setting) []string {
	if cfg.Train.Rule != "anemone" || cfg.Train.Pseudocount < heavyPseudocount {
		return nil
	}
	for _, s := range slices.Backward(given) {
		if s.field.path == "train.pseudocount" {
			return []string{fmt.Sprintf("%s: train.pseudocount %v is heavy for train.rule anemone, whose counts are those of one row; 5e-6 is usual",
				s.place, cfg.Train.Pseudocount)}
		}
	}
	return nil
}

func (o *Options) loadFile(name string) ([]setting, error) {
	var f io.ReadCloser
	var err error
	if preset, ok := strings.CutPrefix(name, PresetPrefix); ok {
		if f, err = presets.Open(preset + ".yaml"); err != nil {
			return nil, fmt.Errorf("%w: no preset %q; there are %s", ErrConfig, clip(preset), strings.Join(Presets(), ", "))
		}
	} else if f, err = o.open(name); errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return nil, fmt.Errorf("%w: %s: %w", ErrConfig, name, err)
	} else if err != nil {
		why := err
		if pe := (*fs.PathError)(nil); errors.As(err, &pe) {
			why = pe.Err
		}
		return nil, fmt.Errorf("%w: %s: %v; name a .yaml file, or one of the program's own: %s",
			ErrConfig, name, why, strings.Join(Presets(), ", "))
	}
	defer f.Close()
	return parseFile(name, f)
}

func (o *Options) open(name string) (io.ReadCloser, error) {
	if o.Open != nil {
		return o.Open(name)
	}
	return os.Open(name)
}

// Presets lists the configs that are built into the program, as Options.Files
// takes them.
func Presets() []string {
	entries, err := presets.ReadDir(".")
	if err != nil {
		panic("BUG: configs: embedded presets: " + err.Error())
	}
	names := make([]string, len(entries))
	for i, e := range entries {
		names[i] = PresetPrefix + strings.TrimSuffix(e.Name(), ".yaml")
	}
	return names
}

// nest turns settings into the nested maps that viper merges.
func nest(settings []setting) map[string]any {
	root := map[string]any{}
	for _, s := range settings {
		m := root
		keys := strings.Split(s.field.path, ".")
		for _, k := range keys[:len(keys)-1] {
			next, ok := m[k].(map[string]any)
			if !ok {
				next = map[string]any{}
				m[k] = next
			}
			m = next
		}
		m[keys[len(keys)-1]] = s.value
	}
	return root
}

// ignored notes the given keys of structures that the config does not use, and those that others leave without effect.
func ignored(cfg *Config, given []setting) []string {
	usual := usualValues()
	unused := cfg.unused()
	last := map[string]int{} // settings of lists that cfg has
	for i, s := range given {
		last[s.field.path] = i
	}
	var notes []string
	for at, s := range given {
		note := func(format string, args ...any) {
			notes = append(notes, s.place+": "+fmt.Sprintf(format, args...))
		}
		if why, ok := unused[s.field.path]; ok && fmt.Sprint(s.value) != usual[s.field.path] {
			note("%s is ignored: %s", s.field.path, why)
		}
		if want := s.field.structure; want != "" && want != cfg.Model.Structure {
			note("%s is ignored: it belongs to model.structure %s, this is %s", s.field.path, want, cfg.Model.Structure)
		}
		if at == last[s.field.path] {
			for _, what := range cfg.unusedIn(s.field.path) {
				note("%s", what)
			}
		}
	}
	return notes
}

// unusedIn says what has no effect in the elements of a list.
func (c *Config) unusedIn(path string) (list []string) {
	switch {
	case path == "train.step_size.pieces" && c.Train.Rule != "fullbatch-em":
		for i, p := range c.Train.StepSize.Pieces {
			if p.Length == 0 {
				list = append(list, fmt.Sprintf("piece %d of %s is ignored: it has no length", i+1, path))
			}
		}
	case path == "data.columns" && c.Model.Structure == "file":
		if slices.ContainsFunc(c.Data.Columns, func(col Column) bool { return !col.Leaf.IsZero() }) {
			list = append(list, "leaf in data.columns is ignored: "+ofFile)
		}
		if slices.ContainsFunc(c.Data.Columns, func(col Column) bool { return col.Type != "" && col.Type != "skip" }) {
			list = append(list, "type in data.columns is ignored: "+ofFile)
		}
	case path == "data.columns":
		for i := range c.Data.Columns {
			col := &c.Data.Columns[i]
			kind := cmp.Or(col.Leaf.Type, c.Model.Leaf.Type)
			if col.Leaf.Bins != 0 && len(col.Leaf.Edges) > 0 {
				list = append(list, fmt.Sprintf("bins of the leaf of column %q is ignored: its edges are in place of bins", col.Name))
			}
			for _, x := range ofFamilies {
				if x.set(&col.Leaf) && !slices.Contains(x.families, kind) {
					list = append(list, fmt.Sprintf("%s of the leaf of column %q is ignored: it belongs to type %s, this is %s", x.key, col.Name, x.families[0], kind))
				}
			}
		}
	}
	return list
}

// ofFile is why keys have no effect where the circuit comes from a file.
const ofFile = "the circuit of model.file has its own"

// ofFamilies are the settings of leaves that only some families have, auto among them where it may be one of these.
var ofFamilies = []struct {
	key      string
	families []string
	set      func(l *Leaf) bool
}{
	{"categories", []string{"categorical", "auto", "bernoulli", "binomial", "discretised-logistic", "histogram"}, func(l *Leaf) bool { return l.Categories != 0 }},
	{"bins", []string{"histogram"}, func(l *Leaf) bool { return l.Bins != 0 }},
	{"edges", []string{"histogram"}, func(l *Leaf) bool { return len(l.Edges) > 0 }},
	{"outside", []string{"histogram"}, func(l *Leaf) bool { return l.Outside != 0 }},
	{"min_sigma", []string{"gaussian", "log-normal", "auto"}, func(l *Leaf) bool { return l.MinSigma != 0 }},
	{"min_scale", []string{"discretised-logistic"}, func(l *Leaf) bool { return l.MinScale != 0 }},
}

// usualValues are the values of Default by their keys, as text.
func usualValues() map[string]string {
	usual := map[string]string{}
	schema.values(reflect.ValueOf(*Default()), func(f *field, value any) { usual[f.path] = fmt.Sprint(value) })
	return usual
}

// unused returns why keys have no effect beside the others, by these keys.
func (c *Config) unused() map[string]string {
	m := map[string]string{}
	if rule := c.Train.Rule; rule != "anemone" {
		m["train.momentum"] = "it belongs to train.rule anemone, this is " + rule
	}
	if c.Train.Rule == "fullbatch-em" {
		for _, key := range []string{"schedule", "from", "to", "pieces"} {
			m["train.step_size."+key] = "steps of train.rule fullbatch-em have no size"
		}
		m["train.batch_size"] = "a step of train.rule fullbatch-em has all rows, or those of one of train.subsets"
	} else if s := &c.Train.StepSize; len(s.Pieces) > 0 {
		m["train.step_size.from"], m["train.step_size.to"] = "train.step_size.pieces have their own", "train.step_size.pieces have their own"
	} else if s.Schedule == "constant" {
		m["train.step_size.to"] = "train.step_size.schedule constant stays at from"
	}
	if c.Train.Finish.Epochs == 0 {
		m["train.finish.pseudocount"] = "train.finish.epochs is 0"
	}
	if tree := c.Model.HCLT.Tree; c.Model.Structure == "hclt" {
		if tree != "random" {
			m["model.hclt.inner"] = "it belongs to model.hclt.tree random, this is " + tree
		}
		if tree != "chow-liu" {
			for _, key := range []string{"bins", "softening", "max_rows"} {
				m["model.hclt."+key] = "it belongs to model.hclt.tree chow-liu, this is " + tree
			}
		}
	}
	if n := c.Model.Latents; c.Model.Structure == "pd" && n > 0 && (n == 32 || n%32 != 0) { // a sum is one block, which sees all products
		m["model.pd.max_product_blocks"] = "with model.latents below 64, or not a multiple of 32, a sum sees all products of its rectangle"
	}
	kinds := []string{c.Model.Leaf.Type}
	for i := range c.Data.Columns {
		kinds = append(kinds, c.Data.Columns[i].Leaf.Type) // whose other settings are those of model.leaf
	}
	if len(c.Model.Leaf.Edges) > 0 {
		m["model.leaf.bins"] = "model.leaf.edges are in place of bins"
	}
	for _, x := range ofFamilies {
		if !slices.ContainsFunc(kinds, func(kind string) bool { return slices.Contains(x.families, kind) }) {
			m["model.leaf."+x.key] = "no leaf is of type " + x.families[0]
		}
	}
	if c.Model.Structure == "file" {
		for _, key := range []string{"model.latents", "data.image", "data.text.length", "data.text.vocabulary"} {
			m[key] = ofFile
		}
		for _, f := range lookup("model.leaf").fields {
			m[f.path] = ofFile
		}
		if c.Train.Discriminative == 0 {
			m["model.class"] = "train.discriminative is 0, and the circuit of model.file has its own roots"
		}
	}
	if c.Model.Structure == "learnspn" {
		m["model.latents"] = "model.structure learnspn has as many units as the rows give it"
		m["model.init.seed"] = "model.structure learnspn learns the parameters too"
		if c.Model.LearnSPN.MaxMultipliers > 0 {
			for _, key := range []string{"columns", "rows", "threshold", "min_rows", "clusters", "leaf", "components", "search"} {
				m["model.learnspn."+key] = "of the settings beside model.learnspn.max_multipliers only smoothing has an effect"
			}
		}
	}
	return m
}

// placed adds to a keyError where its key was given.
func placed(err error, given []setting) error {
	var ke *keyError
	if !errors.As(err, &ke) {
		return err
	}
	where := ""
	for _, s := range given {
		if s.field.path == ke.path {
			where = s.place + ": "
		}
	}
	return fmt.Errorf("%w: %s%s %s", ErrConfig, where, ke.path, ke.what)
}
