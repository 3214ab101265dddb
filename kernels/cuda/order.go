package cuda

import "cmp"

// order is where the card's work stands. Launches go to one stream, copies to the card
// to another, so that rows of the next launch arrive while the card works; copies from
// it go to streams of their own (staging.go). An event lies between a copy and a launch,
// or between two copies, only where one needs the other.
type order struct {
	launches Stream
	copies   queue  // to the card
	copied   Event  // copies that launches wait for
	unseen   bool   // there are copies that launches do not wait for yet
	written  Event  // copies that reads wait for
	unread   []Span // where copies went that reads do not wait for yet
	number   int64  // of the last launch, from 1
	inFlight []inFlight
	late     error // of a Free, which returns none, for the next wait
}

// queue is a stream of copies.
type queue struct {
	stream  Stream
	awaited int64 // the last launch that they come after
}

// inFlight is a launch that is not known to be done; those before it are in front.
type inFlight struct {
	number int64
	done   Event
	finish func() // nil: nothing is to be done after it
}

// open makes the streams of launches and of copies to the card.
func (o *order) open(drv Driver) (err error) {
	for _, s := range []*Stream{&o.launches, &o.copies.stream} {
		if *s, err = drv.NewStream(); err != nil {
			return err
		}
	}
	for _, e := range []*Event{&o.copied, &o.written} {
		if *e, err = drv.NewEvent(); err != nil {
			return err
		}
	}
	return nil
}

// afterCopies lets later launches come after the copies so far.
func (t *Thread) afterCopies() error {
	if !t.unseen {
		return nil
	}
	if err := t.drv.Record(t.copied, t.copies.stream); err != nil {
		return err
	}
	t.unseen = false
	return t.drv.WaitEvent(t.launches, t.copied)
}

// after lets later copies of a queue come after a launch, by the number that Start
// returned; 0 is none.
func (t *Thread) after(q *queue, launch int64) error {
	if launch <= q.awaited {
		return nil
	}
	for _, f := range t.inFlight {
		if f.number == launch {
			q.awaited = launch
			return t.drv.WaitEvent(q.stream, f.done)
		}
	}
	return nil
}

// wait waits for all copies of a queue, and so for the launches that they come after.
// After an error of the driver nothing is in flight.
func (t *Thread) wait(q *queue) error {
	late := t.late
	t.late = nil
	if err := t.drv.Wait(q.stream); err != nil {
		t.inFlight = nil
		return cmp.Or(late, err)
	}
	for len(t.inFlight) > 0 && t.inFlight[0].number <= q.awaited {
		f := t.inFlight[0]
		t.inFlight = t.inFlight[1:]
		if f.finish != nil {
			f.finish()
		}
	}
	return late
}

// Keep keeps the first of the errors of a Free, which returns none, for the next call that waits: it
// may be that of a launch whose results are read then, and a driver need not say it twice.
func (t *Thread) Keep(errs ...error) { t.late = cmp.Or(t.late, cmp.Or(errs...)) }

// arrive waits for all copies to the card.
func (t *Thread) arrive() error {
	err := t.wait(&t.copies)
	t.staging.free()
	t.unseen, t.unread = false, t.unread[:0]
	return err
}

// Settle waits for everything.
func (t *Thread) Settle() error {
	if err := t.after(&t.copies, t.number); err != nil {
		return err
	}
	return t.arrive()
}
