// Package micro holds the innermost loops of the CPU device: float32 products
// over panels, products of factors with a shared exponent, and the passes of
// expectation maximisation. It knows nothing of circuits.
//
// # Shapes and units
//
// Matrices are row-major; a name ending in Row is the distance of two rows in
// floats. A panel is a matrix of W columns whose rows lie W floats apart, W
// being 1, 2, 4, 8, 16 or 32. Rows of values hold Width floats, a multiple of W.
// A value is m · 2^e: m is the float32 mantissa, e an exponent that the whole
// row shares, between Lost and Most.
//
// # Errors
//
// Kernels check nothing: callers own shapes and bounds. ByName and Select return
// errors that match ErrSet.
//
// # Source
//
// generic.go and its neighbours define every kernel in plain Go. The assembly
// (z*_amd64.s) is written by internal/gen/micro; "go generate" remakes it.
package micro

//go:generate go -C ../../../internal/gen run ./micro ../../kernels/cpu/micro

import "unsafe"

// Set is one implementation of every kernel. All sets compute the same sums in
// an order that depends only on the arguments' shapes, so one set gives the
// same bits however the rows are split among calls; two sets differ by rounding.
// Panel, MaxPanel, Product, Ratio, UpdatePanel, the BF16 and the Half kernels may take
// float32 numbers below 2^-126 for 0, as denormals are slow. Calls through a Set make their
// arguments escape: keep one argument struct and use it again.
type Set struct {
	Name string // "avx512fp16", "avx512bf16", "avx512", "avx2" or "generic"

	// Panel computes, for r < Rows and j < W,
	//
	//	c := Σ_k A[r*ARow+k*ACol] * B[k*BRow+j]    k ascending
	//	if Add { c += C[r*CRow+j] }
	//	if E != nil { c *= E[r*ERow+j] }
	//	if Min != nil { Min[j] = min(Min[j], c) }
	//	C[r*CRow+j] = c
	Panel func(a *PanelArgs)

	// MaxPanel is Panel with maxima for sums: c is max_k A[r*ARow+k*ACol]*B[k*BRow+j],
	// 0 for no k, and with Add max(c, C[r*CRow+j]). Factors are not negative.
	MaxPanel func(a *PanelArgs)

	// Turn transposes a matrix of rows by cols numbers, whose rows are srcRow apart:
	// dst[c*dstRow+r] = src[r*srcRow+c].
	Turn func(dst *float32, dstRow int, src *float32, srcRow, rows, cols int)

	// Product multiplies factors element by element; see ProductArgs.
	Product func(a *ProductArgs)

	// AddExponents does dst[i] = AddExponents(dst[i], src[i]); both lie between Lost
	// and Most.
	AddExponents func(dst, src *int32, n int)

	// ScaleRows does x[r][:] *= 2^-shift[r], 0 where the shift is above 127 or
	// ZeroRow; shifts below -127 count as -127.
	ScaleRows func(x *float32, xRow int, shift *int32, rows, width int)

	// Ratio does s[r][j] = f[r][j] / s[r][j], 0 where s is 0. It may be off by
	// 2 units in the last place; s below 2^-126 may count as 0 and s must stay
	// below 2^126.
	Ratio func(s *float32, sRow int, f *float32, fRow, rows, width int)

	// AddRows does dst[r][j] += src[r][j].
	AddRows func(dst *float32, dstRow int, src *float32, srcRow, rows, width int)

	// ColumnSums does sum[j] += Σ_r f[r][j], r ascending.
	ColumnSums func(sum *float32, f *float32, fRow, rows, width int)

	// ScatterAdd does table[codes[r]][j] += f[r][j], r ascending.
	ScatterAdd func(table *float32, tableRow int, codes *uint16, f *float32, fRow, rows, width int)

	// ScatterAddWide is ScatterAdd with wide codes.
	ScatterAddWide func(table *float32, tableRow int, codes *uint32, f *float32, fRow, rows, width int)

	// UpdatePanel moves the weights of one panel; see UpdateArgs.
	UpdatePanel func(a *UpdateArgs)

	// ScalePanel does x[r][j] *= f[r] on a panel of rows rows.
	ScalePanel func(x *float32, f *float32, rows, w int)

	// UpdateTable moves the rows of a leaf table; see TableArgs.
	UpdateTable func(a *TableArgs)

	// Quantize does acc[i] += int64(nearest even(round(x[i]*y[i]) / grid)). It
	// rounds as an update does whose Grid is grid·2^23, so that float32(acc)*grid
	// gives back the rounded product. grid is a power of two, quotients stay
	// below 2^63; y == nil means ones.
	Quantize func(acc *int64, x, y *float32, n int, grid float32)

	// Chain, where not nil, tabulates probabilities that follow each other by factors;
	// see ChainArgs.
	Chain func(a *ChainArgs)

	// Quadratic evaluates densities whose logs are quadratic in a number of the row; see
	// QuadraticArgs. All sets give the same bits.
	Quadratic func(a *QuadraticArgs)

	// AddScaled does sum[j] += Σ_r f[r][j]*t[r] in float64, r ascending, products rounded
	// before they are added. All sets give the same bits.
	AddScaled func(sum *float64, f *float32, fRow int, t *float64, rows, width int)

	// Single holds the kernels of circuits of single units.
	Single *SingleSet

	// BF16, where not nil, holds the kernels on bfloat16 pairs.
	BF16 *BF16Set

	// Half, where not nil, holds the kernels on halves.
	Half *HalfSet
	// HalfUnits is the units of a program's typical sum from which on Half is worth
	// its packing; 0 where the set is asked for by name.
	HalfUnits int
}

// PanelArgs are the arguments of Set.Panel.
type PanelArgs struct {
	Rows, K, W int
	A          *float32
	ARow, ACol int
	B          *float32
	BRow       int
	C          *float32
	CRow       int
	E          *float32
	ERow       int
	Min        *float32
	Add        bool
	// Stream says that C is not read soon, so Panel may write it past the caches: a line
	// need not come from memory first. It counts where rows of C are whole cache lines.
	Stream bool
}

// streams clears Stream where rows of C are not whole lines of 64 bytes.
func (a *PanelArgs) streams() {
	a.Stream = a.Stream && a.CRow%16 == 0 && uintptr(unsafe.Pointer(a.C))%64 == 0
}

// Factor is one operand of a product: row r of the factor starts at
// Base[r*Row] or, with Codes or WideCodes, at Base[Codes[r]*Row]. With Exps, which
// only wide products take, each element has an exponent of its own, a whole number in
// the place that the element has in Base.
type Factor struct {
	Base      *float32
	Row       int
	Codes     *uint16
	WideCodes *uint32
	Exps      *float32
}

// ZeroRow is the shift of a row whose elements are all 0 or below the smallest
// normal float32.
const ZeroRow = -1 << 31

// ProductArgs are the arguments of Set.Product: for r < Rows, j < Width,
//
//	p := Π_f factor f, row r, element j
//	Out[r][j] = p · 2^-Shift[r]
//
// With Fit, Shift[r] is computed such that the largest element of the row lies
// in [1, 2); a row without a normal float32 gets ZeroRow and zeros. Otherwise
// Shift[r] is given; a given ZeroRow writes zeros, and shifts above 127 may
// write zeros. Factors are not negative. Out may be the memory of the first
// factor, if that has no codes and no other one overlaps it. A product of no factors is 1.
//
// At most three factors are multiplied as they are, shifts below -127 counting
// as -127. More than three, and any number of them if the product is Wide, are
// multiplied with an exponent for each element, so that nothing vanishes before
// the row is scaled: an element is lost only if it is below 2^-126 of its row's
// maximum. Exponents of elements are exact up to 2^24. Scratch is Width floats
// of memory for them, which such a product writes over.
type ProductArgs struct {
	Rows, Width int
	Factors     []Factor
	Out         *float32
	OutRow      int
	Shift       *int32
	Fit         bool
	Wide        bool
	Scratch     *float32
}

// UpdateArgs are the arguments of Set.UpdatePanel: for r < Rows, j < W, with
// T and G panels of Rows rows,
//
//	f := T[r][j] * G[r][j]          (f := G[r][j] if Plain)
//	if f < Grid { f = (f + Grid) - Grid }    rounds to Grid·2^-23
//	t := T[r][j]*Keep[r] + f*Gain[r] + Prior[r]
//	t = max(t, Floor)
//	if T[r][j] == 0 { t = 0 }
//	T[r][j] = t
//	Sum[r] += t                     over j, in an order of the set's own
type UpdateArgs struct {
	Rows, W           int
	T, G              *float32
	Keep, Gain, Prior *float32
	Sum               *float32
	Grid, Floor       float32
	Plain             bool
}

// TableArgs are the arguments of Set.UpdateTable: for r < Rows (categories),
// j < Width (units),
//
//	f := Count[r][j], rounded as in UpdateArgs; Count[r][j] = 0
//	t := T[r][j]*Keep[j] + f*Gain[j] + Prior[j]
//	t = max(t, Floor); if T[r][j] == 0 { t = 0 }
//	T[r][j] = t
//	Sum[j] += t                     r ascending
type TableArgs struct {
	Rows, Width       int
	T, Count          *float32
	Row               int
	Keep, Gain, Prior *float32
	Sum               *float32
	Grid, Floor       float32
}

// ChainArgs are the arguments of Set.Chain: for r < Rows, j < Width, a multiple of 8,
//
//	T[r][j], Exps[r][j] = M[j], E[j]          rounded to float32
//	M[j]·2^E[j] *= Factors[r]·Odds[j]         except after the last row; M is in [1, 2), and a product of 0 has E = 0
//
// Its definition in plain Go, for any width and for exponents down to -2^24, is layers.Links.Walk.
type ChainArgs struct {
	Rows, Width int
	T, Exps     *float32
	Row         int
	M, E, Odds  *float64
	Factors     *float64
}

// BF16Set holds the kernels that multiply bfloat16 pairs and add in float32.
// A pair word holds elements 2k (low half) and 2k+1 (high half) of the
// contraction; conversions round to nearest even.
type BF16Set struct {
	// Panel is Set.Panel with A and B as pair words: K counts pairs, strides
	// count words.
	Panel func(a *PanelArgs)
	// PackRows packs pairs of neighbours in a row: dst[r][k] = (x[r][2k], x[r][2k+1]);
	// a missing last float counts as zero.
	PackRows func(dst *uint32, dstRow int, x *float32, xRow, rows, width int)
	// PackPairs packs pairs of neighbouring rows: dst[k][j] = (x[2k][j], x[2k+1][j]);
	// a missing last row counts as zeros.
	PackPairs func(dst *uint32, dstRow int, x *float32, xRow, rows, width int)
}
