package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// TestLoad counts answers of each kind.
func TestLoad(t *testing.T) {
	var asked atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if asked.Add(1)%2 == 0 {
			w.WriteHeader(http.StatusTooManyRequests)
		}
	}))
	defer s.Close()
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-url", s.URL, "-time", "50ms", "-rate", "1000", "-workers", "4", "-format", "binary"}, &out); err != nil {
		t.Fatal(err)
	}
	var r result
	if err := json.Unmarshal(out.Bytes(), &r); err != nil {
		t.Fatal(err)
	}
	if n := int(asked.Load()); n != 50 || r.Codes["200"] != 25 || r.Codes["429"] != 25 {
		t.Errorf("%d requests: %s", n, &out)
	}
	for _, args := range [][]string{{"-proto", "h3"}, {"-format", "xml"}, {"-rows", "0"}, {"x"}, {"-rate", "NaN"}, {"-no"}} {
		if err := run(t.Context(), args, &out); !errors.Is(err, errFlags) {
			t.Errorf("%v: %v", args, err)
		}
	}
}

// TestPath asks for paths below that of the address by each protocol, with a slash at its end or without.
func TestPath(t *testing.T) {
	s := httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/below/v2/models/m/infer" {
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	s.Config.Protocols = &http.Protocols{}
	s.Config.Protocols.SetHTTP1(true)
	s.Config.Protocols.SetUnencryptedHTTP2(true)
	s.Start()
	defer s.Close()
	for _, proto := range []string{"h1", "h2"} {
		for _, path := range []string{"/below", "/below/"} {
			var out bytes.Buffer
			if err := run(t.Context(), []string{"-url", s.URL + path, "-model", "m", "-proto", proto, "-time", "20ms", "-rate", "500", "-workers", "1"}, &out); err != nil {
				t.Fatal(err)
			}
			var r result
			if err := json.Unmarshal(out.Bytes(), &r); err != nil || len(r.Codes) != 1 || r.Codes["200"] == 0 {
				t.Errorf("%s %s: %s, %v", proto, path, &out, err)
			}
		}
	}
}

// TestHelp prints the flags where they are asked for: that was an error about flags.
func TestHelp(t *testing.T) {
	var out bytes.Buffer
	if err := run(t.Context(), []string{"-h"}, &out); err != nil || !bytes.Contains(out.Bytes(), []byte("-rate")) {
		t.Errorf("%v, %s", err, &out)
	}
}

// TestNoop asks the server without a model at the address that it prints, at any free port: two of them may be measured at a time.
func TestNoop(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 2)
	for range 2 {
		r, w := io.Pipe()
		go func() {
			err := run(ctx, []string{"noop", "127.0.0.1:0"}, w)
			w.Close()
			ended <- err
		}()
		line, err := bufio.NewReader(r).ReadString('\n')
		if err != nil {
			t.Fatal(err, <-ended)
		}
		var out bytes.Buffer
		if err := run(t.Context(), []string{"-url", strings.TrimSpace(line), "-time", "20ms", "-rate", "500", "-workers", "1"}, &out); err != nil {
			t.Fatal(err)
		}
		var got result
		if err := json.Unmarshal(out.Bytes(), &got); err != nil || len(got.Codes) != 1 || got.Codes["200"] == 0 {
			t.Errorf("%s, %v", &out, err)
		}
	}
	stop()
	for range 2 {
		if err := <-ended; err != nil {
			t.Error(err)
		}
	}
}

// TestSum picks quantiles of sorted latencies.
func TestSum(t *testing.T) {
	l := load{rate: 1000, rows: 2}
	r := l.sum([]tally{{latency: []time.Duration{3 * time.Millisecond, time.Millisecond}}, {latency: []time.Duration{2 * time.Millisecond}}}, time.Second)
	if r.P50 != 2 || r.Max != 3 || r.Rate != 3 || r.PerSec != 6 {
		t.Errorf("%+v", r)
	}
}
