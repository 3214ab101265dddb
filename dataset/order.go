package dataset

import "math/rand/v2"

// Order returns the permutation of 0..n-1 in which epoch visits the rows. It
// depends on its arguments only: a test holds it still across Go versions.
func Order(seed uint64, epoch, n int) []int {
	return rand.New(rand.NewPCG(seed, uint64(epoch))).Perm(n)
}
