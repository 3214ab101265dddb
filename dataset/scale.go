package dataset

import (
	"math"
	"strconv"
)

// Standard returns how a number is stored in a Continuous column.
func (c *Column) Standard(x float64) float32 {
	if c.Scale == 0 {
		return float32(x)
	}
	return float32((x - c.Offset) / c.Scale)
}

// Stored is Standard, and false for a number that no cell holds: one that is beyond float32 itself or by its standard.
func (c *Column) Stored(x float64) (float32, bool) {
	f := c.Standard(x)
	return f, !(math.Abs(x) > math.MaxFloat32) && !math.IsInf(float64(f), 0)
}

// Number returns the number that a stored value of a Continuous column stands
// for: one that is stored as v, if there is one.
func (c *Column) Number(v float32) float64 {
	if c.Scale == 0 {
		return float64(v)
	}
	x := c.Offset + float64(c.Scale*float64(v)) // rounded twice on all machines
	for _, near := range []float64{x, math.Nextafter(x, math.Inf(1)), math.Nextafter(x, math.Inf(-1))} {
		if c.Standard(near) == v {
			return near
		}
	}
	return x
}

// LogScale is what the log density of a stored value of a Continuous column has
// more than that of the number that it stores.
func (c *Column) LogScale() float64 {
	if c.Kind != Continuous || c.Scale == 0 {
		return 0
	}
	const least, digits = 0x1p-1022, 52
	if c.Scale < least { // math.Log of amd64 takes these for about the least normal number
		return math.Log(math.Ldexp(c.Scale, digits)) - digits*math.Ln2
	}
	return math.Log(c.Scale)
}

// appendNumber appends the shortest text that is read as the number of v: as the
// same stored value where the numbers of a column are scaled.
func (c *Column) appendNumber(dst []byte, v float32) []byte {
	if c.Scale == 0 {
		return strconv.AppendFloat(dst, float64(v), 'g', -1, 32)
	}
	if c.Standard(0) == v {
		return append(dst, '0')
	}
	x := c.Number(v)
	n := len(dst)
	reads := func(digits int) bool {
		dst = strconv.AppendFloat(dst[:n], x, 'g', digits, 64)
		back, err := strconv.ParseFloat(string(dst[n:]), 64)
		return err == nil && c.Standard(back) == v
	}
	digits := 8
	if reads(digits) {
		for digits > 1 && reads(digits-1) {
			digits--
		}
	} else {
		for digits++; digits < 17 && !reads(digits); digits++ {
		}
	}
	return strconv.AppendFloat(dst[:n], x, 'g', digits, 64)
}

// shortest is the number that appendNumber writes.
func (c *Column) shortest(v float32) float64 {
	x, err := strconv.ParseFloat(string(c.appendNumber(nil, v)), 64)
	if err != nil {
		return c.Number(v)
	}
	return x
}

// FarValue is the largest absolute value that training takes of a scaled column.
// The statistics of farther ones leave little precision to those of the others, and
// their log densities under leaves that describe the others are below -1e9.
const FarValue = 1 << 14

// fewLost is of how many different numbers one may be stored like another without a remark. Among as many numbers as a
// sample keeps, two are often near enough by chance, whatever they are of, and no other offset would tell them apart.
const fewLost = 1000

// settleScales gives each continuous column an offset and a scale, and warns where
// these leave fewer different cells than there are numbers, by more than chance does, or numbers too far from
// the others to be trained.
func (all *inspection) settleScales(opts *Options) {
	s := all.schema
	for i := range s.Columns {
		c, t := &s.Columns[i], &all.tallies[i]
		if c.Kind != Continuous {
			continue
		}
		c.Offset, c.Scale = t.scaleOf()
		far := t.max
		if c.Offset-t.min > far-c.Offset {
			far = t.min
		}
		if math.Abs(float64(c.Standard(far))) > FarValue {
			room := "a histogram with edges"
			if t.min > 0 { // no other numbers have logarithms
				room = "log-normal or " + room
			}
			opts.warn(all.path, "%s has numbers such as %v, more than %d times its spread of %v away from %v; training takes those as missing (%d of %d cells sampled) where the leaf is Gaussian: "+
				"list them in data.missing if they mark missing cells, else choose a leaf with room for them, %s", s.ColumnName(i), shortNumber(far), FarValue, shortNumber(c.Scale), shortNumber(c.Offset),
				t.picks.beyond(c.Offset, FarValue*c.Scale), len(t.picks.list), room)
		}
		numbers := t.distinct.values()
		left := make(map[float32]bool, len(numbers))
		for _, x := range numbers {
			left[c.Standard(x)] = true
		}
		if lost := len(numbers) - len(left); lost > len(numbers)/fewLost {
			opts.warn(all.path, "%s has numbers too close together for its offset %v and scale %v: of %d different ones, %d cannot be told from others; "+
				"subtract an offset", s.ColumnName(i), shortNumber(c.Offset), shortNumber(c.Scale), len(numbers), lost)
		}
	}
}

func shortNumber(x float64) string { return strconv.FormatFloat(x, 'g', 6, 64) }
