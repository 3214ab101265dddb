package registry

import (
	"slices"
	"sync"
)

// Registry is a list of values with names, in the order in which they came. The
// zero value is empty. Its methods may be called by several goroutines at once.
type Registry[T any] struct {
	mu     sync.Mutex // guards the lists
	names  []string
	values []T
}

// Put adds a value, or replaces the one of this name where it is.
func (r *Registry[T]) Put(name string, value T) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if i := slices.Index(r.names, name); i >= 0 {
		r.values[i] = value
		return
	}
	r.names = append(r.names, name)
	r.values = append(r.values, value)
}

// Names returns the names in order.
func (r *Registry[T]) Names() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.names)
}

// All returns the values in order.
func (r *Registry[T]) All() []T {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.values)
}
