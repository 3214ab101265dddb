package forest

import (
	"reflect"
	"testing"
)

// full is a forest in which every list has an element and every pointer leads to something.
func full() *Forest {
	return &Forest{
		Names: []string{"a"}, Base: []float64{1}, Divisor: []float64{1}, Labels: []string{"x"}, Types: []string{"q"},
		Linear: &Linear{Weights: []float64{1}, Bias: []float64{1}},
		Trees:  []Tree{{Nodes: []Node{{}}, Values: []Value{{}}, Categories: []float64{1}}},
	}
}

// change calls changed after each change of a single number, text or truth within v, which is
// undone afterwards.
func change(t *testing.T, path string, v reflect.Value, changed func(path string)) {
	before := reflect.New(v.Type()).Elem()
	before.Set(v)
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			change(t, path+"."+v.Type().Field(i).Name, v.Field(i), changed)
		}
		return
	case reflect.Slice:
		if v.Len() == 0 {
			t.Fatalf("%s is empty, so nothing in it can be changed", path)
		}
		change(t, path, v.Index(0), changed)
		return
	case reflect.Pointer:
		change(t, path, v.Elem(), changed)
		return
	case reflect.Map:
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.Zero(v.Type().Key()), reflect.Zero(v.Type().Elem()))
	case reflect.String:
		v.SetString(v.String() + "y")
	case reflect.Bool:
		v.SetBool(!v.Bool())
	case reflect.Float64:
		v.SetFloat(v.Float() + 0.25)
	case reflect.Int, reflect.Int32:
		v.SetInt(v.Int() + 1)
	case reflect.Uint8:
		v.SetUint(v.Uint() + 1)
	default:
		t.Fatalf("%s is a %s, which this test cannot change", path, v.Kind())
	}
	changed(path)
	v.Set(before)
}

// TestDigest wants another digest for every change of any field but BestTrees, Attributes, Types and Dropout, whatever fields there are, and the
// same for an equal forest elsewhere in memory.
func TestDigest(t *testing.T) {
	f := full()
	want := f.Digest()
	if full().Digest() != want {
		t.Error("equal forests have different digests")
	}
	seen := map[[32]byte]string{want: "nothing"}
	changes := 0
	change(t, "Forest", reflect.ValueOf(f).Elem(), func(path string) {
		changes++
		d := f.Digest()
		if path == "Forest.BestTrees" || path == "Forest.Attributes" || path == "Forest.Types" || path == "Forest.Dropout" {
			if d != want {
				t.Errorf("%s, which changes no result, changes the digest", path)
			}
			return
		}
		if other, twice := seen[d]; twice {
			t.Errorf("a change of %s gives the same digest as a change of %s", path, other)
		}
		seen[d] = path
	})
	if changes < 30 || f.Digest() != want {
		t.Errorf("%d changes were made; want 30 or more, all of them undone", changes)
	}
	f.Trees[0].Nodes = append(f.Trees[0].Nodes, Node{})
	if f.Digest() == want {
		t.Error("another node gives the same digest")
	}
}
