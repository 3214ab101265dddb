package serve

import (
	"fmt"
	"log/slog"
	"regexp"
	"time"
)

// Source is a model under the name that requests use.
type Source struct{ Name, Path string }

// Options configure a Server. Zero fields have the defaults that their comments give.
type Options struct {
	Loader  Loader
	Models  []Source
	Version string // of the program, for metadata

	// Batching.
	MaxBatchRows  int           // rows that are run together; 1024
	MaxQueueDelay time.Duration // that a request waits for others; 500 µs, negative: none
	MaxQueueRows  int           // of a model that may wait; MaxBatchRows. One request is always taken
	Parallel      int           // batches that run at a time on a device; 1

	// Limits of a request.
	MaxBody     int64         // bytes; 64 MiB
	MaxCells    int64         // N·V·S, and elements of an output; 1<<26
	MaxFlops    float64       // operations; 1e13
	MaxBytes    int64         // of memory that its rows and outputs take; 512 MiB
	MaxPending  int64         // of memory that the bodies, rows and outputs of all requests take; 1 GiB, or twice MaxBody if that is more
	MaxDepth    int           // of nested JSON; 32
	MaxInFlight int           // requests at a time; 1024
	Timeout     time.Duration // for those that state none, and the longest that one may state; 30 s

	// Models in memory.
	MaxMemory    int64         // bytes that all models may take; 0: no limit
	ReloadEvery  time.Duration // how often files are looked at; 1 s, negative: never
	ModelControl bool          // requests may load and unload models

	// Guard.
	Token string // bearer token that requests need; empty: none
	// Hosts are the values of the Host header, without ports, that are answered; nil:
	// any. LoopbackHosts suits a server that listens on loopback.
	Hosts []string

	Log *slog.Logger // nil: none
}

// LoopbackHosts are the names of this machine in a Host header. A server that
// listens on loopback and answers no other name is out of reach for web pages whose
// own name was made to point at it.
var LoopbackHosts = []string{"localhost", "127.0.0.1", "::1"}

func (o Options) withDefaults() Options {
	set(&o.MaxBatchRows, 1024)
	set(&o.MaxQueueDelay, 500*time.Microsecond)
	set(&o.MaxQueueRows, o.MaxBatchRows)
	set(&o.Parallel, 1)
	set(&o.MaxBody, 64<<20)
	set(&o.MaxCells, 1<<26)
	set(&o.MaxFlops, 1e13)
	set(&o.MaxBytes, 512<<20)
	set(&o.MaxPending, max(1<<30, 2*o.MaxBody))
	set(&o.MaxDepth, 32)
	set(&o.MaxInFlight, 1024)
	set(&o.Timeout, 30*time.Second)
	set(&o.ReloadEvery, time.Second)
	if o.Log == nil {
		o.Log = slog.New(slog.DiscardHandler)
	}
	return o
}

func set[T comparable](field *T, value T) {
	var zero T
	if *field == zero {
		*field = value
	}
}

// nameForm is what a model may be called: the name is part of paths and metrics.
var nameForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$`)

// maxToken bounds a token, which each request has in its header beside what proxies add.
const maxToken = maxHeader / 2

// statsName is the one name in the place of a model's that has a path of its own.
const statsName = "stats"

// validate reports options that cannot work, after defaults are filled in. Models are not
// opened here, so their files need not exist yet.
func (o *Options) validate() error {
	for _, f := range []struct {
		name  string
		value float64
		least float64
	}{
		{"MaxBatchRows", float64(o.MaxBatchRows), 1},
		{"MaxQueueRows", float64(o.MaxQueueRows), 1},
		{"Parallel", float64(o.Parallel), 1},
		{"MaxBody", float64(o.MaxBody), 1},
		{"MaxCells", float64(o.MaxCells), 1},
		{"MaxFlops", o.MaxFlops, 1},
		{"MaxBytes", float64(o.MaxBytes), 1},
		{"MaxPending", float64(o.MaxPending), 1},
		{"MaxDepth", float64(o.MaxDepth), 4},
		{"MaxInFlight", float64(o.MaxInFlight), 1},
		{"Timeout", float64(o.Timeout), 1},
		{"MaxMemory", float64(o.MaxMemory), 0},
	} {
		if !(f.value >= f.least) {
			return fmt.Errorf("%w: %s is %v, want %v or more", ErrOptions, f.name, f.value, f.least)
		}
	}
	if o.Loader == nil {
		return fmt.Errorf("%w: no Loader; models need one", ErrOptions)
	}
	if len(o.Token) > maxToken {
		return fmt.Errorf("%w: the token has %d bytes, which no request could send; want %d at most", ErrOptions, len(o.Token), maxToken)
	}
	seen := map[string]bool{}
	for _, m := range o.Models {
		switch {
		case !nameForm.MatchString(m.Name):
			return fmt.Errorf("%w: model name %q; want letters, digits, dots, dashes and underscores, 128 at most", ErrOptions, m.Name)
		case m.Name == statsName:
			return fmt.Errorf("%w: a model is named %q, whose path GET /v2/models/%s is that of the statistics; rename it", ErrOptions, m.Name, m.Name)
		case seen[m.Name]:
			return fmt.Errorf("%w: two models are named %q; rename one", ErrOptions, m.Name)
		case m.Path == "":
			return fmt.Errorf("%w: model %q has no path", ErrOptions, m.Name)
		}
		seen[m.Name] = true
	}
	return nil
}
