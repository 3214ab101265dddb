//go:build !cuda || !cgo

package cuda

import (
	"errors"
	"strings"
	"testing"

	"github.com/pce-engine/pce/kernels"
)

// TestWithoutCUDA wants to hear how to get a build that has it.
func TestWithoutCUDA(t *testing.T) {
	cards, none := Cards()
	d, err := OpenDriver(0)
	if len(cards) > 0 || d != nil {
		t.Fatalf("cards %v, driver %v", cards, d)
	}
	for _, err := range []error{none, err} {
		if !errors.Is(err, kernels.ErrDevice) || !strings.Contains(err.Error(), "make build-cuda") {
			t.Errorf("error %v", err)
		}
	}
}
