package dataset

import (
	"errors"
	"slices"
	"testing"
)

// TestFind: a name comes before a number, and a number is written as columns are counted. Any other way to write one is a name that no
// column has, as where the columns of a model are named 01 and 02 and the third is asked for.
func TestFind(t *testing.T) {
	s := &Schema{Columns: []Column{{Name: "02", Categories: 2}, {Name: "3", Categories: 2}, {Categories: 2}}}
	for name, want := range map[string]int{"02": 0, "1": 0, "2": 1, "3": 1} {
		if got, err := s.Find(name); err != nil || got != want {
			t.Errorf("%q is column %d, %v; want %d", name, got, err, want)
		}
	}
	two := &Schema{Columns: s.Columns[1:]}
	if got, err := two.Find("2"); err != nil || got != 1 {
		t.Errorf("2 is column %d of two, %v; want the last", got, err)
	}
	for _, name := range []string{"", "0", "4", "01", "+1", "-1", "03", "1.0"} {
		if got, err := s.Find(name); !errors.Is(err, ErrSetting) {
			t.Errorf("%q is column %d, %v", name, got, err)
		}
	}
}

// TestKeysOfStar sets a column whose name is *: by that key all columns are meant, and the column itself goes by its number.
func TestKeysOfStar(t *testing.T) {
	columns := []Column{{Name: "a"}, {Name: "*"}, {Name: "b"}}
	got := Keys(map[string]bool{"*": true, "2": true, "a": true}, columns)
	if want := []string{"a", "2", "*"}; !slices.Equal(got, want) {
		t.Errorf("keys %q, want %q", got, want)
	}
	src, err := Open(t.Context(), save(t, "a.csv", []byte("a,*,b\n1,2,3\n4,5,6\n")), Options{Types: map[string]Type{"*": {Skip: true}, "2": {Kind: Continuous}}, Header: HeaderYes})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := show(t, src), "*:real 2 5"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}
