package rtl

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Report says what a datapath takes, before any synthesis. LUT is an estimate; the others are
// counts.
type Report struct {
	Top         string `json:"top"` // the module that a design instantiates
	Adders      int    `json:"adders"`
	Multipliers int    `json:"multipliers"`
	Selections  int    `json:"selections"`
	Tables      int    `json:"tables"`
	Depth       int    `json:"depth"` // cycles from a row's codes to its likelihood
	RowBits     int    `json:"row_bits"`
	RowBytes    int    `json:"row_bytes"` // of a row in memory
	LUT         int    `json:"lut"`
	DSP         int    `json:"dsp"`
	Device      string `json:"device"`
	DeviceLUT   int    `json:"device_lut"`
	DeviceDSP   int    `json:"device_dsp"`
	Fits        bool   `json:"fits"`
	Rows        int    `json:"rows"`
	Cycles      int    `json:"cycles"` // that Rows take, with memory
	// Least is log2 of the least value of an operator other than 0; below -1022 rows may come
	// out as 0. It is -1.8e308 where entries of tables do.
	Least     float64  `json:"least_log2"`
	MulStages int      `json:"mul_stages"`
	AddStages int      `json:"add_stages"`
	Faithful  bool     `json:"faithful"`
	Marginals bool     `json:"marginals"`
	Columns   []Column `json:"columns"`
}

// Top is the name of the module that a design instantiates.
const Top = "pce_top"

// Costs of an operator in look-up tables, as yosys 0.23 maps the text of compile/rtl/verilog for
// 7-series parts; delays are counted apart.
const (
	dspPerMul   = 6
	lutPerMul   = 1085
	lutPerAdd   = 570
	lutEntries  = 64 // of one output bit of a table
	shiftLength = 32 // stages of a shift register in one look-up table
)

// Memory is what the estimate of cycles knows of the memory behind a datapath.
const (
	memoryBits    = 355 // read per cycle
	memoryLatency = 200 // cycles, with those of writing back
)

// Report describes a datapath that was compiled with options.
func (d *Datapath) Report(o *Options) Report {
	dev := devices[o.Device]
	r := Report{
		Top: Top, Adders: d.Count(Sum), Multipliers: d.Count(Mul), Selections: d.Count(Select), Tables: len(d.Tables),
		Depth: d.Depth, RowBits: d.RowBits(), RowBytes: d.RowBytes(),
		LUT: d.lut(), DSP: dspPerMul * d.Count(Mul), Device: o.Device, DeviceLUT: dev.LUT, DeviceDSP: dev.DSP,
		Rows: o.Rows, Cycles: d.cycles(o.Rows), Least: math.Max(math.Min(d.Least, 0), -math.MaxFloat64),
		MulStages: d.MulStages, AddStages: d.AddStages, Faithful: o.Faithful, Marginals: d.Marginals,
		Columns: d.Columns,
	}
	r.Fits = r.LUT <= dev.LUT && r.DSP <= dev.DSP
	return r
}

// JSON is the report as text, with a newline at its end.
func (r *Report) JSON() ([]byte, error) {
	text, err := json.MarshalIndent(r, "", " ")
	return append(text, '\n'), err
}

// RowBytes is the size of a row in memory: whole bytes, one at least.
func (d *Datapath) RowBytes() int { return max(1, (d.RowBits()+7)/8) }

// cycles estimates how long rows take: the datapath takes one per cycle unless memory is slower.
func (d *Datapath) cycles(rows int) int {
	read := int(math.Ceil(float64(rows) * float64(8*d.RowBytes()) / memoryBits))
	return max(rows, read) + d.Depth + memoryLatency
}

// Delays returns for each operator the cycles by which its readers want it delayed, ascending and
// without 0.
func (d *Datapath) Delays() [][]int {
	list := make([][]int, len(d.Ops))
	for i := range d.Ops {
		if o := &d.Ops[i]; o.Kind >= Mul {
			for _, a := range []int32{o.A, o.B} {
				if by := d.Start(i) - d.Ops[a].Ready; by > 0 && d.Ops[a].Kind != Constant {
					list[a] = append(list[a], by)
				}
			}
		}
	}
	for i := range list {
		slices.Sort(list[i])
		list[i] = slices.Compact(list[i])
	}
	return list
}

// CodeDelays returns for each column the cycles after the input in which its code is read,
// ascending and without 0.
func (d *Datapath) CodeDelays() [][]int {
	list := make([][]int, len(d.Columns))
	for i := range d.Ops {
		o, at := &d.Ops[i], d.Start(i)
		switch {
		case at == 0:
		case o.Kind == Lookup:
			for _, v := range d.Tables[o.Table].Columns {
				list[v] = append(list[v], at)
			}
		case o.Kind == Select:
			list[o.Column] = append(list[o.Column], at)
		}
	}
	for v := range list {
		slices.Sort(list[v])
		list[v] = slices.Compact(list[v])
	}
	return list
}

// lut estimates the look-up tables of a datapath.
func (d *Datapath) lut() int {
	n := lutPerMul*d.Count(Mul) + lutPerAdd*d.Count(Sum) + valueBits*d.Count(Select)
	for i := range d.Ops {
		if o := &d.Ops[i]; o.Kind == Lookup {
			n += valueBits * ((len(d.Tables[o.Table].Values) + lutEntries - 1) / lutEntries)
		}
	}
	chain := func(delays []int, bits int) {
		from := 0
		for _, to := range delays {
			if to-from > 1 {
				n += bits * ((to - from + shiftLength - 1) / shiftLength)
			}
			from = to
		}
	}
	for _, list := range d.Delays() {
		chain(list, valueBits)
	}
	for v, list := range d.CodeDelays() {
		chain(list, d.Width(v))
	}
	return n
}

// fit returns an error with the numbers if the device is too small.
func (d *Datapath) fit(o *Options) error {
	if r := d.Report(o); !r.Fits {
		return fmt.Errorf("%w: %d multipliers of %d DSP and about %d LUT for the %d DSP and %d LUT of %s; take a larger device or a smaller circuit",
			ErrFit, r.Multipliers, dspPerMul, r.LUT, r.DeviceDSP, r.DeviceLUT, r.Device)
	}
	return nil
}
