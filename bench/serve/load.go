package main

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/pce-engine/pce/serve/oip"
)

// load says what is sent.
type load struct {
	url, model, proto, format string
	rows, columns, categories int
	rate                      float64
	workers                   int
	time                      time.Duration
}

// result says how it was answered. Latencies are those of answers with code 200.
type result struct {
	Proto   string         `json:"proto"`
	Format  string         `json:"format"`
	Rows    int            `json:"rows"`
	Planned float64        `json:"planned_rate,omitempty"`
	Rate    float64        `json:"rate"` // of answers with code 200
	PerSec  float64        `json:"rows_per_second"`
	P50     float64        `json:"p50_ms"`
	P99     float64        `json:"p99_ms"`
	Max     float64        `json:"max_ms"`
	Codes   map[string]int `json:"codes"`
}

// bodies returns a few requests with different rows; one body after another is sent.
func (l *load) bodies() (list [][]byte, header string) {
	rng := rand.New(rand.NewPCG(1, 2))
	for range 64 {
		raw := make([]byte, l.rows*l.columns)
		for i := range raw {
			raw[i] = byte(rng.IntN(l.categories))
		}
		switch {
		case l.proto == "grpc":
			req := oip.Request{Model: l.model, Inputs: []oip.Tensor{{Name: "x", Datatype: oip.Uint8, Shape: []int64{int64(l.rows), int64(l.columns)}, Raw: raw}}}
			message := req.AppendProto(nil)
			list = append(list, append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...))
		case l.format == "binary":
			head := fmt.Sprintf(`{"parameters":{"binary_data_output":true},"inputs":[{"name":"x","datatype":"UINT8","shape":[%d,%d],"parameters":{"binary_data_size":%d}}]}`, l.rows, l.columns, len(raw))
			header = strconv.Itoa(len(head))
			list = append(list, append([]byte(head), raw...))
		default:
			var cells []string
			for _, x := range raw {
				cells = append(cells, strconv.Itoa(int(x)))
			}
			list = append(list, fmt.Appendf(nil, `{"inputs":[{"name":"x","datatype":"UINT8","shape":[%d,%d],"data":[%s]}]}`, l.rows, l.columns, strings.Join(cells, ",")))
		}
	}
	return list, header
}

// run sends requests for l.time and waits for their answers.
func (l *load) run(ctx context.Context) (*result, error) {
	var p http.Protocols
	switch l.proto {
	case "h1":
		p.SetHTTP1(true)
	case "h2", "grpc":
		p.SetUnencryptedHTTP2(true)
	default:
		return nil, fmt.Errorf("%w: -proto %s; want h1, h2 or grpc", errFlags, l.proto)
	}
	if l.format != "json" && l.format != "binary" {
		return nil, fmt.Errorf("%w: -format %s; want json or binary", errFlags, l.format)
	}
	bodies, header := l.bodies()
	at, err := url.Parse(l.url)
	if err != nil {
		return nil, fmt.Errorf("%w: -url: %w", errFlags, err)
	}
	transport := &http.Transport{Protocols: &p, MaxIdleConnsPerHost: l.workers, DisableCompression: true}
	defer transport.CloseIdleConnections()
	client := &http.Client{Transport: transport, Timeout: time.Minute}

	var next atomic.Int64
	begin := time.Now()
	samples := make([]tally, l.workers)
	var group sync.WaitGroup
	for w := range samples {
		group.Go(func() {
			t := &samples[w]
			t.codes = map[string]int{}
			send := func(body []byte) string { return l.send(ctx, client, body, header) }
			if l.proto == "h1" && at.Scheme == "http" {
				c := line{addr: at.Host, path: strings.TrimSuffix(at.Path, "/") + "/v2/models/" + l.model + "/infer", header: header}
				if at.Port() == "" {
					c.addr += ":80"
				}
				defer c.close()
				send = c.send
			}
			for {
				i := next.Add(1) - 1
				planned := time.Now()
				if l.rate > 0 {
					planned = begin.Add(time.Duration(float64(i) / l.rate * float64(time.Second)))
				}
				if planned.Sub(begin) >= l.time || ctx.Err() != nil {
					return
				}
				time.Sleep(time.Until(planned))
				code := send(bodies[int(i)%len(bodies)])
				if t.codes[code]++; code == "200" {
					t.latency = append(t.latency, time.Since(planned))
				}
			}
		})
	}
	group.Wait()
	return l.sum(samples, time.Since(begin)), ctx.Err()
}

// tally is what a worker saw.
type tally struct {
	latency []time.Duration
	codes   map[string]int
}

// send returns the HTTP status of an answer, that of gRPC as grpc-5, or net for an
// answer that did not come.
func (l *load) send(ctx context.Context, c *http.Client, body []byte, header string) string {
	path := "/v2/models/" + l.model + "/infer"
	if l.proto == "grpc" {
		path = "/inference.GRPCInferenceService/ModelInfer"
	}
	r, err := http.NewRequestWithContext(ctx, "POST", strings.TrimSuffix(l.url, "/")+path, bytes.NewReader(body))
	if err != nil {
		return "net"
	}
	switch {
	case l.proto == "grpc":
		r.Header.Set("Content-Type", "application/grpc")
		r.Header.Set("Te", "trailers")
	case header != "":
		r.Header.Set("Inference-Header-Content-Length", header)
	}
	w, err := c.Do(r)
	if err != nil {
		return "net"
	}
	defer w.Body.Close()
	if _, err := io.Copy(io.Discard, w.Body); err != nil {
		return "net"
	}
	if l.proto == "grpc" && w.StatusCode == 200 {
		if s := w.Header.Get("Grpc-Status") + w.Trailer.Get("Grpc-Status"); s != "0" {
			return "grpc-" + s
		}
	}
	return strconv.Itoa(w.StatusCode)
}

// sum puts the tallies of all workers together.
func (l *load) sum(samples []tally, took time.Duration) *result {
	r := &result{Proto: l.proto, Format: l.format, Rows: l.rows, Planned: l.rate, Codes: map[string]int{}}
	var all []time.Duration
	for _, t := range samples {
		all = append(all, t.latency...)
		for code, n := range t.codes {
			r.Codes[code] += n
		}
	}
	r.Rate = float64(len(all)) / took.Seconds()
	r.PerSec = r.Rate * float64(l.rows)
	if len(all) > 0 {
		slices.Sort(all)
		at := func(q float64) float64 { return all[int(q*float64(len(all)-1))].Seconds() * 1e3 }
		r.P50, r.P99, r.Max = at(0.5), at(0.99), at(1)
	}
	return r
}
