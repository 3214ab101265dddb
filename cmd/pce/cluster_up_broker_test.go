package main

import "testing"

// TestAdvertisedURL wants one pair of brackets around an IPv6 address, also where the user has written them.
func TestAdvertisedURL(t *testing.T) {
	for advertise, want := range map[string]string{"": "nats://here:7", "a": "nats://a:7", "::1": "nats://[::1]:7", "[::1]": "nats://[::1]:7"} {
		if got := (&upFlags{advertise: advertise}).url("here", 7); got != want {
			t.Errorf("advertise %q: %s, want %s", advertise, got, want)
		}
	}
}
