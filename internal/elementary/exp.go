// Package elementary has elementary functions where those of package math are off.
//
// # Shapes and units
//
// Numbers.
//
// # Errors
//
// None.
//
// # Source
//
// None.
package elementary

import "math"

// Exp is math.Exp, whose assembly for amd64 returns +Inf from 709.44 on; numbers that
// float64 holds go to 709.78. Elsewhere it has the same bits.
func Exp(x float64) float64 {
	y := math.Exp(x)
	if math.IsInf(y, 1) && x < 710 {
		root := math.Exp(x / 2)
		return root * root
	}
	return y
}
