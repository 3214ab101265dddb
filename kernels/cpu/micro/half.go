package micro

// HalfSet holds the kernels on halves: floats of 16 bits with 11 of precision,
// IEEE 754's binary16, written as uint16. Panels are 32 columns wide. Conversions
// round to nearest even; halves below 2^-14 are denormal and count as they are.
type HalfSet struct {
	// Panel multiplies panels of halves; see HalfArgs.
	Panel func(a *HalfArgs)

	// Tops does top[r] = exponent of the largest element of x[r][:]. Elements are
	// not negative, width is a multiple of 32. A row without a normal float32 gets
	// -127, one with an infinity or what is not a number more than 127.
	Tops func(top *int32, x *float32, xRow, rows, width int)

	// Pack does dst[r][k] = half(x[r][k] * 2^-shift[r] * columns[k]), without the
	// last factor where columns is nil. A row whose shift is above 127 or ZeroRow
	// becomes zeros, whatever it holds; shifts below -127 count as -127. width is a
	// multiple of 32.
	Pack func(dst *uint16, dstRow int, x *float32, xRow int, shift *int32, columns *float32, rows, width int)

	// Peaks does peak[k] = 2^exponent of the largest x[r][k] over the rows whose
	// shift is not ZeroRow, 0 where that is not a normal float32. Elements are not
	// negative, width is a multiple of 32.
	Peaks func(peak *float32, x *float32, xRow int, shift *int32, rows, width int)

	// Sums does sum[r] = Σ_k x[r][k] in an order that depends on width alone; width
	// is a multiple of 32.
	Sums func(sum *float32, x *float32, xRow, rows, width int)

	// Scale does x[r][k] *= f[r]; width is a multiple of 32.
	Scale func(x *float32, xRow int, f *float32, rows, width int)
}

// HalfArgs are the arguments of HalfSet.Panel: for r < Rows and j < 32,
//
//	c := Σ_k A[r*ARow+k*ACol] * B[k*BRow+j]
//	c *= Scale[r]
//	if Columns != nil { c *= Columns[j] }
//	if Add { c += C[r*CRow+j] }
//	if E != nil { c *= E[r*ERow+j] }
//	C[r*CRow+j] = c
//
// The sum is one of halves: runs of 32 terms, k ascending, each product added
// with one rounding to a half, and the totals of the runs added likewise. It must
// stay below 2^16. What follows the sum is float32.
type HalfArgs struct {
	Rows, K    int
	A          *uint16
	ARow, ACol int
	B          *uint16
	BRow       int
	C          *float32
	CRow       int
	E          *float32
	ERow       int
	Scale      *float32
	Columns    *float32
	Sums       *uint16 // HalfScratch halves that the kernel may overwrite
	Add        bool
}

// HalfScratch is the length of HalfArgs.Sums.
const HalfScratch = 26 * 32
