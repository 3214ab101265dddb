package main

import (
	"runtime"
	"time"

	"github.com/pce-engine/pce/kernels/cuda"
	"github.com/pce-engine/pce/kernels/ptx"
)

// gaps measures graphs of kernels that do nothing: from one kernel to the next within
// a graph, and from one graph to the next.
func (p *probe) gaps() error {
	k, err := p.load(ptx.NewKernel("empty", 32, 0).Kernel())
	if err != nil {
		return err
	}
	record := func(n int) (cuda.Graph, error) {
		if err := p.drv.Capture(p.stream); err != nil {
			return 0, err
		}
		for range n {
			if err := p.launch(k, 1); err != nil {
				return 0, err
			}
		}
		return p.drv.Captured(p.stream)
	}
	const kernels = 200
	one, err := record(1)
	if err != nil {
		return err
	}
	many, err := record(kernels)
	if err != nil {
		return err
	}
	times := p.size(100, 2)
	again := func(g cuda.Graph) (float64, error) {
		return p.seconds(func() error {
			for range times {
				if err := p.drv.LaunchGraph(g, p.stream); err != nil {
					return err
				}
			}
			return nil
		})
	}
	short, err := again(one)
	if err != nil {
		return err
	}
	long, err := again(many)
	if err != nil {
		return err
	}
	if err := p.read("gap of an empty graph", 1e6*short/float64(times), "us", "one graph of one kernel after the other"); err != nil {
		return err
	}
	if err := p.read("gap within a graph", max(0, 1e6*(long-short)/float64(times*(kernels-1))), "us", "from one empty kernel to the next"); err != nil {
		return err
	}
	begin := time.Now()
	for range times {
		if err := p.drv.LaunchGraph(one, p.stream); err != nil {
			return err
		}
		if err := p.drv.Wait(p.stream); err != nil {
			return err
		}
	}
	if err := p.read("launch and wait", 1e6*time.Since(begin).Seconds()/float64(times), "us", "an empty graph, by the host's clock"); err != nil {
		return err
	}
	for _, g := range []cuda.Graph{one, many} {
		if err := p.drv.FreeGraph(g); err != nil {
			return err
		}
	}
	return nil
}

// entries measures what it takes to enter the driver from a goroutine that is locked to its
// thread for the while, as each call of a device does.
func (p *probe) entries() error {
	n := p.size(20000, 100)
	enter := func(n int) (time.Duration, error) {
		begin := time.Now()
		for range n {
			runtime.LockOSThread()
			err := p.drv.Enter()
			runtime.UnlockOSThread()
			if err != nil {
				return 0, err
			}
		}
		return time.Since(begin), nil
	}
	if _, err := enter(n / 10); err != nil {
		return err
	}
	t, err := enter(n)
	if err != nil {
		return err
	}
	return p.read("entry to the driver", 1e6*t.Seconds()/float64(n), "us", "a context made current, the goroutine locked to its thread")
}
