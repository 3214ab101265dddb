//go:build noasm || !amd64

package lanes

// native returns no set: there is no assembly for this build.
func native() []*Set { return nil }
