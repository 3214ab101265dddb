package xgboost

import "math"

// logfPoints are points c near the middle of the sixteen intervals that logf cuts 0x1.66p-1 to 0x1.66p0 into, as 1/c and log(c). The
// points were chosen for their logarithms, which are near to numbers of float64.
var logfPoints = [16]struct{ inverse, log float64 }{
	{0x1.661ec79f8f3bep+0, -0x1.57bf7808caadep-2},
	{0x1.571ed4aaf883dp+0, -0x1.2bef0a7c06ddbp-2},
	{0x1.49539f0f010bp+0, -0x1.01eae7f513a67p-2},
	{0x1.3c995b0b80385p+0, -0x1.b31d8a68224e9p-3},
	{0x1.30d190c8864a5p+0, -0x1.6574f0ac07758p-3},
	{0x1.25e227b0b8eap+0, -0x1.1aa2bc79c81p-3},
	{0x1.1bb4a4a1a343fp+0, -0x1.a4e76ce8c0e5ep-4},
	{0x1.12358f08ae5bap+0, -0x1.1973c5a611cccp-4},
	{0x1.0953f419900a7p+0, -0x1.252f438e10c1ep-5},
	{1, 0},
	{0x1.e608cfd9a47acp-1, 0x1.aa5aa5df25984p-5},
	{0x1.ca4b31f026aap-1, 0x1.c5e53aa362eb4p-4},
	{0x1.b2036576afce6p-1, 0x1.526e57720db08p-3},
	{0x1.9c2d163a1aa2dp-1, 0x1.bc2860d22477p-3},
	{0x1.886e6037841edp-1, 0x1.1058bc8a07ee1p-2},
	{0x1.767dcf5534862p-1, 0x1.4043057b6ee09p-2},
}

// logf is the natural logarithm as the C library of GNU computes it for float, which is what XGBoost calls. One result in some
// five thousand is not the float32 nearest to the logarithm, so rounding that of float64 gives other margins.
func logf(x float32) float32 {
	if !(x > 0 && x <= math.MaxFloat32) {
		return float32(math.Log(float64(x)))
	}
	exponent := 0
	if x < 0x1p-126 { // its bits do not begin with an exponent
		x, exponent = x*0x1p23, -23
	}
	// x is 2^exponent z, and z is between 0x1.66p-1 and 0x1.66p0.
	const least = 0x3f330000
	above := math.Float32bits(x) - least
	exponent += int(int32(above) >> 23)
	z := float64(math.Float32frombits(above&(1<<23-1) + least))
	c := &logfPoints[above>>19&15]
	// log(z) is log(c) + log(1+r), and |r| is below 1/32. The conversions keep products and sums from being rounded together.
	r := float64(z*c.inverse) - 1
	sum := c.log + float64(float64(exponent)*math.Ln2) + r
	cubic := float64(0x1.5575b0be00b6ap-2*r) - 0x1.ffffef20a4123p-2
	cubic += float64(-0x1.00ea348b88334p-2 * float64(r*r))
	return float32(float64(cubic*float64(r*r)) + sum)
}
