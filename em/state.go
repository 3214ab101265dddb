package em

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strconv"

	"github.com/pce-engine/pce/dataset"
)

// exact is a float64 whose text gives the same bits back, infinities and NaN
// included.
type exact float64

// MarshalText writes a hexadecimal float.
func (x exact) MarshalText() ([]byte, error) {
	return strconv.AppendFloat(nil, float64(x), 'x', -1, 64), nil
}

// UnmarshalText reads any float.
func (x *exact) UnmarshalText(text []byte) error {
	f, err := strconv.ParseFloat(string(text), 64)
	*x = exact(f)
	return err
}

// state is all that a run must know besides its parameters to go on.
type state struct {
	At    dataset.Cursor `json:"at"`    // the step that comes next; Step may be the epoch's number of steps
	Steps int64          `json:"steps"` // done, over all epochs

	// Weight of the averages of Anemone, as kernels.Anemone has it; 0: none are kept.
	Averages exact `json:"averages"`

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
}

func newState() state {
	return state{TrainLL: exact(math.NaN()), ValidLL: exact(math.NaN())}
}

func (s *state) validate() error {
	if s.At.Epoch < 0 || s.At.Step < 0 || s.Steps < int64(s.At.Step) || s.Rows < 0 || (s.Rows > 0) != (s.At.Step > 0) || s.TotalRows < s.Rows ||
		s.BestEpoch < 0 || s.BestEpoch > s.At.Epoch {
		return fmt.Errorf("epoch %d, step %d of %d, %d rows of %d, best epoch %d fit no run", s.At.Epoch, s.At.Step, s.Steps, s.Rows, s.TotalRows, s.BestEpoch)
	}
	if !(s.Averages >= 0 && s.Averages <= maxWeight) {
		return fmt.Errorf("averages of weight %v fit no run", float64(s.Averages))
	}
	return nil
}

// maxWeight bounds the weight of averages: 1, which it comes close to, and what
// rounding may add.
const maxWeight = 1 + 0x1p-40

// settings are the options that the bits of a run depend on.
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

// continues reports whether a run with the settings s may go on from a
// checkpoint of a run with the settings old, at a place; why not, if not. Equal
// says whether its bits will be those of an unbroken run.
func (s settings) continues(old settings, at dataset.Cursor) (equal bool, why string) {
	switch {
	case s.Seed != old.Seed:
		return false, fmt.Sprintf("seed %d, now %d", old.Seed, s.Seed)
	case s.Rows != old.Rows:
		return false, fmt.Sprintf("%d training rows, now %d", old.Rows, s.Rows)
	case s.ShardRows != old.ShardRows:
		return false, fmt.Sprintf("shards of %d rows, now %d", old.ShardRows, s.ShardRows)
	case at.Step > 0: // the rest of the epoch must be the rows that are left
		now, was := s.phaseOf(at.Epoch), old.phaseOf(at.Epoch)
		if now == nil || was == nil || now.Rule != was.Rule || now.schedule(s.Rows, 0) != was.schedule(s.Rows, 0) {
			return false, fmt.Sprintf("another rule or batch size, in the middle of epoch %d", at.Epoch+1)
		}
	}
	a, errA := json.Marshal(s)
	b, errB := json.Marshal(old)
	return errA == nil && errB == nil && slices.Equal(a, b), ""
}

func (s settings) phaseOf(epoch int) *Phase {
	for i := range s.Phases {
		if epoch < s.Phases[i].Epochs {
			return &s.Phases[i]
		}
		epoch -= s.Phases[i].Epochs
	}
	return nil
}
