package cuda

import "fmt"

// Architecture names the card's compute capability as PTX does: sm_90.
func (c Card) Architecture() string { return fmt.Sprintf("sm_%d%d", c.Major, c.Minor) }

// PTXVersion returns the newest version of PTX that the card's driver compiles, 0.0
// where the driver's version is not known or before CUDA 11. A driver takes every
// older version of PTX too.
func (c Card) PTXVersion() (major, minor int) {
	toolkit, step := c.DriverVersion/1000, c.DriverVersion%1000/10
	switch {
	case toolkit < 11:
		return 0, 0
	case toolkit == 12 && step >= 6: // 12.6 has the PTX of 12.5
		step--
	}
	return toolkit - 4, step
}
