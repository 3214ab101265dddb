package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// free are the keys, and sections of keys, with which a run may be resumed that
// has other values: they change the length of the run or what is written. What
// device and the files of data change is compared in itself, as kernels and as rows.
// How cells are read is not free: a run that is resumed reads its rows as its circuit
// says, so they would be the same ones whatever these keys say. All other keys are
// held against the run, those that are new as well.
var free = []string{
	"name", "device", "threads", "model.file", "model.equations", "cluster", "job",
	"data.train", "data.valid", "data.test", "data.expected", "data.header", "data.text.max_bytes",
	"train.epochs", "train.steps", "train.patience", "train.finish.epochs", "train.checkpoint", "train.samples",
}

// isFree reports whether the key at path is in free.
func isFree(path string) bool {
	return slices.ContainsFunc(free, func(f string) bool { return path == f || strings.HasPrefix(path, f+".") })
}

// Setting is a key of a Config and its value, as text.
type Setting struct {
	Key, Value string
	Free       bool // a run may be resumed with another value
}

// Settings lists all keys and their values, without those that have no effect, such as those of
// structures that the config does not use, and without output: a run may be moved.
func (c *Config) Settings() []Setting {
	var list []Setting
	unused := c.unused()
	schema.values(reflect.ValueOf(*c), func(f *field, value any) {
		if f.structure != "" && f.structure != c.Model.Structure || unused[f.path] != "" || f.path == "output" {
			return
		}
		text, err := flow(value)
		if err != nil {
			panic(fmt.Sprintf("BUG: configs: print %s: %v", f.path, err))
		}
		list = append(list, Setting{f.path, text, isFree(f.path)})
	})
	return list
}

// flow returns a value as YAML on one line.
func flow(value any) (string, error) {
	var n yaml.Node
	if err := n.Encode(value); err != nil {
		return "", err
	}
	if n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle
	} else if n.Style != 0 { // a block of lines
		n.Style = yaml.DoubleQuotedStyle
	}
	text, err := yaml.Marshal(&n)
	// Long values are folded.
	return strings.Join(strings.Fields(string(text)), " "), err
}
