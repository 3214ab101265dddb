package micro

import (
	"errors"
	"strings"
	"testing"
)

// TestAll checks that every set is complete and the portable one comes last.
func TestAll(t *testing.T) {
	all := All()
	if all[len(all)-1] != generic {
		t.Errorf("the last set is %s", all[len(all)-1].Name)
	}
	for _, s := range all {
		if s.Panel == nil || s.MaxPanel == nil || s.Turn == nil || s.Product == nil || s.AddExponents == nil || s.ScaleRows == nil ||
			s.Ratio == nil || s.AddRows == nil || s.ColumnSums == nil || s.ScatterAdd == nil || s.ScatterAddWide == nil ||
			s.UpdatePanel == nil || s.ScalePanel == nil || s.UpdateTable == nil || s.Quantize == nil {
			t.Errorf("%s lacks a kernel", s.Name)
		}
		if got, err := ByName(s.Name); err != nil || got != s {
			t.Errorf("ByName(%s) = %v, %v", s.Name, got, err)
		}
	}
}

// TestSelect walks over values of the environment variable.
func TestSelect(t *testing.T) {
	t.Setenv(Variable, "")
	if s, err := Select(); err != nil || s.Name != All()[0].Name || (s.Half != nil) != (s.HalfUnits > 0) {
		t.Errorf("Select() = %v, %v; want the fastest, with halves for wide sums alone", s, err)
	}
	if first := All()[0]; first.Half != nil {
		t.Setenv(Variable, first.Name)
		if s, err := Select(); err != nil || s != first || s.HalfUnits != 0 {
			t.Errorf("Select() = %v, %v; want halves for all sums", s, err)
		}
	}
	t.Setenv(Variable, "generic")
	if s, err := Select(); err != nil || s != generic {
		t.Errorf("Select() = %v, %v; want generic", s, err)
	}
	t.Setenv(Variable, "mmx")
	_, err := Select()
	if !errors.Is(err, ErrSet) || !strings.Contains(err.Error(), `"mmx"`) || strings.Contains(err.Error(), "\n") {
		t.Errorf("Select() with mmx: %v", err)
	}
}
