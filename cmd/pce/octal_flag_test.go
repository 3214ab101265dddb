package main

import (
	"strings"
	"testing"
)

// TestOctalFlags: a number like 010 is refused, as in configs, and others are taken as they are.
func TestOctalFlags(t *testing.T) {
	for value, want := range map[string]string{
		"010": "010 may be octal or decimal; write it without the 0 in front, or as 0o10 if it is octal", "-007": "write it without", "00": "write it without",
		"08": "invalid argument", "x": "invalid argument", "0": "", "10": "", "0o10": "", "0x10": "", "1_000": "",
	} {
		for _, flag := range []string{"--threads=" + value, "--seed=" + value, "-n" + value} {
			c, _, err := testApp().root().Find([]string{"query", "sample"})
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(flag, "seed=-") {
				continue
			}
			switch err = c.ParseFlags([]string{flag}); {
			case want == "" && err != nil:
				t.Errorf("%s: %v", flag, err)
			case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
				t.Errorf("%s: error %v, want %q", flag, err, want)
			}
		}
	}
}
