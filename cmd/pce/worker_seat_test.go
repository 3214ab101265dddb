package main

import (
	"errors"
	"path/filepath"
	"testing"
)

// TestTakeSeat takes the key of a numbered worker from a directory of keys, and refuses numbers that no worker has, also where they would
// be taken for none.
func TestTakeSeat(t *testing.T) {
	dir := t.TempDir()
	for seat, want := range map[int]string{-5: "", -2: "", 0: "worker-000.nk", 7: "worker-007.nk", maxSeats + maxWorkers: ""} {
		for _, credentials := range []string{dir, filepath.Join(dir, "own.nk")} {
			f := workerFlags{cluster: clusterFlags{credentials: credentials}, seat: seat}
			err := f.takeSeat()
			switch {
			case credentials == dir && want != "":
				if err != nil || f.cluster.credentials != filepath.Join(dir, want) {
					t.Errorf("--seat %d: key %s, %v; want %s", seat, f.cluster.credentials, err, want)
				}
			case !errors.Is(err, errUsage):
				t.Errorf("--seat %d with the key %s: %v", seat, credentials, err)
			}
		}
	}
}
