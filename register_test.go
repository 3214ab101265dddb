package pce_test

import (
	"github.com/pce-engine/pce/kernels/device"
	"github.com/pce-engine/pce/kernels/emulator"
)

func init() { device.Register(emulator.Kind) }
