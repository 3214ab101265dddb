package cluster_test

import (
	"errors"
	"flag"
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/simnet"
)

// TestSchedules plays the seeds from 1 to schedules, with -short to shortSchedules.
const (
	schedules      = 1500
	shortSchedules = 60
)

// play runs a job with n workers under a plot and returns what is wrong with the
// outcome.
func play(t *testing.T, seed uint64, n, trainings int, plant string, f simnet.Faults, plot func(w *world)) (err error) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, seed, f)
		w.plant = plant
		for i := range trainings {
			w.addTraining(fmt.Sprintf("c-%d", i)).startLeader()
		}
		for i := range n {
			w.startWorker(fmt.Sprintf("w%d", i))
		}
		if plot != nil {
			plot(w)
		}
		deadline := time.Now().Add(2 * time.Hour)
		for !w.over() && time.Now().Before(deadline) {
			time.Sleep(time.Second)
		}
		w.finish()
		for _, tr := range w.trainings {
			err = errors.Join(err, tr.check())
		}
	})
	return err
}

func (w *world) over() bool {
	synctest.Wait()
	for _, tr := range w.trainings {
		if !tr.done() {
			return false
		}
	}
	return true
}

func TestUndisturbed(t *testing.T) {
	for n := 1; n <= 5; n++ {
		if err := play(t, uint64(n), n, 1, "", simnet.Faults{MinDelay: time.Millisecond, MaxDelay: 3 * time.Millisecond}, nil); err != nil {
			t.Errorf("%d workers: %v", n, err)
		}
	}
}

var (
	playFor = flag.Duration("schedules", 0, "how long TestSchedules plays random seeds; 0: the same seeds each time, fewer with -short")
	playOne = flag.Uint64("schedule", 0, "play this seed alone")
)

// harsh draws how bad a network is.
func harsh(rng *rand.Rand) simnet.Faults {
	f := simnet.Faults{MinDelay: time.Millisecond, MaxDelay: time.Duration(1+rng.IntN(40)) * time.Millisecond}
	if rng.IntN(2) == 0 {
		f.Drop, f.Duplicate = 0.1*rng.Float64(), 0.2*rng.Float64()
	}
	if rng.IntN(3) == 0 {
		f.Late, f.LateBy = 0.1*rng.Float64(), time.Duration(rng.IntN(15000))*time.Millisecond
	}
	if rng.IntN(3) == 0 {
		f.Break = 0.02 * rng.Float64()
	}
	if rng.IntN(4) == 0 {
		f.DuplicateFrame = 0.3 * rng.Float64()
	}
	return f
}

// disturb does random harm to a cluster of n workers, and then heals it.
func disturb(n int) func(w *world) {
	return func(w *world) {
		rng := w.rng
		leads := func() *training { return w.trainings[rng.IntN(len(w.trainings))] }
		some := func() string { return fmt.Sprintf("w%d", rng.IntN(n)) }
		for range 1 + rng.IntN(8) {
			time.Sleep(time.Duration(rng.IntN(15000)) * time.Millisecond)
			if w.over() {
				return
			}
			back := time.Duration(rng.IntN(25000)) * time.Millisecond
			switch rng.IntN(9) {
			case 0, 1:
				id := some()
				w.kill(id)
				time.Sleep(back)
				w.startWorker(id)
			case 2:
				id := some()
				w.stop(id)
				time.Sleep(back)
				w.startWorker(id)
			case 3, 4:
				tr := leads()
				w.kill(tr.leader)
				time.Sleep(back)
				tr.startLeader()
			case 5:
				w.net.StopBroker()
				time.Sleep(back)
				w.net.StartBroker()
			case 6:
				a, b := some(), some()
				w.net.Cut(a, b)
				time.Sleep(back)
				w.net.Heal(a, b)
			case 7:
				id := some()
				if rng.IntN(3) == 0 {
					id = leads().leader
				}
				w.net.Isolate(id)
				time.Sleep(back)
				w.net.Rejoin(id)
			case 8:
				w.net.SetFaults(harsh(rng))
			}
		}
		w.net.HealAll()
		w.net.SetFaults(simnet.Faults{MinDelay: time.Millisecond, MaxDelay: 2 * time.Millisecond})
	}
}

func playSeed(t *testing.T, seed uint64, plant string) error {
	rng := rand.New(rand.NewPCG(seed, 2))
	n := 1 + rng.IntN(4)
	return play(t, seed, n, 1+rng.IntN(3)/2, plant, harsh(rng), disturb(n))
}

// TestSchedules plays random disturbances: kills, restarts, cuts, lost and doubled
// messages. Every run must end with the bits of an undisturbed one, and with an
// audit in which each shard of each step counts once.
func TestSchedules(t *testing.T) {
	if *playOne > 0 {
		if err := playSeed(t, *playOne, ""); err != nil {
			t.Fatalf("seed %d: %v", *playOne, err)
		}
		return
	}
	left := int64(schedules)
	if testing.Short() {
		left = shortSchedules
	}
	first, from := uint64(1), time.Now()
	if *playFor > 0 { // other seeds each time, for as long as asked
		left, first = math.MaxInt64, uint64(from.UnixNano())
	}
	var count, failed atomic.Int64
	var players sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		players.Go(func() {
			for failed.Load() == 0 && (*playFor == 0 || time.Since(from) < *playFor) {
				n := count.Add(1)
				if n > left {
					return
				}
				seed := first + uint64(n) - 1
				if err := playSeed(t, seed, ""); err != nil {
					failed.Add(1)
					t.Errorf("schedule failed; play it again with: go test ./cluster -run TestSchedules -schedule %d\n%v", seed, err)
				}
			}
		})
	}
	players.Wait()
	t.Logf("%d schedules, the first with seed %d", min(count.Load(), left), first)
}

// TestPlanted wants each planted defect to be found by a schedule.
func TestPlanted(t *testing.T) {
	if testing.Short() {
		t.Skip("plays up to hundreds of schedules")
	}
	// A word that was lost is nearly always made good by the next term: begin where
	// that is known to fail.
	first := map[string]uint64{"lost word": 600}
	for _, plant := range cluster.Defects {
		t.Run(plant, func(t *testing.T) {
			for seed := first[plant] + 1; seed <= first[plant]+2000; seed++ {
				if err := playSeed(t, seed, plant); err != nil {
					t.Logf("found by schedule %d: %.200v", seed, err)
					return
				}
			}
			t.Error("not found in 2000 schedules")
		})
	}
}
