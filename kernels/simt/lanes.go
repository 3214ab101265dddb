package simt

import (
	"math"
	"unsafe"
)

// fromBits returns the element of type T with the given bits.
func fromBits[T Element](bits uint64) T {
	var x T
	switch p := any(&x).(type) {
	case *float32:
		*p = math.Float32frombits(uint32(bits))
	case *float64:
		*p = math.Float64frombits(bits)
	case *int32:
		*p = int32(bits)
	case *int64:
		*p = int64(bits)
	case *uint8:
		*p = uint8(bits)
	case *uint16:
		*p = uint16(bits)
	}
	return x
}

func fma64(x, y, z float64) float64 { return math.FMA(x, y, z) }

// fma32 is x·y + z, rounded once. The product is exact in float64. The sum is rounded to odd
// there: where it is inexact its last bit is set, so that rounding to float32 sees on which
// side of a tie it lies.
func fma32(x, y, z float32) float32 {
	p, c := float64(x)*float64(y), float64(z)
	sum := p + c
	if sum-sum != 0 { // infinite, or NaN
		return float32(sum)
	}
	b := sum - p
	lost := float64(p-float64(sum-b)) + float64(c-b)
	if lost != 0 {
		if bits := math.Float64bits(sum); bits&1 == 0 {
			if (lost > 0) == (sum > 0) {
				bits++
			} else {
				bits--
			}
			sum = math.Float64frombits(bits)
		}
	}
	return float32(sum)
}

// floatStep runs an operation on floats. fma rounds once, as the language says; Min and Max
// give the second operand where either is NaN.
func floatStep[T float32 | float64](f *frame, s *step, v [][]T, fma func(x, y, z T) T) {
	if s.op < Add || s.op > Max {
		anyStep(f, s, v)
		return
	}
	n := f.n
	d, a, b := v[s.dst][:n], v[s.a][:n], v[s.b][:n]
	switch s.op {
	case Add:
		for i := range d {
			d[i] = a[i] + b[i]
		}
	case Sub:
		for i := range d {
			d[i] = a[i] - b[i]
		}
	case Mul:
		for i := range d {
			d[i] = a[i] * b[i]
		}
	case Div:
		for i := range d {
			d[i] = a[i] / b[i]
		}
	case FMA:
		c := v[s.c][:n]
		if d, ok := any(d).([]float64); ok { // math.FMA is one instruction where it is not called through a function
			fmaLanes(d, any(a).([]float64), any(b).([]float64), any(c).([]float64))
			return
		}
		for i := range d {
			d[i] = fma(a[i], b[i], c[i])
		}
	case Neg:
		for i := range d {
			d[i] = -a[i]
		}
	case Abs:
		for i := range d {
			d[i] = T(math.Abs(float64(a[i])))
		}
	case Floor:
		for i := range d {
			d[i] = T(math.Floor(float64(a[i])))
		}
	case Min:
		for i := range d {
			d[i] = less(a[i], b[i], a[i], b[i])
		}
	case Max:
		for i := range d {
			d[i] = less(b[i], a[i], a[i], b[i])
		}
	}
}

func fmaLanes(d, a, b, c []float64) {
	for i := range d {
		d[i] = math.FMA(a[i], b[i], c[i])
	}
}

// less returns yes where x < y, else no.
func less[T Element](x, y, yes, no T) T {
	if x < y {
		return yes
	}
	return no
}

// integerStep runs an operation on integers that wrap.
func integerStep[T int32 | int64](f *frame, s *step, v [][]T) {
	if s.op < Add || s.op > Sar {
		anyStep(f, s, v)
		return
	}
	n := f.n
	d, a, b := v[s.dst][:n], v[s.a][:n], v[s.b][:n]
	by := uint(s.imm)
	switch s.op {
	case Add:
		for i := range d {
			d[i] = a[i] + b[i]
		}
	case Sub:
		for i := range d {
			d[i] = a[i] - b[i]
		}
	case Mul:
		for i := range d {
			d[i] = a[i] * b[i]
		}
	case Min:
		for i := range d {
			d[i] = min(a[i], b[i])
		}
	case Max:
		for i := range d {
			d[i] = max(a[i], b[i])
		}
	case And:
		for i := range d {
			d[i] = a[i] & b[i]
		}
	case Or:
		for i := range d {
			d[i] = a[i] | b[i]
		}
	case Xor:
		for i := range d {
			d[i] = a[i] ^ b[i]
		}
	case Not:
		for i := range d {
			d[i] = ^a[i]
		}
	case Shl:
		for i := range d {
			d[i] = a[i] << by
		}
	case Sar:
		for i := range d {
			d[i] = a[i] >> by
		}
	case Shr:
		for i := range d {
			if unsafe.Sizeof(d[i]) == 4 {
				d[i] = T(int32(uint32(a[i]) >> by))
			} else {
				d[i] = T(uint64(a[i]) >> by)
			}
		}
	}
}

// predStep runs an operation on predicates: logic and Select, all others being refused by the
// verifier.
func (f *frame) predStep(s *step) {
	n := f.n
	d, a, b := f.pred[s.dst][:n], f.pred[s.a][:n], f.pred[s.b][:n]
	switch s.op {
	case And:
		for i := range d {
			d[i] = a[i] && b[i]
		}
	case Or:
		for i := range d {
			d[i] = a[i] || b[i]
		}
	case Xor:
		for i := range d {
			d[i] = a[i] != b[i]
		}
	case Not:
		for i := range d {
			d[i] = !a[i]
		}
	case Select:
		selectLanes(d, a, b, f.pred[s.c][:n])
	}
}

// anyStep runs an operation that elements of every type have.
func anyStep[T Element](f *frame, s *step, v [][]T) {
	n := f.n
	switch s.op {
	case Load:
		q := &f.p.m.Inputs[s.ref]
		loadLanes(v[s.dst][:n], f.in[s.ref].([]T), q, int(s.imm), f.lo)
	case Store:
		q := &f.p.m.Outputs[s.ref]
		storeLanes(f.out[s.ref].([]T), v[s.a][:n], q, int(s.imm), f.lo, f.mask)
	case Select:
		selectLanes(v[s.dst][:n], f.pred[s.a][:n], v[s.b][:n], v[s.c][:n])
	case Eq, Ne, Lt, Le:
		d, a, b := f.pred[s.dst][:n], v[s.a][:n], v[s.b][:n]
		switch s.op {
		case Eq:
			for i := range d {
				d[i] = a[i] == b[i]
			}
		case Ne:
			for i := range d {
				d[i] = a[i] != b[i]
			}
		case Lt:
			for i := range d {
				d[i] = a[i] < b[i]
			}
		case Le:
			for i := range d {
				d[i] = a[i] <= b[i]
			}
		}
	}
}

func selectLanes[T any](d []T, condition []bool, yes, no []T) {
	for i, c := range condition {
		x := no[i]
		if c {
			x = yes[i]
		}
		d[i] = x
	}
}

// Place returns where in a slice of so many elements that of a column is for a row, and how far that of
// the next row is from there.
func (q *Param) Place(elements, column, row int) (at, step int) {
	if q.Layout == Rows {
		return row*q.Width + column, q.Width
	}
	return column*(elements/q.Width) + row, 1
}

func loadLanes[T Element](d, from []T, q *Param, column, row int) {
	at, step := q.Place(len(from), column, row)
	if step == 1 {
		copy(d, from[at:])
		return
	}
	for i := range d {
		d[i] = from[at]
		at += step
	}
}

func storeLanes[T Element](to, v []T, q *Param, column, row int, mask []bool) {
	at, step := q.Place(len(to), column, row)
	for i := range v {
		if mask == nil || mask[i] {
			to[at] = v[i]
		}
		at += step
	}
}

func (f *frame) gather(s *step) {
	index := f.i32[s.a][:f.n]
	switch table := f.p.tables[s.ref].(type) {
	case []float32:
		gatherLanes(f.f32[s.dst], table, index)
	case []float64:
		gatherLanes(f.f64[s.dst], table, index)
	case []int32:
		gatherLanes(f.i32[s.dst], table, index)
	case []int64:
		gatherLanes(f.i64[s.dst], table, index)
	case []uint8:
		gatherLanes(f.u8[s.dst], table, index)
	case []uint16:
		gatherLanes(f.u16[s.dst], table, index)
	}
}

// loadAt loads each lane's element of a column of its own.
func (f *frame) loadAt(s *step) {
	index, width := f.i32[s.a][:f.n], f.p.m.Inputs[s.ref].Width
	switch in := f.in[s.ref].(type) {
	case []float32:
		columnLanes(f.f32[s.dst], in[f.lo*width:], width, index)
	case []float64:
		columnLanes(f.f64[s.dst], in[f.lo*width:], width, index)
	case []int32:
		columnLanes(f.i32[s.dst], in[f.lo*width:], width, index)
	case []int64:
		columnLanes(f.i64[s.dst], in[f.lo*width:], width, index)
	}
}

// storeAt stores each lane's element in a column of its own.
func (f *frame) storeAt(s *step) {
	index, width := f.i32[s.a][:f.n], f.p.m.Outputs[s.ref].Width
	switch out := f.out[s.ref].(type) {
	case []float32:
		toColumns(out[f.lo*width:], f.f32[s.b], width, index, f.mask)
	case []float64:
		toColumns(out[f.lo*width:], f.f64[s.b], width, index, f.mask)
	case []int32:
		toColumns(out[f.lo*width:], f.i32[s.b], width, index, f.mask)
	case []int64:
		toColumns(out[f.lo*width:], f.i64[s.b], width, index, f.mask)
	}
}

func toColumns[T Element](rows, v []T, width int, index []int32, mask []bool) {
	for i, x := range index {
		if mask == nil || mask[i] {
			rows[i*width+min(max(int(x), 0), width-1)] = v[i]
		}
	}
}

func columnLanes[T Element](d, rows []T, width int, index []int32) {
	for i, x := range index {
		d[i] = rows[i*width+min(max(int(x), 0), width-1)]
	}
}

func gatherLanes[T Element](d, table []T, index []int32) {
	last := len(table) - 1
	for i, x := range index {
		if uint(x) > uint(last) { // below 0 or beyond
			if x < 0 {
				x = 0
			} else {
				x = int32(last)
			}
		}
		d[i] = table[x]
	}
}
