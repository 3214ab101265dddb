//go:build cuda && cgo

package cuda

import (
	"crypto/sha256"
	"sync"

	"gorgonia.org/cu"

	"github.com/pce-engine/pce/kernels/cuda/driver"
)

// primary is the primary context of a card, which all drivers of it in this process
// use, and so the modules in it: to compile one takes seconds. It lives, and they
// do, until the last of these drivers is closed.
type primary struct {
	sync.Mutex
	drivers int
	modules map[[sha256.Size]byte]cu.Module // by text
}

// primaries are those of the process, by card.
var primaries struct {
	sync.Mutex
	of map[int]*primary
}

// primaryOf counts a driver in to the context of a card.
func primaryOf(ordinal int) *primary {
	primaries.Lock()
	defer primaries.Unlock()
	if primaries.of == nil {
		primaries.of = map[int]*primary{}
	}
	c := primaries.of[ordinal]
	if c == nil {
		c = &primary{modules: map[[sha256.Size]byte]cu.Module{}}
		primaries.of[ordinal] = c
	}
	c.drivers++
	return c
}

// leave counts a driver out of the context, which is the thread's, and unloads its
// modules after the last one.
func (c *primary) leave(ordinal int) (first error) {
	primaries.Lock()
	defer primaries.Unlock()
	if c.drivers--; c.drivers > 0 {
		return nil
	}
	delete(primaries.of, ordinal)
	for _, m := range c.modules {
		if err := failure(m.Unload(), "cuModuleUnload()"); first == nil {
			first = err
		}
	}
	return first
}

// load returns the module of a text, compiled if the context has none.
func (c *primary) load(text []byte) (cu.Module, error) {
	c.Lock()
	defer c.Unlock()
	digest := sha256.Sum256(text)
	if m, ok := c.modules[digest]; ok {
		return m, nil
	}
	m, err := driver.Load(text)
	if err != nil {
		return cu.Module{}, err
	}
	c.modules[digest] = m
	return m, nil
}
