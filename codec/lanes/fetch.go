package lanes

// fetchKernel does what Fetch does for that many bytes, 1 or more.
type fetchKernel func(x *float64, bytes int)

// Fetch asks the processor to bring x into its caches, for reads that are to come soon. It
// changes nothing but the time; without assembly it does nothing.
func Fetch(x []float64) {
	if native.fetch != nil && len(x) > 0 {
		native.fetch(&x[0], 8*len(x))
	}
}
