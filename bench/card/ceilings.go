package main

import (
	"math/rand/v2"
	"time"

	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/ptx"
)

// ceilings measures the rates that the model of training steps has, and what it has
// of latencies and gaps.
func (p *probe) ceilings() error {
	for _, part := range []func() error{p.copies, p.cache, p.latency, p.host, p.matrix, p.gaps, p.entries} {
		if err := part(); err != nil {
			return err
		}
	}
	return nil
}

// warmUp keeps the multiprocessors at work for some seconds, so that clocks and power
// settle.
func (p *probe) warmUp() error {
	k, err := p.load(multiply("warmup", ptx.F16, 4))
	if err != nil {
		return err
	}
	sink, err := p.zeroed(1024)
	if err != nil {
		return err
	}
	rounds, launches := p.size(20000, 2), 0
	end := time.Now().Add(time.Duration(p.size(5, 0)) * time.Second)
	begin := time.Now()
	for more := true; more; more = time.Now().Before(end) {
		if err := p.launch(k, p.card.Multiprocessors, uint64(sink), uint64(rounds)); err != nil {
			return err
		}
		if err := p.drv.Wait(p.stream); err != nil {
			return err
		}
		launches++
	}
	return p.read("warm-up", time.Since(begin).Seconds(), "s", "%d launches of matrix products", launches)
}

// copyKernel copies n pieces of 16 bytes from src to dst.
//
//	for i := thread of the grid; i < n; i += threads of the grid { dst[i] = src[i] }
func copyKernel() *ptx.Kernel {
	b := ptx.NewKernel("copy", 512, 0)
	src, dst, n := b.Pointer("src"), b.Pointer("dst"), b.Param("n", ptx.U32)
	i := b.Add(b.Mul(b.Special("%ctaid.x"), 512), b.Special("%tid.x"))
	stride := b.Mul(b.Special("%nctaid.x"), 512)
	b.For(ptx.U32, i, n, stride, func(i ptx.Value) {
		b.StoreN(ptx.B32, b.At(dst, i, 16), 0, b.LoadN(ptx.B32, 4, b.At(src, i, 16), 0))
	})
	return b.Kernel()
}

// copies measures copies that are far larger than the second-level cache.
func (p *probe) copies() error {
	k, err := p.load(copyKernel())
	if err != nil {
		return err
	}
	bytes := p.size(2<<30, 64<<10)
	src, err := p.zeroed(bytes)
	if err != nil {
		return err
	}
	dst, err := p.zeroed(bytes)
	if err != nil {
		return err
	}
	t, err := p.seconds(func() error {
		return p.launch(k, p.blocks(4), uint64(src), uint64(dst), uint64(bytes/16))
	})
	if err != nil {
		return err
	}
	if err := p.read("memory", 2*float64(bytes)/t, "B/s", "a copy of %d MiB, bytes read and written", bytes>>20); err != nil {
		return err
	}
	return p.free(src, dst)
}

// blocks is that many blocks for each multiprocessor, or two in all.
func (p *probe) blocks(each int) int { return p.size(each*p.card.Multiprocessors, 2) }

func (p *probe) free(list ...cuda.Ptr) error {
	for _, at := range list {
		if err := p.drv.Free(at); err != nil {
			return err
		}
	}
	return nil
}

// readKernel reads n pieces of 16 bytes for each block, in rounds, and writes a word if
// they add up to a number that they do not add up to. In every round a block reads the
// pieces of another one, so that it does not find its own in the first-level cache, nor
// those of its neighbours, which may be on the same multiprocessor.
//
//	for r := 0; r < rounds; r++ {
//		for i := thread; i < n; i += threads { total ^= src[(block+37*r)%blocks*n + i] }
//	}
func readKernel() *ptx.Kernel {
	b := ptx.NewKernel("read", 512, 0)
	src, sink, n, rounds := b.Pointer("src"), b.Pointer("sink"), b.Param("n", ptx.U32), b.Param("rounds", ptx.U32)
	tid, block, blocks := b.Special("%tid.x"), b.Special("%ctaid.x"), b.Special("%nctaid.x")
	total := b.Mov(ptx.U32, 0)
	b.For(ptx.U32, 0, rounds, 1, func(r ptx.Value) {
		first := b.Mul(b.Rem(b.Mad(r, 37, block), blocks), n)
		b.For(ptx.U32, tid, n, 512, func(i ptx.Value) {
			for _, x := range b.LoadN(ptx.U32, 4, b.At(src, b.Add(first, i), 16), 0) {
				b.Into(total).Xor(total, x)
			}
		})
	})
	b.If(b.Eq(total, 12345), func() { b.Store(ptx.U32, sink, 0, total) })
	return b.Kernel()
}

// cache measures reads of 24 MiB, which the second-level cache holds and a first-level
// one does not.
func (p *probe) cache() error {
	k, err := p.load(readKernel())
	if err != nil {
		return err
	}
	blocks, rounds := p.blocks(4), p.size(50, 2)
	pieces := p.size(24<<20, 32<<10) / 16 / blocks
	src, err := p.zeroed(16 * pieces * blocks)
	if err != nil {
		return err
	}
	sink, err := p.zeroed(1024)
	if err != nil {
		return err
	}
	t, err := p.seconds(func() error {
		return p.launch(k, blocks, uint64(src), uint64(sink), uint64(pieces), uint64(rounds))
	})
	if err != nil {
		return err
	}
	if err := p.read("second-level cache", float64(16*pieces*blocks*rounds)/t, "B/s", "reads of %d KiB again and again", pieces*blocks/64); err != nil {
		return err
	}
	return p.free(src, sink)
}

// chaseKernel follows a list of n pointers with one thread: each load needs the one
// before.
func chaseKernel() *ptx.Kernel {
	b := ptx.NewKernel("chase", 32, 0)
	list, sink, n := b.Pointer("list"), b.Pointer("sink"), b.Param("n", ptx.U32)
	at := b.Mov(ptx.U32, 0)
	b.ReturnIf(b.Gt(b.Special("%tid.x"), 0))
	b.For(ptx.U32, 0, n, 1, func(ptx.Value) { b.Into(at).Load(ptx.U32, b.At(list, at, 4), 0) })
	b.Store(ptx.U32, sink, 0, at)
	return b.Kernel()
}

// latency measures loads that wait for each other, from the second-level cache and
// from memory.
func (p *probe) latency() error {
	k, err := p.load(chaseKernel())
	if err != nil {
		return err
	}
	sink, err := p.zeroed(1024)
	if err != nil {
		return err
	}
	const line = 32 // words of 128 bytes
	for _, level := range []struct {
		name  string
		bytes int
		steps int
	}{{"second-level cache", p.size(8<<20, 8<<10), 200_000}, {"memory", p.size(2<<30, 16<<10), 1_500_000}} { // 192 MB
		lines := level.bytes / (4 * line)
		list := make([]uint32, lines*line)
		order := rand.New(rand.NewPCG(1, 2)).Perm(lines)
		for i, l := range order {
			list[l*line] = uint32(order[(i+1)%lines] * line)
		}
		at, err := p.array(list)
		if err != nil {
			return err
		}
		steps := min(lines, p.size(level.steps, 50)) // runs over few lines find them in the cache
		t, err := p.seconds(func() error { return p.launch(k, 1, uint64(at), uint64(sink), uint64(steps)) })
		if err != nil {
			return err
		}
		if err := p.read("latency of "+level.name, 1e9*t/float64(steps), "ns", "dependent loads over %d KiB", level.bytes>>10); err != nil {
			return err
		}
		if err := p.free(at); err != nil {
			return err
		}
	}
	return nil
}

// host measures copies from pinned memory of the host.
func (p *probe) host() error {
	bytes := p.size(256<<20, 4<<10)
	from, err := p.drv.AllocHost(bytes)
	if err != nil {
		return err
	}
	to, err := p.drv.Alloc(int64(bytes))
	if err != nil {
		return err
	}
	t, err := p.seconds(func() error { return p.drv.CopyIn(to, from, p.stream) })
	if err != nil {
		return err
	}
	if err := p.read("copies from the host", float64(bytes)/t, "B/s", "%d KiB of pinned memory", bytes>>10); err != nil {
		return err
	}
	if err := p.free(to); err != nil {
		return err
	}
	return p.drv.FreeHost(from)
}

// chains is how many products a warp of the kernels of matrix has under way.
const chains = 8

// multiply does rounds of products of fragments of type t, eight at a time that do not
// wait for each other, with warps on each scheduler of a multiprocessor; of F32 they
// are multiplications and additions of plain numbers.
func multiply(name string, t ptx.Type, warps int) *ptx.Kernel {
	b := ptx.NewKernel(name, 128*warps, 0)
	sink, rounds := b.Pointer("sink"), b.Param("rounds", ptx.U32)
	// Operands with bits at random, as data has them: small numbers of both signs, as
	// float32 and as pairs of halves.
	hash := b.Mul(b.Add(b.Special("%tid.x"), 1), 2654435761)
	operand := func() ptx.Value {
		b.Into(hash).Mad(hash, 1664525, 1013904223)
		return b.And(hash, 0xbdffbdff)
	}
	left, right := b.Vars(ptx.B32, 4), b.Vars(ptx.B32, 2)
	for _, v := range append(left[:4:4], right...) {
		b.Set(v, operand())
	}
	seed := operand().As(ptx.F32)
	sums := b.Vars(ptx.F32, 4*chains)
	for _, v := range sums {
		b.Set(v, operand().As(ptx.F32))
	}
	b.For(ptx.U32, 0, rounds, 1, func(ptx.Value) {
		for c := range chains {
			acc := sums[4*c : 4*c+4]
			if t == ptx.F32 {
				for _, v := range acc {
					b.Into(v).FMA(seed, seed, v)
				}
			} else {
				b.MMA(t, acc, left, right)
			}
		}
	})
	total := b.Mov(ptx.F32, 0)
	for _, v := range sums {
		b.Into(total).Add(total, v)
	}
	b.If(b.Eq(total, 12345), func() { b.Store(ptx.F32, sink, 0, total) })
	return b.Kernel()
}

// matrix measures matrix products, and plain ones, with one to four warps on each
// scheduler.
func (p *probe) matrix() error {
	sink, err := p.zeroed(1024)
	if err != nil {
		return err
	}
	for _, product := range []struct {
		name string
		t    ptx.Type
		ops  int // of a warp's round
	}{
		{"products of TF32", ptx.TF32, chains * 2 * 16 * 8 * 8},
		{"products of float16", ptx.F16, chains * 2 * 16 * 8 * 16},
		{"float32", ptx.F32, chains * 4 * 2 * 32},
	} {
		for warps := 1; warps <= 4; warps++ {
			k, err := p.load(multiply("multiply", product.t, warps))
			if err != nil {
				return err
			}
			rounds := p.size(20000, 2)
			t, err := p.seconds(func() error {
				return p.launch(k, p.blocks(1), uint64(sink), uint64(rounds))
			})
			if err != nil {
				return err
			}
			rate := float64(p.blocks(1)*4*warps*rounds*product.ops) / t
			if err := p.read(product.name, rate, "op/s", "%d warps on each scheduler", warps); err != nil {
				return err
			}
		}
	}
	return p.free(sink)
}
