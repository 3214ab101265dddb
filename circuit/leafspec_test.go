package circuit

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"
)

func TestLeafSpecRoundTrip(t *testing.T) {
	seen := map[string]bool{}
	for _, l := range families {
		s, err := SpecOf(l)
		if err != nil {
			t.Fatal(err)
		}
		text, err := json.Marshal(s)
		if err != nil {
			t.Fatal(err)
		}
		var back LeafSpec
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if got, err := ParseLeaf(back); err != nil || !SameLeaf(got, l) {
			t.Errorf("%s: %v, %v; want %v", text, got, err, l)
		}
		if ParamsAreTable(l) != (l.Name() == "categorical" || l.Name() == "bernoulli") {
			t.Errorf("ParamsAreTable(%s) = %v", l.Name(), ParamsAreTable(l))
		}
		seen[l.Name()] = true
	}
	for _, name := range LeafTypes() {
		if !seen[name] {
			t.Errorf("no test of %s", name)
		}
	}
}

func TestParseLeafRefuses(t *testing.T) {
	for _, s := range []LeafSpec{
		{}, {Type: "normal"}, {Type: "categorical"}, {Type: "categorical", Categories: 3, Trials: 2},
		{Type: "gaussian", MinScale: 1}, {Type: "bernoulli", Edges: []int{0, 1}}, {Type: "indicator", Codes: 2, Value: 2},
		{Type: "histogram", Edges: []int{0, 5, 3}}, {Type: "discretised-logistic", Codes: 1},
	} {
		if l, err := ParseLeaf(s); !errors.Is(err, ErrLeaf) || l != nil {
			t.Errorf("ParseLeaf(%+v) = %v, %v", s, l, err)
		}
	}
}

// TestSpecOfPointer names the leaf that a pointer leads to: queries take it as they take leaves of other packages, and files do not.
func TestSpecOfPointer(t *testing.T) {
	_, err := SpecOf(&Gaussian{})
	if want := "*circuit.Gaussian is a pointer to a leaf, and has no spec; use the leaf itself, a circuit.Gaussian"; !errors.Is(err, ErrLeaf) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("%v, want %q", err, want)
	}
	if _, err := SpecOf(nil); !errors.Is(err, ErrLeaf) {
		t.Errorf("no leaf: %v", err)
	}
}

// FuzzParseLeaf: whatever the spec, a leaf that comes out has legal settings and
// gives the spec back.
func FuzzParseLeaf(f *testing.F) {
	for _, l := range families {
		s, _ := SpecOf(l)
		text, _ := json.Marshal(s)
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var s LeafSpec
		if json.Unmarshal(text, &s) != nil {
			return
		}
		l, err := ParseLeaf(s)
		if err != nil {
			return
		}
		if err := l.CheckSettings(); err != nil {
			t.Fatal(err)
		}
		back, err := SpecOf(l)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := ParseLeaf(back); err != nil || !SameLeaf(again, l) {
			t.Fatalf("%+v gives %+v, then %v, %v", s, l, again, err)
		}
	})
}
