package natsbus

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/peer/wire"
)

// A message between peers is an envelope, and behind that of a frame the frame:
//
//	 0  magic "PCEN", format 1, kind of parcel, zero, zero
//	 8  epoch: one random number for each stream of frames from one to another
//	16  of a frame its number, from 1; of an answer the last frame handled
//	24  of an answer the last frame received with all before it
//	32  CRC-32C of the 32 bytes before, zeros, to byte 40
const (
	envelopeBytes = 40
	maxMessage    = envelopeBytes + wire.HeaderBytes + cluster.MaxFrameBytes
)

// Kinds of parcels.
const (
	frameParcel = 1
	probeParcel = 2 // asks for an answer
	ackParcel   = 3 // an answer
	gapParcel   = 4 // an answer: a frame came too early
	resetParcel = 5 // an answer: the stream is unknown, so its number 1 or none can be taken
)

// Bounds of a stream.
const (
	windowBytes  = 2 << 20 // that one sender has on the way to one receiver
	windowFrames = 64      // and frames, since all behind a lost one are sent again
	firstResend  = 250 * time.Millisecond
	minResend    = 20 * time.Millisecond
	maxResend    = 2 * time.Second
)

type envelope struct {
	kind                    uint8
	epoch, number, received uint64
}

func (e envelope) put(b []byte) {
	clear(b[:envelopeBytes])
	copy(b, "PCEN\x01")
	b[5] = e.kind
	le := binary.LittleEndian
	le.PutUint64(b[8:], e.epoch)
	le.PutUint64(b[16:], e.number)
	le.PutUint64(b[24:], e.received)
	le.PutUint32(b[32:], envelopeSum(b))
}

func (e envelope) message() []byte {
	b := make([]byte, envelopeBytes)
	e.put(b)
	return b
}

func envelopeSum(b []byte) uint32 { return crc32.Checksum(b[:32], crc32.MakeTable(crc32.Castagnoli)) }

func openEnvelope(b []byte) (envelope, error) {
	if len(b) < envelopeBytes || len(b) > maxMessage || string(b[:5]) != "PCEN\x01" {
		return envelope{}, fmt.Errorf("%w: %d bytes without an envelope; run one version of pce everywhere", wire.ErrFrame, len(b))
	}
	le := binary.LittleEndian
	if le.Uint32(b[32:]) != envelopeSum(b) {
		return envelope{}, fmt.Errorf("%w: checksum of the envelope", wire.ErrFrame)
	}
	return envelope{b[5], le.Uint64(b[8:]), le.Uint64(b[16:]), le.Uint64(b[24:])}, nil
}

// parcel is a frame on the way.
type parcel struct {
	number  uint64
	message []byte
	sent    time.Time
	again   bool // sent more than once: says nothing about the time of an answer
}

// buffers of messages with full frames.
var messages = sync.Pool{New: func() any { return new([maxMessage]byte) }}

// outbox is a stream of frames to one receiver. It is used until it fails.
type outbox struct {
	epoch   uint64
	subject string
	publish func(subject string, message []byte) error
	stall   time.Duration
	turn    chan struct{} // held by the Send that waits for room
	room    chan struct{} // says that there may be room
	wake    chan struct{} // says that run has something to wait for

	failed context.Context // ends, with the cause, when the stream fails
	fail   context.CancelCauseFunc

	mu       sync.Mutex // guards the rest, and messages while they are published
	number   uint64     // of the newest frame
	acked    uint64     // the last one handled
	received uint64     // the last one received with all before it
	way      []parcel   // acked+1 to number
	bytes    int        // of way
	heard    time.Time  // when the receiver spoke last, or the first of way was sent
	due      time.Time  // when to send again
	answer   time.Duration
	spread   time.Duration
	tries    int    // without an answer that moved something
	repaired uint64 // gap that was filled, plus one
}

func newOutbox(epoch uint64, subject string, stall time.Duration, publish func(string, []byte) error) *outbox {
	o := &outbox{
		epoch: epoch, subject: subject, publish: publish, stall: stall,
		turn: make(chan struct{}, 1), room: make(chan struct{}, 1), wake: make(chan struct{}, 1),
	}
	o.failed, o.fail = context.WithCancelCause(context.Background())
	return o
}

// send waits for room and publishes a frame.
func (o *outbox) send(ctx context.Context, header *[wire.HeaderBytes]byte, payload []byte) error {
	select {
	case o.turn <- struct{}{}:
		defer func() { <-o.turn }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		if o.failed.Err() != nil {
			return context.Cause(o.failed)
		}
		if o.start(header, payload) {
			return nil
		}
		select {
		case <-o.room:
		case <-ctx.Done():
		case <-o.failed.Done():
		}
	}
}

// start puts a frame on its way if there is room.
func (o *outbox) start(header *[wire.HeaderBytes]byte, payload []byte) bool {
	size := envelopeBytes + wire.HeaderBytes + len(payload)
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.bytes > 0 && (o.bytes+size > windowBytes || len(o.way) >= windowFrames) {
		return false
	}
	var message []byte
	if size > maxMessage/8 {
		message = messages.Get().(*[maxMessage]byte)[:size]
	} else {
		message = make([]byte, size)
	}
	o.number++
	envelope{kind: frameParcel, epoch: o.epoch, number: o.number}.put(message)
	copy(message[envelopeBytes:], header[:])
	copy(message[envelopeBytes+wire.HeaderBytes:], payload)
	now := time.Now()
	if len(o.way) == 0 {
		o.heard = now
		o.due = now.Add(o.patience())
		signal(o.wake)
	}
	o.way = append(o.way, parcel{number: o.number, message: message, sent: now})
	o.bytes += size
	o.emit(message)
	return true
}

// emit publishes. What does not get through now is sent again, unless it never can.
func (o *outbox) emit(message []byte) {
	err := o.publish(o.subject, message)
	if errors.Is(err, nats.ErrConnectionClosed) || errors.Is(err, nats.ErrMaxPayload) {
		o.fail(err)
	}
}

// patience is how long to wait for an answer.
func (o *outbox) patience() time.Duration {
	d := firstResend
	if o.answer != 0 {
		d = max(o.answer+4*o.spread, minResend)
	}
	return min(d<<min(o.tries, 10), maxResend, max(o.stall/4, minResend))
}

// run sends again what is not answered, until the stream fails.
func (o *outbox) run() {
	timer := time.NewTimer(0)
	defer timer.Stop()
	for {
		select {
		case <-timer.C:
		case <-o.wake:
		case <-o.failed.Done():
			return
		}
		if wait := o.again(time.Now()); wait > 0 {
			timer.Reset(wait)
		}
	}
}

// again sends what is due, and returns when to call it next; 0: once woken.
func (o *outbox) again(now time.Time) time.Duration {
	o.mu.Lock()
	defer o.mu.Unlock()
	if len(o.way) == 0 {
		return 0
	}
	if silent := now.Sub(o.heard); silent >= o.stall {
		o.fail(fmt.Errorf("no answer for %v; %d frames may be lost", silent.Round(time.Millisecond), len(o.way)))
		return 0
	}
	if !now.Before(o.due) {
		o.tries++
		o.repeat(now)
	}
	return max(min(o.due.Sub(now), o.heard.Add(o.stall).Sub(now)), time.Millisecond)
}

// repeat sends all that was not received, or else asks whether it is handled.
func (o *outbox) repeat(now time.Time) {
	o.due = now.Add(o.patience())
	if o.received == o.number {
		o.emit(envelope{kind: probeParcel, epoch: o.epoch, number: o.number}.message())
		return
	}
	for i := range o.way {
		if p := &o.way[i]; p.number > o.received {
			p.again = true
			o.emit(p.message)
		}
	}
}

// hear takes an answer of the receiver.
func (o *outbox) hear(e envelope) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if e.epoch != o.epoch || e.received > o.number || e.number > o.number {
		return
	}
	now := time.Now()
	if e.kind == resetParcel {
		if e.number <= 1 || o.acked > 0 || o.received > 0 {
			o.fail(errors.New("it knows nothing of the frames before, and frames may be lost"))
			return
		}
		e = envelope{kind: gapParcel, epoch: e.epoch} // the first frame was lost
	}
	o.heard = now
	o.received = max(o.received, e.received)
	if e.number > o.acked {
		o.settle(e.number, now)
	}
	if e.kind == gapParcel && o.received < o.number && o.repaired != o.received+1 {
		o.repaired = o.received + 1 // once: if that is lost too, in time
		o.repeat(now)
	}
}

// settle ends the way of all frames up to a number.
func (o *outbox) settle(number uint64, now time.Time) {
	n := int(number - o.acked)
	if last := o.way[n-1]; !last.again {
		o.measure(now.Sub(last.sent))
	}
	for _, p := range o.way[:n] {
		o.bytes -= len(p.message)
		if cap(p.message) == maxMessage {
			messages.Put((*[maxMessage]byte)(p.message[:maxMessage]))
		}
	}
	rest := copy(o.way, o.way[n:])
	clear(o.way[rest:])
	o.way = o.way[:rest]
	o.acked = number
	o.tries = 0
	o.due = now.Add(o.patience())
	signal(o.room)
}

// measure follows the time of answers as RFC 6298 does.
func (o *outbox) measure(d time.Duration) {
	if o.answer == 0 {
		o.answer, o.spread = d, d/2
		return
	}
	o.spread += ((o.answer - d).Abs() - o.spread) / 4
	o.answer += (d - o.answer) / 8
}

// reset is what is published of an answer that the stream is unknown.
func reset(epoch, number uint64) []byte {
	return envelope{kind: resetParcel, epoch: epoch, number: number}.message()
}

// signal fills a channel of one place.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
