package main

import (
	"fmt"
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

// hops measures how long a call takes to reach a goroutine that is locked to its
// thread and to come back, as calls of the driver do.
func (p *probe) hops() error {
	jobs, done := make(chan func()), make(chan struct{})
	go func() {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		for job := range jobs {
			job()
		}
		close(done)
	}()
	ask := func(n int) time.Duration {
		begin := time.Now()
		for range n {
			answer := make(chan error)
			jobs <- func() { answer <- nil }
			<-answer
		}
		return time.Since(begin)
	}
	n := p.size(20000, 100)
	ask(n / 10)
	t := ask(n)
	close(jobs)
	<-done
	if t <= 0 {
		return fmt.Errorf("%d hops took %v", n, t)
	}
	return p.read("hop to the driver's thread", 1e6*t.Seconds()/float64(n), "us", "there and back")
}
