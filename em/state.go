package em

import (
	"fmt"
	"math"
	"strconv"

	"github.com/pce-engine/pce/dataset"
)

// exact is a float64 whose text gives the same bits back, infinities and NaN
// included.
type exact float64

// MarshalText writes a hexadecimal float, which loses no bit.
func (x exact) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(x), 'x', -1, 64), nil
}

// UnmarshalText reads any float that strconv reads, NaN and infinities included.
func (x *exact) UnmarshalText(text []byte) error {
	f, err := strconv.ParseFloat(string(text), 64)
	*x = exact(f)
	return err
}

// state is all that a run must know other than its parameters to continue.
type state struct {
	At    dataset.Cursor `json:"at"`    // the step that comes next; Step may be the epoch's number of steps
	Steps int64          `json:"steps"` // done, over all epochs

	// Weight of the averages of Anemone, as tensor.Anemone has it; 0: none are kept.
	Averages exact `json:"averages"`
	// Scaled says that averaged statistics of leaves without codes are in units of the largest one of the rows, however small that is. Earlier
	// versions had units of 1 at least, and do not say it.
	Scaled bool `json:"scaled,omitempty"`

	// Of the epoch so far.
	LLSum      exact `json:"ll_sum"`
	Rows       int64 `json:"rows"`
	Impossible int64 `json:"impossible"`
	Seconds    exact `json:"seconds"`

	// Of the run so far.
	TotalRows    int64 `json:"total_rows"`
	TotalSeconds exact `json:"total_seconds"`

	// Of the last epoch that ended.
	TrainLL exact `json:"train_ll"`
	ValidLL exact `json:"valid_ll"`

	// The best epoch, counted from 1; 0: none yet.
	BestEpoch int   `json:"best_epoch"`
	BestLL    exact `json:"best_ll"`
	// BestStart says that the starting parameters are the best so far; BestEpoch is 0.
	BestStart bool `json:"best_start,omitempty"`

	// Waiting is the epoch from which Patience counts if no later one is better:
	// a run that has stopped early and is made longer is given all of it again.
	Waiting int `json:"waiting,omitempty"`

	// Apart says that the parameters have steps of an epoch which begins again, so that they are not those that the last epoch ended with.
	Apart bool `json:"apart,omitempty"`

	// Judged is the last epoch whose validation log-likelihood is of other rows or another objective than now.
	Judged int `json:"judged,omitempty"`

	// Cut are the settings by which At is counted where the present ones end before its epoch, so that they do not say how that is cut; else nil.
	Cut *settings `json:"cut,omitempty"`
}

func newState() state {
	return state{Scaled: true, TrainLL: exact(math.NaN()), ValidLL: exact(math.NaN())}
}

// mostEpochs bounds the epochs of a run, far beyond those for which there is time.
const mostEpochs = 1 << 40

func (s *state) validate() error {
	// An epoch has a step at least. The steps of the present one may be more than were done: recut counts its end by other steps.
	done := int64(s.At.Epoch) + int64(min(s.At.Step, 1))
	if s.At.Epoch < 0 || int64(s.At.Epoch) > mostEpochs || s.At.Step < 0 || s.Steps < done || s.Rows < 0 || (s.Rows > 0) != (s.At.Step > 0) || s.TotalRows < s.Rows ||
		s.BestEpoch < 0 || s.BestEpoch > s.At.Epoch || s.BestStart && s.BestEpoch > 0 || s.Waiting < 0 || s.Waiting > s.At.Epoch ||
		s.Judged < 0 || s.Judged > s.At.Epoch {
		return fmt.Errorf("epoch %d, step %d of %d, %d rows of %d, best epoch %d, patience from epoch %d and other validation rows to epoch %d are of no run that there can be",
			s.At.Epoch, s.At.Step, s.Steps, s.Rows, s.TotalRows, s.BestEpoch, s.Waiting, s.Judged)
	}
	if !(s.Averages >= 0 && s.Averages <= maxWeight) {
		return fmt.Errorf("averages of weight %v are of no run that there can be", float64(s.Averages))
	}
	if s.Cut != nil {
		return s.Cut.validate()
	}
	return nil
}

// hasBest reports whether the best parameters so far are kept.
func (s *state) hasBest() bool { return s.BestEpoch > 0 || s.BestStart }

// forgetBest is for a run that does not keep the best parameters.
func (s *state) forgetBest() {
	s.BestEpoch, s.BestLL, s.BestStart, s.Waiting = 0, 0, false, 0
}

// maxWeight bounds the weight of averages: 1, which it comes close to, and what
// rounding may add.
const maxWeight = 1 + 0x1p-40

// settings say what the steps of a run are: a place in it means nothing without
// them.
type settings struct {
	Seed      uint64  `json:"seed"`
	Rows      int     `json:"rows"`
	ShardRows int     `json:"shard_rows"`
	Patience  int     `json:"patience"`
	Phases    []Phase `json:"phases"`
}

func (o *Options) settings(rows int) settings {
	return settings{o.Seed, rows, o.shardRows(), o.Patience, o.Phases}
}

func (s settings) validate() error {
	if s.Rows < 1 {
		return fmt.Errorf("settings of %d rows are of no run that there can be", s.Rows)
	}
	for i := range s.Phases {
		if err := s.Phases[i].validate(); err != nil {
			return fmt.Errorf("its settings: %w", err)
		}
	}
	return nil
}

// schedule says which rows each step of an epoch takes; none are taken after
// the last phase.
func (s settings) schedule(epoch int) (schedule dataset.Schedule, ok bool) {
	for i := range s.Phases {
		p := &s.Phases[i]
		if epoch < p.Epochs {
			return p.schedule(s.Rows, s.Seed), true
		}
		epoch -= p.Epochs
	}
	return dataset.Schedule{}, false
}

// epochs are those of all phases.
func (s settings) epochs() int {
	n := 0
	for _, p := range s.Phases {
		n += p.Epochs
	}
	return n
}

// recut moves the place in an epoch to where a run with the settings now
// continues from one with the settings was. An epoch whose rows are cut into
// other steps begins again: what was left of it is not known any more. It
// reports whether that happened.
func (s *state) recut(was, now settings) (again bool) {
	if s.Cut != nil {
		was = *s.Cut
	}
	before, ok := was.schedule(s.At.Epoch)
	after, still := now.schedule(s.At.Epoch)
	s.Cut = nil
	if s.At.Step > 0 && ok && !still {
		s.Cut = &was
	}
	if s.At.Step == 0 || !ok || !still || sameSteps(before, after) {
		return false
	}
	if s.At.Step == before.Steps() { // only the end of the epoch is left
		s.At.Step = after.Steps()
		return false
	}
	s.At.Step, s.Apart = 0, true
	s.LLSum, s.Rows, s.Impossible, s.Seconds = 0, 0, 0, 0
	return true
}

// sameSteps reports whether two schedules give the same rows to each step of an
// epoch: sizes follow from the number of rows and that of steps.
func sameSteps(a, b dataset.Schedule) bool {
	return a.Rows == b.Rows && a.Steps() == b.Steps() && a.InOrder == b.InOrder && (a.InOrder || a.Seed == b.Seed)
}
