package structures

import "math"

// logBits is the number of leading mantissa bits that index logTable.
const logBits = 10

// logTable holds 1/c and ln c for the c in [1, 2) of logBits mantissa bits.
var logTable = func() (t [1 << logBits]struct{ inverse, log float64 }) {
	for i := range t {
		c := 1 + float64(i)/(1<<logBits)
		t[i].inverse, t[i].log = 1/c, math.Log(c)
	}
	return t
}()

// fastLog returns ln x for positive normal x, within 3e-13: x = 2^e·c·(1+r) with
// c from the table, and ln(1+r) up to r³.
func fastLog(x float64) float64 {
	bits := math.Float64bits(x)
	c := &logTable[bits>>(52-logBits)&(1<<logBits-1)]
	mantissa := math.Float64frombits(bits&(1<<52-1) | 1023<<52)
	r := mantissa*c.inverse - 1
	return float64(int(bits>>52)-1023)*math.Ln2 + c.log + r*(1-r*(0.5-r*(1.0/3)))
}
