package main

import (
	"fmt"
	"math"
	"strings"
	"sync"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// runMeter keeps the status of a run of training up to date with what the trainer
// says. Speeds are those of this part of the run, evaluations included.
type runMeter struct {
	update func(func(*cluster.RunStatus))
	steps  int64 // that end the run early; 0: its epochs do

	mu     sync.Mutex // guards what follows
	begin  time.Time  // when the first step seen had been done
	from   float64    // epochs done then
	first  int64      // steps done then
	epochs int
	rows   int64 // since begin
}

// step takes note of a step that was done.
func (m *runMeter) step(p em.Progress) {
	m.mu.Lock()
	defer m.mu.Unlock()
	done := float64(p.Epoch-1) + float64(p.Step)/float64(p.Steps)
	m.update(func(s *cluster.RunStatus) {
		s.TrainLL = finite(p.LL)
		if m.begin.IsZero() {
			m.begin, m.from, m.first, m.epochs = time.Now(), done, s.Step, p.Epochs
			return
		}
		m.rows += int64(p.Rows)
		took := time.Since(m.begin).Seconds()
		if took <= 0 || done <= m.from {
			return
		}
		left := took * (float64(m.epochs) - done) / (done - m.from)
		if m.steps > 0 && s.Step > m.first {
			left = min(left, took*float64(m.steps-s.Step)/float64(s.Step-m.first))
		}
		s.RowsPerSecond, s.SecondsLeft = finite(float64(m.rows)/took), finite(max(0, left))
	})
}

// epoch takes note of an epoch that was done.
func (m *runMeter) epoch(x em.Metrics) {
	m.update(func(s *cluster.RunStatus) { s.TrainLL, s.ValidLL = finite(x.TrainLL), finite(x.ValidLL) })
}

// end takes note of what the run came to.
func (m *runMeter) end(r *run.Result) {
	m.update(func(s *cluster.RunStatus) {
		s.TrainLL, s.ValidLL, s.TestLL = finite(r.TrainLL), finite(r.ValidLL), finite(r.TestLL)
		s.RowsPerSecond, s.SecondsLeft = finite(r.SamplesPerSecond), nil
	})
}

// measured wraps the callbacks of a run of training.
func (c *clusterRun) measured(o *run.TrainOptions) *runMeter {
	m := &runMeter{steps: int64(c.cfg.Train.Steps), update: func(change func(*cluster.RunStatus)) {
		if c.run != nil {
			c.run.Update(change)
		}
	}}
	onStep, onEpoch := o.EM.OnStep, o.EM.OnEpoch
	o.EM.OnStep = func(p em.Progress) {
		m.step(p)
		if onStep != nil {
			onStep(p)
		}
	}
	o.EM.OnEpoch = func(x em.Metrics) {
		m.epoch(x)
		if onEpoch != nil {
			onEpoch(x)
		}
	}
	return m
}

// figures says in words what is known of a run's numbers; "" if nothing is.
func figures(s *cluster.RunStatus) string {
	var list []string
	train := "train ll"
	if s.State != stateDone {
		train = "running train ll" // em.Progress.LL
	}
	for _, ll := range []struct {
		name  string
		value *float64
	}{{train, s.TrainLL}, {"valid ll", s.ValidLL}, {"test ll", s.TestLL}} {
		if ll.value != nil {
			list = append(list, fmt.Sprintf("%s %.6g", ll.name, *ll.value))
		}
	}
	if s.RowsPerSecond != nil {
		list = append(list, fmt.Sprintf("%.0f rows/s", *s.RowsPerSecond))
	}
	if s.SecondsLeft != nil && s.State == stateRunning {
		list = append(list, seconds(*s.SecondsLeft)+" left")
	}
	return strings.Join(list, ", ")
}

// seconds prints a duration whose parts of a second do not matter.
func seconds(x float64) string {
	if x > math.MaxInt64/2e9 { // more than a duration holds
		return fmt.Sprintf("%.0fs", x)
	}
	return time.Duration(x * float64(time.Second)).Round(time.Second).String()
}
