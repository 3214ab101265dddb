package cluster

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/pce-engine/pce/em"
)

// shardResult is what a shard came to.
type shardResult struct {
	LL         uint64 // bits of the sum
	Rows       int
	Impossible int
	Recomputed int64

	// The extreme rows of a shard that is evaluated, counted from its first; not sent
	// in a step.
	Lowest, Highest rowBits
}

// rowBits is an em.RowLL.
type rowBits struct {
	Row int
	LL  uint64 // bits, so that equal results are equal values, NaN too
}

func (r rowBits) row() em.RowLL { return em.RowLL{Row: r.Row, LL: math.Float64frombits(r.LL)} }

func stepOf(r em.StepResult) shardResult {
	return shardResult{LL: math.Float64bits(r.LogLikelihood), Rows: r.Rows, Impossible: r.Impossible, Recomputed: r.Recomputed}
}

func evaluationOf(e em.Evaluation) shardResult {
	s := stepOf(e.StepResult)
	s.Lowest = rowBits{e.Lowest.Row, math.Float64bits(e.Lowest.LL)}
	s.Highest = rowBits{e.Highest.Row, math.Float64bits(e.Highest.LL)}
	return s
}

// evaluation is the inverse of evaluationOf.
func (s shardResult) evaluation() em.Evaluation {
	return em.Evaluation{
		StepResult: em.StepResult{LogLikelihood: math.Float64frombits(s.LL), Rows: s.Rows, Impossible: s.Impossible, Recomputed: s.Recomputed},
		Lowest:     s.Lowest.row(), Highest: s.Highest.row(),
	}
}

// Sizes of a result in a payload: of a shard, and of the extreme rows that an
// evaluation adds.
const (
	shardBytes   = 28
	extremeBytes = 24
)

// resultBytes is the size of a result of a kind of task in a payload.
func resultBytes(kind taskKind) int {
	if kind == evalTask {
		return shardBytes + extremeBytes
	}
	return shardBytes
}

// encodeResults writes results by shard, in order of the shards.
func encodeResults(kind taskKind, shards runs, results map[int]shardResult) []byte {
	var out []byte
	le := binary.LittleEndian
	for _, s := range shards.all() {
		r := results[s]
		out = le.AppendUint32(out, uint32(s))
		out = le.AppendUint64(out, r.LL)
		out = le.AppendUint32(out, uint32(r.Rows))
		out = le.AppendUint32(out, uint32(r.Impossible))
		out = le.AppendUint64(out, uint64(r.Recomputed))
		if kind != evalTask {
			continue
		}
		for _, row := range []rowBits{r.Lowest, r.Highest} {
			out = le.AppendUint32(out, uint32(row.Row))
			out = le.AppendUint64(out, row.LL)
		}
	}
	return out
}

func decodeResults(kind taskKind, data []byte) (map[int]shardResult, error) {
	size := resultBytes(kind)
	if len(data)%size != 0 {
		return nil, fmt.Errorf("%w: %d bytes of results of %d bytes each", ErrCluster, len(data), size)
	}
	le := binary.LittleEndian
	out := make(map[int]shardResult, len(data)/size)
	for ; len(data) > 0; data = data[size:] {
		r := shardResult{
			LL:         le.Uint64(data[4:]),
			Rows:       int(le.Uint32(data[12:])),
			Impossible: int(le.Uint32(data[16:])),
			Recomputed: int64(le.Uint64(data[20:])),
		}
		if kind == evalTask {
			r.Lowest = rowBits{int(le.Uint32(data[28:])), le.Uint64(data[32:])}
			r.Highest = rowBits{int(le.Uint32(data[40:])), le.Uint64(data[44:])}
		}
		shard := int(le.Uint32(data))
		if _, twice := out[shard]; twice {
			return nil, fmt.Errorf("%w: two results of shard %d", ErrCluster, shard)
		}
		out[shard] = r
	}
	return out, nil
}
