package configs

import "slices"

// Paths are one or more files; a single one is written without a list.
type Paths []string

// MarshalYAML writes a single path as a scalar and others as a list, as people write them. Both
// forms are read.
func (p Paths) MarshalYAML() (any, error) {
	if len(p) == 1 {
		return p[0], nil
	}
	return []string(p), nil
}

// Empty reports whether p names no file, as where a split is left out: an empty path is none.
func (p Paths) Empty() bool {
	return !slices.ContainsFunc(p, func(path string) bool { return path != "" })
}
