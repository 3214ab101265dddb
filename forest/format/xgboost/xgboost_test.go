package xgboost

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format"
	"github.com/pce-engine/pce/forest/format/formattest"
)

// written returns a forest's JSON.
func written(t testing.TB, f *forest.Forest) []byte {
	t.Helper()
	if err := f.Check(); err != nil {
		t.Fatal(err)
	}
	var b bytes.Buffer
	if err := Write(&b, f); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// ubjson turns JSON into UBJSON in the forms that XGBoost uses: typed arrays of
// float32 and int32, and plain arrays.
func ubjson(t testing.TB, doc []byte) []byte {
	t.Helper()
	var v any
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	if err := d.Decode(&v); err != nil {
		t.Fatal(err)
	}
	var out []byte
	length := func(n int) { out = binary.BigEndian.AppendUint64(append(out, 'L'), uint64(n)) }
	var put func(key string, v any)
	put = func(key string, v any) {
		switch v := v.(type) {
		case map[string]any:
			out = append(out, '{')
			keys := []string{}
			for k := range v {
				keys = append(keys, k)
			}
			slices.Sort(keys)
			for _, k := range keys {
				length(len(k))
				out = append(out, k...)
				put(k, v[k])
			}
			out = append(out, '}')
		case []any:
			float := strings.Contains("split_conditions base_weights weight_drop weights loss_changes sum_hessian", key)
			whole := strings.Contains("left_children right_children split_indices categories_nodes", key)
			out = append(out, '[')
			switch {
			case float:
				out = append(out, '$', 'd', '#')
			case whole:
				out = append(out, '$', 'l', '#')
			default:
				out = append(out, '#')
			}
			length(len(v))
			for _, x := range v {
				if !float && !whole {
					put("", x)
					continue
				}
				n, err := x.(json.Number).Float64()
				if err != nil {
					t.Fatal(err)
				}
				bits := uint32(int32(n))
				if float {
					bits = math.Float32bits(float32(n))
				}
				out = binary.BigEndian.AppendUint32(out, bits)
			}
		case string:
			out = append(out, 'S')
			length(len(v))
			out = append(out, v...)
		case json.Number:
			n, _ := strconv.Atoi(v.String())
			out = binary.BigEndian.AppendUint32(append(out, 'l'), uint32(n))
		}
	}
	put("", v)
	return out
}

// oldBinary writes the old binary file of a forest of one output per tree without
// categories; major is the version that it claims, 0 for those before 1.0.
func oldBinary(f *forest.Forest, booster string, base float32, major uint32) []byte {
	var b bytes.Buffer
	put := func(xs ...any) {
		for _, x := range xs {
			binary.Write(&b, binary.LittleEndian, x)
		}
	}
	text := func(s string) { put(uint64(len(s)), []byte(s)) }
	put(base, uint32(f.Features), int32(0), int32(0), int32(0), major, uint32(0), make([]byte, 108))
	text(f.Target)
	text(booster)
	if booster == "gblinear" {
		put(uint32(f.Features), int32(1), make([]byte, 128), uint64(f.Features+1))
		for _, w := range slices.Concat(f.Linear.Weights, f.Linear.Bias) {
			put(float32(w))
		}
		return b.Bytes()
	}
	put(int32(len(f.Trees)), make([]byte, 156))
	for _, t := range f.Trees {
		vector := int32(0) // numbers of a leaf
		if major >= 2 {
			vector = 1
		}
		put(int32(1), int32(len(t.Nodes)), make([]byte, 12), vector, make([]byte, 124))
		for _, n := range t.Nodes {
			if n.Test == forest.Leaf {
				put(int32(0), int32(-1), int32(-1), uint32(0), float32(t.Values[n.First].Value))
				continue
			}
			feature := uint32(n.Feature)
			if n.MissingYes {
				feature |= 1 << 31
			}
			put(int32(0), n.Yes, n.No, feature, float32(n.Threshold))
		}
		put(make([]byte, 16*len(t.Nodes)))
	}
	put(make([]byte, 4*len(f.Trees)))
	if booster == "dart" {
		put(uint64(len(f.Trees)))
		for _, t := range f.Trees {
			put(float32(t.Weight))
		}
	}
	return b.Bytes()
}

// plain is a forest without categories and with one output.
func plain() *forest.Forest {
	f := formattest.Example()
	f.Target, f.Link, f.Outputs, f.Classes, f.Names = "binary:logistic", forest.Sigmoid, 1, 2, nil
	f.Cut, f.Base, f.Trees = 0.5, []float64{0}, f.Trees[:1]
	f.Trees[0].Nodes[2] = forest.Node{Test: forest.Less, Feature: 2, Threshold: 7, Yes: 3, No: 4}
	f.Trees[0].Categories = nil
	return f
}

func linear() *forest.Forest {
	f := plain()
	f.Trees, f.Linear = nil, &forest.Linear{Weights: []float64{1, 0.5, -2}, Bias: []float64{0.25}}
	return f
}

func dart() *forest.Forest {
	f := plain()
	f.Trees[0].Weight = 0.375
	return f
}

// vectors is a forest whose leaves have a number for each output.
func vectors() *forest.Forest {
	f := formattest.Example()
	f.Target, f.Link, f.Classes = "reg:squarederror", forest.Identity, 0
	f.Trees = f.Trees[:1]
	t := &f.Trees[0]
	t.Values = nil
	for i := range t.Nodes {
		if n := &t.Nodes[i]; n.Test == forest.Leaf {
			n.First = int32(len(t.Values))
			t.Values = append(t.Values, forest.Value{Value: float64(i)}, forest.Value{Output: 1, Value: -0.5 * float64(i)})
			n.Last = int32(len(t.Values))
		}
	}
	f.Base = []float64{0.5, -1}
	return f
}

func TestJSON(t *testing.T) {
	formattest.Run(t, JSON, written(t, formattest.Example()), written(t, dart()))
}

// TestMark: a file may begin with the byte order mark that some editors put in front of a text; places in errors count it.
func TestMark(t *testing.T) {
	f := formattest.Example()
	marked := append([]byte("\ufeff"), written(t, f)...)
	if !JSON.Recognises(marked) {
		t.Error("a file with a mark is not recognised")
	}
	got, err := JSON.Decode(marked)
	if err != nil {
		t.Fatal(err)
	}
	equal(t, "with a mark", f, got, forest.Prediction, forest.Margin)
	if _, err := JSON.Decode(marked[:len(marked)-1]); err == nil || !strings.Contains(err.Error(), fmt.Sprintf("byte %d:", len(marked)-1)) {
		t.Errorf("a file that is cut short: %v", err)
	}
}

func TestUBJSON(t *testing.T) {
	formattest.Run(t, UBJSON, ubjson(t, written(t, formattest.Example())), ubjson(t, written(t, linear())))
}

func TestBinary(t *testing.T) {
	formattest.Run(t, Binary, oldBinary(dart(), "dart", 0, 0), oldBinary(linear(), "gblinear", 0.5, 1))
}

func FuzzDecodeJSON(f *testing.F) {
	formattest.Fuzz(f, JSON, written(f, formattest.Example()), written(f, dart()), written(f, linear()), written(f, vectors()))
}

func FuzzDecodeUBJSON(f *testing.F) {
	formattest.Fuzz(f, UBJSON, ubjson(f, written(f, formattest.Example())), ubjson(f, written(f, vectors())))
}

func FuzzDecodeBinary(f *testing.F) {
	formattest.Fuzz(f, Binary, oldBinary(plain(), "gbtree", 0.5, 1), oldBinary(dart(), "dart", 0, 0), oldBinary(linear(), "gblinear", 0.5, 1))
}

// rows are cells at, below and above every threshold and category of the examples.
var rows = func() []float64 {
	var out []float64
	cells := []float64{math.NaN(), 0, 0.25, float64(math.Nextafter32(0.25, 0)), 1, 2, 2.5, -0.5, 7, float64(math.Nextafter32(7, 0)), 40, 41, math.Inf(1), math.Inf(-1), 1e9}
	for _, a := range cells {
		for _, c := range cells {
			out = append(out, a, 3, c)
		}
	}
	return out
}()

// equal fails unless two forests give the same bits for all rows: predictions, raw scores and leaves, or those results that are named.
func equal(t *testing.T, name string, a, b *forest.Forest, results ...forest.What) {
	t.Helper()
	if results == nil {
		results = []forest.What{forest.Prediction, forest.Margin, forest.Leaves}
	}
	for _, what := range results {
		if a.Has(what) != nil && b.Has(what) != nil {
			continue
		}
		x, y := make([]float64, len(rows)/3*a.Width(what)), make([]float64, len(rows)/3*b.Width(what))
		if err := forest.Evaluate(a, what, rows, x); err != nil {
			t.Fatal(name, err)
		}
		if err := forest.Evaluate(b, what, rows, y); err != nil {
			t.Fatal(name, err)
		}
		for i := range x {
			if math.Float64bits(x[i]) != math.Float64bits(y[i]) {
				t.Errorf("%s: result %d of kind %d is %v, want %v", name, i, what, y[i], x[i])
				return
			}
		}
	}
}

// TestWriteRead writes forests in all forms, reads them and compares every result.
func TestWriteRead(t *testing.T) {
	for name, f := range map[string]*forest.Forest{"example": formattest.Example(), "plain": plain(), "dart": dart(), "linear": linear(), "vectors": vectors()} {
		doc := written(t, f)
		got, err := JSON.Decode(doc)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		equal(t, name, f, got)
		if got.Target != f.Target || got.Classes != f.Classes || !slices.Equal(got.Names, f.Names) {
			t.Errorf("%s: read as %q with %d classes and names %v", name, got.Target, got.Classes, got.Names)
		}
		if again := written(t, got); !bytes.Equal(again[:bytes.LastIndex(again, []byte("version"))], doc[:bytes.LastIndex(doc, []byte("version"))]) {
			t.Errorf("%s: what was read is written differently", name)
		}
		if got, err = UBJSON.Decode(ubjson(t, doc)); err != nil {
			t.Fatalf("%s as UBJSON: %v", name, err)
		}
		equal(t, name+" as UBJSON", f, got)
	}
	for _, tt := range []struct {
		f       *forest.Forest
		booster string
		base    float32
		major   uint32
	}{{plain(), "gbtree", 0.5, 1}, {plain(), "gbtree", 0.5, 2}, {dart(), "dart", 0, 0}, {linear(), "gblinear", 0, 0}} {
		got, err := Binary.Decode(append([]byte("binf"), oldBinary(tt.f, tt.booster, tt.base, tt.major)...))
		if err != nil {
			t.Fatal(err)
		}
		if tt.major > 0 { // -log(1/0.5 - 1) is -0, and 0 + x is -0 + x for all x that occur
			got.Base[0] = 0
		}
		equal(t, tt.booster, tt.f, got)
	}
}

// TestWriteConverts writes tests that XGBoost lacks and has in another form.
func TestWriteConverts(t *testing.T) {
	for _, test := range []forest.Test{forest.LessEqual, forest.Greater, forest.GreaterEqual} {
		for _, threshold := range []float64{0.25, 0.1, 1e300, -1e300, math.Inf(-1), 7} {
			f := plain()
			n := &f.Trees[0].Nodes[0]
			n.Test, n.Threshold = test, threshold
			got, err := JSON.Decode(written(t, f))
			if err != nil {
				t.Fatal(err)
			}
			equal(t, "test "+strconv.Itoa(int(test)), f, got, forest.Prediction, forest.Margin)
		}
	}
}

// TestWriteRefuses: nothing is written of a forest that would compute something else.
func TestWriteRefuses(t *testing.T) {
	for want, change := range map[string]func(*forest.Forest){
		"float32":              func(f *forest.Forest) { f.Sum = forest.Float64 },
		"plain sums":           func(f *forest.Forest) { f.Combine = forest.Max },
		"after the trees":      func(f *forest.Forest) { f.BaseLast, f.Base[0] = true, 1 },
		"no base_score":        func(f *forest.Forest) { f.Base[0] = 0.1 },
		"zeros":                func(f *forest.Forest) { f.Trees[0].Nodes[0].ZeroMissing = true },
		"XGBoost lacks":        func(f *forest.Forest) { f.Trees[0].Nodes[0].Test = forest.Equal },
		"float32 cannot hold":  func(f *forest.Forest) { f.Trees[0].Values[1].Value = 0.1 },
		"link anomaly":         func(f *forest.Forest) { f.Link = forest.Anomaly },
		"compares with inf":    func(f *forest.Forest) { n := &f.Trees[0].Nodes[0]; n.Test, n.Threshold = forest.LessEqual, math.Inf(1) },
		"not plain sums of th": func(f *forest.Forest) { f.Divisor = []float64{1} },
		"link sigmoid":         func(f *forest.Forest) { f.Alpha = 2 },
		"the link identity with 2": func(f *forest.Forest) {
			f.Target, f.Link, f.Outputs, f.Base, f.Cut = "identity_multiclass", forest.Identity, 2, []float64{0, 0}, 0
		},
		`named "b\x01", with`:   func(f *forest.Forest) { f.Names = []string{"a", "b\x01", "c"} },
		"it has the weight 0.1": func(f *forest.Forest) { f.Trees[0].Weight = 0.1 },
		"it has the weight 0.3": func(f *forest.Forest) { *f = *linear(); f.Linear.Weights[1] = 0.3 },
	} {
		f := plain()
		change(f)
		var b bytes.Buffer
		want, _, _ = strings.Cut(want, "not ")
		if err := Write(&b, f); err == nil || !strings.Contains(err.Error(), want) || b.Len() > 0 {
			t.Errorf("error %v after %d bytes, want %q and none", err, b.Len(), want)
		}
	}
}

// TestHostile: each fault is refused with what is wrong.
func TestHostile(t *testing.T) {
	good := string(written(t, plain()))
	const noLists = `"categories":[],"categories_nodes":[],"categories_segments":[],"categories_sizes":[]`
	change := func(old, new string) string {
		if !strings.Contains(good, old) {
			t.Fatalf("the example has no %q", old)
		}
		return strings.Replace(good, old, new, 1)
	}
	for want, file := range map[string]string{
		"reached twice":              change(`"left_children":[1,`, `"left_children":[2,`),
		"node 0: child 0 is reached": change(`"left_children":[1,`, `"left_children":[0,`),
		"child 9 is out of range":    change(`"left_children":[1,`, `"left_children":[9,`),
		"feature 3 is out of range":  change(`"split_indices":[0,0,2`, `"split_indices":[0,0,3`),
		"feature -1 is out of range": change(`"split_indices":[0,0,2`, `"split_indices":[0,0,-1`),
		"deeper than 64":             `{"learner":` + strings.Repeat(`{"a":`, 70),
		"want an integer":            change(`"left_children":[1,`, `"left_children":[1.5,`),
		"num_feature is":             change(`"num_feature":"3","num_target"`, `"num_feature":"99999999999","num_target"`),
		"num_target is":              change(`"num_target":"1"`, `"num_target":"-1"`),
		"base_score":                 change(`"base_score":"5E-1"`, `"base_score":"[1,2]"`),
		"out of range for binary":    change(`"base_score":"5E-1"`, `"base_score":"2"`),
		"base_score is":              change(`"base_score":"5E-1"`, `"base_score":"x"`),
		`objective "what" is unkn`:   change(`"name":"binary:logistic"`, `"name":"what"`),
		`booster "gbtre" is unkno`:   change(`"name":"gbtree"`, `"name":"gbtre"`),
		"tree_info has 2":            change(`"tree_info":[0]`, `"tree_info":[0,0]`),
		"tree 0 is of output 1":      change(`"tree_info":[0]`, `"tree_info":[1]`),
		"right_children has 4":       change(`"right_children":[2,-1,4,-1,-1]`, `"right_children":[2,-1,4,-1]`),
		"splits by categories":       change(`"split_type":[0`, `"split_type":[1`),
		"node 0: categories 1..0 ar": change(noLists, `"categories":[1,2],"categories_nodes":[0],"categories_segments":[1],"categories_sizes":[-1]`),
		"node 0: categories 1..3 ar": change(noLists, `"categories":[1,2],"categories_nodes":[0],"categories_segments":[1],"categories_sizes":[2]`),
		"node 0: categories -1..0 a": change(noLists, `"categories":[1,2],"categories_nodes":[0],"categories_segments":[-1],"categories_sizes":[1]`),
		"is not a number":            change(`"split_conditions":[2.5E-1`, `"split_conditions":[2.5X-1`),
		"no learner":                 `{"version":[1,7,4]}`,
		"no list of trees":           `{"learner":{"gradient_booster":{"name":"gbtree"},"learner_model_param":{"base_score":"5E-1","num_feature":"3"},"objective":{"name":"binary:logistic"}},"version":[1,7,4]}`,
		"the file ends":              good[:len(good)/2],
	} {
		got := formattest.Decode(t, JSON, []byte(file))
		_, err := JSON.Decode([]byte(file))
		if got != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
	for want, file := range map[string][]byte{
		"in a file of 30 bytes": append([]byte("{L\x00\x00\x00\x00\x00\x00\x00\x07learner{"), "L\x7f\xff\xff\xff\xff\xff\xff\xffabc"...),
		"a typed array without": append([]byte("{L\x00\x00\x00\x00\x00\x00\x00\x07version[$d"), 0),
		"cut short":             append([]byte("{L\x00\x00\x00\x00\x00\x00\x00\x07version[$d#U"), 20),
		"where numbers should":  append([]byte("{L\x00\x00\x00\x00\x00\x00\x00\x07version[$Z#U"), 20),
	} {
		if _, err := UBJSON.Decode(file); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, want %q", err, want)
		}
	}
	huge := oldBinary(plain(), "gbtree", 0.5, 1)
	at := bytes.Index(huge, []byte("gbtree")) + 6 + gbtreeBytes + 4
	binary.LittleEndian.PutUint32(huge[at:], math.MaxInt32)
	if _, err := Binary.Decode(huge); err == nil || !strings.Contains(err.Error(), "2147483647 × 20 bytes of nodes") {
		t.Errorf("huge count of nodes: %v", err)
	}
}

// TestNumbers reads decimals as strconv does, rounded once to float32.
func TestNumbers(t *testing.T) {
	for _, text := range []string{
		"0", "-0", "1", "-17", "16777217", "0.1", "1E-1", "-2.5e+3", "1e22", "1e23", "1e-45", "7e-46", "3.4028235e38", "1.17549435e-38", "1.1754943e-38",
		"0.30000001192092896", "16777217.0", "16777217.00000001", "8388609.5", "1.00000005960464477539", "1.000000059604644", "123456789012345678", "1E400", "-1E400", "1e-400", "5E-1",
	} {
		got, err := (&jsonSource{cursor{b: []byte(text + ",")}}).number()
		if err != nil {
			t.Errorf("%s: %v", text, err)
			continue
		}
		want, _ := strconv.ParseFloat(text, 32)
		if whole, err := strconv.ParseInt(text, 10, 64); err == nil && text != "-0" {
			want = float64(whole)
		}
		if n, err := strconv.ParseInt(text, 10, 53); err != nil && got != want && !(n != 0) || err == nil && got != float64(n) {
			t.Errorf("%s is read as %v, want %v", text, got, want)
		}
	}
	for _, text := range []string{"", "x", "1.2.3", "--1", "1e", ".", "+", "0x10", "1_0"} {
		if x, err := (&jsonSource{cursor{b: []byte(text)}}).number(); err == nil {
			t.Errorf("%q is read as %v", text, x)
		}
	}
	for text, want := range map[string]float64{"true": 1, "false": 0, "Infinity": math.Inf(1), "-Infinity": math.Inf(-1)} {
		if x, err := (&jsonSource{cursor{b: []byte(text)}}).number(); err != nil || x != want {
			t.Errorf("%q is read as %v: %v", text, x, err)
		}
	}
	if x, err := (&jsonSource{cursor{b: []byte("NaN")}}).number(); err != nil || !math.IsNaN(x) {
		t.Errorf("NaN is read as %v: %v", x, err)
	}
}

var _ = []format.Format{JSON, UBJSON, Binary}

// TestArrays: numbers in arrays are those that are read one at a time, whichever way is taken, and what skips and defers arrays ends where
// reading them does.
func TestArrays(t *testing.T) {
	words := []string{"0", "-0", "7", "-7", "12345678", "-12345678", "123456789", "1234567890", "9876543210", "16777217", "0007", "true", "false", "1.5", "-1E-3", "3e2", "1e40", "NaN", "-"}
	words = append(words, "1.23456789E-12", "-9.87654321", "1.234567891", "1.5E", "1.5E-", "1.5E+2", "1.5e2", "1.E2", "1.5E100", "2.5E-30", "3.4028236E38", "1.1754943E-38", "1.5E2x", "0.0", "-0.0E5")
	words = append(words, "falsey", "truefalse", "tru", "--1", "1-", "null")
	for _, word := range words {
		want, wrong := (&jsonSource{cursor{b: []byte(word + ",")}}).number()
		for _, text := range []string{"[" + word + "]", "[ " + word + " ]", "[1," + word + ",2]", "[" + word} {
			s := &jsonSource{cursor{b: []byte(text + "!" + strings.Repeat(" ", usualBytes))}} // room for all ways
			got, err := s.numbers(nil)
			if closed := text[len(text)-1] == ']'; (err == nil) != (wrong == nil && closed) {
				t.Errorf("%s: %v, alone %v", text, err, wrong)
			} else if err == nil {
				if x := got[len(got)/2]; math.Float64bits(x) != math.Float64bits(want) || s.b[s.at] != '!' {
					t.Errorf("%s: %v, want %v; then %q", text, got, want, s.b[s.at:])
				}
			}
		}
	}
	for text, ok := range map[string]bool{"[]": true, "[1,2]": true, "[[1],[2,{}]]": true, `["]",{"a":[1]}]`: true, "[1,[2]": false, "[": false, `["]`: false, "[{]}": false} {
		s := &jsonSource{cursor{b: []byte(text + "!")}}
		if err := s.skip(); (err == nil) != ok || ok && s.b[s.at] != '!' {
			t.Errorf("skip of %s: %v, at byte %d", text, err, s.at)
		}
	}
	for _, s := range []source{&jsonSource{cursor{b: []byte("[1,2.5] 7 ")}}, &ubjsonSource{cursor{b: []byte("[$U#U\x02\x01\x02U\x07")}}} {
		read, err := later(s)
		if err != nil {
			t.Fatal(err)
		}
		next, err := s.text()
		if err != nil || next != "7" {
			t.Errorf("behind the array is %q: %v", next, err)
		}
		if xs, err := read(nil); err != nil || len(xs) != 2 || xs[0] != 1 {
			t.Errorf("the array is %v: %v", xs, err)
		}
	}
}

// TestNoRounds: linear models that were saved before their first round have an empty list of weights, and the scores
// of all rows are the base score; a list that is left out, and one that is too short, is an error.
func TestNoRounds(t *testing.T) {
	f := linear()
	f.Base[0], f.Linear = 0.75, &forest.Linear{Weights: make([]float64, f.Features), Bias: []float64{0}}
	f.Target, f.Link, f.Classes = "reg:squarederror", forest.Identity, 0
	old := oldBinary(f, "gblinear", 0.75, 1)
	old = old[:len(old)-4*(f.Features+1)]
	copy(old[len(old)-8:], make([]byte, 8)) // the number of weights
	base := *f
	base.Linear = nil
	const zeros = `"weights":[0E0,0E0,0E0,0E0]`
	change := func(weights string) []byte {
		doc := bytes.Replace(written(t, f), []byte(zeros), []byte(weights), 1)
		if bytes.Contains(doc, []byte(zeros)) || !bytes.Contains(doc, []byte(weights)) {
			t.Fatalf("%s", doc)
		}
		return doc
	}
	doc := change(`"weights":[]`)
	for name, read := range map[string]func() (*forest.Forest, error){
		"JSON":   func() (*forest.Forest, error) { return JSON.Decode(doc) },
		"UBJSON": func() (*forest.Forest, error) { return UBJSON.Decode(ubjson(t, doc)) },
		"binary": func() (*forest.Forest, error) { return Binary.Decode(append([]byte("binf"), old...)) },
	} {
		got, err := read()
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		equal(t, name, &base, got, forest.Prediction, forest.Margin)
	}
	for _, weights := range []string{`"wheights":[]`, `"weights":[0E0]`} {
		if got, err := JSON.Decode(change(weights)); err == nil || !strings.Contains(err.Error(), "linear weights for 3 features") {
			t.Errorf("%s: %v, %v", weights, got, err)
		}
	}
}

// TestNames: names that are not one for each feature are refused, as columns would be matched by their order.
func TestNames(t *testing.T) {
	good := string(written(t, plain()))
	for names, want := range map[string]int{`"x","y","z"`: 3, ``: 0, `"x","y"`: -1, `"x","y","z","z"`: -1} {
		f, err := JSON.Decode([]byte(strings.Replace(good, `"feature_names":[]`, `"feature_names":[`+names+`]`, 1)))
		if want < 0 && (err == nil || !strings.Contains(err.Error(), "names for 3 features")) || want >= 0 && (err != nil || len(f.Names) != want) {
			t.Errorf("%s: %v", names, err)
		}
	}
}

// TestVectorWeights: weights of leaves with several numbers are read, although they come before what says that they have.
func TestVectorWeights(t *testing.T) {
	text := `{"version":[2,0,0],"learner":{"learner_model_param":{"base_score":"0.5","num_class":"0","num_feature":"1","num_target":"2"},"objective":{"name":"reg:squarederror"},
"gradient_booster":{"name":"gbtree","model":{"tree_info":[0],"trees":[{"base_weights":[1,2,3,4,5,6],"left_children":[1,-1,-1],"right_children":[2,-1,-1],"split_indices":[0,0,0],
"split_conditions":[1,0,0],"default_left":[false,false,false],"tree_param":{"size_leaf_vector":"2"}}]}}}}`
	f, err := JSON.Decode([]byte(text))
	if err != nil || len(f.Trees[0].Values) != 4 || f.Trees[0].Values[3].Value != 6 {
		t.Errorf("%v: %+v", err, f)
	}
	if _, err = JSON.Decode([]byte(strings.Replace(text, "4,5,6]", "4,5,x]", 1))); err == nil || strings.Contains(err.Error(), "\n") {
		t.Errorf("a word among the weights: %v", err)
	}
}

// TestVectorSizes: a size of leaves that the file does not hold takes no memory, and each leaf has a row of weights of its own.
func TestVectorSizes(t *testing.T) {
	doc := func(left, right []int, size int, weights string) []byte {
		zeros := make([]int, len(left))
		list := func(xs []int) string { return strings.ReplaceAll(fmt.Sprint(xs), " ", ",") }
		return fmt.Appendf(nil, `{"version":[3,2,0],"learner":{"learner_model_param":{"base_score":"0.5","num_class":"0","num_feature":"1","num_target":"2"},"objective":{"name":"reg:squarederror"},
"gradient_booster":{"name":"gbtree","model":{"tree_info":[0],"trees":[{"leaf_weights":[%s],"left_children":%s,"right_children":%s,"split_indices":%s,"split_conditions":%s,
"default_left":%s,"tree_param":{"size_leaf_vector":"%d"}}]}}}}`, weights, list(left), list(right), list(zeros), list(zeros), list(zeros), size)
	}
	var left, right []int // a leaf on each level
	for i := range 1000 {
		left, right = append(left, 2*i+1, -1), append(right, 2*i+2, -1)
	}
	if got := formattest.Decode(t, JSON, doc(append(left, -1), append(right, -1), forest.MaxOutputs, "")); got != nil {
		t.Error("leaves without their numbers are read")
	}
	left = []int{1, -1, -1}
	if _, err := JSON.Decode(doc(left, []int{2, 1, 0}, 2, "1,2,3,4")); err != nil {
		t.Error(err)
	}
	if _, err := JSON.Decode(doc(left, []int{2, 0, 0}, 2, "1,2")); err == nil || !strings.Contains(err.Error(), "leaf 2: its weights in row 0 are also another leaf's") {
		t.Errorf("two leaves of one row: %v", err)
	}
}
