package job

import (
	"sync"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/run"
)

// Meter keeps the status of a run of training up to date with what the trainer
// says. Speeds are those of this part of the run, evaluations included.
type Meter struct {
	update func(func(*cluster.RunStatus))
	steps  int64 // that end the run early; 0: its epochs do

	mu     sync.Mutex // guards what follows
	begin  time.Time  // when the first step seen had been done
	from   float64    // epochs done then
	first  int64      // steps done then
	epochs int
	rows   int64 // since begin
}

// step takes note of a step that was done, and puts the running log-likelihood, the rate and
// the time left into the run's status. Times count from the first step that this process saw.
func (m *Meter) step(p em.Progress) {
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
func (m *Meter) epoch(x em.Metrics) {
	m.update(func(s *cluster.RunStatus) { s.TrainLL, s.ValidLL = finite(x.TrainLL), finite(x.ValidLL) })
}

// End takes note of what the run came to.
func (m *Meter) End(r *run.Result) {
	m.update(func(s *cluster.RunStatus) {
		s.TrainLL, s.ValidLL, s.TestLL = finite(r.TrainLL), finite(r.ValidLL), finite(r.TestLL)
		s.RowsPerSecond, s.SecondsLeft = finite(r.SamplesPerSecond), nil
	})
}

// Measure has the callbacks of a run of training keep its status up to date, in
// addition to what they do.
func (l *Lead) Measure(o *em.Options) *Meter {
	m := &Meter{steps: o.Steps, update: l.Update}
	onStep, onEpoch := o.OnStep, o.OnEpoch
	o.OnStep = func(p em.Progress) {
		m.step(p)
		if onStep != nil {
			onStep(p)
		}
	}
	o.OnEpoch = func(x em.Metrics) {
		m.epoch(x)
		if onEpoch != nil {
			onEpoch(x)
		}
	}
	return m
}
