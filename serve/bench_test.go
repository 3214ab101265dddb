package serve

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/dataset"
)

// nothing is a model that answers at once, whose batches cost the server alone.
func nothing(columns int) *fakeLoader {
	return &fakeLoader{bytes: 1, make: func(string) *fakeModel {
		s := &dataset.Schema{Columns: make([]dataset.Column, columns)}
		for i := range s.Columns {
			s.Columns[i].Categories = 2
		}
		return &fakeModel{schema: s, bytes: 1, device: "cpu", silent: true}
	}}
}

// discard is a ResponseWriter that keeps nothing.
type discard struct{ header http.Header }

func (d *discard) Header() http.Header         { return d.header }
func (d *discard) Write(b []byte) (int, error) { return len(b), nil }
func (d *discard) WriteHeader(status int) {
	if status != http.StatusOK {
		panic(fmt.Sprint("status ", status))
	}
}

// BenchmarkRequest asks for the log-likelihoods of rows of 16 columns; 64 clients ask
// at a time.
func BenchmarkRequest(b *testing.B) {
	for _, rows := range []int{1, 4096} {
		for _, format := range []string{"json", "binary"} {
			b.Run(fmt.Sprintf("format=%s/rows=%d", format, rows), func(b *testing.B) {
				s := testServer(b, nothing(16), Options{MaxQueueRows: 1 << 30}, "m")
				body, header := strings.Repeat("0,1,1,0,1,0,0,1,1,1,0,0,1,0,1,0,", rows), ""
				body = fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"UINT8","shape":[%d,16],"data":[%s]}]}`, rows, body[:len(body)-1])
				if format == "binary" {
					body = fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"UINT8","shape":[%d,16],"parameters":{"binary_data_size":%d}}]}`, rows, 16*rows)
					header = strconv.Itoa(len(body))
					body += string(make([]byte, 16*rows))
				}
				b.SetBytes(int64(len(body)))
				b.ReportAllocs()
				b.SetParallelism(32)
				b.RunParallel(func(pb *testing.PB) {
					for pb.Next() {
						r := httptest.NewRequest("POST", "/v2/models/m/infer", strings.NewReader(body))
						if header != "" {
							r.Header.Set(headerLength, header)
						}
						s.ServeHTTP(&discard{http.Header{}}, r)
					}
				})
				b.ReportMetric(float64(rows)*float64(b.N)/b.Elapsed().Seconds(), "rows/s")
			})
		}
	}
}
