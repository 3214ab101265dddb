package configs

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
)

// envPrefix starts the variables that set keys: PCE_TRAIN__EPOCHS.
const envPrefix = "PCE_"

// otherVariables are read by other parts of the program.
var otherVariables = []string{"PCE_CPU", "PCE_SERVE_TOKEN"}

// parseSet reads the key=value settings of the command line, in their order, so that later
// ones win. The value is YAML. An error quotes the setting and suggests the nearest key.
func parseSet(args []string) ([]setting, error) {
	var settings []setting
	for _, arg := range args {
		key, text, ok := strings.Cut(arg, "=")
		key = strings.TrimSpace(key)
		place := "--set " + clip(arg)
		if !ok {
			return nil, fmt.Errorf("%w: %s: no = in it; write --set key=value", ErrConfig, place)
		}
		f := lookup(key)
		if f == nil {
			return nil, fmt.Errorf("%w: %s: unknown key %s%s", ErrConfig, place, clip(key), suggestPath(key))
		}
		s, err := parseText(f, text, place)
		if err != nil {
			return nil, err
		}
		settings = append(settings, s...)
	}
	return settings, nil
}

// SetKeys returns the keys to which settings, as Options.Set has them, give values: of a section those in it.
func SetKeys(set []string) ([]string, error) {
	settings, err := parseSet(set)
	keys := make([]string, len(settings))
	for i, s := range settings {
		keys[i] = s.field.path
	}
	return keys, err
}

// parseEnv reads the variables that start with PCE_, in the order of their
// names; empty ones count as unset.
func parseEnv(env []string) ([]setting, error) {
	env = slices.Clone(env)
	slices.Sort(env)
	var settings []setting
	for _, kv := range env {
		name, text, _ := strings.Cut(kv, "=")
		rest, ok := strings.CutPrefix(name, envPrefix)
		if !ok || text == "" || slices.Contains(otherVariables, name) {
			continue
		}
		key := strings.ReplaceAll(strings.ToLower(rest), "__", ".")
		f := lookup(key)
		if f == nil {
			hint := suggestVariable(name)
			if hint == "" {
				hint = suggestPath(key)
			}
			return nil, fmt.Errorf("%w: variable %s: unknown key %s%s", ErrConfig, clip(name), clip(key), hint)
		}
		s, err := parseText(f, text, "variable "+name)
		if err != nil {
			return nil, err
		}
		settings = append(settings, s...)
	}
	return settings, nil
}

// parseText reads a value as the key's type wants it: texts as they stand,
// everything else as YAML, and lists also without brackets.
func parseText(f *field, text, place string) ([]setting, error) {
	if !utf8.ValidString(text) { // YAML could not write it down as a text
		return nil, fmt.Errorf("%w: %s: the value is not UTF-8; write it in UTF-8", ErrConfig, strings.ToValidUTF8(place, "\uFFFD"))
	}
	c := checker{place: place}
	bracketed := strings.HasPrefix(strings.TrimSpace(text), "[")
	switch {
	case f.typ.Kind() == reflect.String && len(f.enum) == 0:
		return []setting{{f, text, place}}, nil
	case f.typ == reflect.TypeFor[Paths]() && !bracketed:
		return []setting{{f, Paths{text}, place}}, nil
	case f.typ.Kind() == reflect.Slice && !bracketed:
		text = "[" + text + "]"
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(text), &doc); err != nil {
		return nil, fmt.Errorf("%w: %s: %s wants %s", ErrConfig, place, f.path, f.want())
	}
	n := &yaml.Node{Kind: yaml.ScalarNode, Tag: "!!null"}
	if len(doc.Content) > 0 {
		n = doc.Content[0]
	}
	if f.isSection() {
		c.section(f, n)
	} else if value, ok := c.value(f, n); ok {
		c.settings = append(c.settings, setting{f, value, place})
	}
	return c.settings, c.err
}

// suggestPath suggests a key for a dotted path that does not exist: it follows
// the path as far as it leads.
func suggestPath(path string) string {
	f := schema
	for key := range strings.SplitSeq(path, ".") {
		if !f.isSection() {
			return "; " + f.path + " has no keys of its own"
		}
		c := f.child(key)
		if c == nil {
			return suggest(f, key)
		}
		f = c
	}
	return ""
}
