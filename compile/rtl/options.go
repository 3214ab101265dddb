package rtl

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
)

// Errors that callers may test for with errors.Is.
var (
	// ErrOptions means that an option is out of its range.
	ErrOptions = errors.New("rtl: bad options")
	// ErrCircuit means that a circuit has no datapath: a leaf without a finite domain, values
	// that overflow, or a width that tables do not have.
	ErrCircuit = errors.New("rtl: no datapath for the circuit")
	// ErrFit means that a datapath is too large for the device.
	ErrFit = errors.New("rtl: the datapath does not fit")
	// ErrRow means that a cell has no code.
	ErrRow = errors.New("rtl: bad row")
)

// Options choose how a circuit becomes a datapath.
type Options struct {
	// Faithful takes the rules of the paper: a look-up per leaf, every operand of a sum
	// multiplied by its weight, one width for all inputs.
	Faithful bool
	// TableBits bounds the code bits of a table that passes make, MinTableBits to
	// MaxTableBits. A single leaf may have more.
	TableBits int
	// MulStages and AddStages are the registers from the operands of an operator to its
	// result, 1 to MaxStages.
	MulStages, AddStages int
	// Marginals adds a valid bit per variable: leaves of a missing cell are 1.
	Marginals bool
	// InputBits makes every column an unsigned integer of that many bits, 1 to MaxInputBits.
	// 0 takes the widths from the leaves, which must then have finite domains.
	InputBits int
	Device    string // a name of Devices
	Rows      int    // for the estimate of cycles
}

// Bounds of options.
const (
	MinTableBits = 4
	MaxTableBits = 12
	MaxStages    = 64
	MaxInputBits = 16
	maxRows      = 1 << 40
)

// DefaultOptions are those of the paper's operators and device.
func DefaultOptions() Options {
	return Options{TableBits: 6, MulStages: 6, AddStages: 13, Device: "xc7vx690", Rows: 10_000}
}

func (o *Options) check() error {
	for _, x := range []struct {
		name       string
		is, lo, hi int
	}{
		{"table-bits", o.TableBits, MinTableBits, MaxTableBits},
		{"mul-stages", o.MulStages, 1, MaxStages},
		{"add-stages", o.AddStages, 1, MaxStages},
		{"input-bits", o.InputBits, 0, MaxInputBits},
		{"rows", o.Rows, 1, maxRows},
	} {
		if x.is < x.lo || x.is > x.hi {
			return fmt.Errorf("%w: %s is %d; want %d to %d", ErrOptions, x.name, x.is, x.lo, x.hi)
		}
	}
	if _, ok := devices[o.Device]; !ok {
		return fmt.Errorf("%w: device %.40q; want one of %s", ErrOptions, o.Device, strings.Join(Devices(), ", "))
	}
	return nil
}

// Device is what a chip has.
type Device struct {
	LUT int `json:"lut"` // six-input look-up tables
	DSP int `json:"dsp"` // multiplier slices
}

// devices are Xilinx's figures, from the product tables of the families.
var devices = map[string]Device{
	"xc7a100t": {63_400, 240},
	"xc7k325t": {203_800, 840},
	"xc7vx485": {303_600, 2_800},
	"xc7vx690": {433_200, 3_600},
	"xc7z020":  {53_200, 220},
}

// Devices lists the names that Options.Device takes.
func Devices() []string { return slices.Sorted(maps.Keys(devices)) }
