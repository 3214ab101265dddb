package cuda

import "encoding/binary"

// order is where the card's work stands. Launches go to one stream, copies to
// another, so that rows of the next launch arrive while the card works; an event
// stands between a copy and a launch only where one needs the other. Nothing waits
// for the card but who reads from it. All of it belongs to the driver's thread.
type order struct {
	launches, copies Stream
	copied           Event // copies that launches wait for
	unseen           bool  // there are copies that launches do not wait for yet
	number           int64 // of the last launch, from 1
	flights          []flight
	awaited          int64   // the last launch that copies come after
	events           []Event // of programs that were freed
}

// flight is a launch that is not known to be done. Those before it are in front.
type flight struct {
	number     int64
	done       Event
	badRows    []byte // in host memory: how many rows were marked
	values     int    // vectors that keep values
	recomputed *int64 // nil: nobody asks
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

// event returns an event that no work uses.
func (d *Device) event() (Event, error) {
	if n := len(d.events); n > 0 {
		e := d.events[n-1]
		d.events = d.events[:n-1]
		return e, nil
	}
	return d.drv.NewEvent()
}

// afterCopies lets later launches come after the copies so far.
func (d *Device) afterCopies() error {
	if !d.unseen {
		return nil
	}
	if err := d.drv.Record(d.copied, d.copies); err != nil {
		return err
	}
	d.unseen = false
	return d.drv.WaitEvent(d.launches, d.copied)
}

// afterLaunch lets later copies come after a launch.
func (d *Device) afterLaunch(number int64) error {
	if number <= d.awaited {
		return nil
	}
	for _, f := range d.flights {
		if f.number == number {
			d.awaited = number
			return d.drv.WaitEvent(d.copies, f.done)
		}
	}
	return nil
}

// launch starts a graph and returns the number of the launch.
func (d *Device) launch(g Graph, f flight) (int64, error) {
	if err := d.drv.LaunchGraph(g, d.launches); err != nil {
		return 0, err
	}
	if err := d.drv.Record(f.done, d.launches); err != nil {
		return 0, err
	}
	d.number++
	f.number = d.number
	d.flights = append(d.flights, f)
	return f.number, nil
}

// arrive waits for all copies, and so for the launches that they come after. After
// an error nothing is under way.
func (d *Device) arrive() error {
	err := d.drv.Wait(d.copies)
	d.staging.used, d.unseen = 0, false
	if err != nil {
		d.flights, d.awaited = nil, d.number
		return err
	}
	for len(d.flights) > 0 && d.flights[0].number <= d.awaited {
		f := d.flights[0]
		if f.recomputed != nil {
			*f.recomputed = int64(binary.LittleEndian.Uint32(f.badRows)) * int64(f.values)
		}
		d.flights = d.flights[1:]
	}
	return nil
}

// settle waits for everything.
func (d *Device) settle() error {
	if err := d.afterLaunch(d.number); err != nil {
		return err
	}
	return d.arrive()
}
