package natsbus

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"time"

	"github.com/nats-io/nats.go"

	"github.com/pce-engine/pce/cluster"
)

// ErrDenied means that the permissions of the credentials forbid it.
var ErrDenied = fmt.Errorf("%w: denied by the broker", cluster.ErrCluster)

// ErrStorage means that the broker is there and does not carry out what it is asked:
// its storage is full, damaged or gone. It matches cluster.ErrUnreachable, because
// room may be made.
var ErrStorage = fmt.Errorf("%w: the broker does not store", cluster.ErrUnreachable)

// pace says how long an answer may take before the question is asked again. A lost
// connection is noticed at once; this is for answers that the server drops.
type pace struct {
	patience time.Duration // 0: that of the bus
	upload   bool          // patience begins when the server has read the request
}

var (
	quick    = pace{}
	upload   = pace{upload: true}
	download = pace{patience: time.Minute} // answers that queue for a slow line
)

const (
	patience = 5 * time.Second
	// lineTime bounds how long a chunk may queue for a slow line before patience begins.
	lineTime = 10 * time.Minute
	// storagePatience is how long a call is repeated over a connection that is up before
	// it matches ErrStorage.
	storagePatience = 20 * time.Second
)

// apiError is a refusal by JetStream.
type apiError struct {
	Code        int    `json:"code"`
	ErrCode     int    `json:"err_code"`
	Description string `json:"description"`
}

func (e *apiError) Error() string { return e.Description }

// Codes of apiError.
const (
	codeMessageNotFound  = 10037
	codeStreamNotFound   = 10059
	codeConsumerNotFound = 10014
	codeStreamExists     = 10058
	codeWrongSequence    = 10071
	codeWrongConstant    = 10164
	codeNoRoom           = 10047
	codeConsumerCreate   = 10012
	codeConsumerStore    = 10104
)

func hasCode(err error, codes ...int) bool {
	var e *apiError
	if !errors.As(err, &e) {
		return false
	}
	for _, c := range codes {
		if e.ErrCode == c {
			return true
		}
	}
	return false
}

// call sends a request until it is answered, and returns the answer. Doubtful
// says that earlier tries may have been carried out, too. Only time without a
// connection is waited for without a bound.
func (b *Bus) call(ctx context.Context, msg *nats.Msg, p pace) (resp *nats.Msg, doubtful bool, err error) {
	var cause error
	var before context.Context // the connection of the last try
	var failing time.Duration  // spent on tries over it
	for try := 0; ; try++ {
		up, err := b.link.wait(ctx)
		if err != nil {
			return nil, doubtful, b.unreachable(cause, err)
		}
		if up != before {
			before, failing = up, 0
		}
		began := time.Now()
		resp, sent, err := b.try(ctx, up, msg, p)
		if err == nil {
			return resp, doubtful, nil
		}
		if errors.Is(err, ErrDenied) || errors.Is(err, nats.ErrMaxPayload) || errors.Is(err, nats.ErrBadSubject) {
			return nil, doubtful, err
		}
		doubtful = doubtful || sent
		if ctx.Err() == nil || cause == nil {
			cause = err
		}
		pauseErr := pause(ctx, try)
		if failing += time.Since(began); failing >= b.stubborn && try > 0 && up.Err() == nil && ctx.Err() == nil {
			return nil, doubtful, fmt.Errorf("%w: %v for %v; look for room on its disk, its files and its log", ErrStorage, cause, failing.Round(time.Second))
		}
		if pauseErr != nil {
			return nil, doubtful, b.unreachable(cause, pauseErr)
		}
	}
}

// try sends a request once. Sent says that it may have been carried out, though
// there is an error.
func (b *Bus) try(ctx, up context.Context, msg *nats.Msg, p pace) (resp *nats.Msg, sent bool, err error) {
	if p.patience == 0 {
		p.patience = b.patience
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	tired := time.AfterFunc(p.patience, func() { cancel(context.DeadlineExceeded) })
	defer tired.Stop()
	if p.upload {
		tired.Stop()
		line, stop := context.WithTimeout(ctx, lineTime)
		defer stop()
		time.AfterFunc(0, func() { // beside the request, whose answer may come first
			if b.nc.FlushWithContext(line) == nil {
				tired.Reset(p.patience)
			}
		})
	}
	defer context.AfterFunc(up, func() { cancel(nats.ErrDisconnected) })()
	defer b.denials.watch(msg.Subject, cancel)()

	resp, err = b.nc.RequestMsgWithContext(ctx, msg)
	switch {
	case err == nil:
		if err := transient(resp); err != nil {
			return nil, true, err
		}
		return resp, false, nil
	case errors.Is(err, nats.ErrNoResponders):
		return nil, false, errors.New("JetStream does not answer, or lacks the stream")
	case errors.Is(err, nats.ErrReconnectBufExceeded):
		return nil, false, nats.ErrDisconnected
	case errors.Is(err, nats.ErrMaxPayload):
		return nil, false, fmt.Errorf("%w of %d bytes", err, b.MaxPayload())
	}
	if cause := context.Cause(ctx); cause != nil && !errors.Is(cause, context.Canceled) && !errors.Is(cause, context.DeadlineExceeded) {
		return nil, true, cause
	}
	return nil, true, errors.New("no answer")
}

// transient finds the refusals that may pass by themselves: while servers elect leaders, before a stream is made, and where a consumer cannot
// be made because another member removes the one of that name at the moment. One of other settings, some of which "can not be updated", stays.
func transient(resp *nats.Msg) error {
	if len(resp.Header) != 0 || len(resp.Data) > 4096 || len(resp.Data) == 0 {
		return nil
	}
	var env struct {
		Error *apiError `json:"error"`
	}
	if json.Unmarshal(resp.Data, &env) != nil || env.Error == nil {
		return nil
	}
	unmade := hasCode(env.Error, codeConsumerCreate, codeConsumerStore) && !strings.Contains(env.Error.Description, "can not")
	if env.Error.Code == 503 || env.Error.Code == 429 || unmade {
		return env.Error
	}
	return nil
}

// ask calls JetStream's interface with a request in JSON.
func (b *Bus) ask(ctx context.Context, subject string, request, response any) (doubtful bool, err error) {
	return b.askAt(ctx, subject, request, response, quick)
}

func (b *Bus) askAt(ctx context.Context, subject string, request, response any, p pace) (doubtful bool, err error) {
	var data []byte
	if request != nil {
		if data, err = json.Marshal(request); err != nil {
			return false, err
		}
	}
	msg := &nats.Msg{Subject: apiPrefix + subject, Data: data}
	resp, doubtful, err := b.call(ctx, msg, p)
	if err != nil {
		return doubtful, err
	}
	return doubtful, decode(resp.Data, response)
}

// publish stores a message in the stream of its subject.
func (b *Bus) publish(ctx context.Context, msg *nats.Msg, p pace) (sequence uint64, doubtful bool, err error) {
	resp, doubtful, err := b.call(ctx, msg, p)
	if err != nil {
		return 0, doubtful, err
	}
	var ack struct {
		Seq uint64 `json:"seq"`
	}
	if err := decode(resp.Data, &ack); err != nil {
		return 0, doubtful, err
	}
	if ack.Seq == 0 {
		return 0, doubtful, fmt.Errorf("%w: %s: the answer is not JetStream's", cluster.ErrCluster, msg.Subject)
	}
	return ack.Seq, doubtful, nil
}

func decode(data []byte, into any) error {
	var env struct {
		Error *apiError `json:"error"`
	}
	if err := json.Unmarshal(data, &env); err != nil {
		return fmt.Errorf("%w: the broker's answer cannot be read: %v", cluster.ErrCluster, err)
	}
	if env.Error != nil {
		return env.Error
	}
	if into == nil {
		return nil
	}
	if err := json.Unmarshal(data, into); err != nil {
		return fmt.Errorf("%w: the broker's answer cannot be read: %v", cluster.ErrCluster, err)
	}
	return nil
}

// unreachable is the error of a call that was given up.
func (b *Bus) unreachable(cause, end error) error {
	if cause == nil {
		cause = b.link.why()
	}
	if cause == nil || errors.Is(cause, end) {
		return fmt.Errorf("%w: broker: %w", cluster.ErrUnreachable, end)
	}
	return fmt.Errorf("%w: broker: %v: %w", cluster.ErrUnreachable, cause, end)
}

// pause waits a little longer from try to try.
func pause(ctx context.Context, try int) error {
	d := min(20*time.Millisecond<<min(try, 6), time.Second)
	t := time.NewTimer(d/2 + rand.N(d))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// denials tells those who wait for an answer on a subject that it was denied:
// the server reports that on the connection, not to the inbox.
type denials struct {
	mu      sync.Mutex
	waiting map[string]map[*context.CancelCauseFunc]struct{}
}

func (d *denials) watch(subject string, cancel context.CancelCauseFunc) (stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.waiting == nil {
		d.waiting = map[string]map[*context.CancelCauseFunc]struct{}{}
	}
	if d.waiting[subject] == nil {
		d.waiting[subject] = map[*context.CancelCauseFunc]struct{}{}
	}
	d.waiting[subject][&cancel] = struct{}{}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(d.waiting[subject], &cancel)
		if len(d.waiting[subject]) == 0 {
			delete(d.waiting, subject)
		}
	}
}

// deny reports whether anybody waited. The text of the error quotes the subject.
func (d *denials) deny(err error) bool {
	_, rest, _ := strings.Cut(err.Error(), `"`)
	subject, _, _ := strings.Cut(rest, `"`)
	d.mu.Lock()
	defer d.mu.Unlock()
	for cancel := range d.waiting[subject] {
		(*cancel)(fmt.Errorf("%w: the credentials may not publish to %s", ErrDenied, subject))
	}
	return len(d.waiting[subject]) > 0
}
