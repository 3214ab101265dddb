package xgboost

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"reflect"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format/formattest"
)

// TestUsual: numbers in the forms that XGBoost writes are read as strconv reads them, to the bit, whatever was read before.
func TestUsual(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	taken := 0
	for range 20000 {
		word := strconv.Itoa(r.IntN(2<<r.IntN(24)) - 1)
		if r.IntN(3) > 0 {
			word = strconv.FormatFloat(math.Ldexp(r.Float64()-0.5, r.IntN(120)-60), 'E', r.IntN(10), 32)
			word = strings.NewReplacer("E+0", "E", "E-0", "E-", "E+", "E").Replace(word)
		}
		want, err := strconv.ParseFloat(word, 32)
		if err != nil {
			t.Fatal(err)
		}
		for _, dotted := range []bool{false, true} {
			x, n := usual([]byte(word+[]string{",", "]"}[r.IntN(2)]+strings.Repeat("1", usualBytes)), &dotted)
			if n == 0 {
				continue // for the ways that know all forms
			}
			taken++
			if n != len(word) || math.Float64bits(x) != math.Float64bits(want) || dotted != strings.Contains(word, ".") {
				t.Fatalf("%s is read as %v of %d bytes, want %v", word, x, n, want)
			}
		}
	}
	if taken < 30000 {
		t.Errorf("only %d of 40000 numbers have a usual form", taken)
	}
}

// manyTrees is a file with trees enough to be read apart.
func manyTrees(t testing.TB) []byte {
	f := formattest.Example()
	for len(f.Trees) < 1500 {
		k := float64(len(f.Trees))
		tree := f.Trees[0]
		tree.Nodes = append([]forest.Node{}, tree.Nodes...)
		tree.Nodes[0].Threshold = k
		f.Trees = append(f.Trees, tree)
	}
	file := written(t, f)
	if len(file) < 2*apartBytes {
		t.Fatalf("a file of %d bytes is not read apart", len(file))
	}
	return file
}

// TestApart: trees that are read by many goroutines are those that one reads in turn, in both forms.
func TestApart(t *testing.T) {
	file := manyTrees(t)
	packed := ubjson(t, file)
	for _, whole := range []source{
		&jsonSource{cursor{b: file, at: bytes.Index(file, []byte(`"trees":[`)) + 8, depth: 3}},
		&ubjsonSource{cursor{b: packed, at: bytes.Index(packed, []byte("\x05trees")) + 6, depth: 3}},
	} {
		apart, turn := new(document), new(document)
		first, second := whole.from(*whole.here()), whole.from(*whole.here())
		if !apart.readApart(first) {
			t.Fatalf("%T: the trees are not read apart", whole)
		}
		if err := turn.readInTurn(second); err != nil {
			t.Fatal(err)
		}
		if len(apart.trees) != 1500 || !reflect.DeepEqual(apart.trees, turn.trees) {
			t.Errorf("%T: %d trees differ from %d that are read in turn", whole, len(apart.trees), len(turn.trees))
		}
		if first.here().at != second.here().at || first.here().depth != 3 {
			t.Errorf("%T: they end at %d, level %d; want %d", whole, first.here().at, first.here().depth, second.here().at)
		}
	}
}

// TestApartFaults: whatever is wrong with trees that are read apart, the file is refused, or read, as it is where one goroutine reads it.
func TestApartFaults(t *testing.T) {
	file := manyTrees(t)
	begin := bytes.Index(file, []byte(`"trees":[`)) + 8
	for i, change := range [][2]string{
		{`"left_children":[1,`, `"left_children":[9,`},
		{`"left_children":[1,`, `"left_children":[x,`},
		{`"left_children":[1,`, `"left_children":[1,[`},
		{`"left_children"`, `"}":0,"left_children"`},
		{`"left_children"`, `"{":0,"left_children"`},
		{`"left_children"`, `"x":"}}}},{{{","left_children"`},
		{`"left_children"`, `"x":` + strings.Repeat("[", 70) + strings.Repeat("]", 70) + `,"left_children"`},
		{`"left_children"`, `left_children`},
		{`"left_children"`, "\n\t \"left_children\""},
		{`},{`, `} {`},
		{`},{`, `},,{`},
		{`},{`, `},7,{`},
		{`},{`, `}],{`},
	} {
		at := begin + bytes.Index(file[begin+len(file)/3:], []byte(change[0])) + len(file)/3
		damaged := append(append(bytes.Clone(file[:at]), change[1]...), file[at+len(change[0]):]...)
		both := [2]*document{{}, {}}
		var errs [2]string
		var ends [2]cursor
		for k, d := range both {
			s := &jsonSource{cursor{b: damaged, at: begin}}
			read := d.readTrees
			if k == 1 {
				read = d.readInTurn
			}
			if errs[k] = fmt.Sprint(read(s)); errs[k] == "<nil>" {
				ends[k] = *s.here()
			}
		}
		if errs[0] != errs[1] || ends[0].at != ends[1].at || ends[0].depth != ends[1].depth || errs[0] == "<nil>" && !reflect.DeepEqual(both[0].trees, both[1].trees) {
			t.Errorf("change %d: %s, up to %d; in turn %s, up to %d", i, errs[0], ends[0].at, errs[1], ends[1].at)
		}
	}
}

// TestTreesTwice: a second array of trees is refused, as each could send the search for the ends of its trees through the whole file.
func TestTreesTwice(t *testing.T) {
	file := manyTrees(t)
	begin := bytes.Index(file, []byte(`"trees":[`)) + 8
	d := new(document)
	if err := d.readTrees(&jsonSource{cursor{b: file, at: begin}}); err != nil {
		t.Fatal(err)
	}
	n := len(d.trees)
	if err := d.readTrees(&jsonSource{cursor{b: file, at: begin}}); err == nil || len(d.trees) != n {
		t.Errorf("the second time: %v, %d trees where there were %d", err, len(d.trees), n)
	}
}
