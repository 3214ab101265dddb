package cluster

import (
	"context"
)

// Peers moves bulk data between the workers of a cluster, and the coordinator.
// It is safe for concurrent use. Buffers passed in are the caller's again when
// the call returns.
type Peers interface {
	// Endpoint says how others reach this one.
	Endpoint() Endpoint
	// Admit replaces the set of those that frames are taken from, and sent to.
	Admit(members map[string]Endpoint)
	// Handle sets what is called with each incoming frame, before the first Admit.
	// Calls for one sender come one at a time, for several at once. A call that
	// waits holds its sender up. The frame is the callee's until it returns.
	Handle(func(from string, f *Frame))
	// Send hands a frame to a peer. It waits while the peer has no room, and
	// returns when the frame is on its way; it arrives once, or, after an error
	// here or a later one on either side, maybe never. An error matches
	// ErrUnreachable.
	Send(ctx context.Context, to string, f *Frame) error
	Close() error
}

// Wayfarer is what Peers are too that reach others in several ways.
type Wayfarer interface {
	// Ways says how each peer that was sent to is reached, such as unix or tcp+tls.
	Ways() map[string]string
}

// Endpoint says how a peer is reached, and how it is known again.
type Endpoint struct {
	Transport   string `json:"transport"` // tcp, nats or memory
	Address     string `json:"address"`
	Fingerprint string `json:"fingerprint,omitempty"` // SHA-256 of the public key, in hexadecimal
	// Local says how members on the same host reach this one without the network,
	// in a form of the transport's own; "": not at all. Others do without it.
	Local string `json:"local,omitempty"`
}

// FrameKind says what a frame holds.
type FrameKind uint8

// The kinds of frames.
const (
	FlowFrame  FrameKind = 1 // int64 flows of the receiver's part
	ParamFrame FrameKind = 2 // float32 parameters of the sender's part, moved
	FetchFrame FrameKind = 3 // asks for the parameters of a version; no payload
	StateFrame FrameKind = 4 // float32 parameters, the answer to a fetch
	ErrorFrame FrameKind = 5 // text: why a fetch has no answer
)

// MaxFrameBytes is the most bytes of a frame's payload.
const MaxFrameBytes = 256 << 10

// Frame is a piece of bulk data. Transports add a checksum and refuse frames
// that are too long before they make room for them.
type Frame struct {
	Kind    FrameKind
	Term    Term
	Version Version
	Offset  int64  // of the payload's first element in its buffer
	Count   int64  // FetchFrame: elements wanted
	Payload []byte // little-endian elements
}
