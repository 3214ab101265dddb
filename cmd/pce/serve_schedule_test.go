package main

import (
	"log/slog"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/serve"
)

// underSchedule is the loader of a server of the forests a.json and b.json with --schedule under.schedule, whose circuits are on a device, in
// a new folder.
func underSchedule(t *testing.T, device, text string) serve.Loader {
	t.Helper()
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"a.json": singleForest, "b.json": singleForest, "under.schedule": text} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	f := serveFlags{models: []string{"a=a.json", "b=b.json"}, bodyMiB: 1, conns: 1, run: deviceFlags{device: device, threads: 1}, schedule: scheduleFlags{file: "under.schedule"}}
	f.options.Parallel, f.options.MaxBatchRows, f.options.Timeout = 1, 1024, time.Minute
	if err := f.complete(t.Context(), &app{stderr: t.Output()}, slog.New(slog.DiscardHandler)); err != nil {
		t.Fatal(err)
	}
	return f.options.Loader
}

// servedAt opens a forest and returns where it runs.
func servedAt(t *testing.T, l serve.Loader, name string) string {
	t.Helper()
	m, err := l.Open(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	return m.(*servedForest).ForestPath()
}

// TestServedSchedule: forests of a server run on the processor where its circuits have another device, under every schedule that a
// processor runs.
func TestServedSchedule(t *testing.T) {
	for text, path := range map[string]string{"represent sliced\n": "sliced ", "represent sparse\n": "code ", "split batch b0 b1 512\n": "code "} {
		if at := servedAt(t, underSchedule(t, "emulator", text), "a.json"); !strings.HasPrefix(at, path) || strings.Contains(at, "ptx") {
			t.Errorf("%q runs as %s", text, at)
		}
	}
}

// TestServedScheduleOnce: all forests of a server are under the schedule that its file had when the server started, as a pipe has it once.
func TestServedScheduleOnce(t *testing.T) {
	l := underSchedule(t, "cpu", "represent sparse\n")
	if err := os.WriteFile("under.schedule", []byte("represent sliced\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"a.json", "b.json"} {
		if at := servedAt(t, l, name); !strings.HasPrefix(at, "code ") {
			t.Errorf("%s runs as %s", name, at)
		}
	}
}

// TestServedScheduleBytes: what a forest is planned to take is what it takes under the server's schedule.
func TestServedScheduleBytes(t *testing.T) {
	l := underSchedule(t, "cpu", "represent array\n")
	plain, err := new(modelLoader).Plan(t.Context(), "a.json")
	if err != nil {
		t.Fatal(err)
	}
	planned, err := l.Plan(t.Context(), "a.json")
	if err != nil {
		t.Fatal(err)
	}
	m, err := l.Open(t.Context(), "a.json")
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	// Two trees of three nodes, with a feature and a threshold each, as elements of 8 and of 4 bytes.
	if taken := m.(*servedForest).Bytes(); planned != taken || taken < plain+2*3*2*(8+4) {
		t.Errorf("%d bytes are planned, %d taken, and %d without a schedule", planned, taken, plain)
	}
}
