package main

import (
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/pce-engine/pce/cluster/natsbus"
	"github.com/pce-engine/pce/kernels"
)

// TestAdvertisedURL wants one pair of brackets around an IPv6 address, also where the user has written them.
func TestAdvertisedURL(t *testing.T) {
	for advertise, want := range map[string]string{"": "nats://here:7", "a": "nats://a:7", "::1": "nats://[::1]:7", "[::1]": "nats://[::1]:7"} {
		if got := (&upFlags{advertise: advertise}).url("here", 7); got != want {
			t.Errorf("advertise %q: %s, want %s", advertise, got, want)
		}
	}
}

// TestTakenKeysAreClosed takes keys over that a group may read, as those of a secret in a pod, where the keys of an earlier start
// are open to that group too: the broker gets keys that are their owner's alone.
func TestTakenKeysAreClosed(t *testing.T) {
	from, dir := t.TempDir(), t.TempDir()
	if _, err := natsbus.NewSeats(from, 1); err != nil {
		t.Fatal(err)
	}
	f := &upFlags{dir: dir, keys: from}
	seats := filepath.Join(dir, seatsDir)
	for start := range 2 {
		if err := f.takeKeys(seats); err != nil {
			t.Fatal(err)
		}
		taken, err := natsbus.NewSeats(seats, 1)
		if err != nil {
			t.Fatalf("start %d: %v", start+1, err)
		}
		for _, s := range taken {
			if info, err := os.Stat(s.File); err != nil || info.Mode().Perm() != 0o600 {
				t.Errorf("start %d: the key %s has the permissions %v, %v", start+1, s.Name, info.Mode(), err)
			}
			if err := os.Chmod(s.File, 0o660); err != nil { // a new pod mounts the volume
				t.Fatal(err)
			}
		}
	}
}

// TestUpDevice: a device that no worker can have is refused before workers are started, which would end at it time after time.
func TestUpDevice(t *testing.T) {
	f := upFlags{dir: t.TempDir(), addr: "127.0.0.1:0", workers: 1, lease: time.Minute, run: deviceFlags{device: "none"}}
	if err := f.complete(func(flag string) bool { return flag == "workers" }); !errors.Is(err, kernels.ErrDevice) {
		t.Errorf("error %v, want that of a device", err)
	}
}
