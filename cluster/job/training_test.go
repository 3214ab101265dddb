package job

import (
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/em"
)

// TestMeter trains two epochs of four steps of 100 rows in a second each, with evaluations of a minute: the speed is that of the steps, and
// what is left counts the evaluations.
func TestMeter(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		var s cluster.RunStatus
		m := &Meter{update: func(change func(*cluster.RunStatus)) { change(&s) }}
		for epoch := 1; epoch <= 2; epoch++ {
			for step := 1; step <= 4; step++ {
				time.Sleep(time.Second)
				s.Step++
				m.step(em.Progress{Epoch: epoch, Epochs: 3, Step: step, Steps: 4, Rows: 100})
				if s.RowsPerSecond == nil {
					if s.Step > 1 {
						t.Errorf("no speed after %d steps", s.Step)
					}
				} else if *s.RowsPerSecond != 100 {
					t.Errorf("%v rows in a second after %d steps, want 100", *s.RowsPerSecond, s.Step)
				}
			}
			if left := 4 * (float64(s.Step-1) + 60*float64(epoch-1)) / float64(s.Step-1) * float64(3-epoch); s.SecondsLeft == nil || !(math.Abs(*s.SecondsLeft-left) <= 1e-9*left) {
				t.Errorf("epoch %d: %v seconds left, want %v", epoch, s.SecondsLeft, left)
			}
			time.Sleep(time.Minute)
			m.epoch(em.Metrics{})
		}
	})
}
