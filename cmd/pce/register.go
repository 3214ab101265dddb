package main

import (
	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/dataset/digits"
	"github.com/pce-engine/pce/dataset/parquet"
	"github.com/pce-engine/pce/kernels/device"
	"github.com/pce-engine/pce/kernels/emulator"
)

// init registers what the library leaves out, as not every program wants it.
func init() {
	dataset.Register(".parquet", parquet.Format)
	dataset.RegisterBuiltin("digits", digits.Builtin)
	device.Register(emulator.Kind)
}
