package serve

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime/debug"
	"slices"
	"strconv"
	"sync"
	"syscall"
	"time"

	"github.com/pce-engine/pce/serve/cells"
	"github.com/pce-engine/pce/serve/metrics"
	"github.com/pce-engine/pce/serve/oip"
)

// States of a model, as the repository extension names them.
const (
	stateReady       = "READY"
	stateLoading     = "LOADING"
	stateUnavailable = "UNAVAILABLE"
)

// repository holds the models: those in memory, and how to get the others.
type repository struct {
	opts    *Options
	metrics *metrics.Metrics
	ctx     context.Context // ends when the server is closed
	openers sync.WaitGroup

	mu      sync.Mutex
	models  []*entry // in the order of Options.Models
	lanes   map[string]*lane
	memory  int64 // of versions that are open or about to be
	open    int   // versions
	closing bool
	clock   int64 // counts uses
	freed   chan struct{}
}

// entry is a model by its name. The repository's mu guards it.
type entry struct {
	Source
	current *version
	opening chan struct{} // closed when the opener is done; nil: none is at work
	waiting int           // requests that wait for it: it does not leave before they have it
	unused  bool          // unloaded by request: only a request loads it again
	err     error         // of the last attempt to open it
	failed  time.Time     // when that was
	file    fileStamp     // of the file that current was opened from
	number  int           // of the last version
	used    int64         // repository.clock at the last use
	stats   *metrics.Statistics
}

// retryOpen is how long a model that could not be opened is not tried again for the
// sake of requests.
const retryOpen = time.Second

// retryReload is after how long a new version is tried anew whose file could not be opened for a reason that may pass.
const retryReload = 30 * time.Second

// errInUse is matched by a lack of memory that may pass, as other models have it in use.
var errInUse = errors.New("other models use the rest")

// passing reports whether a failure to open a file may pass while the file stays as it is: memory that others had in use, or what
// the system lacked or forbade, such as descriptors and rights.
func passing(err error) bool {
	var system syscall.Errno
	return errors.Is(err, errInUse) || errors.As(err, &system)
}

// fileStamp tells one content of a file from another without reading it.
type fileStamp struct {
	size    int64
	changed time.Time
	info    os.FileInfo
}

func stampOf(path string) fileStamp {
	info, err := os.Stat(path)
	if err != nil {
		return fileStamp{}
	}
	return fileStamp{size: info.Size(), changed: info.ModTime(), info: info}
}

// same reports whether both are of the same content. A file that cannot be seen is
// the same as any other, so that a model outlives its file.
func (a fileStamp) same(b fileStamp) bool {
	return b.info == nil || a.info != nil && a.size == b.size && a.changed.Equal(b.changed) && os.SameFile(a.info, b.info)
}

// replaced reports whether b is of another file than a.
func (a fileStamp) replaced(b fileStamp) bool {
	return a.info != nil && b.info != nil && !os.SameFile(a.info, b.info)
}

func newRepository(ctx context.Context, o *Options, m *metrics.Metrics) *repository {
	r := &repository{opts: o, metrics: m, ctx: ctx, lanes: map[string]*lane{}, freed: make(chan struct{})}
	for _, s := range o.Models {
		r.models = append(r.models, &entry{Source: s, stats: m.Model(s.Name)})
	}
	return r
}

func (r *repository) find(name string) (*entry, error) {
	for _, e := range r.models {
		if e.Name == name {
			return e, nil
		}
	}
	return nil, fail(ErrModel, "model %q; GET /v2/models lists those that are served", clip(name))
}

// acquire returns a version of a model, which the caller releases. A model that left
// memory is opened again; the caller waits for that as long as ctx lets it.
func (r *repository) acquire(ctx context.Context, name, number string) (*version, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, err := r.find(name)
	if err != nil {
		return nil, err
	}
	e.waiting++
	defer func() {
		e.waiting--
		r.wake()
	}()
	for {
		v, opening, err := r.takeFrom(e, number)
		if opening == nil {
			return v, err
		}
		r.mu.Unlock()
		select {
		case <-opening:
		case <-ctx.Done():
			if err = ctx.Err(); !errors.Is(err, context.Canceled) { // else the client has left
				err = fail(ErrLate, "model %q is still being loaded", name)
			}
		}
		if r.mu.Lock(); err != nil {
			return nil, err
		}
	}
}

// take returns a version of a model, which the caller releases, or a channel that is
// closed once an opener has done what it could to get one.
func (r *repository) take(name, number string) (v *version, opening <-chan struct{}, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, err := r.find(name)
	if err != nil {
		return nil, nil, err
	}
	return r.takeFrom(e, number)
}

// takeFrom is take for an entry. The caller holds mu.
func (r *repository) takeFrom(e *entry, number string) (v *version, opening <-chan struct{}, err error) {
	v = e.current
	switch {
	case v != nil && number != "" && number != v.number:
		return nil, nil, fail(ErrModel, "version %q of model %q; %q is served", clip(number), e.Name, v.number)
	case v != nil:
		r.clock++
		e.used = r.clock
		v.hold()
		return v, nil, nil
	case r.closing:
		return nil, nil, fail(ErrUnavailable, "the server is shutting down")
	case e.unused:
		return nil, nil, fail(ErrUnavailable, "model %q is unloaded; load it first", e.Name)
	case e.opening == nil && e.err != nil && time.Since(e.failed) < retryOpen:
		return nil, nil, &retryError{fail(ErrUnavailable, "model %q cannot be loaded: %v", e.Name, e.err), retryOpen}
	}
	return nil, r.start(e), nil
}

// start starts an opener for a model unless one is at work, and returns the channel
// that is closed when it is done. The caller holds mu.
func (r *repository) start(e *entry) <-chan struct{} {
	if e.opening == nil {
		done := make(chan struct{})
		e.opening = done
		r.openers.Go(func() { // an opener
			err := r.replace(e)
			r.mu.Lock()
			e.err, e.opening, e.failed = err, nil, time.Now()
			failed := err != nil && !r.closing // what ends with the server has not failed
			r.mu.Unlock()
			if failed {
				r.metrics.LoadFailed(e.Name)
				r.opts.Log.Error("model not loaded", "model", e.Name, "err", err)
			}
			close(done)
		})
	}
	return e.opening
}

// replace opens a model's file and puts it in the place of the version that is
// served, which stays until its requests are answered.
func (r *repository) replace(e *entry) error {
	stamp := stampOf(e.Path)
	r.mu.Lock()
	if e.current != nil {
		e.file = stamp // a damaged file is tried once
	}
	r.mu.Unlock()
	var bytes int64
	err := r.guarded(e, func() (err error) {
		bytes, err = r.opts.Loader.Plan(r.ctx, e.Path)
		return err
	})
	if err != nil {
		return err
	}
	if err := r.reserve(e, bytes); err != nil {
		return err
	}
	from := time.Now()
	var model Model
	var v *version
	var device string
	err = r.guarded(e, func() (err error) {
		opened, err := r.opts.Loader.Open(r.ctx, e.Path)
		if err != nil {
			return err
		}
		model = opened
		v = &version{
			name: e.Name, model: model, schema: model.Schema(), queries: model.Queries(), rows: cells.NewReader(model.Schema(), model.CheckCell),
			bytes: max(bytes, model.Bytes()), stats: e.stats, log: r.opts.Log,
		}
		v.unasked, device = unasked(v.queries), model.Device()
		return checkQueries(v.queries)
	})
	if err != nil {
		r.free(bytes)
		if model != nil {
			err = errors.Join(err, model.Close())
		}
		return err
	}
	v.closed = func() {
		if err := model.Close(); err != nil {
			r.opts.Log.Warn("model did not close", "model", v.name, "err", err)
		}
		r.mu.Lock()
		r.open--
		r.mu.Unlock()
		r.free(v.bytes)
	}
	v.hold() // the repository's

	r.mu.Lock()
	r.memory += v.bytes - bytes
	r.open++
	if r.closing {
		r.mu.Unlock()
		v.release()
		return fail(ErrUnavailable, "the server is shutting down")
	}
	e.number++
	v.number = strconv.Itoa(e.number)
	if v.lane = r.lanes[device]; v.lane == nil {
		v.lane = newLane(r.opts)
		r.lanes[device] = v.lane
	}
	old := e.current
	v.lane.open(v, old)
	r.clock++
	e.current, e.file, e.unused, e.used = v, stamp, false, r.clock
	e.stats.Loaded(v.number, v.bytes) // before it can leave
	r.wake()                          // it can leave for a model that waits for memory
	r.mu.Unlock()
	if old != nil {
		old.release()
	}
	r.opts.Log.Info("model loaded", "model", e.Name, "version", v.number, "device", device, "bytes", v.bytes, "dur", time.Since(from))
	return nil
}

// guarded calls what opens a model. A panic, as of a reader whose fault a file shows, fails that model, not the server with the others.
func (r *repository) guarded(e *entry, do func() error) (err error) {
	defer func() {
		if bug := recover(); bug != nil {
			err = fail(ErrInternal, "%v; the server's log has the details", bug)
			r.opts.Log.Error("model failed", "model", e.Name, "err", fmt.Sprint(bug), "stack", string(debug.Stack()))
		}
	}()
	return do()
}

// reserve finds memory for a model: those that were used least recently leave. Those
// that requests hold, that are being opened, and that requests are about to take are waited for, within Timeout.
func (r *repository) reserve(e *entry, bytes int64) error {
	ctx, cancel := context.WithTimeout(r.ctx, r.opts.Timeout)
	defer cancel()
	for {
		r.mu.Lock()
		limit := r.opts.MaxMemory
		if limit <= 0 || r.memory+bytes <= limit {
			r.memory += bytes
			r.mu.Unlock()
			return nil
		}
		var oldest *entry
		for _, other := range r.models {
			if other != e && other.current != nil && other.waiting == 0 && (oldest == nil || other.used < oldest.used) {
				oldest = other
			}
		}
		used, freed := r.memory, r.freed
		own := int64(0)
		if e.current != nil {
			own = e.current.bytes
		}
		var leaves *version
		if oldest != nil && own+bytes <= limit { // else it would leave for nothing
			leaves, oldest.current = oldest.current, nil
		}
		r.mu.Unlock()
		switch {
		case bytes > limit:
			return fmt.Errorf("%w: it takes %d MiB, models may take %d; raise the limit", ErrMemory, mib(bytes), mib(limit))
		case own+bytes > limit:
			return fmt.Errorf("%w: it takes %d MiB beside the %d MiB of the version that it replaces, models may take %d; raise the limit", ErrMemory, mib(bytes), mib(own), mib(limit))
		case leaves != nil:
			r.opts.Log.Info("model leaves memory", "model", leaves.name, "version", leaves.number, "for", e.Name)
			leaves.stats.Loaded(leaves.number, 0)
			leaves.release()
			continue
		}
		select {
		case <-freed: // by requests of versions that left, or another model can leave
		case <-ctx.Done():
			return fmt.Errorf("%w: it takes %d MiB, of %d MiB that models may take %d are in use: %w", ErrMemory, mib(bytes), mib(limit), mib(used), errInUse)
		}
	}
}

func mib(bytes int64) int64 { return (bytes + 1<<20 - 1) >> 20 }

// free gives memory back.
func (r *repository) free(bytes int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.memory -= bytes
	r.wake()
}

// wake lets those that wait for memory look again. The caller holds mu.
func (r *repository) wake() {
	close(r.freed)
	r.freed = make(chan struct{})
}

// load opens a model, or opens it again, and waits for it; it is what model control and the
// start of the server call. Several calls wait for the same opening. When ctx ends before, the
// opening continues and the error is ErrLate.
func (r *repository) load(ctx context.Context, name string) error {
	r.mu.Lock()
	e, err := r.find(name)
	if err != nil || r.closing {
		r.mu.Unlock()
		return errors.Join(err, closingError(r.closing))
	}
	opening := r.start(e)
	r.mu.Unlock()
	select {
	case <-opening:
	case <-ctx.Done():
		return fail(ErrLate, "model %q is still being loaded", name)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if e.err != nil {
		return fmt.Errorf("%w: model %q cannot be loaded: %w", ErrUnavailable, name, e.err)
	}
	return nil
}

func closingError(closing bool) error {
	if closing {
		return fail(ErrUnavailable, "the server is shutting down")
	}
	return nil
}

// unload lets a model leave until load is called.
func (r *repository) unload(name string) error {
	r.mu.Lock()
	e, err := r.find(name)
	if err != nil {
		r.mu.Unlock()
		return err
	}
	if e.opening != nil {
		r.mu.Unlock()
		return &retryError{fail(ErrUnavailable, "model %q is being loaded; unload it afterwards", name), time.Second}
	}
	v := e.current
	e.current, e.unused, e.err = nil, true, nil // what a newer file had wrong does not say why there is none
	r.mu.Unlock()
	if v != nil {
		v.stats.Loaded(v.number, 0)
		v.release()
	}
	return nil
}

// index lists the models with their states, and why one is not ready; with ready set, those
// that are.
func (r *repository) index(ready bool) []oip.IndexEntry {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := []oip.IndexEntry{}
	for _, e := range r.models {
		x := oip.IndexEntry{Name: e.Name, State: stateUnavailable}
		switch {
		case e.current != nil:
			x.Version, x.State = e.current.number, stateReady
			if e.err != nil && e.opening == nil {
				x.Reason = "a newer version cannot be loaded: " + e.err.Error()
			}
		case e.opening != nil:
			x.State = stateLoading
		case e.err != nil:
			x.Reason = e.err.Error()
		case e.unused:
			x.Reason = "unloaded"
		case e.number > 0:
			x.Reason = "left memory; the next request loads it"
		}
		if !ready || x.State == stateReady {
			list = append(list, x)
		}
	}
	return list
}

// ready reports why the server is not ready: whether a model that requests may ask
// for has never been opened.
func (r *repository) ready() error {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.closing {
		return closingError(true)
	}
	for _, e := range r.models {
		if e.current == nil && e.number == 0 && !e.unused {
			if e.err != nil {
				return fail(ErrUnavailable, "model %q cannot be loaded: %v", e.Name, e.err)
			}
			return fail(ErrUnavailable, "model %q is being loaded", e.Name)
		}
	}
	return nil
}

// modelReady reports whether a version of a model answers without being loaded first.
func (r *repository) modelReady(name, number string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	e, err := r.find(name)
	switch {
	case err != nil:
		return err
	case r.closing:
		return closingError(true)
	case e.current == nil:
		return fail(ErrUnavailable, "model %q is not loaded", name)
	case number != "" && number != e.current.number:
		return fail(ErrModel, "version %q of model %q; %q is served", clip(number), name, e.current.number)
	}
	return nil
}

// watch looks at the files of loaded models until the server is closed, and opens
// those again that changed, or that could not be opened for a reason that may pass. Another file
// of the same name is whole, as it was renamed; one that is being written in place must have been
// the same at two looks in a row.
func (r *repository) watch() {
	tick := time.NewTicker(r.opts.ReloadEvery)
	defer tick.Stop()
	seen := map[*entry]fileStamp{}
	for {
		select {
		case <-r.ctx.Done():
			return
		case <-tick.C:
		}
		for _, e := range r.models {
			now := stampOf(e.Path)
			r.mu.Lock()
			changed := e.current != nil && (!e.file.same(now) || now.info != nil && passing(e.err) && time.Since(e.failed) >= retryReload)
			if changed && e.opening == nil && !r.closing && (e.file.replaced(now) || seen[e].same(now)) {
				what := "model file changed"
				if e.file.same(now) {
					what = "model file tried anew"
				}
				r.opts.Log.Info(what, "model", e.Name, "path", e.Path)
				r.start(e)
			}
			r.mu.Unlock()
			seen[e] = now
		}
	}
}

// stop refuses new work from now on.
func (r *repository) stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.closing = true
}

// close closes every model after its requests, then the lanes. It is called once requests are
// no longer accepted, and waits for those that run.
func (r *repository) close() {
	r.stop()
	r.openers.Wait()
	r.mu.Lock()
	var open []*version
	for _, e := range r.models {
		if e.current != nil {
			open = append(open, e.current)
			e.current = nil
		}
	}
	r.mu.Unlock()
	for _, v := range open {
		v.release()
	}
	r.mu.Lock()
	for r.open > 0 {
		freed := r.freed
		r.mu.Unlock()
		<-freed
		r.mu.Lock()
	}
	lanes := r.lanes
	r.lanes = nil
	r.mu.Unlock()
	for _, l := range lanes {
		l.close()
	}
}

// checkQueries holds a model to what requests rely on, when it is opened. What it finds is a
// bug of the model's package, so it says so.
func checkQueries(list []Query) error {
	names := map[string]bool{}
	for i := range list {
		q := &list[i]
		if q.Name == "" || names[q.Name] || len(q.Outputs) == 0 {
			return fmt.Errorf("BUG: serve: query %d, %q, has no name, the name of another, or no outputs", i, q.Name)
		}
		names[q.Name] = true
		if q.Whole && (len(q.Inputs) > 0 || q.Numbers != "" || q.Repeat != "" || q.RowsOptional) {
			return fmt.Errorf("BUG: serve: query %q is about the model, and says what its rows are", q.Name)
		}
		repeat := q.Repeat == "" || slices.ContainsFunc(q.Params, func(p Param) bool {
			_, whole := p.Default.(int64)
			return p.Name == q.Repeat && whole
		})
		if !repeat {
			return fmt.Errorf("BUG: serve: query %q repeats rows by %q, which is not one of its integer parameters", q.Name, q.Repeat)
		}
	}
	if len(list) == 0 {
		return errors.New("BUG: serve: the model answers no query")
	}
	return nil
}

// shown is a parameter of a request for a message. A text may be as long as the request.
func shown(x any) string { return clip(fmt.Sprint(x)) }

// clip shortens a text of a request for a message.
func clip(s string) string {
	const most = 80
	if len(s) > most {
		return s[:most] + "..."
	}
	return s
}
