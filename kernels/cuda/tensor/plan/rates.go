package plan

import (
	"maps"
	"slices"
)

// Rates are what a card can do at most per second, and how long it waits.
type Rates struct {
	Name       string
	Processors int     // multiprocessors
	Clock      float64 // of a multiprocessor, each of whose schedulers issues an instruction of a warp at a time
	Memory     float64 // bytes from and to memory
	Cache      float64 // bytes from the second-level cache to the multiprocessors
	Shared     float64 // bytes from and to shared memory
	TF32       float64 // operations of mma.sync on TF32
	F16        float64 // on float16
	Host       float64 // bytes from the memory of the host
	Load       float64 // seconds of a load that waits for the one before, with the arithmetic of its address
	Launch     float64 // seconds from the end of a kernel to the start of the next one in a graph
	Wait       float64 // seconds until the host knows that a graph is done and has started another one
}

// hopper is what cards of capability 9.0 have in common, as bench/card measured it on an H200:
// the clock under load, reads of the second-level cache, mma.sync on both types, copies from
// the host, and what lies between the end of one step and the start of the next. Shared memory is 128 bytes
// per clock in each multiprocessor. A load lies between 0.15 us from the second-level cache and
// 0.35 from memory; the gap is that of the small kernels of a step, as empty kernels have 0.5 us.
var hopper = Rates{
	Processors: 132, Clock: 1.965e9, Cache: 8.4e12, Shared: 33.2e12, TF32: 320e12, F16: 640e12, Host: 55e9,
	Load: 0.3e-6, Launch: 2.5e-6, Wait: 7e-6,
}

// rates are the cards that predictions know, by the names that they are asked for.
// Memory is what copies came to on one of each.
var rates = map[string]Rates{
	"h100": hopper.of("NVIDIA H100 80GB HBM3", 3.0e12),
	"h200": hopper.of("NVIDIA H200", 4.3e12),
}

func (r Rates) of(name string, memory float64) Rates {
	r.Name, r.Memory = name, memory
	return r
}

// RatesOf returns the rates of a card, by the name that predictions use or by that
// of its driver.
func RatesOf(card string) (Rates, bool) {
	for name, r := range rates {
		if card == name || card == r.Name {
			return r, true
		}
	}
	return Rates{}, false
}

// Cards are the names by which predictions know cards.
func Cards() []string { return slices.Sorted(maps.Keys(rates)) }

// reach is the share of a rate that a kernel is expected to come to.
const reach = 0.85

// cachePorts is the rate at which all multiprocessors together could read from the cache,
// 64 bytes per clock each, over the cache's.
const cachePorts = 2.0

// tensorSeconds is the time of operations on tensor cores.
func tensorSeconds(g grid, flop float64, r Rates) float64 {
	return flop / r.TF32 / g.share() / reach
}

// memorySeconds is the time of bytes from and to memory.
func memorySeconds(bytes float64, r Rates) float64 { return bytes / r.Memory / reach }

// cacheSeconds is the time of bytes from the second-level cache: few multiprocessors
// cannot take all that it gives.
func cacheSeconds(g grid, bytes float64, r Rates) float64 {
	return bytes / r.Cache / min(1, g.share()*cachePorts) / reach
}

// sharedSeconds is the time of bytes from and to shared memory.
func sharedSeconds(g grid, bytes float64, r Rates) float64 {
	return bytes / r.Shared / g.share() / reach
}
