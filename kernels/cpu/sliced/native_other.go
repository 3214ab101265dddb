//go:build noasm || !amd64

package sliced

// native returns no set: there is no assembly for this build.
func native() []*Loops { return nil }
