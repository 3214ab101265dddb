package main

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"
	"slices"

	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/ptx"
)

// probe is an open card with a stream for all its work.
type probe struct {
	drv    cuda.Driver
	card   cuda.Card
	stream cuda.Stream
	tiny   bool
	out    *json.Encoder
}

// size is a size for a card, or the one for the emulator.
func (p *probe) size(card, tiny int) int {
	if p.tiny {
		return tiny
	}
	return card
}

// read prints a reading.
func (p *probe) read(name string, value float64, unit, note string, args ...any) error {
	if math.IsInf(value, 0) || math.IsNaN(value) {
		return fmt.Errorf("%s: %v %s", name, value, unit)
	}
	return p.out.Encode(reading{name, value, unit, fmt.Sprintf(note, args...)})
}

// kernel is a kernel that is ready to launch.
type kernel struct {
	cuda.Function
	threads int
}

// load loads one kernel. Its module asks for sm_80: every card that pce runs on takes it.
func (p *probe) load(k *ptx.Kernel) (kernel, error) {
	m := ptx.Module{Major: 7, Minor: 0, Target: "sm_80", Kernels: []*ptx.Kernel{k}}
	handle, err := p.drv.Load(m.Text())
	if err != nil {
		return kernel{}, err
	}
	f, _, err := p.drv.Function(handle, k.Name, 0)
	return kernel{f, k.Threads}, err
}

// launch puts a launch of blocks blocks on the stream.
func (p *probe) launch(k kernel, blocks int, args ...uint64) error {
	return p.drv.Launch(cuda.Launch{Function: k.Function, Grid: [3]int{blocks, 1, 1}, Block: k.threads, Args: args}, p.stream)
}

// array puts words on the card.
func (p *probe) array(words []uint32) (cuda.Ptr, error) {
	at, err := p.drv.Alloc(int64(4 * len(words)))
	if err != nil {
		return 0, err
	}
	b := make([]byte, 0, 4*len(words))
	for _, w := range words {
		b = binary.LittleEndian.AppendUint32(b, w)
	}
	if err := p.drv.CopyIn(at, b, p.stream); err != nil {
		return 0, err
	}
	return at, p.drv.Wait(p.stream)
}

// words reads n words back.
func (p *probe) words(at cuda.Ptr, n int) ([]uint32, error) {
	b := make([]byte, 4*n)
	if err := p.drv.CopyOut(b, at, p.stream); err != nil {
		return nil, err
	}
	if err := p.drv.Wait(p.stream); err != nil {
		return nil, err
	}
	out := make([]uint32, n)
	for i := range out {
		out[i] = binary.LittleEndian.Uint32(b[4*i:])
	}
	return out, nil
}

// zeroed allocates bytes that are 0.
func (p *probe) zeroed(bytes int) (cuda.Ptr, error) {
	at, err := p.drv.Alloc(int64(bytes))
	if err != nil {
		return 0, err
	}
	return at, p.drv.Clear(at, int64(bytes), p.stream)
}

// seconds is the median time of work on the stream, by events, after one run that is
// not counted.
func (p *probe) seconds(work func() error) (float64, error) {
	runs := p.size(9, 1)
	from, err := p.drv.NewEvent()
	if err != nil {
		return 0, err
	}
	to, err := p.drv.NewEvent()
	if err != nil {
		return 0, err
	}
	var times []float64
	for i := range runs + 1 {
		if err := p.drv.Record(from, p.stream); err != nil {
			return 0, err
		}
		if err := work(); err != nil {
			return 0, err
		}
		if err := p.drv.Record(to, p.stream); err != nil {
			return 0, err
		}
		if err := p.drv.Wait(p.stream); err != nil {
			return 0, err
		}
		t, err := p.drv.Elapsed(from, to)
		if err != nil {
			return 0, err
		}
		if i > 0 {
			times = append(times, t)
		}
	}
	slices.Sort(times)
	return max(times[len(times)/2], 1e-9), nil // an event has half a microsecond
}
