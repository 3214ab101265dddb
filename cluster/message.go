package cluster

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"math"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/em"
	"github.com/pce-engine/pce/kernels"
)

// Protocol is the version of messages and records: members with another one
// take no part.
const Protocol = "2"

// maxShards is the most shards of a step: what a worker holds must fit a message.
const maxShards = 1 << 15

// leastPayload is what messages of as many shards take.
const leastPayload = 1 << 20

// maxHeader bounds the JSON of a message.
const maxHeader = 512 << 10

// messageKind says what a message asks or tells.
type messageKind string

const (
	// From the coordinator.
	prepareMsg messageKind = "prepare" // load a run
	enrollMsg  messageKind = "enroll"  // take part in a term
	syncMsg    messageKind = "sync"    // fetch the parameters of a version
	workMsg    messageKind = "work"    // compute shards
	reduceMsg  messageKind = "reduce"  // all shards are done: move the parameters
	commitMsg  messageKind = "commit"  // all members have moved
	releaseMsg messageKind = "release" // the run needs the worker no more

	// From a worker.
	beatMsg     messageKind = "beat"
	enrolledMsg messageKind = "enrolled"
	doneMsg     messageKind = "done"
	failedMsg   messageKind = "failed"
	movedMsg    messageKind = "moved"
	troubleMsg  messageKind = "trouble"
)

// message is what coordinator and workers tell each other. Which fields count
// depends on the kind. Every message may be lost, doubled or late.
type message struct {
	Kind  messageKind `json:"kind"`
	From  string      `json:"from"` // inbox of the sender: one life of a process
	Term  Term        `json:"term"`
	Round int64       `json:"round,omitempty"`

	// prepare
	Spec *Spec `json:"spec,omitempty"`

	// enroll, commit, work: the version that counts, and the term in which its
	// last move was made
	Version Version `json:"version"`
	MovedIn Term    `json:"moved_in"`

	// enroll
	Members []seat `json:"members,omitempty"`
	Leader  seat   `json:"leader"`
	Reset   bool   `json:"reset,omitempty"` // give up all shards that are held

	// sync: whom to ask
	Source string `json:"source,omitempty"`

	// work, reduce
	Task   task              `json:"task"`
	Shards runs              `json:"shards,omitempty"`
	Held   map[string]runs   `json:"held,omitempty"` // seat → shards that count
	Rule   *kernels.Rule     `json:"rule,omitempty"`
	Nanos  int64             `json:"nanos,omitempty"`
	Sums   map[string]uint32 `json:"sums,omitempty"` // moved: seat → checksum of its part
	Info   *SessionInfo      `json:"info,omitempty"`
	State  workerState       `json:"state,omitempty"`
	Queue  int               `json:"queue,omitempty"` // beat: shards in hand
	Bytes  int64             `json:"bytes,omitempty"` // beat: received of the exchange
	Run    string            `json:"run,omitempty"`   // beat: that is loaded
	Err    string            `json:"err,omitempty"`
	Final  bool              `json:"final,omitempty"` // Err: no other worker will do better
	Blame  string            `json:"blame,omitempty"` // trouble: the seat whose flows were refused

	// Payload follows the JSON: the request of a shard, or its answer; results of
	// held shards.
	Payload []byte `json:"-"`

	fetch *Frame // of a peer, on its way to the loop
}

// workerState is what a beat says of a worker.
type workerState string

const (
	idle    workerState = "idle"
	loading workerState = "loading"
	ready   workerState = "ready"
	unfit   workerState = "unfit" // cannot load the run; Err says why
	leaving workerState = "leaving"
)

// seat is a member of a term.
type seat struct {
	ID       string   `json:"id"`
	Inbox    string   `json:"inbox"`
	Endpoint Endpoint `json:"endpoint"`
}

// taskKind says what is done with shards.
type taskKind string

const (
	flowTask  taskKind = "flows"
	evalTask  taskKind = "loglik"
	queryTask taskKind = "query"
)

// task is what the shards of a round have in common. Shard i holds the rows
// from i·ShardRows on.
type task struct {
	Kind      taskKind `json:"kind,omitempty"`
	Step      Step     `json:"step"`             // flows
	Source    string   `json:"source,omitempty"` // loglik
	Rows      int      `json:"rows,omitempty"`
	ShardRows int      `json:"shard_rows,omitempty"`
}

// span is the rows of a shard.
func (t *task) span(shard int) dataset.Span {
	return dataset.Span{Lo: shard * t.ShardRows, Hi: min((shard+1)*t.ShardRows, t.Rows)}
}

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

// encode writes a message: length of the JSON, JSON, payload.
func (m *message) encode() []byte {
	header, err := json.Marshal(m)
	if err != nil {
		panic(fmt.Sprintf("BUG: cluster: message %s: %v", m.Kind, err))
	}
	out := make([]byte, 4, 4+len(header)+len(m.Payload))
	binary.LittleEndian.PutUint32(out, uint32(len(header)))
	return append(append(out, header...), m.Payload...)
}

// decodeMessage reads what encode wrote. The payload shares memory with data.
func decodeMessage(data []byte) (*message, error) {
	if len(data) < 4 {
		return nil, fmt.Errorf("%w: message of %d bytes", ErrCluster, len(data))
	}
	n := binary.LittleEndian.Uint32(data)
	if n > maxHeader || int(n) > len(data)-4 {
		return nil, fmt.Errorf("%w: message of %d bytes says that its header has %d", ErrCluster, len(data), n)
	}
	m := &message{}
	if err := json.Unmarshal(data[4:4+n], m); err != nil {
		return nil, fmt.Errorf("%w: message cannot be read: %v", ErrCluster, err)
	}
	m.Payload = data[4+n:]
	return m, nil
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
		out[int(le.Uint32(data))] = r
	}
	return out, nil
}
