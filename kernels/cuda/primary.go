//go:build cuda && cgo

package cuda

import (
	"crypto/sha256"
	"slices"
	"sync"

	"gorgonia.org/cu"

	"github.com/pce-engine/pce/kernels/cuda/driver"
)

// primary is the primary context of a card, which all drivers of it in this process
// use, and so the modules in it: to compile one takes seconds. Modules that no driver
// has loaded stay for the next one that asks, up to mostIdle of them. The context lives
// until the last of the drivers is closed.
type primary struct {
	sync.Mutex
	drivers int
	modules map[[sha256.Size]byte]*sharedModule // by text
	idle    []*sharedModule                     // without users, those that had them last at the end
}

// sharedModule is a module of a primary context.
type sharedModule struct {
	cu.Module
	digest [sha256.Size]byte
	users  int // how often drivers have loaded it and not unloaded it yet
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
		c = &primary{modules: map[[sha256.Size]byte]*sharedModule{}}
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
		if err := m.unload(); first == nil {
			first = err
		}
	}
	return first
}

// load returns the module of a text, compiled if the context has none, for one more user.
func (c *primary) load(text []byte) (*sharedModule, error) {
	c.Lock()
	defer c.Unlock()
	digest := sha256.Sum256(text)
	m, ok := c.modules[digest]
	if !ok {
		module, err := driver.Load(text)
		if err != nil {
			return nil, err
		}
		m = &sharedModule{Module: module, digest: digest}
		c.modules[digest] = m
	}
	if m.users++; m.users == 1 {
		c.idle = slices.DeleteFunc(c.idle, func(other *sharedModule) bool { return other == m })
	}
	return m, nil
}

// drop takes a user from a module. If too many have none, the one that had its last
// user first is unloaded.
func (c *primary) drop(m *sharedModule) error {
	c.Lock()
	defer c.Unlock()
	if m.users--; m.users > 0 {
		return nil
	}
	c.idle = append(c.idle, m)
	if len(c.idle) <= mostIdle {
		return nil
	}
	old := c.idle[0]
	c.idle = slices.Delete(c.idle, 0, 1)
	delete(c.modules, old.digest)
	return old.unload()
}

func (m *sharedModule) unload() error { return failure(m.Module.Unload(), "cuModuleUnload()") }
