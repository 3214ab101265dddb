package cuda

import (
	"fmt"
	"testing"
)

func TestPTXVersion(t *testing.T) {
	for driver, want := range map[int]string{
		0: "0.0", 10020: "0.0", 11000: "7.0", 11040: "7.4", 11080: "7.8", 12000: "8.0", 12040: "8.4", 12050: "8.5", 12060: "8.5",
		12080: "8.7", 12090: "8.8", 13000: "9.0", 13010: "9.1",
	} {
		major, minor := Card{DriverVersion: driver}.PTXVersion()
		if have := fmt.Sprintf("%d.%d", major, minor); have != want {
			t.Errorf("driver %d has PTX %s, want %s", driver, have, want)
		}
	}
	if have := (Card{Major: 9}).Architecture(); have != "sm_90" {
		t.Errorf("architecture %s", have)
	}
}
