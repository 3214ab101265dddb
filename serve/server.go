package serve

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"sync"
	"time"

	"github.com/pce-engine/pce/serve/metrics"
	"github.com/pce-engine/pce/serve/oip"
)

// Server answers inference requests. It is an http.Handler, and safe for concurrent
// use.
type Server struct {
	opts    Options
	models  *repository
	metrics *metrics.Metrics
	handler http.Handler
	token   [sha256.Size]byte
	cancel  context.CancelFunc
	watcher sync.WaitGroup
	once    sync.Once
	done    chan struct{}
	bodies  sync.Pool // of *[]byte, for bodies to come
	answers sync.Pool // of *[]byte, for answers to come
	timers  sync.Pool // of *time.Timer that are stopped, for calls to come

	mu      sync.Mutex
	calls   int           // requests that are being answered
	closing chan struct{} // set by Close, closed when calls is 0
}

// New makes a server. It answers at once; Load opens the models. Close it.
func New(o Options) (*Server, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(context.Background())
	s := &Server{opts: o, metrics: &metrics.Metrics{Began: time.Now()}, cancel: cancel, done: make(chan struct{}), token: sha256.Sum256([]byte(o.Token))}
	s.models = newRepository(ctx, &s.opts, s.metrics)
	s.handler = s.guard(s.routes())
	if o.ReloadEvery > 0 {
		s.watcher.Go(s.models.watch) // the watcher
	}
	return s, nil
}

// Load opens every model once, as many as memory has room for. It returns the first
// error; models whose files are at fault are tried again when a request wants them. An end of ctx
// is an error that matches that of ctx.
func (s *Server) Load(ctx context.Context) error {
	for _, m := range s.opts.Models {
		err := s.models.load(ctx, m.Name)
		if errors.Is(err, ErrLate) && ctx.Err() != nil { // a deadline that no request has set
			err = fmt.Errorf("model %q is still being loaded: %w", m.Name, ctx.Err())
		}
		if err != nil {
			return fmt.Errorf("serve: %w", err)
		}
	}
	return nil
}

// ServeHTTP answers a request.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { s.handler.ServeHTTP(w, r) }

// Drain makes readiness checks fail, so that no new requests are sent here. Those
// that come are still answered.
func (s *Server) Drain() { s.models.stop() }

// Close waits for the requests that are being answered, then frees the models.
// Later requests are refused as unavailable; a second Close waits for the first.
func (s *Server) Close() error {
	s.once.Do(func() {
		defer close(s.done)
		s.models.stop()
		s.finish()
		s.cancel()
		s.watcher.Wait()
		s.models.close()
	})
	<-s.done
	return nil
}

// enter counts a request in, unless too many are being answered. The caller calls
// leave if it returns nil.
func (s *Server) enter() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing != nil {
		return fail(ErrUnavailable, "the server is shutting down")
	}
	if s.calls >= s.opts.MaxInFlight {
		return &retryError{fail(ErrFull, "%d requests are being answered, as many as may be; try again later", s.calls), time.Second}
	}
	s.calls++
	s.metrics.InFlight.Store(int64(s.calls))
	return nil
}

func (s *Server) leave() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls--
	s.metrics.InFlight.Store(int64(s.calls))
	if s.closing != nil && s.calls == 0 {
		close(s.closing)
	}
}

// finish refuses further requests and waits for those that are being answered.
func (s *Server) finish() {
	s.mu.Lock()
	s.closing = make(chan struct{})
	if s.calls == 0 {
		close(s.closing)
	}
	s.mu.Unlock()
	<-s.closing
}

// reserve accounts for memory that a request takes, which the caller gives back to
// metrics.Pending. own is what the request has taken before: what is too much for one request is so at any time.
func (s *Server) reserve(bytes, own int64) error {
	if own+bytes > s.opts.MaxPending {
		return fail(ErrTooLarge, "the request takes %d MiB, and all together may take %d; send fewer rows", mib(own+bytes), mib(s.opts.MaxPending))
	}
	if n := s.metrics.Pending.Add(bytes); n > s.opts.MaxPending {
		s.metrics.Pending.Add(-bytes)
		return &retryError{fail(ErrFull, "requests take %d MiB, and this one wants %d more, of %d; try again later", mib(n-bytes), mib(bytes), mib(s.opts.MaxPending)), time.Second}
	}
	return nil
}

// control loads or unloads a model at a request's wish, where that is allowed.
func (s *Server) control(ctx context.Context, name string, load bool) error {
	if !s.opts.ModelControl {
		return fail(ErrForbidden, "this server does not load and unload models by request; start it with --model-control")
	}
	if !load {
		return s.models.unload(name)
	}
	ctx, cancel := context.WithTimeout(ctx, s.opts.Timeout)
	defer cancel()
	return s.models.load(ctx, name)
}

// info is the server's metadata.
func (s *Server) info() *oip.ServerInfo {
	return &oip.ServerInfo{Name: "pce", Version: s.opts.Version, Extensions: []string{"binary_tensor_data", "statistics", "model_repository"}}
}

// statistics lists those of one model, or of all.
func (s *Server) statistics(ctx context.Context, name, number string) ([]oip.Statistics, error) {
	list := s.metrics.Reports(name)
	if name == "" {
		return list, nil
	}
	if _, err := s.models.find(name); err != nil {
		return nil, err
	}
	if number != "" && list[0].Version != number {
		return nil, fail(ErrModel, "version %q of model %q; %q is served", clip(number), name, list[0].Version)
	}
	return list, nil
}

// waiting counts the rows of each model that wait.
func (r *repository) waiting() map[string]int {
	r.mu.Lock()
	lanes := make([]*lane, 0, len(r.lanes))
	for _, l := range r.lanes {
		lanes = append(lanes, l)
	}
	r.mu.Unlock()
	rows := map[string]int{}
	for _, l := range lanes {
		l.mu.Lock()
		for _, q := range l.queues {
			rows[q.version.name] += q.rows
		}
		l.mu.Unlock()
	}
	return rows
}
