package main

import (
	"fmt"
	"math"
	"strings"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/job"
)

// figures says in words what is known of a run's numbers, each left out while it is not known;
// "" if nothing is. While a run trains, its training log-likelihood is a running mean and is
// called so; the time left is given of runs that run.
func figures(s *cluster.RunStatus) string {
	var list []string
	train := "train ll"
	if s.State != job.StateDone {
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
		list = append(list, rate(*s.RowsPerSecond)+" rows/s")
	}
	if s.SecondsLeft != nil && s.State == job.StateRunning {
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
