//go:build unix

package main

import (
	"bytes"
	"strings"
	"testing"
)

// TestEndlessFiles: files without end, in the place of texts that are read whole, are refused with one line after as
// many bytes as such a text may have.
func TestEndlessFiles(t *testing.T) {
	for _, tc := range []struct {
		args []string
		code int
		want string
	}{
		{[]string{"reduce", "show", "/dev/zero"}, exitData, "/dev/zero:1:1: more than 16777216 bytes of source"},
		{[]string{"info", "--config", "preset:hclt", "--set", "model.structure=equations", "--set", "model.equations=/dev/zero",
			"--set", "data.train=builtin:random?rows=9&vars=3&categories=2", "--set", "data.valid=", "--set", "data.test=", "--set", "data.image=[]"}, exitData, "/dev/zero:1:1: more than 16777216 bytes of source"},
		{[]string{"serve", "--model", "m=m.txt", "--token-file", "/dev/zero"}, exitUsage, "/dev/zero: more than 65536 bytes"},
	} {
		var out, errs bytes.Buffer
		code := Run(t.Context(), tc.args, nil, nil, &out, &errs)
		line, _, _ := strings.Cut(errs.String(), "\n")
		if code != tc.code || !strings.Contains(line, tc.want) {
			t.Errorf("%v: exit %d, %.300s; want %d, %s", tc.args, code, line, tc.code, tc.want)
		}
	}
}
