package text

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/circuit"
)

// input reads an input node. Its settings are the JSON members of a leaf spec,
// so a new family needs no change here.
func (p *parser) input(id circuit.NodeID) error {
	n := &p.g.Nodes[id]
	n.Kind = circuit.Input
	var err error
	if n.Units, err = p.units(); err != nil {
		return err
	}
	if n.Var, err = p.variable(); err != nil {
		return err
	}
	if n.Leaf, err = p.leaf(); err != nil {
		return err
	}
	if p.word("tied") {
		return p.tie(n)
	}
	if p.next.kind == 'w' {
		return p.rows(id, n.Leaf.NumParams())
	}
	return nil
}

// leaf reads a family and its settings, key=value, up to the parameters. What the family does
// not take is an error at the place of the family.
func (p *parser) leaf() (circuit.Leaf, error) {
	family := p.take()
	if family.kind != 'w' || isNumeric(family.text) {
		return nil, p.fail(family.at, "%v where a leaf family should be; want one of %s", family, strings.Join(circuit.LeafTypes(), ", "))
	}
	spec := map[string]any{}
	for p.next.kind == 'w' && !isNumeric(p.next.text) && p.next.text != "tied" {
		key := p.take()
		if _, ok := spec[key.text]; ok {
			return nil, p.fail(key.at, "a second setting %v; keep one", key)
		}
		if err := p.expect('='); err != nil {
			return nil, err
		}
		value, err := p.setting()
		if err != nil {
			return nil, err
		}
		spec[key.text] = value
	}
	if _, ok := spec["type"]; ok {
		return nil, p.fail(family.at, "the leaf has the setting \"type\"; name the family without it")
	}
	spec["type"] = family.text
	leaf, err := parseSpec(spec)
	if err != nil {
		return nil, p.fail(family.at, "%w", err)
	}
	return leaf, nil
}

// setting reads a number, or a list of several.
func (p *parser) setting() (any, error) {
	var list []float64
	for {
		v, err := p.number(64)
		if err != nil {
			return nil, err
		}
		list = append(list, v)
		if p.next.kind != ',' {
			break
		}
		p.take()
	}
	if len(list) == 1 {
		return list[0], nil
	}
	return list, nil
}

func parseSpec(members map[string]any) (circuit.Leaf, error) {
	b, err := json.Marshal(members)
	if err != nil {
		return nil, err
	}
	var spec circuit.LeafSpec
	d := json.NewDecoder(bytes.NewReader(b))
	d.DisallowUnknownFields()
	if err := d.Decode(&spec); err != nil {
		return nil, settingError(members["type"], err)
	}
	return circuit.ParseLeaf(spec)
}

// settingError says what package json found in the words of the text format.
func settingError(family any, err error) error {
	if key, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
		return fmt.Errorf("%v has no setting %s; remove it", family, key)
	}
	var e *json.UnmarshalTypeError
	if !errors.As(err, &e) {
		return fmt.Errorf("settings of %v: %w", family, err)
	}
	want := "a number"
	switch e.Type.Kind() {
	case reflect.Int:
		want = "an integer"
	case reflect.Slice:
		want = "a list of integers"
	}
	return fmt.Errorf("the setting %q of %v is %s; want %s", e.Field, family, e.Value, want)
}

// formatLeaf is the inverse of leaf: the family, then its settings in the order of their names,
// so that equal leaves have equal texts. A leaf of another package has no text.
func formatLeaf(l circuit.Leaf) (string, error) {
	spec, err := circuit.SpecOf(l)
	if err != nil {
		return "", err
	}
	b, err := json.Marshal(spec)
	if err != nil {
		return "", err
	}
	members := map[string]json.RawMessage{}
	if err := json.Unmarshal(b, &members); err != nil {
		return "", err
	}
	delete(members, "type")
	var keys []string
	for k := range members {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	text := spec.Type
	for _, k := range keys {
		text += " " + k + "=" + strings.Trim(string(members[k]), "[]")
	}
	return text, nil
}

// isCoin reports whether a node's units are Bernoulli, whose two parameters may
// be written as the probability of 1 alone.
func isCoin(n *circuit.Node) bool {
	_, ok := n.Leaf.(circuit.Bernoulli)
	return ok
}

// pairCoins turns probabilities of 1 into pairs of parameters. Those of 0 are what is left of the numbers as they are
// written: of one that is near 1, float32 would leave too much or nothing.
func pairCoins[F float32 | float64](ones []F, written []float64) []F {
	pairs := make([]F, 0, 2*len(ones))
	for i, p := range ones {
		pairs = append(pairs, F(1-written[i]), p)
	}
	return pairs
}

// singleCoins is the inverse of pairCoins; ok is false if there is none.
func singleCoins[F float32 | float64](pairs []F) (ones []F, ok bool) {
	for i := 0; i < len(pairs); i += 2 {
		written, err := strconv.ParseFloat(formatFloat(pairs[i+1]), 64)
		if err != nil {
			return nil, false
		}
		rest := F(1 - written)
		if pairs[i] != rest || math.Signbit(float64(pairs[i])) != math.Signbit(float64(rest)) {
			return nil, false
		}
		ones = append(ones, pairs[i+1])
	}
	return ones, true
}

// formatFloat is the shortest text that reads back as the same number.
func formatFloat[F float32 | float64](v F) string {
	bits := 64
	if _, ok := any(v).(float32); ok {
		bits = 32
	}
	return strconv.FormatFloat(float64(v), 'g', -1, bits)
}
