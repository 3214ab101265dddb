package main

import (
	"bytes"
	"os"
	"regexp"
	"testing"
)

// TestSetExample gives the setting that the help of pce data names as an example to the commands that name it.
func TestSetExample(t *testing.T) {
	t.Chdir(t.TempDir())
	if err := os.WriteFile("a.csv", []byte("1,2\n3,4\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"stats", "sample"} {
		example := regexp.MustCompile(`--set .* such as (\S+);`).FindStringSubmatch(plain(t, "data", name, "--help"))
		if example == nil {
			t.Fatalf("pce data %s --help has no example of --set", name)
		}
		var out, errs bytes.Buffer
		if code := Run(t.Context(), []string{"data", name, "a.csv", "--set", example[1]}, nil, nil, &out, &errs); code != exitOK {
			t.Errorf("pce data %s --set %s: exit %d: %s", name, example[1], code, &errs)
		}
	}
}
