package main

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/cobra"

	"github.com/pce-engine/pce"
	"github.com/pce-engine/pce/run"
	"github.com/pce-engine/pce/serve"
)

// tokenVariable is the variable of the environment that holds the server's token.
const tokenVariable = "PCE_SERVE_TOKEN"

// serveFlags are the flags of serve.
type serveFlags struct {
	run       deviceFlags
	schedule  scheduleFlags
	models    []string
	addr      string
	tokenFile string
	tlsCert   string
	tlsKey    string
	insecure  bool
	soft      bool
	drain     time.Duration
	memoryMiB int64
	bodyMiB   int64
	conns     int
	options   serve.Options
}

// serveCommand makes the command pce serve, which ends with exit code 0 after a signal and an
// orderly drain. Nothing is printed to stdout before the models are loaded, so that a script
// may wait for the line.
func (a *app) serveCommand() *cobra.Command {
	var f serveFlags
	c := &cobra.Command{
		Use:   "serve --model NAME=PATH... [--addr HOST:PORT]",
		Short: "Answer inference requests over HTTP and gRPC",
		Long: `Answer inference requests, until SIGINT, SIGTERM or SIGHUP: then those that have come
are answered first. The Open Inference Protocol, version 2, is spoken as REST and as gRPC
on one port. Once the models are loaded, one line on stdout says where.

A model file that is replaced is loaded without a request being lost. Models leave
memory, the least recently used first, when others need it.

An --addr beyond this machine needs --token-file (or PCE_SERVE_TOKEN) or TLS.`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return a.serve(cmd.Context(), &f) },
	}
	flags := c.Flags()
	flags.StringArrayVar(&f.models, "model", nil, "NAME=PATH of a model file; repeatable")
	f.schedule.register(flags)
	flags.StringVar(&f.addr, "addr", "127.0.0.1:8080", "HOST:PORT to listen at; port 0: any free one")
	flags.StringVar(&f.tokenFile, "token-file", "", "file with the token that requests need as Authorization: Bearer")
	flags.StringVar(&f.tlsCert, "tls-cert", "", "PEM file with the server's certificate")
	flags.StringVar(&f.tlsKey, "tls-key", "", "PEM file with the server's key")
	flags.BoolVar(&f.insecure, "insecure", false, "allow an --addr beyond this machine with neither token nor TLS")
	flags.BoolVar(&f.options.ModelControl, "model-control", false, "let requests load and unload models")
	flags.IntVar(&f.options.Parallel, "parallel", 1, "batches that are computed at a time, each with a copy of the parameters and its part of --threads; small circuits answer more rows with one for each thread")
	flags.IntVar(&f.options.MaxBatchRows, "max-batch-rows", 1024, "rows of several requests that are computed together")
	flags.DurationVar(&f.options.MaxQueueDelay, "max-queue-delay", 500*time.Microsecond, "how long a request waits for others to be computed with; 0: not at all")
	flags.IntVar(&f.options.MaxQueueRows, "max-queue-rows", 0, "rows of a model that may wait; further requests get 429; 0: --max-batch-rows")
	flags.DurationVar(&f.options.Timeout, "timeout", 30*time.Second, "how long a request may take, and how long its body may take to come")
	flags.BoolVar(&f.soft, "soft", false, "take the inputs low, high and likelihood: ranges, sets and likelihoods as evidence; models need more memory")
	flags.Int64Var(&f.bodyMiB, "max-body", 64, "MiB that a request may have")
	flags.Int64Var(&f.memoryMiB, "max-memory", 0, "MiB that all models may take; 0: what the machine has available")
	flags.IntVar(&f.conns, "max-connections", 4096, "connections at a time; others wait")
	flags.DurationVar(&f.drain, "drain", 30*time.Second, "how long requests may take to end after SIGTERM")
	f.run.register(flags)
	return c
}

// serve checks the flags, opens the address and serves until ctx ends. The port is taken before
// models are loaded, which may take long, so that a port in use is found at once. An address
// that other machines reach without a token or TLS is refused unless --insecure says so; on a
// loopback address, requests must name this host, which keeps web pages of other origins out.
func (a *app) serve(ctx context.Context, f *serveFlags) error {
	log := slog.New(slog.NewTextHandler(a.stderr, nil))
	if err := f.complete(ctx, a, log); err != nil {
		return err
	}
	var certs []tls.Certificate
	if f.tlsCert != "" || f.tlsKey != "" {
		pair, err := loadCertificate(ctx, f.tlsCert, f.tlsKey)
		if err != nil {
			return err
		}
		certs = append(certs, pair)
	}
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", f.addr)
	switch {
	case err != nil && ctx.Err() != nil: // a signal, and no fault of the address
		return fmt.Errorf("serve: %w", ctx.Err())
	case err != nil:
		return usagef("--addr %s: %v; give another HOST:PORT", f.addr, err)
	}
	defer l.Close()
	if err := serve.CheckAddress(l.Addr(), f.options.Token != "" || f.insecure, len(certs) > 0); err != nil {
		return usagef("%v; --token-file, --tls-cert with --tls-key, or --insecure", err)
	}
	if ip := l.Addr().(*net.TCPAddr).IP; ip.IsLoopback() { // which may be 127.0.0.2
		f.options.Hosts = serve.LoopbackHosts
		if name := ip.String(); !slices.Contains(f.options.Hosts, name) {
			f.options.Hosts = append(slices.Clone(f.options.Hosts), name)
		}
	}
	s, err := serve.New(f.options)
	if err != nil {
		return err
	}
	defer s.Close()
	return a.answer(ctx, f, s, serve.LimitListener(l, f.conns), certs, log)
}

// maxPEM bounds files of certificates and keys.
const maxPEM = 1 << 20

// loadCertificate reads what --tls-cert and --tls-key name.
func loadCertificate(ctx context.Context, cert, key string) (pair tls.Certificate, err error) {
	var texts [2][]byte
	for i, path := range []string{cert, key} { // a shell opens the pipes of <(...) in this order, too
		if texts[i], err = readBounded(ctx, path, maxPEM); err != nil {
			break
		}
	}
	if ctx.Err() != nil {
		return pair, ctx.Err()
	}
	if err == nil {
		pair, err = tls.X509KeyPair(texts[0], texts[1])
	}
	if err != nil {
		err = usagef("--tls-cert %q and --tls-key %q: %v; give both, as PEM files", cert, key, err)
	}
	return pair, err
}

// answer loads the models, prints the address and answers the requests that come in at l until
// ctx ends. The port answers while models load, so that probes see a server that lives and is
// not ready. At the end it drains: it takes no more connections, answers for a moment those who ask on open ones
// and tells them to leave, and gives requests that have come f.drain to end; what is still open then is cut off
// with a warning. A model that cannot be loaded ends it with that error.
func (a *app) answer(ctx context.Context, f *serveFlags, s *serve.Server, l net.Listener, certs []tls.Certificate, log *slog.Logger) error {
	leave := newFarewell(s, f.conns)
	h := serve.HTTPServer(leave, f.options.Timeout, log)
	h.ConnState = leave.count
	scheme, listen := "http", func() error { return h.Serve(l) }
	if certs != nil {
		h.TLSConfig = &tls.Config{Certificates: certs, MinVersion: tls.VersionTLS12}
		scheme, listen = "https", func() error { return h.ServeTLS(l, "", "") }
	}
	ended := make(chan error, 1)
	go func() { ended <- listen() }()
	err := s.Load(ctx)
	if err == nil {
		fmt.Fprintf(a.stdout, "%s://%s\n", scheme, l.Addr())
		select {
		case err = <-ended:
			return fmt.Errorf("serve: %s: %w", l.Addr(), err)
		case <-ctx.Done():
			log.Info("draining", "for", f.drain)
		}
	}
	s.Drain()
	l.Close() // so that clients that are told to leave do not come back
	last, cancel := context.WithTimeout(context.WithoutCancel(ctx), f.drain)
	defer cancel()
	if err == nil {
		leave.wait(last)
	}
	if late := h.Shutdown(last); late != nil {
		log.Warn("requests are cut off", "err", late)
		h.Close()
	}
	if failed := <-ended; !errors.Is(failed, http.ErrServerClosed) && !errors.Is(failed, net.ErrClosed) {
		err = errors.Join(err, failed)
	}
	return err
}

// mayBeForest reports whether a model is a forest, or cannot be read, in which case loading it gives the reason.
func mayBeForest(m serve.Source) bool {
	is, err := run.TellForest(m.Path)
	return is || err != nil
}

// complete checks the flags, before anything is opened, and turns them into options of the
// server. The token comes from --token-file or else from PCE_SERVE_TOKEN; the threads are
// divided among --parallel. A fault is a usage error that names the flag.
func (f *serveFlags) complete(ctx context.Context, a *app, log *slog.Logger) error {
	o := &f.options
	for _, m := range f.models {
		name, path, ok := strings.Cut(m, "=")
		if !ok {
			return usagef("--model %s: want NAME=PATH, such as --model digits=runs/hclt-digits/model.safetensors", m)
		}
		o.Models = append(o.Models, serve.Source{Name: name, Path: path})
	}
	switch {
	case len(o.Models) == 0:
		return usagef("no --model; give NAME=PATH, such as --model digits=runs/hclt-digits/model.safetensors")
	case f.bodyMiB < 1 || f.bodyMiB > 1<<20:
		return usagef("--max-body %d; want 1 to %d MiB", f.bodyMiB, 1<<20)
	case f.memoryMiB < 0 || f.memoryMiB > 1<<40:
		return usagef("--max-memory %d; want 0 to %d MiB", f.memoryMiB, int64(1)<<40)
	case o.Parallel < 1 || o.Parallel > 1024:
		return usagef("--parallel %d; want 1 to 1024", o.Parallel)
	case f.conns < 1:
		return usagef("--max-connections %d; want 1 or more", f.conns)
	case o.MaxBatchRows < 1:
		return usagef("--max-batch-rows %d; want 1 or more rows", o.MaxBatchRows)
	case o.MaxQueueRows < 0:
		return usagef("--max-queue-rows %d; want 0 or more rows", o.MaxQueueRows)
	case o.MaxQueueDelay < 0:
		return usagef("--max-queue-delay %v; want 0 or more, such as 500us", o.MaxQueueDelay)
	case o.Timeout <= 0:
		return usagef("--timeout %v; want more than 0, such as 30s", o.Timeout)
	case f.drain < 0:
		return usagef("--drain %v; want 0 or more, such as 30s", f.drain)
	case f.schedule.profile != "" && f.schedule.file == "":
		return usagef("--profile is for --schedule")
	case f.schedule.file != "" && !slices.ContainsFunc(o.Models, mayBeForest):
		return usagef("--schedule is for decision forests, and every --model is a circuit; leave it out")
	}
	if err := f.run.check(); err != nil {
		return err
	}
	if o.MaxQueueDelay == 0 {
		o.MaxQueueDelay = -1 // a 0 of the options is their default
	}
	for _, kv := range a.env {
		if token, ok := strings.CutPrefix(kv, tokenVariable+"="); ok {
			if o.Token = strings.TrimSpace(token); o.Token == "" && token != "" {
				return usagef("%s is blank; set it to a token, or unset it", tokenVariable)
			}
			if strings.ContainsFunc(o.Token, unicode.IsControl) {
				return usagef("%s has line breaks or control characters, which no header can have; set it to a token of one line", tokenVariable)
			}
		}
	}
	if f.tokenFile != "" {
		text, err := readBounded(ctx, f.tokenFile, maxTokenFile)
		if err != nil {
			return err
		}
		text = bytes.TrimPrefix(text, []byte("\ufeff")) // the mark of an editor, not of the token
		if o.Token = strings.TrimSpace(string(text)); o.Token == "" {
			return usagef("--token-file %s is empty; write a token to it", f.tokenFile)
		}
		if strings.ContainsFunc(o.Token, unicode.IsControl) { // which no header can have
			return usagef("--token-file %s has line breaks or control characters within the token; write a token of one line to it", f.tokenFile)
		}
	}
	o.MaxBody, o.MaxMemory = f.bodyMiB<<20, f.memoryMiB<<20
	on := runOptions(f.run.device, f.run.threads)
	on.Soft = f.soft
	if on.Engines = o.Parallel; o.Parallel > 1 {
		on.Threads = max(1, cmp.Or(on.Threads, runtime.GOMAXPROCS(0))/o.Parallel)
	}
	if o.MaxMemory == 0 {
		o.MaxMemory = on.MaxMemory
	}
	loader := &modelLoader{run: on, notes: a.stderr}
	if f.schedule.file != "" && f.schedule.file != autoSchedule { // before models are loaded, which may be several at a time
		if _, err := f.schedule.textOnce(ctx); err != nil {
			return err
		}
	}
	if info, err := os.Stat(f.schedule.profile); err == nil && !info.Mode().IsRegular() {
		return usagef("--profile %s: not a regular file, and a server reads it more than once; write it to a file", f.schedule.profile)
	}
	if f.schedule.file != "" || f.schedule.profile != "" {
		loader.under = func(m *pce.Model, path string, quiet bool) (*pce.Model, error) {
			told := *a
			if quiet {
				told.stderr = io.Discard
			}
			return f.schedule.serve(&told, m, path, on, o.MaxBatchRows)
		}
	}
	o.Loader, o.Version, o.Log = loader, run.ReadVersion().String(), log
	return nil
}
