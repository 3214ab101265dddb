package layers

// Quadratic is a Family without codes whose log density, in nats, is quadratic in a number g of the cell that all units
// share, but for what depends on the cell alone:
//
//	log p(x) = off + add + slope·g - curve·(g-centre)²
//
// All numbers are finite. Devices evaluate the units of a row side by side by it.
type Quadratic interface {
	Family
	// QuadraticCell returns g and off of a cell; false where the density is 0 for all parameters.
	QuadraticCell(x float64) (g, off float64, ok bool)
	// QuadraticUnit returns the numbers of a unit's parameters.
	QuadraticUnit(p []float64) (add, slope, curve, centre float64)
}
