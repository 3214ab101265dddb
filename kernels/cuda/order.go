package cuda

// order is where the card's work stands. Launches go to one stream, copies to
// another, so that rows of the next launch arrive while the card works; an event
// stands between a copy and a launch only where one needs the other. Only a read
// waits for the card.
type order struct {
	launches, copies Stream
	copied           Event // copies that launches wait for
	unseen           bool  // there are copies that launches do not wait for yet
	number           int64 // of the last launch, from 1
	inFlight         []inFlight
	awaited          int64 // the last launch that copies come after
}

// inFlight is a launch that is not known to be done; those before it are in front.
type inFlight struct {
	number int64
	done   Event
	finish func() // nil: nothing is to be done after it
}

// open makes the streams.
func (o *order) open(drv Driver) (err error) {
	for _, s := range []*Stream{&o.launches, &o.copies} {
		if *s, err = drv.NewStream(); err != nil {
			return err
		}
	}
	o.copied, err = drv.NewEvent()
	return err
}

// afterCopies lets later launches come after the copies so far.
func (t *Thread) afterCopies() error {
	if !t.unseen {
		return nil
	}
	if err := t.drv.Record(t.copied, t.copies); err != nil {
		return err
	}
	t.unseen = false
	return t.drv.WaitEvent(t.launches, t.copied)
}

// After lets later copies come after a launch, by the number that Start returned; 0
// is none. A copy needs it where the launch touches the same memory.
func (t *Thread) After(launch int64) error {
	if launch <= t.awaited {
		return nil
	}
	for _, f := range t.inFlight {
		if f.number == launch {
			t.awaited = launch
			return t.drv.WaitEvent(t.copies, f.done)
		}
	}
	return nil
}

// arrive waits for all copies, and so for the launches that they come after. After
// an error nothing is in flight.
func (t *Thread) arrive() error {
	err := t.drv.Wait(t.copies)
	t.staging.used, t.unseen = 0, false
	if err != nil {
		t.inFlight, t.awaited = nil, t.number
		return err
	}
	for len(t.inFlight) > 0 && t.inFlight[0].number <= t.awaited {
		f := t.inFlight[0]
		t.inFlight = t.inFlight[1:]
		if f.finish != nil {
			f.finish()
		}
	}
	return nil
}

// Settle waits for everything.
func (t *Thread) Settle() error {
	if err := t.After(t.number); err != nil {
		return err
	}
	return t.arrive()
}
