package emulator

// Instructions returns what all kernels have run since the start or ResetCounts, by
// kind in words, "fma", "load_global", and what each has run, "forward.fma". Kinds
// that nothing has run are left out.
func (e *Emulator) Instructions() map[string]int64 {
	m := map[string]int64{}
	for name, c := range e.counts {
		for _, k := range []struct {
			kind string
			n    uint64
		}{
			{"launches", uint64(c.Launches)},
			{"issued", c.Issued},
			{"integer", c.Integer},
			{"fma", c.FMA},
			{"float", c.Float},
			{"special", c.Special},
			{"convert", c.Convert},
			{"mma", c.Matrix},
			{"load_matrix", c.LoadMatrix},
			{"load_global", c.LoadGlobal},
			{"store_global", c.StoreGlobal},
			{"load_shared", c.LoadShared},
			{"store_shared", c.StoreShared},
			{"atomic", c.Atomic},
			{"async", c.Async},
			{"shuffle", c.Shuffle},
			{"barrier", c.Barrier},
			{"control", c.Control},
			{"multiply_adds", c.MultiplyAdds},
			{"bytes_loaded", c.BytesLoaded},
			{"bytes_stored", c.BytesStored},
		} {
			if k.n > 0 {
				m[k.kind] += int64(k.n)
				m[name+"."+k.kind] += int64(k.n)
			}
		}
	}
	return m
}
