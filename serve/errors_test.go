package serve

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http/httptest"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"
	"time"

	"github.com/pce-engine/pce/serve/oip"
)

// TestConformanceErrors sees that errors have their status and name the tensor and
// the field.
func TestConformanceErrors(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1, MaxBody: 4096, MaxCells: 500, MaxFlops: 90_000, MaxBytes: 3000}, "m")
	x := `{"name":"x","datatype":"FP64","shape":[1,5],"data":[1,150,2,20,3]}`
	w := `,{"name":"w","datatype":"FP32","shape":[1,5],"data":[0,0,0,0,0]}`
	with := func(inputs, rest string) string { return `{"inputs":[` + inputs + `]` + rest + `}` }
	for _, tc := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/v2/models/nope/infer", row, 404, `model "nope"`},
		{"/v2/models/m/versions/2/infer", row, 404, `version "2" of model "m"; "1" is served`},
		{"/v2/nothing", row, 404, `/v2/nothing is not a path`},
		{"", `{"inputs":[`, 400, `want '{', found the end`},
		{"", with(x, `,"parameters":{"query":"mpe"}`), 400, `parameters: query "mpe"; model "m" answers [log_prob sample weighted]`},
		{"", with(x, `,"parameters":{"query":""}`), 400, `parameters: query ""`},
		{"", with(x, `,"parameters":{"query":3}`), 400, `parameters: query "3"`},
		{"", with(x, `,"parameters":{"seed":3}`), 400, `parameters: "seed" is not known; query "log_prob" takes`},
		{"", with(x, `,"parameters":{"timeout":-1}`), 400, `parameters: timeout is -1`},
		{"", with(x, `,"parameters":{"binary_data_output":1}`), 400, `binary_data_output is 1`},
		{"", with(x, `,"parameters":{"query":"sample","n_samples":0}`), 400, `n_samples is 0; want 1 to 1000`},
		{"", with(x, `,"parameters":{"query":"sample","n_samples":1001}`), 400, `n_samples is 1001; want 1 to 1000`},
		{"", with(x, `,"parameters":{"query":"sample","n_samples":1.5}`), 400, `n_samples is 1.5; want an integer`},
		{"", with(x, `,"parameters":{"query":"sample","seed":-1}`), 400, `seed is -1; want an integer of 0 or more`},
		{"", with(x, `,"outputs":[{"name":"mean"}]`), 400, `output "mean": name: query "log_prob" gives [log_prob twice]`},
		{"", with(x, `,"outputs":[{"name":"twice"},{"name":"twice"}]`), 400, `output "twice": asked for twice`},
		{"", with(x, `,"outputs":[{"name":"twice","parameters":{"datatype":"BYTES"}}]`), 400, `output "twice": parameters: datatype is BYTES`},
		{"", with(x, `,"outputs":[{"name":"twice","parameters":{"classification":3}}]`), 400, `output "twice": parameters: "classification"`},
		{"", with(x, `,"outputs":[{"name":"twice","parameters":{"datatype":"UINT8"}}]`), 400, `output "twice": datatype: -310 is not a number of UINT8`},
		{"", with(strings.Replace(x, `,3]`, `,140001]`, 1), `,"outputs":[{"name":"log_prob","parameters":{"datatype":"FP16"}}]`), 400, `output "log_prob": datatype: -70154 is beyond the range of FP16; ask for FP64`},
		{"", with(x+`,{"name":"w","datatype":"FP64","shape":[1,5],"data":[0,0,0,0,6e38]}`, `,"parameters":{"query":"weighted"},"outputs":[{"name":"value","parameters":{"datatype":"FP32"}}]`), 400, `output "value": datatype: 6e+38 is beyond the range of FP32; ask for FP64`},
		{"", with("", ""), 400, `input "x": missing; query "log_prob" takes [x observed]`},
		{"", with(x+","+x, ""), 400, `input "x": given twice`},
		{"", with(strings.Replace(x, `"x"`, `"y"`, 1), ""), 400, `input "y": name: query "log_prob" takes [x observed]`},
		{"", with(strings.Replace(x, `[1,5]`, `[5]`, 1), ""), 400, `input "x": shape: [5]; want [N 5]`},
		{"", with(strings.Replace(x, `[1,5]`, `[5,1]`, 1), ""), 400, `input "x": shape: [5 1]; want [N 5]`},
		{"", with(strings.Replace(x, `150`, `200`, 1), ""), 400, `input "x": data: row 0, "b": 200 is not a category (want 0..199)`},
		{"", with(strings.Replace(x, `150`, `-1`, 1), ""), 400, `input "x": data: row 0, "b": -1 is not a category`},
		{"", with(strings.Replace(x, `150`, `1.5`, 1), ""), 400, `input "x": data: row 0, "b": 1.5 is not a category`},
		{"", with(strings.Replace(x, `150`, `"Infinity"`, 1), ""), 400, `input "x": data: row 0, "b": +Inf is not a category`},
		{"", with(strings.Replace(x, `,20,`, `,2,`, 1), ""), 400, `input "x": data: row 0, "d": 2 is not a category; the model's metadata lists them`},
		{"", with(strings.Replace(x, `,3]`, `,1e300]`, 1), ""), 400, `input "x": data: row 0, "e": 1e+300 is beyond the range`},
		{"", with(strings.Replace(x, `,3]`, `,-1000]`, 1), ""), 400, `input "x": data: row 0, "e": column 4 of the model lacks -1000`},
		{"", with(`{"name":"x","datatype":"BYTES","shape":[1,5],"data":["1","7","low","20","-1e3"]}`, ""), 400, `input "x": data: row 0, "e": column 4 of the model lacks -1000`},
		{"", with(strings.Replace(x, `,3]`, `,-3.5e38]`, 1), ""), 400, `input "x": data: row 0, "e": -3.5e+38 is beyond the range`},
		{"", with(`{"name":"x","datatype":"BYTES","shape":[1,5],"data":["1","7","no","20","3"]}`, ""), 400, `row 0, "c": "no" is not a category`},
		{"", with(x+`,{"name":"observed","datatype":"INT8","shape":[1,5],"data":[1,1,1,1,1]}`, ""), 400, `input "observed": datatype: INT8; want BOOL`},
		{"", with(x+`,{"name":"observed","datatype":"BOOL","shape":[2,5],"data":[1,1,1,1,1,1,1,1,1,1]}`, ""), 400, `input "observed": shape: 2 rows; the input before it has 1`},
		{"", with(`{"name":"observed","datatype":"BOOL","shape":[1,5],"data":[1,1,1,1,1]}`, `,"parameters":{"query":"sample"}`), 400, `input "x": missing`},
		{"", with(x, `,"parameters":{"query":"weighted"}`), 400, `input "w": missing; query "weighted" takes [x observed w bias]`},
		{"", with(x+w, `,"parameters":{"query":"weighted","note":"unknown"}`), 400, `query weighted of model "m": the note is unknown`},
		{"", with(x+w, `,"parameters":{"query":"weighted","note":"exact power","exact":true,"power":2}`), 400, `parameters: power is not exact`},
		{"", with(x+w, `,"parameters":{"query":"weighted","note":"dear"}`), 413, `query "weighted" of 1 rows takes 1.13e+15 operations, 9e+04 may be asked for at once; one row alone has more; choose other parameters, or ask without a server`},
		{"", with(x+`,{"name":"w","datatype":"BYTES","shape":[1,5],"data":["","","","",""]}`, `,"parameters":{"query":"weighted"}`), 400, `input "w": datatype: BYTES`},
		{"", with(x+`,{"name":"w","datatype":"FP32","shape":[1,4],"data":[0,0,0,0]}`, `,"parameters":{"query":"weighted"}`), 400, `input "w": shape: [1 4]; want [N 5]`},
		{"", with(strings.Replace(x, `{`, `{"parameters":{"shared_memory_region":"a"},`, 1), ""), 400, `input "x": parameters: "shared_memory_region"`},
		// Costs: 101 rows of 5 cells, then 46 rows of 2000 operations, then memory.
		{"", with("", `,"parameters":{"query":"sample","n_samples":101}`), 413, `: 101 rows of 5 columns have 505 cells, 500 may be asked for at once; send a smaller n_samples`},
		{"", with("", `,"parameters":{"query":"sample","n_samples":46}`), 413, `takes 9.2e+04 operations, 9e+04 may be asked for at once; send a smaller n_samples`},
		{"", with("", `,"parameters":{"query":"sample","n_samples":45}`), 413, `take 4520 bytes, 3000 may be asked for at once; send a smaller n_samples`},
		{"", with(`{"name":"x","datatype":"FP32","shape":[210,5],"data":[`+strings.Repeat("1,", 1049)+`1]}`, `,"parameters":{"query":"sample","n_samples":1000}`), 413, `: 210000 rows of 5 columns have 1050000 cells`},
		{"", with(`{"name":"x","datatype":"FP32","shape":[2,5],"data":[1,1,1,1,1,1,1,1,1,1]}`, `,"parameters":{"query":"sample","n_samples":51}`), 413, `have 510 cells, 500 may be asked for at once; send fewer rows, or a smaller n_samples`},
		{"", strings.Repeat(" ", 4097), 413, `more than 4096 bytes`},
		{"/v2/repository/models/m/load", ``, 403, `does not load and unload models by request; start it with --model-control`},
		{"/v2/repository/models/m/reload", ``, 404, `load and unload are`},
		{"/v2/repository/index", `x`, 400, `want '{', found`},
		{"/v2/repository/index", `{"ready":true,"ready":false}`, 400, `ready: given twice`},
		{"/v2/repository/index", `{"ready":1}`, 400, `want a value`},
		{"/v2/repository/index", `{"ready":null}`, 400, `want true or false`},
		{"/v2/repository/index", `{} {}`, 400, `nothing may follow`},
		{"/v2/repository/index", strings.Repeat(" ", 65<<10), 413, `more than 65536 bytes`},
	} {
		if tc.path == "" {
			tc.path = "/v2/models/m/infer"
		}
		w := ask(t, s, "POST", tc.path, tc.body)
		if w.Code != tc.status || !strings.Contains(strings.ReplaceAll(w.Body.String(), `\"`, `"`), tc.want) || !strings.HasPrefix(w.Body.String(), `{"error":"`) {
			t.Errorf("%s %.120s\ngot  %d %s\nwant %d %s", tc.path, tc.body, w.Code, w.Body, tc.status, tc.want)
		}
	}
	// Both sides of the limits.
	for _, body := range []string{`{"parameters":{"query":"sample","n_samples":29}}`, strings.Repeat(" ", 4096-len(row)) + row} {
		if w := ask(t, s, "POST", "/v2/models/m/infer", body); w.Code != 200 {
			t.Error(w.Code, w.Body)
		}
	}
	// Bodies of a length that is not stated.
	for length, status := range map[int]int{4096: 200, 4097: 413} {
		r := httptest.NewRequest("POST", "/v2/models/m/infer", io.MultiReader(strings.NewReader(strings.Repeat(" ", length-len(row))+row)))
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if r.ContentLength != -1 || w.Code != status {
			t.Errorf("%d bytes: %d %s", length, w.Code, w.Body)
		}
	}
	if n, calls := s.metrics.Pending.Load(), s.metrics.InFlight.Load(); n != 0 || calls != 0 {
		t.Errorf("%d bytes stay reserved, and %d requests in flight", n, calls)
	}
	if w := ask(t, s, "POST", "/v2/models/m/infer", row, "Content-Encoding", "identity"); w.Code != 200 {
		t.Error("a body as it is:", w.Code, w.Body)
	}
	for path, status := range map[string]int{"/v2/models/nope": 404, "/v2/models/nope/ready": 404, "/v2/models/nope/stats": 404, "/v2/models/m/versions/7": 404, "/v2/models/m/versions/7/ready": 404, "/v2/models/m/versions/7/stats": 404} {
		if w := ask(t, s, "GET", path, ""); w.Code != status {
			t.Error(path, w.Code, w.Body)
		}
	}
	for header, value := range map[string]string{headerLength: "-1", "Content-Encoding": "gzip"} {
		if w := ask(t, s, "POST", "/v2/models/m/infer", row, header, value); w.Code != 400 || !strings.Contains(w.Body.String(), header[:7]) && header != headerLength {
			t.Error(header, w.Code, w.Body)
		}
	}
}

// TestBodyEnds: a client that closes the connection while its body comes is counted as one that has gone, and other bodies
// that cannot be read as bad requests.
func TestBodyEnds(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1}, "m")
	gone, cancel := context.WithCancel(t.Context())
	cancel()
	for _, tc := range []struct {
		ctx    context.Context
		err    error
		status int
	}{
		{t.Context(), io.ErrUnexpectedEOF, 499},
		{t.Context(), &net.OpError{Op: "read", Err: os.NewSyscallError("read", syscall.ECONNRESET)}, 499},
		{gone, errors.New("stream error"), 499},
		{t.Context(), errors.New("invalid byte in chunk length"), 400},
	} {
		r := httptest.NewRequestWithContext(tc.ctx, "POST", "/v2/models/m/infer", io.MultiReader(strings.NewReader(row[:20]), iotest.ErrReader(tc.err)))
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != tc.status {
			t.Errorf("%v: %d %s, want %d", tc.err, w.Code, w.Body, tc.status)
		}
	}
	if text := s.metrics.Text(nil); !strings.Contains(text, `code="499"} 3`) || !strings.Contains(text, `code="400"} 1`) {
		t.Error(text)
	}
}

// TestTooLargeStream: a body that is too large ends the connection that it comes over, and in HTTP/2 its stream alone.
func TestTooLargeStream(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1, MaxBody: 100}, "m")
	for major, want := range map[int]string{1: "close", 2: ""} {
		r := httptest.NewRequest("POST", "/v2/models/m/infer", strings.NewReader(strings.Repeat(" ", 1000)))
		r.ProtoMajor = major
		w := httptest.NewRecorder()
		if s.ServeHTTP(w, r); w.Code != 413 || w.Header().Get("Connection") != want {
			t.Errorf("HTTP/%d: %d, Connection %q, want %q", major, w.Code, w.Header().Get("Connection"), want)
		}
	}
}

// TestTimesOfSuccess: times of tensors are those of requests that were answered.
func TestTimesOfSuccess(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1}, "m")
	for datatype, status := range map[string]int{"FP64": 200, "UINT8": 400} { // the log-likelihood is negative
		body := strings.TrimSuffix(row, "}") + `,"outputs":[{"name":"log_prob","parameters":{"datatype":"` + datatype + `"}}]}`
		if w := ask(t, s, "POST", "/v2/models/m/infer", body); w.Code != status {
			t.Errorf("%s: %d %s, want %d", datatype, w.Code, w.Body, status)
		}
	}
	if got := s.metrics.Reports("m")[0].Inference; got.Success.Count != 1 || got.Fail.Count != 1 || got.Input.Count != 1 || got.Output.Count != 1 {
		t.Errorf("%+v", got)
	}
}

// TestModelFails: a model that fails or panics fails the request alone.
func TestModelFails(t *testing.T) {
	l := &fakeLoader{bytes: 1, make: func(string) *fakeModel {
		return &fakeModel{schema: fakeSchema(), bytes: 1, device: "cpu", fail: errors.New("the card fell off")}
	}}
	s := testServer(t, l, Options{MaxQueueDelay: -1}, "m")
	if w := ask(t, s, "POST", "/v2/models/m/infer", row); w.Code != 500 || !strings.Contains(w.Body.String(), "the card fell off") {
		t.Error(w.Code, w.Body)
	}
	l.models()[0].panics = true
	if w := ask(t, s, "POST", "/v2/models/m/infer", row); w.Code != 500 || !strings.Contains(w.Body.String(), "index out of range") {
		t.Error(w.Code, w.Body)
	}
	l.models()[0].panics = false
	l.models()[0].fail = nil
	if w := ask(t, s, "POST", "/v2/models/m/infer", row); w.Code != 200 {
		t.Error(w.Code, w.Body)
	}
}

// TestStatusOf lists the documented codes.
func TestStatusOf(t *testing.T) {
	for _, tc := range []struct {
		err          error
		status, code int
		retry        int
	}{
		{nil, 200, 0, 0},
		{ErrRequest, 400, 3, 0},
		{oip.ErrMessage, 400, 3, 0},
		{ErrToken, 401, 16, 0},
		{ErrForbidden, 403, 7, 0},
		{ErrModel, 404, 5, 0},
		{ErrTooLarge, 413, 8, 0},
		{&retryError{ErrFull, 0}, 429, 8, 1},
		{&retryError{ErrFull, 1500 * time.Millisecond}, 429, 8, 2},
		{ErrUnavailable, 503, 14, 0},
		{ErrLate, 504, 4, 0},
		{context.DeadlineExceeded, 504, 4, 0},
		{context.Canceled, 499, 1, 0},
		{ErrInternal, 500, 13, 0},
		{errors.New("?"), 500, 13, 0},
	} {
		err := tc.err
		if err != nil {
			err = fmt.Errorf("more: %w", err)
		}
		if status, code := statusOf(err); status != tc.status || code != tc.code || retryAfter(err) != tc.retry {
			t.Errorf("%v: %d %d %d", tc.err, status, code, retryAfter(err))
		}
	}
}

// TestLongParameters: an error has the beginning of a parameter, not all of a text that may be as long as a body.
func TestLongParameters(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1, ReloadEvery: -1}, "m")
	long := `"` + strings.Repeat("x", 1<<20) + `"`
	for _, body := range []string{
		`{"parameters":{"query":"sample","n_samples":` + long + `}}`, `{"parameters":{"query":"sample","timeout":` + long + `}}`,
		`{"inputs":[{"name":"x","datatype":"FP32","shape":[1,5],"parameters":{"binary_data_size":` + long + `}}]}`,
		`{"parameters":{"query":"sample","binary_data_output":` + long + `}}`, `{"parameters":{"query":` + long + `}}`,
		strings.Replace(row, "{", `{"outputs":[{"name":"log_prob","parameters":{"datatype":`+long+`}}],`, 1),
		strings.Replace(row, "{", `{"outputs":[{"name":"log_prob","parameters":{"binary_data":`+long+`}}],`, 1),
	} {
		if w := ask(t, s, "POST", "/v2/models/m/infer", body); w.Code != 400 || w.Body.Len() > 500 || !strings.Contains(w.Body.String(), "xxx...") {
			t.Errorf("%.60s: %d, %d bytes: %.100s", body, w.Code, w.Body.Len(), w.Body)
		}
	}
}
