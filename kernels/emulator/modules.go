package emulator

import (
	"crypto/sha256"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/pce-engine/pce/kernels"
	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/emulator/lanes"
	"github.com/pce-engine/pce/kernels/ptx"
)

// module is a loaded module.
type module struct {
	kernels   map[string]*kernel
	functions []cuda.Function
}

// decoding is a module that has been decoded for one emulator or more. What it holds
// does not change.
type decoding struct {
	of      source
	once    sync.Once
	kernels []*kernel
	target  string
	err     error
}

// source is what a decoded module depends on.
type source struct {
	text   [sha256.Size]byte
	set    *lanes.Set
	approx uint64
	mma    MMA
}

// maxDecoded is how many decoded modules are kept. A module of all kernels of tensor
// programs takes some 17 MB.
const maxDecoded = 24

// recent holds modules that were decoded lately, the last one used at the end. Programs
// open one emulator after another, or several at once, and load the same few modules
// into each: parsing, verifying and decoding them again takes longer than small launches.
var recent struct {
	sync.Mutex // guards list, but not what it points to
	list       []*decoding
}

// decodedModule returns a module as decoded for the emulator's options.
func (e *Emulator) decodedModule(text []byte) *decoding {
	of := source{sha256.Sum256(text), e.set, e.o.Approx, e.o.MMA}
	recent.Lock()
	var m *decoding
	if at := slices.IndexFunc(recent.list, func(m *decoding) bool { return m.of == of }); at >= 0 {
		m = recent.list[at]
		recent.list = slices.Delete(recent.list, at, at+1)
	} else {
		m = &decoding{of: of}
	}
	recent.list = append(recent.list, m)
	if len(recent.list) > maxDecoded {
		recent.list = slices.Delete(recent.list, 0, 1)
	}
	recent.Unlock()
	m.once.Do(func() { m.decode(text) })
	return m
}

// decode parses, verifies and decodes a module.
func (m *decoding) decode(text []byte) {
	parsed, err := ptx.Parse(text)
	if err == nil {
		err = parsed.Verify()
	}
	if err != nil {
		m.err = fmt.Errorf("emulator: Load: %w: %w", err, kernels.ErrDevice)
		return
	}
	m.target = parsed.Target
	o := Options{Approx: m.of.approx, MMA: m.of.mma}
	for _, from := range parsed.Kernels {
		k, err := decode(&o, m.of.set, parsed, from)
		if err != nil {
			m.kernels, m.err = nil, err
			return
		}
		m.kernels = append(m.kernels, k)
	}
}

// Load parses, verifies and decodes a module.
func (e *Emulator) Load(text []byte) (cuda.Module, error) {
	if err := e.recording("Load"); err != nil {
		return 0, err
	}
	m := e.decodedModule(text)
	if m.err != nil {
		return 0, m.err
	}
	if sm, _ := strconv.Atoi(strings.TrimRight(strings.TrimPrefix(m.target, "sm_"), "af")); sm > 10*e.o.Major+e.o.Minor {
		return 0, refused("Load: target %s on a card of compute capability %d.%d", m.target, e.o.Major, e.o.Minor)
	}
	loaded := &module{kernels: map[string]*kernel{}}
	for _, k := range m.kernels {
		own := *k // the places of launches are each emulator's own
		loaded.kernels[k.name] = &own
	}
	h := cuda.Module(e.handle())
	e.modules[h] = loaded
	return h, nil
}

// Unload forgets a module and its functions.
func (e *Emulator) Unload(h cuda.Module) error {
	if err := e.recording("Unload"); err != nil {
		return err
	}
	m, ok := e.modules[h]
	if !ok {
		return refused("Unload of module %d, which is not loaded", h)
	}
	for _, k := range m.kernels {
		for _, b := range k.idle {
			e.idle -= b.bytes()
		}
		k.idle = nil
	}
	for _, f := range m.functions {
		delete(e.functions, f)
	}
	delete(e.modules, h)
	return nil
}
