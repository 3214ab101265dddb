package configs

import (
	"bytes"
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// YAML prints the config, without the sections of structures that it does not
// use. Loading the text gives the same run. A config that takes more bytes than are read is an error: what is printed has the
// keys that were left out, and a line for each entry of a list, so it may be longer than the files were.
func (c *Config) YAML() ([]byte, error) {
	var root yaml.Node
	if err := root.Encode(c); err != nil {
		return nil, fmt.Errorf("configs: print: %w", err)
	}
	prune(schema, &root, c.Model.Structure)
	var out bytes.Buffer
	enc := yaml.NewEncoder(&out)
	enc.SetIndent(2)
	if err := enc.Encode(&root); err != nil {
		return nil, fmt.Errorf("configs: print: %w", err)
	}
	if out.Len() > maxFileBytes {
		return nil, fmt.Errorf("%w: all settings take %d bytes as a file, and of a file %d are read; name fewer columns, as with * for all others, or fewer files",
			ErrConfig, out.Len(), maxFileBytes)
	}
	return out.Bytes(), nil
}

// prune removes the keys of other structures and writes lists of numbers on
// one line.
func prune(f *field, n *yaml.Node, structure string) {
	for i := len(n.Content) - 2; i >= 0; i -= 2 {
		c, v := f.child(n.Content[i].Value), n.Content[i+1]
		switch {
		case c.structure != "" && c.structure != structure:
			n.Content = slices.Delete(n.Content, i, i+2)
		case c.isSection():
			prune(c, v, structure)
		case v.Kind == yaml.SequenceNode && len(c.fields) == 0:
			v.Style = yaml.FlowStyle
		case c.path == "data.columns":
			for _, e := range v.Content {
				pruneUnset(c, e)
			}
		}
	}
}

// pruneUnset removes the keys of a column that say nothing.
func pruneUnset(f *field, n *yaml.Node) {
	for i := len(n.Content) - 2; i >= 0; i -= 2 {
		c, v := f.child(n.Content[i].Value), n.Content[i+1]
		if c.isSection() {
			pruneUnset(c, v)
		}
		unset := v.Kind == yaml.ScalarNode && (v.Value == "" || v.Value == "0") || v.Kind != yaml.ScalarNode && len(v.Content) == 0
		if unset && c.key != "name" {
			n.Content = slices.Delete(n.Content, i, i+2)
		} else if v.Kind == yaml.SequenceNode {
			v.Style = yaml.FlowStyle
		}
	}
}
