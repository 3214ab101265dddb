package main

import "testing"

// TestNamed wants the programs that are named, all of them where none is, and an error of a name that no program has, also beside others.
func TestNamed(t *testing.T) {
	if list, err := named(nil); err != nil || len(list) != len(benchmarks) {
		t.Errorf("%d programs, %v; want %d", len(list), err, len(benchmarks))
	}
	if list, err := named([]string{"coxph", "lbp"}); err != nil || len(list) != 2 || list[0].name != "coxph" || list[1].name != "lbp" {
		t.Errorf("%v, %v; want coxph and lbp", list, err)
	}
	if list, err := named([]string{"coxph", "lbp", "coxph"}); err != nil || len(list) != 2 {
		t.Errorf("%v, %v; want coxph and lbp, once each", list, err)
	}
	if _, err := named([]string{"coxph", "lpb"}); err == nil {
		t.Error("lpb passes for a program")
	}
}
