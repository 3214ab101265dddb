package cuda

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/pce-engine/pce/kernels"
)

// Code is PTX that is compiled for the card. Programs with the same text share it.
type Code struct {
	module    Module
	digest    [sha256.Size]byte
	users     int
	functions map[string]function
}

// function is a kernel that was asked for.
type function struct {
	handle Function
	info   FunctionInfo
	shared int // bytes of dynamic shared memory that it may have
}

// codeCache is the code of a device.
type codeCache struct {
	byText map[[sha256.Size]byte]*Code
	idle   []*Code // without users, those that had them last at the end
}

// mostIdle is how many texts without a user stay compiled: to compile one again takes
// seconds.
const mostIdle = 8

// Load compiles PTX text, unless a program on the device has the same one, or had it
// not long ago.
func (t *Thread) Load(text []byte) (*Code, error) {
	digest := sha256.Sum256(text)
	if c, ok := t.code.byText[digest]; ok {
		if c.users++; c.users == 1 {
			t.code.idle = slices.DeleteFunc(t.code.idle, func(other *Code) bool { return other == c })
		}
		return c, nil
	}
	module, err := t.drv.Load(text)
	if err != nil {
		return nil, err
	}
	if t.code.byText == nil {
		t.code.byText = map[[sha256.Size]byte]*Code{}
	}
	c := &Code{module: module, digest: digest, users: 1, functions: map[string]function{}}
	t.code.byText[digest] = c
	return c, nil
}

// Unload ends what one Load began, once nothing that runs needs the code.
func (t *Thread) Unload(c *Code) error {
	if c.users--; c.users > 0 {
		return nil
	}
	t.code.idle = append(t.code.idle, c)
	if len(t.code.idle) <= mostIdle {
		return nil
	}
	old := t.code.idle[0]
	t.code.idle = slices.Delete(t.code.idle, 0, 1)
	delete(t.code.byText, old.digest)
	return t.drv.Unload(old.module)
}

// Function finds a kernel of the code, for blocks of that many threads with up to
// shared bytes of dynamic shared memory.
func (t *Thread) Function(c *Code, name string, threads, shared int) (Function, error) {
	f, ok := c.functions[name]
	if !ok || f.shared < shared {
		var err error
		if f.handle, f.info, err = t.drv.Function(c.module, name, shared); err != nil {
			return 0, err
		}
		f.shared = shared
		c.functions[name] = f
	}
	if f.info.MaxThreads < threads {
		return 0, fmt.Errorf("%w: %s: kernel %s needs blocks of %d threads, the card allows %d", kernels.ErrDevice, t.name, name, threads, f.info.MaxThreads)
	}
	return f.handle, nil
}
