package main

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"
)

func TestRun(t *testing.T) {
	o, err := parse(strings.Fields("-models hmm:8:10 -workers 1,4 -links 1 -rows 2048 -json"))
	if err != nil {
		t.Fatal(err)
	}
	var out bytes.Buffer
	if err := o.run(&out); err != nil {
		t.Fatal(err)
	}
	lines := strings.Split(strings.TrimSpace(out.String()), "\n")
	if len(lines) != 2 {
		t.Fatalf("%d lines, want one for each transport:\n%s", len(lines), out.String())
	}
	for _, line := range lines {
		var r row
		if err := json.Unmarshal([]byte(line), &r); err != nil {
			t.Fatal(err)
		}
		// Transitions, emissions and the root: 8·8, 8·10 and 8.
		if r.Owners != 3 || r.Params != 152 || len(r.Cells) != 2 || !(r.Cells[1].Efficiency > 0 && r.Cells[1].Efficiency < 1) {
			t.Errorf("%s", line)
		}
	}
}

func TestBadFlags(t *testing.T) {
	for _, args := range []string{"-show x", "-workers a", "-links b", "-speed 0", "-threshold NaN", "more"} {
		if _, err := parse(strings.Fields(args)); err == nil {
			t.Errorf("%s: no error", args)
		}
	}
	for _, args := range []string{"-models x:3", "-models hclt", "-models hclt:1:2:3", "-models hmm:8:10 -workers 0", "-models hmm:8:10 -links nan", "-models hmm:8:10 -transports x"} {
		o, err := parse(strings.Fields(args))
		if err != nil {
			t.Fatal(err)
		}
		if err := o.run(&bytes.Buffer{}); err == nil {
			t.Errorf("%s: no error", args)
		}
	}
}
