package cluster

import (
	"bytes"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
)

// Protocol is the version of messages and records. Members with another version
// take no part in a run, so that two encodings never meet on a wire.
const Protocol = "7"

// Limits of messages. What a sender could exceed in practice is refused before it
// is sent; the receiver refuses the rest.
const (
	maxShards  = 1 << 15   // of a step: what a worker holds must fit a message
	maxMembers = 1024      // of a term: an order names all of them
	maxName    = 512       // bytes of the name of a member, an inbox, a run or a source
	maxAddress = 4096      // bytes of a part of an endpoint
	maxReason  = 500       // bytes of the text of an error
	maxRows    = 1 << 48   // of a source: far below where the arithmetic of shards overflows
	maxHeader  = 512 << 10 // bytes of the JSON of a message, in each of its two parts

	// leastPayload is how large a message the broker must take, so that one about
	// maxShards shards fits.
	leastPayload = 1 << 20
)

// messageKind names the body of a message.
type messageKind string

// The orders of a coordinator.
const (
	prepareMsg messageKind = "prepare" // load a run
	enrollMsg  messageKind = "enroll"  // take part in a term
	syncMsg    messageKind = "sync"    // fetch the parameters of a version
	workMsg    messageKind = "work"    // compute shards
	reduceMsg  messageKind = "reduce"  // all shards are done: move the parameters
	commitMsg  messageKind = "commit"  // all members have moved
	releaseMsg messageKind = "release" // the run needs the worker no more
)

// The reports of a worker.
const (
	beatMsg     messageKind = "beat"     // it is alive, and in which state
	enrolledMsg messageKind = "enrolled" // what it holds at the start of a term
	doneMsg     messageKind = "done"     // results of shards
	failedMsg   messageKind = "failed"   // a shard could not be computed
	movedMsg    messageKind = "moved"    // all parts of the parameters have arrived
	troubleMsg  messageKind = "trouble"  // the term cannot continue
)

// message is what coordinator and workers send each other. Every message may be
// lost, duplicated or late.
type message struct {
	From  string // inbox of the sender: one life of a process
	Run   string // the run that the sender leads, or has loaded; "": none
	Term  Term
	Round int64 // the round that the body is about; 0: none
	Body  body

	// Payload follows the JSON: the request of a query, its answer, or results of
	// shards. Other bodies have none.
	Payload []byte
}

// body is what a message of one kind says: an order or a report.
type body interface {
	kind() messageKind
	// check reports the first field that no correct sender sets so. The payload is
	// checked as far as that is possible without the state of the receiver.
	check(payload []byte) error
}

// newBody returns an empty body of a kind, nil if the kind is unknown.
func newBody(kind messageKind) body {
	switch kind {
	case prepareMsg:
		return new(prepareOrder)
	case enrollMsg:
		return new(enrollOrder)
	case syncMsg:
		return new(syncOrder)
	case workMsg:
		return new(workOrder)
	case reduceMsg:
		return new(reduceOrder)
	case commitMsg:
		return new(commitOrder)
	case releaseMsg:
		return new(releaseOrder)
	case beatMsg:
		return new(beatReport)
	case enrolledMsg:
		return new(enrolledReport)
	case doneMsg:
		return new(doneReport)
	case failedMsg:
		return new(failedReport)
	case movedMsg:
		return new(movedReport)
	case troubleMsg:
		return new(troubleReport)
	}
	return nil
}

// envelope is the JSON of all that messages have in common.
type envelope struct {
	Kind  messageKind `json:"kind"`
	From  string      `json:"from"`
	Run   string      `json:"run,omitempty"`
	Term  Term        `json:"term"`
	Round int64       `json:"round,omitempty"`
}

// encode writes a message: the lengths of envelope and body, 4 bytes each, then
// envelope, body and payload.
func (m *message) encode() []byte {
	e := envelope{Kind: m.Body.kind(), From: m.From, Run: m.Run, Term: m.Term, Round: m.Round}
	head, err := json.Marshal(&e)
	if err != nil {
		panic(fmt.Sprintf("BUG: cluster: envelope of %s: %v", e.Kind, err))
	}
	text, err := json.Marshal(m.Body)
	if err != nil {
		panic(fmt.Sprintf("BUG: cluster: body of %s: %v", e.Kind, err))
	}
	out := make([]byte, 8, 8+len(head)+len(text)+len(m.Payload))
	binary.LittleEndian.PutUint32(out, uint32(len(head)))
	binary.LittleEndian.PutUint32(out[4:], uint32(len(text)))
	return append(append(append(out, head...), text...), m.Payload...)
}

// decodeMessage reads what encode wrote and checks every field. The payload shares
// memory with data. An error matches ErrCluster.
func decodeMessage(data []byte) (*message, error) {
	if len(data) < 8 {
		return nil, fmt.Errorf("%w: message of %d bytes, want 8 or more", ErrCluster, len(data))
	}
	head, text := binary.LittleEndian.Uint32(data), binary.LittleEndian.Uint32(data[4:])
	data = data[8:]
	if head > maxHeader || text > maxHeader || int(head+text) > len(data) {
		return nil, fmt.Errorf("%w: message with an envelope of %d and a body of %d bytes; there are %d, and at most %d are taken for each",
			ErrCluster, head, text, len(data), maxHeader)
	}
	var e envelope
	if err := strictJSON(data[:head], &e); err != nil {
		return nil, fmt.Errorf("%w: envelope of a message: %v", ErrCluster, err)
	}
	m := &message{From: e.From, Run: e.Run, Term: e.Term, Round: e.Round, Body: newBody(e.Kind), Payload: data[head+text:]}
	switch {
	case m.Body == nil:
		return nil, fmt.Errorf("%w: message of the unknown kind %.40q", ErrCluster, e.Kind)
	case !isName(m.From):
		return nil, fmt.Errorf("%w: %s from %.40q (%d bytes), want 1..%d bytes", ErrCluster, e.Kind, m.From, len(m.From), maxName)
	case len(m.Run) > maxName:
		return nil, fmt.Errorf("%w: %s of a run whose name has %d bytes, want 0..%d", ErrCluster, e.Kind, len(m.Run), maxName)
	case m.Round < 0:
		return nil, fmt.Errorf("%w: %s of round %d, want 0 or more", ErrCluster, e.Kind, m.Round)
	}
	if err := strictJSON(data[head:head+text], m.Body); err != nil {
		return nil, fmt.Errorf("%w: body of %s: %v", ErrCluster, e.Kind, err)
	}
	if err := m.Body.check(m.Payload); err != nil {
		return nil, fmt.Errorf("%w: %s: %w", ErrCluster, e.Kind, err)
	}
	return m, nil
}

// strictJSON reads one object without unknown keys, so that the body of one kind
// is not taken for that of another.
func strictJSON(text []byte, v any) error {
	if len(text) == 0 || text[0] != '{' {
		return fmt.Errorf("%d bytes that are not a JSON object", len(text))
	}
	dec := json.NewDecoder(bytes.NewReader(text))
	dec.DisallowUnknownFields()
	if err := dec.Decode(v); err != nil {
		return err
	}
	if _, err := dec.Token(); err != io.EOF {
		return fmt.Errorf("more than one value")
	}
	return nil
}
