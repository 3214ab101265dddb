package serve

import "time"

// admission is a place in the queues of a model for a request whose tensors have
// not been decoded yet: decoding then costs no time where the rows would be refused,
// however many requests come at once.
type admission struct {
	version *version
	rows    int // that the request should have, by its bytes
	bytes   int // of its body
}

// admit reserves a place for a request of that many bytes. It is without a version where
// the model is not in memory; acquire then says more. The caller ends the admission.
func (r *repository) admit(name string, bytes int) (admission, error) {
	v := r.current(name)
	if v == nil {
		return admission{}, nil
	}
	l := v.lane
	l.mu.Lock()
	a := admission{version: v, rows: v.account.expect(bytes), bytes: bytes}
	err := l.room(v, a.least(), "seems by its bytes to have")
	if err == nil {
		v.account.reserved += a.rows
	}
	l.mu.Unlock()
	if err != nil {
		status, _ := statusOf(err)
		v.stats.Request("", status, 0, 0, 0, 0)
		v.release()
		return admission{}, err
	}
	return a, nil
}

// full refuses a request before its body is read if it would be refused afterwards.
// bytes is the stated length of the body, negative where none is stated.
func (r *repository) full(name string, bytes int64) error {
	v := r.current(name)
	if v == nil {
		return nil
	}
	defer v.release()
	v.lane.mu.Lock()
	a := admission{rows: v.account.expect(int(max(0, bytes)))}
	err := v.lane.room(v, a.least(), "seems by its bytes to have")
	v.lane.mu.Unlock()
	if err != nil {
		status, _ := statusOf(err)
		v.stats.Request("", status, 0, 0, 0, 0)
	}
	return err
}

// current returns the version of a model that is in memory, which the caller
// releases, or nil.
func (r *repository) current(name string) *version {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, err := r.find(name)
	if err != nil || e.current == nil || r.closing {
		return nil
	}
	r.clock++
	e.used = r.clock
	e.current.hold()
	return e.current
}

// least is what the request must find room for: half of what it should have, since an
// estimate that is too high must not refuse rows that fit.
func (a *admission) least() int { return (a.rows + 1) / 2 }

// end gives the place back unless submit has taken it.
func (a *admission) end() {
	if a.version == nil {
		return
	}
	a.version.lane.mu.Lock()
	a.version.account.leave(a)
	a.version.lane.mu.Unlock()
	a.version.release()
}

// leave gives the rows of a place back. The caller holds lane.mu.
func (a *account) leave(place *admission) {
	a.reserved -= place.rows
	place.rows = 0
}

// headBytes are what names, shapes and parameters of a request may take beside its
// rows. A request of at most this size counts as one row.
const headBytes = 512

// expect estimates the rows of a request from its bytes, rather too low, as rows that find no room are refused once they are decoded. Of
// earlier ones nothing may have been a head, so that rows are in proportion to all bytes, or headBytes. The caller holds lane.mu.
func (a *account) expect(bytes int) int {
	if bytes <= headBytes || a.meanBytes == 0 {
		return 1
	}
	b := float64(bytes)
	return max(1, int(a.meanRows*min(b/a.meanBytes, (b-headBytes)/(a.meanBytes-headBytes))))
}

// learnSize keeps running means of what longer requests are like: of their own rows, as how many the model sees for each
// is a parameter that says nothing of the bytes of other requests. The caller holds lane.mu.
func (a *account) learnSize(rows, bytes int) {
	if bytes <= headBytes {
		return
	}
	n, b := float64(rows), float64(bytes)
	if a.meanBytes == 0 {
		a.meanRows, a.meanBytes = n, b
	}
	a.meanRows += (n - a.meanRows) / 16
	a.meanBytes += (b - a.meanBytes) / 16
}

// room refuses rows for which the queues of a model have no room; has says how sure their number is. One request is
// always taken, so more rows than may wait are answered while nothing else waits. The caller holds mu.
func (l *lane) room(v *version, rows int, has string) error {
	a := v.account
	n := a.waiting + a.reserved
	if n > 0 && n+rows > l.opts.MaxQueueRows {
		a.full = time.Now()
		advice := "try again later"
		if rows > l.opts.MaxQueueRows {
			advice = "this request alone " + has + " more, and is taken only while none wait; send fewer rows at once"
		}
		rows, wait := "rows", "wait"
		if n == 1 {
			rows, wait = "row", "waits"
		}
		return &retryError{fail(ErrFull, "%d %s of model %q %s, %d may; %s", n, rows, v.name, wait, l.opts.MaxQueueRows, advice),
			time.Duration(float64(n) * a.all.perRow())}
	}
	return nil
}

// overload is how long after a refusal a model counts as overloaded.
const overload = time.Second

// stale refuses a job of an overloaded model that has waited longer
// than it should: for the batch that was under way and for those before its own. A batch
// that was held up, by a new version that is being opened or by another program, would
// else make those behind it late, and those that they keep out would have been in time.
// What batches of other models took does not count. Where no request is refused for want
// of room, none is stale. The caller holds mu.
func (l *lane) stale(q *queue, j *job, most int, now time.Time) error {
	a := q.version.account
	if j.next > 0 || now.Sub(a.full) > overload {
		return nil
	}
	batches := 1 + (l.opts.MaxQueueRows-1)/most
	// Rows before it may be of any query; those of a slow one that is asked now and then hardly count among all.
	perRow := max(a.all.perRow(), q.version.costs[j.query].perRow())
	should := float64(batches*most) * perRow
	waited := float64(now.Sub(j.seen)-max(0, l.opts.MaxQueueDelay)) - (l.ran - a.ran - j.others)
	if should == 0 || waited <= should {
		return nil
	}
	return &retryError{fail(ErrFull, "model %q is overloaded and did not come to this request in time; try again later", q.version.name), time.Second}
}
