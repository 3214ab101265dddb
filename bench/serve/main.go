// Command serve asks an inference server from another process than its own and
// prints how fast it answered, as a JSON object. It also is the server that answers
// without a model, to compare with: serve noop HOST:PORT, which prints its address.
//
// # Shapes and units
//
// Rates are requests a second, latencies milliseconds. With -rate, requests start
// when they are planned, whether earlier ones have been answered or not, and a
// latency counts from the planned start: a server that stalls cannot hide the
// requests that it kept from being sent. Without -rate, each of -workers sends its
// next request when its last one was answered: that is the server's capacity.
//
// # Errors
//
// One line on standard error and exit code 1 or, for flags, 2. Answers that are not
// 200 are counted, not errors.
//
// # Source
//
// Gil Tene's "coordinated omission" is what counting from the planned start avoids.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/signal"
	"strconv"
	"syscall"
	"time"

	"github.com/pce-engine/pce/serve"
)

var errFlags = errors.New("bad flags")

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	if err := run(ctx, os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench/serve:", err)
		if errors.Is(err, errFlags) {
			os.Exit(2)
		}
		os.Exit(1)
	}
}

func run(ctx context.Context, args []string, out io.Writer) error {
	if len(args) == 2 && args[0] == "noop" {
		return noop(ctx, args[1], out)
	}
	var l load
	flags := flag.NewFlagSet("serve", flag.ContinueOnError)
	flags.SetOutput(io.Discard)
	flags.StringVar(&l.url, "url", "http://127.0.0.1:8080", "where the server answers")
	flags.StringVar(&l.model, "model", "model", "the model to ask")
	flags.StringVar(&l.proto, "proto", "h1", "h1, h2 or grpc")
	flags.StringVar(&l.format, "format", "json", "json or binary, for h1 and h2")
	flags.IntVar(&l.rows, "rows", 1, "rows of a request")
	flags.IntVar(&l.columns, "columns", 16, "columns of the model")
	flags.IntVar(&l.categories, "categories", 2, "categories of a column")
	flags.Float64Var(&l.rate, "rate", 0, "requests a second; 0: as fast as they are answered")
	flags.IntVar(&l.workers, "workers", 64, "requests under way at a time")
	flags.DurationVar(&l.time, "time", 5*time.Second, "how long requests are sent")
	if err := flags.Parse(args); errors.Is(err, flag.ErrHelp) {
		flags.SetOutput(out)
		flags.PrintDefaults()
		return nil
	} else if err != nil {
		return fmt.Errorf("%w: %w", errFlags, err)
	}
	if flags.NArg() > 0 || l.rows < 1 || l.columns < 1 || l.categories < 1 || l.categories > 256 || l.workers < 1 || l.time <= 0 || !(l.rate >= 0) {
		return fmt.Errorf("%w: %v; rows, columns, categories, workers and time are 1 or more", errFlags, args)
	}
	r, err := l.run(ctx)
	if err != nil {
		return err
	}
	return json.NewEncoder(out).Encode(r)
}

// noop answers every request alike, after reading it, with the server that commands
// use. Port 0 is any free one; out gets the address once requests may come.
func noop(ctx context.Context, addr string, out io.Writer) error {
	answer := []byte(`{"model_name":"noop","model_version":"1","outputs":[{"name":"log_prob","shape":[1],"datatype":"FP32","data":[-6.0]}]}`)
	s := serve.HTTPServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if _, err := io.Copy(io.Discard, r.Body); err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Content-Length", strconv.Itoa(len(answer)))
		w.Write(answer)
	}), time.Minute, slog.New(slog.DiscardHandler))
	var lc net.ListenConfig
	l, err := lc.Listen(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	fmt.Fprintf(out, "http://%s\n", l.Addr())
	go func() {
		<-ctx.Done()
		s.Close()
	}()
	if err := s.Serve(l); !errors.Is(err, http.ErrServerClosed) {
		return err
	}
	return nil
}
