package metrics

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pce-engine/pce/serve/oip"
)

// Bounds of the histograms' buckets.
var (
	// Ten per decade where latencies are looked at, so that a percentile between two bounds
	// errs by an eighth at most; five elsewhere.
	timeBounds = []float64{
		50e-6, 100e-6, 160e-6, 250e-6, 400e-6, 630e-6,
		1e-3, 1.25e-3, 1.6e-3, 2e-3, 2.5e-3, 3.15e-3, 4e-3, 5e-3, 6.3e-3, 8e-3, 10e-3, 12.5e-3, 16e-3, 20e-3, 25e-3, 31.5e-3,
		40e-3, 50e-3, 63e-3, 80e-3, 0.1, 0.16, 0.25, 0.4, 0.63, 1, 1.6, 2.5, 4, 6.3, 10, 16, 25, 40,
	}
	rowBounds = []float64{1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096}
)

// histogram counts values by bucket. Its owner guards it.
type histogram struct {
	bounds []float64
	counts []uint64 // by bucket, the last one beyond all bounds
	sum    float64
}

func (h *histogram) observe(x float64) {
	if h.counts == nil {
		h.counts = make([]uint64, len(h.bounds)+1)
	}
	i, _ := slices.BinarySearch(h.bounds, x)
	h.counts[i]++
	h.sum += x
}

// write writes the histogram's lines with the given labels.
func (h *histogram) write(b *strings.Builder, name, labels string) {
	total := uint64(0)
	for i, n := range h.counts {
		total += n
		le := math.Inf(1)
		if i < len(h.bounds) {
			le = h.bounds[i]
		}
		text := "+Inf"
		if !math.IsInf(le, 1) {
			text = strconv.FormatFloat(le, 'g', -1, 64)
		}
		fmt.Fprintf(b, "%s_bucket{%s,le=%q} %d\n", name, labels, text, total)
	}
	fmt.Fprintf(b, "%s_sum{%s} %s\n%s_count{%s} %d\n", name, labels, strconv.FormatFloat(h.sum, 'g', -1, 64), name, labels, total)
}

// Metrics are the numbers of a server, in Prometheus' text format. Labels are names
// of models and queries that exist, never texts of requests. Counters have no label for the version, of
// which a model gets one more whenever its file is replaced; pce_model_info has the present one.
type Metrics struct {
	InFlight atomic.Int64 // requests that are being answered
	Pending  atomic.Int64 // bytes that requests take
	Began    time.Time    // the server, whose versions of models count from 1

	list    []*Statistics
	unknown [600]atomic.Int64 // requests that reached no model, by status
}

// Model adds a model and returns its statistics. It is called for every model before requests come.
func (m *Metrics) Model(name string) *Statistics {
	s := newStatistics(name)
	m.list = append(m.list, s)
	return s
}

// LoadFailed counts a time that a model could not be loaded.
func (m *Metrics) LoadFailed(name string) {
	for _, s := range m.list {
		if s.name == name {
			s.mu.Lock()
			s.failures++
			s.mu.Unlock()
		}
	}
}

// Reports returns what the statistics extension shows of the model of that name, or of all for "".
func (m *Metrics) Reports(name string) []oip.Statistics {
	list := []oip.Statistics{}
	for _, s := range m.list {
		if name == "" || s.name == name {
			list = append(list, s.report())
		}
	}
	return list
}

// Refused counts a request that reached no model.
func (m *Metrics) Refused(status int) {
	if status >= 0 && status < len(m.unknown) {
		m.unknown[status].Add(1)
	}
}

// family writes the head of a metric.
func family(b *strings.Builder, name, kind, help string) {
	fmt.Fprintf(b, "# HELP %s %s\n# TYPE %s %s\n", name, help, name, kind)
}

// Text returns all metrics in Prometheus' text format. waiting says how many rows of each model
// wait. All counts are locked together, so that they fit one another.
func (m *Metrics) Text(waiting map[string]int) string {
	var b strings.Builder
	for _, s := range m.list {
		s.mu.Lock()
		defer s.mu.Unlock()
	}
	family(&b, "pce_inference_requests_total", "counter", "Requests, by HTTP status.")
	for _, s := range m.list {
		for _, k := range s.keys() {
			fmt.Fprintf(&b, "pce_inference_requests_total{model=%q,query=%q,code=\"%d\"} %d\n", s.name, k.query, k.status, s.requests[k].requests)
		}
	}
	for status := range m.unknown {
		if n := m.unknown[status].Load(); n > 0 {
			fmt.Fprintf(&b, "pce_inference_requests_total{model=\"\",query=\"\",code=\"%d\"} %d\n", status, n)
		}
	}
	family(&b, "pce_inference_rows_total", "counter", "Rows of requests that were answered.")
	for _, s := range m.list {
		for _, k := range s.keys() {
			if k.status == http.StatusOK {
				fmt.Fprintf(&b, "pce_inference_rows_total{model=%q,query=%q} %d\n", s.name, k.query, s.requests[k].rows)
			}
		}
	}
	for _, h := range []struct {
		name, help string
		of         func(*queryTimes) *histogram
	}{
		{"pce_inference_duration_seconds", "Time from a request's last byte to its answer.", func(q *queryTimes) *histogram { return &q.total }},
		{"pce_inference_queue_seconds", "Time that requests waited for a batch.", func(q *queryTimes) *histogram { return &q.queue }},
		{"pce_inference_compute_seconds", "Time of the batches that requests were in.", func(q *queryTimes) *histogram { return &q.compute }},
	} {
		family(&b, h.name, "histogram", h.help)
		for _, s := range m.list {
			for _, q := range slices.Sorted(maps.Keys(s.queries)) {
				h.of(s.queries[q]).write(&b, h.name, fmt.Sprintf("model=%q,query=%q", s.name, q))
			}
		}
	}
	family(&b, "pce_inference_batch_rows", "histogram", "Rows of the batches that were run.")
	for _, s := range m.list {
		if s.rows.counts != nil {
			s.rows.write(&b, "pce_inference_batch_rows", fmt.Sprintf("model=%q", s.name))
		}
	}
	gauge := func(name, kind, help string, of func(*Statistics) (labels string, value int64)) {
		family(&b, name, kind, help)
		for _, s := range m.list {
			if labels, x := of(s); labels != "" {
				fmt.Fprintf(&b, "%s{%s} %d\n", name, labels, x)
			}
		}
	}
	plain := func(s *Statistics) string { return fmt.Sprintf("model=%q", s.name) }
	gauge("pce_inference_queue_rows", "gauge", "Rows that wait for a batch.", func(s *Statistics) (string, int64) { return plain(s), int64(waiting[s.name]) })
	gauge("pce_model_loaded", "gauge", "1 while the model is in memory.", func(s *Statistics) (string, int64) { return plain(s), int64(cmp.Compare(s.bytes, 0)) })
	gauge("pce_model_info", "gauge", "The version that is in memory.", func(s *Statistics) (string, int64) {
		if s.bytes == 0 {
			return "", 0
		}
		return fmt.Sprintf("model=%q,version=%q", s.name, s.version), 1
	})
	gauge("pce_model_memory_bytes", "gauge", "Memory that the model takes.", func(s *Statistics) (string, int64) { return plain(s), s.bytes })
	gauge("pce_model_load_failures_total", "counter", "Times that the model could not be loaded.", func(s *Statistics) (string, int64) { return plain(s), s.failures })
	family(&b, "pce_inference_in_flight", "gauge", "Requests that are being answered.")
	fmt.Fprintf(&b, "pce_inference_in_flight %d\n", m.InFlight.Load())
	family(&b, "pce_inference_pending_bytes", "gauge", "Memory of bodies, rows and outputs of requests.")
	fmt.Fprintf(&b, "pce_inference_pending_bytes %d\n", m.Pending.Load())
	family(&b, "pce_server_start_time_seconds", "gauge", "When the server began, in seconds since 1970.")
	fmt.Fprintf(&b, "pce_server_start_time_seconds %.3f\n", float64(m.Began.UnixMilli())/1000)
	return b.String()
}

// keys returns the counters of requests in a fixed order. The caller holds mu.
func (s *Statistics) keys() []requestKey {
	return slices.SortedFunc(maps.Keys(s.requests), func(a, b requestKey) int {
		return cmp.Or(cmp.Compare(a.query, b.query), cmp.Compare(a.status, b.status))
	})
}
