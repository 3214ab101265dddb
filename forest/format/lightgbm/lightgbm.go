package lightgbm

import (
	"bytes"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format"
	"github.com/pce-engine/pce/internal/parallel"
)

// Format is that of LightGBM's text models.
var Format = format.Format{Name: "lightgbm", Recognises: recognises, Decode: read}

// mark is the byte order mark that some editors put in front of a text.
var mark = []byte("\ufeff")

// recognises: the first line is "tree", and one of the next sets num_class.
func recognises(head []byte) bool {
	line, rest, _ := bytes.Cut(bytes.TrimPrefix(head, mark), []byte("\n"))
	return string(bytes.TrimSpace(line)) == "tree" && bytes.Contains(rest, []byte("num_class="))
}

// reader goes through the lines of a file.
type reader struct {
	rest []byte
	line int
}

// next returns the next line, and false at the end.
func (r *reader) next() ([]byte, bool) {
	if len(r.rest) == 0 {
		return nil, false
	}
	line, rest, _ := bytes.Cut(r.rest, []byte("\n"))
	r.rest = rest
	r.line++
	return bytes.TrimRight(line, "\r"), true
}

// section reads key=value lines up to an empty line, "end of trees" or the start of
// a tree, whose line it leaves. The values are parts of the file.
func (r *reader) section() map[string][]byte {
	values := map[string][]byte{}
	r.pass(func(key, value []byte) { values[string(key)] = value })
	return values
}

// pass reads a section and calls use with each key and its value.
func (r *reader) pass(use func(key, value []byte)) {
	empty := true
	for {
		if bytes.HasPrefix(r.rest, []byte("Tree=")) || atEnd(r.rest[:min(len(r.rest), 32)]) {
			return
		}
		line, ok := r.next()
		if !ok || len(line) == 0 && !empty {
			return
		}
		if key, value, _ := bytes.Cut(line, []byte("=")); len(key) > 0 {
			use(key, value)
			empty = false
		}
	}
}

// atEnd reports whether a line comes after the last tree; version 2 has no first form.
func atEnd(line []byte) bool {
	for _, prefix := range [...]string{"end of trees", "feature importances:", "feature_importances:"} {
		if len(line) >= len(prefix) && string(line[:len(prefix)]) == prefix {
			return true
		}
	}
	return false
}

func read(file []byte) (*forest.Forest, error) {
	r := &reader{rest: file}
	r.next() // "tree", and a mark in front of it
	head := map[string]string{}
	r.pass(func(key, value []byte) { head[string(key)] = string(value) })
	f, perIteration, err := header(head)
	if err != nil {
		return nil, err
	}
	if f.Trees, err = trees(r, perIteration); err != nil {
		return nil, err
	}
	if _, average := head["average_output"]; average {
		if len(f.Trees) == 0 || len(f.Trees)%perIteration != 0 {
			return nil, fmt.Errorf("an average over %d trees of %d outputs", len(f.Trees), perIteration)
		}
		f.Divisor = make([]float64, f.Outputs)
		for i := range f.Divisor {
			f.Divisor[i] = float64(len(f.Trees) / perIteration)
		}
		if unlinked(head["version"]) {
			f.Link = forest.Identity
		}
	}
	return f, f.Check()
}

// unlinked reports whether leaves of averaged trees have the scale of predictions: LightGBM before 2.2.3 trained them so,
// and applied no link. Its files are of version v2. That of 2.2.3 itself is v2 as well, and cannot be told apart.
func unlinked(version string) bool { return version == "" || version == "v2" }

// part is the section of a tree.
type part struct {
	reader
	number int
	at     int // its first line
	tree   *forest.Tree
	output int32
	err    error
}

// trees reads all trees on all processors: one goroutine finds their sections. None is looked for once one is faulty, and
// none after that is read.
func trees(r *reader, perIteration int) ([]forest.Tree, error) {
	var parts []*part
	var broken error // what ends the file too early
	var faulty lowest
	parallel.Stream(func(put func(*part)) {
		broken = r.parts(func(p *part) bool {
			p.number, p.output = len(parts), int32(len(parts)%perIteration)
			parts = append(parts, p)
			put(p)
			return !faulty.below(len(parts))
		})
	}, func() func(*part) {
		return func(p *part) {
			if faulty.below(p.number) {
				return
			}
			if p.tree, p.err = tree(p.section(), p.output); p.err != nil {
				faulty.add(p.number)
			}
		}
	})
	var out []forest.Tree
	for i, p := range parts {
		if p.err != nil {
			return nil, fmt.Errorf("line %d: tree %d: %w", p.at, i, p.err)
		}
		out = append(out, *p.tree)
	}
	return out, broken
}

// lowest is the least of some numbers, which goroutines add.
type lowest struct{ after atomic.Int64 } // one more than it; 0: none

func (l *lowest) add(n int) {
	for {
		was := l.after.Load()
		if was != 0 && was <= int64(n) || l.after.CompareAndSwap(was, int64(n)+1) {
			return
		}
	}
}

// below reports whether one that was added is below n.
func (l *lowest) below(n int) bool {
	after := l.after.Load()
	return after != 0 && after <= int64(n)
}

// parts finds the sections of all trees, until found says that it wants no more.
func (r *reader) parts(found func(*part) bool) error {
	for {
		line, ok := r.next()
		switch {
		case !ok:
			return fmt.Errorf("line %d: the file ends before \"end of trees\"; it is cut short", r.line)
		case atEnd(line):
			return nil
		case len(line) == 0:
			continue
		case !bytes.HasPrefix(line, []byte("Tree=")):
			return fmt.Errorf("line %d: %.40q where a tree should start", r.line, line)
		}
		p := &part{reader: *r, at: r.line}
		r.pass(func(_, _ []byte) {})
		p.rest = p.rest[:len(p.rest)-len(r.rest)]
		if !found(p) {
			return nil
		}
	}
}

// header makes a forest without trees of the lines before them, and returns how many
// trees an iteration has.
func header(head map[string]string) (*forest.Forest, int, error) {
	last, err := number(head, "max_feature_idx", 0, forest.MaxFeatures-1)
	if err != nil {
		return nil, 0, err
	}
	per, err := number(head, "num_tree_per_iteration", 1, forest.MaxOutputs)
	if err != nil {
		return nil, 0, err
	}
	if _, linear := head["linear_tree"]; linear && head["linear_tree"] != "0" {
		return nil, 0, errors.New("leaves with linear models (linear_tree) are not supported; train without them")
	}
	f := &forest.Forest{
		Source: "lightgbm", Features: last + 1, Outputs: per, Base: make([]float64, per), Alpha: 1,
		Input: forest.Float64, Sum: forest.Float64, Output: forest.Float64,
	}
	if v := head["version"]; v != "" {
		f.Source += " " + v
	}
	// LightGBM cuts at spaces alone: other white space is part of a name.
	f.Names = strings.FieldsFunc(head["feature_names"], func(c rune) bool { return c == ' ' })
	switch n := len(f.Names); {
	case n == 0:
		f.Names = nil
	case n != f.Features: // columns would be matched by their order
		return nil, 0, fmt.Errorf("feature_names has %d names for %d features", n, f.Features)
	}
	return f, per, objective(f, head["objective"])
}

// objective sets the link of "name key:value ...". Models of a custom objective have
// none, and are not transformed.
func objective(f *forest.Forest, text string) error {
	words := strings.Fields(text)
	if len(words) == 0 {
		return nil
	}
	settings := map[string]string{}
	for _, word := range words[1:] {
		key, value, _ := strings.Cut(word, ":")
		settings[key] = value
	}
	f.Target = words[0]
	switch words[0] {
	case "binary":
		f.Link = forest.Sigmoid
		if f.Outputs == 1 {
			f.Classes, f.Cut = 2, 0.5
		}
	case "multiclassova":
		f.Link = forest.Sigmoid
		f.Classes = classes(f.Outputs)
	case "multiclass", "softmax":
		f.Link = forest.Softmax
		f.Classes = classes(f.Outputs)
	case "cross_entropy", "xentropy":
		f.Link = forest.Sigmoid
		return nil // without a factor
	case "cross_entropy_lambda", "xentlambda":
		f.Link = forest.Softplus
	case "poisson", "gamma", "tweedie":
		f.Link = forest.Exp
	case "regression", "regression_l2", "l2", "mean_squared_error", "mse", "regression_l1", "l1", "mae", "huber", "fair", "quantile", "mape",
		"lambdarank", "rank_xendcg", "custom", "none", "null", "na":
		if _, sqrt := settings["sqrt"]; sqrt {
			f.Link = forest.SignedSquare
		}
	default:
		return fmt.Errorf("objective %.60q is unknown; want one of LightGBM's own", words[0])
	}
	if text := settings["sigmoid"]; text != "" {
		alpha, err := strconv.ParseFloat(text, 64)
		if err != nil || !(alpha > 0) {
			return fmt.Errorf("sigmoid:%.40s is out of range; want a number above 0", text)
		}
		f.Alpha = alpha
	}
	return nil
}

// classes is the number of classes of that many outputs; one output tells none.
func classes(outputs int) int {
	if outputs < 2 {
		return 0
	}
	return outputs
}

// number reads an integer that must be there and in range.
func number[T string | []byte](values map[string]T, key string, least, most int) (int, error) {
	text := string(values[key])
	n, err := strconv.Atoi(strings.TrimSpace(text))
	if err != nil || n < least || n > most {
		return 0, fmt.Errorf("%s is %.40q; want %d..%d", key, text, least, most)
	}
	return n, nil
}
