package registry

import (
	"slices"
	"testing"
)

func TestRegistry(t *testing.T) {
	var r Registry[int]
	if len(r.Names()) != 0 || len(r.All()) != 0 {
		t.Errorf("a new registry has %v, %v", r.Names(), r.All())
	}
	r.Put("b", 1)
	r.Put("a", 2)
	r.Put("b", 3) // stays first
	if names, all := r.Names(), r.All(); !slices.Equal(names, []string{"b", "a"}) || !slices.Equal(all, []int{3, 2}) {
		t.Errorf("names %v, values %v; want b, a and 3, 2", names, all)
	}
	r.All()[0] = 9 // a copy
	r.Names()[0] = "c"
	if r.All()[0] != 3 || r.Names()[0] != "b" {
		t.Error("what was returned is the registry's own")
	}
}
