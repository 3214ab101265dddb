//go:build !cuda || !cgo

package cuda

import (
	"fmt"

	"github.com/pce-engine/pce/kernels"
)

// Cards lists the cards of the machine. With an empty list comes an error that says
// why there are none.
func Cards() ([]Card, error) { return nil, errBuild }

// OpenDriver makes a driver of a card, counted from 0, and its primary context the
// current one of the calling thread.
func OpenDriver(ordinal int) (Driver, error) { return nil, errBuild }

var errBuild = fmt.Errorf("%w: this program is built without CUDA; build it with make build-cuda", kernels.ErrDevice)
