package cuda

import (
	"errors"
	"fmt"

	"github.com/pce-engine/pce/kernels"
)

// Work is a sequence of launches, recorded once and started any number of times, one
// at a time: a graph of the driver, between a copy of its control words to the card
// and a copy of its result back.
type Work struct {
	// Control is what the next start copies to the card first. It may be written once
	// Ready has returned, until Start.
	Control []byte
	// Result is what the last start copied back, once its launch is done.
	Result []byte

	graph Graph
	cell  cell
	last  int64 // the number of its last launch
}

// cell is what a graph has for itself, so that several may be in flight: pinned
// memory of the host that its copies know, and the event after its last launch.
type cell struct {
	host []byte
	done Event
}

// Bytes of the control words and the result of a graph, at most; and how many graphs
// share an allocation of pinned memory.
const (
	mostControl = 192
	mostResult  = 64
	cellsAtOnce = 32
)

// cell returns a cell that no graph has.
func (t *Thread) cell() (c cell, err error) {
	if len(t.cells) == 0 {
		const size = mostControl + mostResult
		host, err := t.drv.AllocHost(cellsAtOnce * size)
		if err != nil {
			return c, err
		}
		for i := range cellsAtOnce {
			t.cells = append(t.cells, cell{host: host[i*size : (i+1)*size : (i+1)*size]})
		}
	}
	n := len(t.cells) - 1
	c = t.cells[n]
	if c.done == 0 {
		if c.done, err = t.drv.NewEvent(); err != nil {
			return c, err
		}
	}
	t.cells = t.cells[:n]
	return c, nil
}

// Record records what do launches and clears. The words at control are set before,
// those at result read after.
func (t *Thread) Record(control, result Span, do func() error) (*Work, error) {
	w, err := t.work(control, result)
	if err != nil {
		return nil, err
	}
	if err = t.drv.Capture(t.launches); err == nil {
		err = t.record(w, control, result, do)
		var ended error
		if w.graph, ended = t.drv.Captured(t.launches); err == nil { // ends the capture in any case
			err = ended
		} else if ended == nil {
			err = errors.Join(err, t.drv.FreeGraph(w.graph))
		}
	}
	if err != nil {
		t.cells = append(t.cells, w.cell)
		return nil, err
	}
	return w, nil
}

// work returns work with a cell, but no graph yet.
func (t *Thread) work(control, result Span) (*Work, error) {
	if control.Bytes > mostControl || result.Bytes > mostResult {
		return nil, fmt.Errorf("%w: %s: work with %d bytes of control words and %d of a result, want up to %d and %d",
			kernels.ErrDevice, t.name, control.Bytes, result.Bytes, mostControl, mostResult)
	}
	c, err := t.cell()
	if err != nil {
		return nil, err
	}
	clear(c.host)
	return &Work{Control: c.host[:control.Bytes:control.Bytes], Result: c.host[mostControl:][:result.Bytes:result.Bytes], cell: c}, nil
}

func (t *Thread) record(w *Work, control, result Span, do func() error) error {
	if control.Bytes > 0 {
		if err := t.drv.CopyIn(control.At, w.Control, t.launches); err != nil {
			return err
		}
	}
	if err := do(); err != nil || result.Bytes == 0 {
		return err
	}
	return t.drv.CopyOut(w.Result, result.At, t.launches)
}

// Launch records the launch of a kernel.
func (t *Thread) Launch(l Launch) error { return t.drv.Launch(l, t.launches) }

// Clear records that memory is set to zero.
func (t *Thread) Clear(s Span) error {
	if s.Bytes == 0 {
		return nil
	}
	return t.drv.Clear(s.At, s.Bytes, t.launches)
}

// flies reports whether the last launch of the work is not known to be done.
func (t *Thread) flies(w *Work) bool { return len(t.inFlight) > 0 && w.last >= t.inFlight[0].number }

// Ready waits until the last launch of the work is done, and lets the next one come
// after all copies so far.
func (t *Thread) Ready(w *Work) error {
	if t.flies(w) {
		// Not through the queue of copies to the card, which may be far behind.
		q := &t.staging.readers[0].queue
		if err := errors.Join(t.after(q, w.last), t.wait(q)); err != nil {
			return err
		}
	}
	return t.afterCopies()
}

// Start launches work that is ready and returns the number of the launch, which is
// now the last one that uses the buffers. finish, if there is one, is called on this
// thread when the launch is known to be done: before a Read of one of the buffers
// returns, or Sync.
func (t *Thread) Start(w *Work, buffers []*Buffer, finish func()) (int64, error) {
	if t.flies(w) {
		return 0, fmt.Errorf("%w: %s: start of work that is in flight; call Ready first", kernels.ErrDevice, t.name)
	}
	if err := t.drv.LaunchGraph(w.graph, t.launches); err != nil {
		return 0, err
	}
	return t.started(w, buffers, finish)
}

// started notes work that is on the stream.
func (t *Thread) started(w *Work, buffers []*Buffer, finish func()) (int64, error) {
	if err := t.drv.Record(w.cell.done, t.launches); err != nil {
		return 0, err
	}
	t.number++
	w.last = t.number
	t.inFlight = append(t.inFlight, inFlight{w.last, w.cell.done, finish})
	for _, b := range buffers {
		b.used = w.last
	}
	return w.last, nil
}

// Direct does what Record and Start do, without a graph, and waits for it: do's
// launches go to the stream as they are made, after set has written the control words,
// and the times between their marks are added up. finish gets the result. The card works
// through launches while the host makes the next ones, so what an event adds to a
// kernel is a microsecond or so.
func (t *Thread) Direct(control, result Span, set func(control []byte), do func() error, buffers []*Buffer, finish func(result []byte)) (last int64, err error) {
	w, err := t.work(control, result)
	if err != nil {
		return 0, err
	}
	defer func() {
		err = errors.Join(err, t.Settle())
		t.cells = append(t.cells, w.cell)
	}()
	set(w.Control)
	if err := t.afterCopies(); err != nil {
		return 0, err
	}
	t.meter.marks = t.meter.marks[:0]
	if err := t.record(w, control, result, do); err != nil {
		return 0, err
	}
	if last, err = t.started(w, buffers, nil); err != nil {
		return 0, err
	}
	if err := t.Settle(); err != nil {
		return last, err
	}
	finish(w.Result)
	return last, t.meter.count(t.drv)
}

// Drop gives work back that is not in flight.
func (t *Thread) Drop(w *Work) error {
	t.cells = append(t.cells, w.cell)
	return t.drv.FreeGraph(w.graph)
}
