package configs

import (
	"errors"
	"fmt"
	"io"
	"math"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"

	"go.yaml.in/yaml/v3"
)

// setting is one value that was given, checked against the schema.
type setting struct {
	field *field
	value any // of the field's type; a list of sections is a []map[string]any
	place string
}

// maxFileBytes bounds what is read of a config file, and what YAML prints, so that each config that is printed can be read.
const maxFileBytes = 4 << 20

// parseFile reads a config file and checks every key and value in it against the schema. An
// error names file, line and column, and the nearest key where one is misspelt. An empty file
// has no settings; more than one document or 4 MiB is refused.
func parseFile(name string, r io.Reader) ([]setting, error) {
	text, err := io.ReadAll(io.LimitReader(r, maxFileBytes+1))
	if err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrConfig, name, err)
	}
	if len(text) > maxFileBytes {
		return nil, fmt.Errorf("%w: %s: larger than %d MiB; is this a config file?", ErrConfig, name, maxFileBytes>>20)
	}
	dec := yaml.NewDecoder(strings.NewReader(string(text)))
	var doc yaml.Node
	switch err := dec.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntaxError(name, err)
	}
	var rest yaml.Node
	if err := dec.Decode(&rest); !errors.Is(err, io.EOF) {
		return nil, fmt.Errorf("%w: %s: more than one document; keep what is before the ---", ErrConfig, name)
	}
	c := checker{file: name}
	c.section(schema, doc.Content[0])
	return c.settings, c.err
}

// syntaxError turns the parser's "yaml: line 3: what" into "file:3: what". In
// errors of its grammar the parser counts lines from 0.
func syntaxError(name string, err error) error {
	what := strings.TrimPrefix(err.Error(), "yaml: ")
	if rest, ok := strings.CutPrefix(what, "line "); ok {
		number, text, _ := strings.Cut(rest, ": ")
		line, _ := strconv.Atoi(number)
		if grammar.MatchString(text) {
			line++
		}
		name, what = fmt.Sprintf("%s:%d", name, line), text
	}
	return fmt.Errorf("%w: %s: %s; this is not valid YAML", ErrConfig, name, clip(what))
}

var grammar = regexp.MustCompile(`^(did not find expected (key|node content|'|<)|found undefined tag)`)

// checker walks a YAML tree along the schema. It keeps the first error.
type checker struct {
	file     string // "" for text without a file; place then says all
	place    string
	settings []setting
	err      error
}

func (c *checker) at(n *yaml.Node) string {
	if c.file == "" {
		return c.place
	}
	return fmt.Sprintf("%s:%d:%d", c.file, n.Line, n.Column)
}

func (c *checker) fail(n *yaml.Node, format string, args ...any) {
	if c.err == nil {
		c.err = fmt.Errorf("%w: %s: %s", ErrConfig, c.at(n), fmt.Sprintf(format, args...))
	}
}

// section checks the keys of a section and records their values.
func (c *checker) section(f *field, n *yaml.Node) {
	c.mapping(f, n, func(child *field, v *yaml.Node) {
		if child.isSection() {
			c.section(child, v)
			return
		}
		if value, ok := c.value(child, v); ok {
			c.settings = append(c.settings, setting{child, value, c.at(v)})
		}
	})
}

// mapping calls visit for the known keys of a mapping, in their order. Unknown keys, keys that
// are there twice and a value in place of a section are noted as errors, and the rest is
// visited all the same: the first error counts.
func (c *checker) mapping(f *field, n *yaml.Node, visit func(*field, *yaml.Node)) {
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!null" {
		return // "train:" with nothing below, or with comments only
	}
	if n.Kind != yaml.MappingNode {
		c.mismatch(f, n)
		return
	}
	lines := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, v := n.Content[i], n.Content[i+1]
		child := f.child(key.Value)
		switch line, twice := lines[key.Value]; {
		case key.Kind != yaml.ScalarNode:
			c.fail(key, "a key must be a word")
		case twice:
			c.fail(key, "%s is set twice, first on line %d; keep one", join(f.path, key.Value), line)
		case child == nil:
			if strings.Contains(key.Value, ":") {
				c.fail(key, "%s is not a key; write a blank after the colon", join(f.path, key.Value))
			}
			c.fail(key, "unknown key %s%s", join(f.path, key.Value), suggest(f, key.Value))
		default:
			visit(child, v)
		}
		lines[key.Value] = key.Line
	}
}

// value returns the Go value of a node that f describes: a list, a section within a list, or a
// scalar. After an error, which is noted with its place, it returns false and the value is not
// used.
func (c *checker) value(f *field, n *yaml.Node) (any, bool) {
	before := c.err
	var v any
	switch {
	case f.typ == reflect.TypeFor[Paths]():
		v = Paths(c.texts(f, n, true))
	case f.typ == reflect.TypeFor[[]string]():
		v = c.texts(f, n, false)
	case f.typ == reflect.TypeFor[[]int]():
		list := []int{}
		for _, e := range c.elements(f, n) {
			if x, ok := c.integer(f, e); ok {
				list = append(list, int(x))
			}
		}
		v = list
	case f.typ == reflect.TypeFor[[]float64]():
		list := []float64{}
		for _, e := range c.elements(f, n) {
			if x, ok := c.scalarOf(f, reflect.Float64, e); ok {
				list = append(list, x.(float64))
			}
		}
		v = list
	case f.typ.Kind() == reflect.Slice:
		list := []map[string]any{}
		for _, e := range c.elements(f, n) {
			list = append(list, c.object(f, e))
		}
		v = list
	case f.isSection(): // within an element of a list
		v = c.object(f, n)
	default:
		v, _ = c.scalar(f, n)
	}
	return v, c.err == before
}

// object returns the values of a section that is, or is in, an element of a list.
func (c *checker) object(f *field, n *yaml.Node) map[string]any {
	m := map[string]any{}
	c.mapping(f, n, func(child *field, v *yaml.Node) {
		if x, ok := c.value(child, v); ok {
			m[child.key] = x
		}
	})
	return m
}

func (c *checker) elements(f *field, n *yaml.Node) []*yaml.Node {
	if n.Kind != yaml.SequenceNode {
		c.mismatch(f, n)
		return nil
	}
	return n.Content
}

// texts reads a list of texts; a single one counts as a list where alone is set.
func (c *checker) texts(f *field, n *yaml.Node, alone bool) []string {
	list := []string{}
	nodes := []*yaml.Node{n}
	if !alone || n.Kind == yaml.SequenceNode {
		nodes = c.elements(f, n)
	}
	for _, e := range nodes {
		switch {
		case e.Kind == yaml.ScalarNode && e.ShortTag() == "!!str":
		case e != n && e.Kind == yaml.ScalarNode && e.Value != "": // it is a list: what is missing are quotes, of NULL too
			c.fail(e, "%s has %s in its list, want texts; put it in quotes", f.path, clip(e.Value))
			return nil
		default:
			c.mismatch(f, e)
			return nil
		}
		list = append(list, e.Value)
	}
	return list
}

// scalar reads one word or number.
func (c *checker) scalar(f *field, n *yaml.Node) (any, bool) {
	if n.Kind != yaml.ScalarNode {
		c.mismatch(f, n)
		return nil, false
	}
	if len(f.enum) > 0 && !slices.Contains(f.enum, word(n)) {
		c.fail(n, "%s is %q, want %s%s", f.path, clip(n.Value), f.want(), suggestWord(f.enum, n.Value))
		return nil, false
	}
	switch f.typ {
	case reflect.TypeFor[time.Duration]():
		if d, err := time.ParseDuration(n.Value); err == nil && d >= 0 {
			return d, true
		}
		c.mismatch(f, n)
		return nil, false
	}
	return c.scalarOf(f, f.typ.Kind(), n)
}

// scalarOf reads a word or number of a kind, for the key f or an element of it.
func (c *checker) scalarOf(f *field, kind reflect.Kind, n *yaml.Node) (any, bool) {
	if n.Kind != yaml.ScalarNode {
		c.mismatch(f, n)
		return nil, false
	}
	tag := n.ShortTag()
	if kind != reflect.String && c.octal(f, n) {
		return nil, false
	}
	switch kind {
	case reflect.String:
		if len(f.enum) > 0 {
			return word(n), true
		}
		if tag == "!!str" {
			return n.Value, true
		}
	case reflect.Bool:
		var b bool
		if tag == "!!bool" && n.Decode(&b) == nil {
			return b, true
		}
	case reflect.Int:
		x, ok := c.integer(f, n)
		return int(x), ok
	case reflect.Uint64:
		var x uint64
		if tag == "!!int" && n.Decode(&x) == nil {
			return x, true
		}
	case reflect.Float64:
		var x float64
		if (tag == "!!int" || tag == "!!float") && n.Decode(&x) == nil && x >= f.min && x <= f.max && !math.IsInf(x, 0) {
			if x == 0 {
				x = 0 // also of -0, which would be printed as an integer and read as 0
			}
			return x, true
		}
	}
	c.mismatch(f, n)
	return nil, false
}

// octal refuses a number like 010, which YAML 1.1 takes for 8 and YAML 1.2 for 10.
func (c *checker) octal(f *field, n *yaml.Node) bool {
	digits := strings.TrimLeft(n.Value, "+-")
	if n.ShortTag() != "!!int" || len(digits) < 2 || digits[0] != '0' || strings.Trim(digits, "01234567_") != "" {
		return false
	}
	c.fail(n, "%s is %s, which may be octal or decimal; write it without the 0 in front, or as %s if it is octal", f.path, clip(n.Value), clip(strings.TrimSuffix(n.Value, digits)+"0o"+digits[1:]))
	return true
}

func (c *checker) integer(f *field, n *yaml.Node) (int64, bool) {
	var x int64
	if n.Kind == yaml.ScalarNode && c.octal(f, n) {
		return 0, false
	}
	if n.Kind == yaml.ScalarNode && n.ShortTag() == "!!int" && n.Decode(&x) == nil && float64(x) >= f.min && float64(x) <= f.max {
		return x, true
	}
	c.mismatch(f, n)
	return 0, false
}

func (c *checker) mismatch(f *field, n *yaml.Node) {
	name := f.path
	if name == "" {
		name = "the file"
	}
	c.fail(n, "%s is %s, want %s", name, describe(n), f.want())
}

// describe names what a node holds.
func describe(n *yaml.Node) string {
	switch n.Kind {
	case yaml.MappingNode:
		return "a section"
	case yaml.SequenceNode:
		return "a list"
	case yaml.AliasNode:
		return "an alias (*" + n.Value + ")"
	}
	switch n.ShortTag() {
	case "!!null":
		return "empty"
	case "!!str":
		return strconv.Quote(clip(n.Value))
	}
	return clip(n.Value)
}

// word is the text of a scalar; a plain true or false counts as yes or no, for
// keys that know these words.
func word(n *yaml.Node) string {
	if n.ShortTag() == "!!bool" {
		var b bool
		if n.Decode(&b) == nil && b {
			return "yes"
		}
		return "no"
	}
	return n.Value
}

// clip makes a text fit for a message: one line, not too long.
func clip(s string) string {
	if len(s) > 60 {
		s = s[:60] + "…"
	}
	return strings.Map(func(r rune) rune {
		if !unicode.IsPrint(r) {
			return '\uFFFD'
		}
		return r
	}, s)
}

func join(path, key string) string {
	if path == "" {
		return clip(key)
	}
	return path + "." + clip(key)
}
