package xgboost

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format"
)

// Formats of model files.
var (
	JSON   = format.Format{Name: "xgboost-json", Recognises: isJSON, Decode: func(b []byte) (*forest.Forest, error) { return read(startJSON(b)) }}
	UBJSON = format.Format{Name: "xgboost-ubjson", Recognises: isUBJSON, Decode: func(b []byte) (*forest.Forest, error) { return read(&ubjsonSource{cursor{b: b}}) }}
	Binary = format.Format{Name: "xgboost-binary", Recognises: isBinary, Decode: readBinary}
)

// startJSON returns a source behind the byte order mark that some editors put in front of a text.
func startJSON(text []byte) *jsonSource {
	return &jsonSource{cursor{b: text, at: len(text) - len(bytes.TrimPrefix(text, []byte("\ufeff")))}}
}

// isJSON: an object whose first key is one of XGBoost's two.
func isJSON(head []byte) bool {
	s := startJSON(head)
	if s.want('{') != nil {
		return false
	}
	key, err := s.string()
	return err == nil && (key == "learner" || key == "version")
}

func isUBJSON(head []byte) bool {
	return bytes.HasPrefix(head, []byte("{L\x00\x00\x00\x00\x00\x00\x00\x07learner")) || bytes.HasPrefix(head, []byte("{L\x00\x00\x00\x00\x00\x00\x00\x07version")) ||
		bytes.HasPrefix(head, []byte("{i\x07learner")) || bytes.HasPrefix(head, []byte("{U\x07learner"))
}

// document is what is read of a file.
type document struct {
	version     []int32
	names       []string
	types       []string          // of the features; nil without
	params      map[string]string // of learner_model_param
	booster     string
	treeInfo    []int32
	trees       []forest.Tree
	vector      int       // size_leaf_vector of the trees
	weightDrop  []float64 // of dropout; nil without
	linear      []float64 // weights of gblinear
	objective   string
	best        string            // best_iteration of the attributes; empty without
	limit       string            // best_ntree_limit of the attributes, the trees of an output up to that round; empty without
	attributes  map[string]string // others
	parallel    string            // num_parallel_tree, the trees of an output in a round
	seenLearner bool
	seenTrees   bool
}

// read reads a document and makes a forest of it.
func read(s source) (*forest.Forest, error) {
	d := &document{params: map[string]string{}}
	err := s.object(func(key string) error {
		switch key {
		case "learner":
			d.seenLearner = true
			return d.learner(s)
		case "version":
			xs, err := s.numbers(nil)
			if err == nil {
				d.version, err = integers(key, xs, nil)
			}
			return err
		}
		return s.skip()
	})
	if err != nil {
		return nil, err
	}
	if !d.seenLearner {
		return nil, errors.New("no learner; the file is not a whole model")
	}
	return d.forest()
}

func (d *document) learner(s source) error {
	return s.object(func(key string) error {
		switch key {
		case "attributes":
			return s.object(func(key string) (err error) {
				switch key {
				case "best_iteration":
					d.best, err = s.text()
				case "best_ntree_limit":
					d.limit, err = s.text()
				default:
					var text string
					at := *s.here()
					if text, err = s.text(); err != nil { // XGBoost writes texts alone
						*s.here() = at
						return s.skip()
					}
					if d.attributes == nil {
						d.attributes = map[string]string{}
					}
					d.attributes[key] = text
				}
				return err
			})
		case "feature_names":
			return s.array(func() error {
				name, err := s.text()
				d.names = append(d.names, name)
				return err
			})
		case "feature_types":
			at := *s.here()
			err := s.array(func() error {
				kind, err := s.text()
				d.types = append(d.types, kind)
				return err
			})
			if err != nil { // no prediction needs them
				d.types, *s.here() = nil, at
				return s.skip()
			}
			return nil
		case "gradient_booster":
			return d.gradientBooster(s)
		case "learner_model_param":
			return texts(s, func(key, text string) error {
				d.params[key] = text
				return nil
			})
		case "objective":
			return s.object(func(key string) error {
				if key != "name" {
					return s.skip()
				}
				var err error
				d.objective, err = s.text()
				return err
			})
		}
		return s.skip()
	})
}

// only reads one text of an object and passes over the rest.
func only(s source, name string, into *string) error {
	return s.object(func(key string) (err error) {
		if key != name {
			return s.skip()
		}
		*into, err = s.text()
		return err
	})
}

// texts reads an object of strings and numbers.
func texts(s source, use func(key, text string) error) error {
	return s.object(func(key string) error {
		text, err := s.text()
		if err != nil {
			return err
		}
		return use(key, text)
	})
}

// gradientBooster reads a booster; that of dropout has one of trees inside.
func (d *document) gradientBooster(s source) error {
	return s.object(func(key string) error {
		var err error
		switch key {
		case "name":
			d.booster, err = s.text()
			return err
		case "gbtree":
			outer := d.booster
			err = d.gradientBooster(s)
			d.booster = cmp.Or(outer, d.booster)
			return err
		case "weight_drop":
			d.weightDrop, err = s.numbers(nil)
			return err
		case "model":
			return d.model(s)
		}
		return s.skip()
	})
}

func (d *document) model(s source) error {
	return s.object(func(key string) error {
		switch key {
		case "gbtree_model_param":
			return only(s, "num_parallel_tree", &d.parallel)
		case "tree_info":
			xs, err := s.numbers(nil)
			if err == nil {
				d.treeInfo, err = integers(key, xs, nil)
			}
			return err
		case "trees":
			return d.readTrees(s)
		case "weights":
			var err error
			d.linear, err = s.numbers([]float64{}) // an empty list is not nil
			return err
		}
		return s.skip()
	})
}

// count reads a number in 0..most.
func count(key, text string, most int) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < 0 || n > most {
		return 0, fmt.Errorf("%s is %.40q; want 0..%d", key, text, most)
	}
	return n, nil
}

// forest puts together what was read.
func (d *document) forest() (*forest.Forest, error) {
	f := &forest.Forest{Source: "xgboost", Trees: d.trees}
	if len(d.version) > 0 {
		f.Source = "xgboost " + strings.Trim(strings.ReplaceAll(fmt.Sprint(d.version[:min(3, len(d.version))]), " ", "."), "[]")
	}
	sizes := map[string]int{"num_feature": forest.MaxFeatures, "num_class": forest.MaxOutputs, "num_target": forest.MaxOutputs}
	got := map[string]int{}
	for key, most := range sizes {
		text, ok := d.params[key]
		if !ok {
			continue
		}
		n, err := count(key, text, most)
		if err != nil {
			return nil, err
		}
		got[key] = n
	}
	f.Features = got["num_feature"]
	f.Outputs = max(1, got["num_class"], got["num_target"])
	switch n := len(d.names); {
	case n == 0:
	case n != f.Features: // columns would be matched by their order
		return nil, fmt.Errorf("feature_names has %d names for %d features", n, f.Features)
	default:
		f.Names = d.names
	}
	bases, err := baseScores(d.params["base_score"])
	if err != nil {
		return nil, err
	}
	o, err := find(d.objective)
	if err != nil {
		return nil, err
	}
	if err := o.set(f, bases, false); err != nil {
		return nil, err
	}
	switch d.booster {
	case "gblinear":
		err = setLinear(f, d.linear)
	case "gbtree", "dart":
		if err = d.assign(f); !d.seenTrees {
			err = errors.New("no list of trees; give what save_model wrote, not save_config")
		}
	default:
		err = fmt.Errorf("booster %.40q is unknown; want gbtree, dart or gblinear", d.booster)
	}
	if err != nil {
		return nil, err
	}
	f.BestTrees, f.Attributes, f.Dropout = d.bestTrees(f.Outputs), d.others(f), d.booster == "dart"
	if !d.recodes() {
		f.Types = d.types
	}
	return f, f.Check()
}

// others returns the attributes that f keeps as texts. That of a linear model counts rounds, and it has no trees.
func (d *document) others(f *forest.Forest) map[string]string {
	if f.Linear != nil && d.best != "" {
		if d.attributes == nil {
			d.attributes = map[string]string{}
		}
		d.attributes["best_iteration"] = d.best
	}
	return d.attributes
}

// recodes reports whether XGBoost takes the categories of a data frame by the list of those that the file was trained with: from 3.1 on, of
// features of type "c". A copy lacks the list and would take the codes of each frame; without the types XGBoost refuses such frames.
func (d *document) recodes() bool {
	return slices.Compare(d.version, []int32{3, 1}) >= 0 && slices.Contains(d.types, "c")
}

// bestTrees returns how many trees there are up to the round that best_iteration names; 0 without such a round. XGBoost has kept the number of
// trees as well while its files did not have that of a round's. It takes all trees where that is left alone: a slice of
// a booster loses best_iteration, and keeps the number of the whole one.
func (d *document) bestTrees(outputs int) int {
	best, err := strconv.Atoi(d.best)
	round, _ := strconv.Atoi(d.parallel)
	if limit, bad := strconv.Atoi(d.limit); bad == nil && limit > 0 && err == nil {
		best, round, err = limit-1, 1, nil
	}
	round = min(max(round, 1), len(d.trees)+1)
	if d.vector <= 1 { // each output has trees of its own
		round *= outputs
	}
	if err != nil || best < 0 || best >= len(d.trees)/round {
		return 0
	}
	return (best + 1) * round
}

// baseScores reads "5E-1", or "[5E-1,2E-1]" as XGBoost writes it since 3.1.
func baseScores(text string) ([]float32, error) {
	inner := text
	if strings.HasPrefix(text, "[") && strings.HasSuffix(text, "]") {
		inner = text[1 : len(text)-1]
	}
	var out []float32
	for part := range strings.SplitSeq(inner, ",") {
		x, err := strconv.ParseFloat(strings.TrimSpace(part), 32)
		if err != nil {
			return nil, fmt.Errorf("base_score is %.60q; want a number, or a list of them", text)
		}
		out = append(out, float32(x))
	}
	return out, nil
}

// assign tells the trees' outputs and weights.
func (d *document) assign(f *forest.Forest) error {
	if d.vector > 1 {
		f.Outputs = max(f.Outputs, d.vector)
		if len(f.Base) != f.Outputs {
			return fmt.Errorf("leaves have %d numbers, the model %d outputs", d.vector, len(f.Base))
		}
	}
	if d.weightDrop != nil && len(d.weightDrop) != len(f.Trees) {
		return fmt.Errorf("weight_drop has %d numbers for %d trees", len(d.weightDrop), len(f.Trees))
	}
	if len(d.treeInfo) != len(f.Trees) {
		return fmt.Errorf("tree_info has %d numbers for %d trees", len(d.treeInfo), len(f.Trees))
	}
	return assign(f, d.treeInfo, d.weightDrop)
}

// assign gives the scalars of each tree their output, and each tree its weight.
func assign(f *forest.Forest, info []int32, drop []float64) error {
	for i := range f.Trees {
		t := &f.Trees[i]
		if drop != nil {
			t.Weight = float64(float32(drop[i]))
		}
		if info[i] < 0 || int(info[i]) >= f.Outputs {
			return fmt.Errorf("tree %d is of output %d; want 0..%d", i, info[i], f.Outputs-1)
		}
		if !slices.ContainsFunc(t.Values, func(v forest.Value) bool { return v.Output != 0 }) {
			for j := range t.Values {
				t.Values[j].Output = info[i]
			}
		}
	}
	return nil
}

// setLinear divides the weights of gblinear, [features+1][outputs], the last row the
// bias. A model that was saved before its first round has an empty list of them, and its scores
// are the base scores: so are those of a forest without trees.
func setLinear(f *forest.Forest, weights []float64) error {
	if weights != nil && len(weights) == 0 {
		return nil
	}
	at := f.Features * f.Outputs
	if len(weights) != at+f.Outputs {
		return fmt.Errorf("%d linear weights for %d features and %d outputs; want %d", len(weights), f.Features, f.Outputs, at+f.Outputs)
	}
	for i, w := range weights {
		weights[i] = float64(float32(w))
	}
	f.Linear = &forest.Linear{Weights: weights[:at:at], Bias: weights[at:]}
	return nil
}
