package main

import (
	"os"
	"runtime"
	"strings"
	"testing"
)

// TestSampleReadsFewRows: data sample reads the rows that it prints, and those behind them only to find out what columns hold, so
// that it takes less memory than data stats, which keeps all rows. Rows beyond one batch are those of the file.
func TestSampleReadsFewRows(t *testing.T) {
	t.Chdir(t.TempDir())
	rows := strings.Repeat("red,0.25,7\nblue,1.5,\n", 10_000)
	if err := os.WriteFile("t.csv", []byte("colour,size,age\n"+rows), 0o600); err != nil {
		t.Fatal(err)
	}
	allocated := func(args ...string) (out string, bytes uint64) {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		out = plain(t, args...)
		runtime.ReadMemStats(&after)
		return out, after.TotalAlloc - before.TotalAlloc
	}
	_, whole := allocated("data", "stats", "t.csv")
	first, few := allocated("data", "sample", "t.csv", "-n", "1")
	if few >= whole {
		t.Errorf("a sample of one row allocates %d bytes, the statistics of all rows %d", few, whole)
	}
	if first != "red,0.25,7\n" {
		t.Errorf("the first row is %q", first)
	}
	for n, want := range map[string]string{"0": "", "9001": rows[:len("red,0.25,7\nblue,1.5,\n")*4500] + "red,0.25,7\n", "99999": rows} {
		if got := plain(t, "data", "sample", "t.csv", "-n", n); got != want {
			t.Errorf("%s rows are %d bytes, want %d", n, len(got), len(want))
		}
	}
}
