package serve

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/serve/oip"
)

// stuck is a ResponseWriter of a client that does not read: Write waits for read.
type stuck struct {
	*httptest.ResponseRecorder
	wrote chan int
	read  chan struct{}
}

func (s *stuck) Write(b []byte) (int, error) {
	s.wrote <- len(b)
	<-s.read
	return s.ResponseRecorder.Write(b)
}

// TestAnswersTakeMemory: answers count as memory until their clients have read them,
// over REST and gRPC, so that slow readers cannot fill it.
func TestAnswersTakeMemory(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1, MaxPending: 200_000, ReloadEvery: -1}, "m")
	body := `{"parameters":{"query":"sample","n_samples":1000,"seed":1}}`
	message := (&oip.Request{Model: "m", Params: oip.Params{"query": "sample", "n_samples": int64(1000), "seed": int64(1)}}).AppendProto(nil)
	short := strings.Replace(body, "{", `{"outputs":[{"name":"samples","parameters":{"datatype":"INT16"}}],`, 1) // two bytes each, and five as text
	for _, first := range []string{body, short, ""} {
		r, grpc := httptest.NewRequest("POST", "/v2/models/m/infer", strings.NewReader(first)), first == ""
		if grpc {
			r = httptest.NewRequest("POST", grpcService+"ModelInfer", bytes.NewReader(frame(message)))
			r.Header.Set("Content-Type", "application/grpc")
		}
		w := &stuck{httptest.NewRecorder(), make(chan int), make(chan struct{})}
		done := make(chan struct{})
		go func() {
			defer close(done)
			s.ServeHTTP(w, r)
		}()
		wrote := int64(<-w.wrote)
		if n := s.metrics.Pending.Load(); wrote < 20_000 || n < wrote {
			t.Errorf("gRPC %v: %d bytes count while %d are being read", grpc, n, wrote)
		}
		s.opts.MaxPending = s.metrics.Pending.Load() + 100_000 // less than a second answer takes
		if again := ask(t, s, "POST", "/v2/models/m/infer", body); again.Code != 429 || again.Header().Get("Retry-After") != "1" || !strings.Contains(again.Body.String(), "MiB") {
			t.Errorf("gRPC %v: %d %.200s", grpc, again.Code, again.Body)
		}
		s.opts.MaxPending = 1 << 30
		close(w.read)
		<-done
		if n := s.metrics.Pending.Load(); n != 0 || w.Code != 200 {
			t.Errorf("gRPC %v: %d, and %d bytes stay reserved", grpc, w.Code, n)
		}
	}
}

// TestAnswersAreReserved: a request whose answer has no room is refused before the model computes it, and counted so.
func TestAnswersAreReserved(t *testing.T) {
	l := &fakeLoader{bytes: 1}
	s := testServer(t, l, Options{MaxQueueDelay: -1, MaxPending: 8 << 20, ReloadEvery: -1}, "m")
	if err := s.reserve(8<<20-110_000, 0); err != nil { // room for the rows and numbers, 100,020 bytes, and not for JSON
		t.Fatal(err)
	}
	body := `{"parameters":{"query":"sample","n_samples":1000,"seed":1},"outputs":[{"name":"samples","parameters":{"datatype":"FP64"}}]}`
	w := ask(t, s, "POST", "/v2/models/m/infer", body)
	want(t, w, 429, `{"error":"too many requests: requests take 8 MiB, and this one wants 1 more, of 8; try again later"}`)
	if n := l.models()[0].runs.Load(); n != 0 {
		t.Errorf("the model ran %d times for nothing", n)
	}
	if text := s.metrics.Text(nil); !strings.Contains(text, `code="429"} 1`) || strings.Contains(text, `code="200"`) {
		t.Error(text)
	}
	s.metrics.Pending.Add(110_000 - 8<<20)
	if w := ask(t, s, "POST", "/v2/models/m/infer", body); w.Code != 200 {
		t.Errorf("%d %.200s", w.Code, w.Body)
	}
	if n := s.metrics.Pending.Load(); n != 0 {
		t.Errorf("%d bytes stay reserved", n)
	}
}

// TestDecodingTakesMemory: what a body becomes counts before it is taken.
func TestDecodingTakesMemory(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1, MaxPending: 2 << 20, ReloadEvery: -1}, "m")
	if err := s.reserve(2<<20-300_000, 0); err != nil {
		t.Fatal(err)
	}
	numbers := strings.TrimSuffix(strings.Repeat("0,0,0,10,0,", 20_000), ",")
	body := `{"inputs":[{"name":"x","datatype":"%s","shape":[20000,5],"data":[` + numbers + `]}]}`
	want(t, ask(t, s, "POST", "/v2/models/m/infer", fmt.Sprintf(body, "INT64")), 429, `{"error":"bad request: inputs[0] \"x\": too many requests: requests take 2 MiB, and this one wants 1 more, of 2; try again later"}`)
	s.metrics.Pending.Add(300_000 - 2<<20)
	s.opts.MaxPending = 4_000_000
	if w := ask(t, s, "POST", "/v2/models/m/infer", fmt.Sprintf(body, "INT64")); w.Code != 200 {
		t.Errorf("%d %.200s", w.Code, w.Body)
	}
	if w := ask(t, s, "POST", "/v2/models/m/infer", fmt.Sprintf(body, "INT4")); w.Code != 400 {
		t.Errorf("%d %.200s", w.Code, w.Body)
	}
	if n := s.metrics.Pending.Load(); n != 0 {
		t.Errorf("%d bytes stay reserved", n)
	}
}

// TestHostileConnections: clients that break the protocol of the connection are
// refused or dropped, and the server answers others.
func TestHostileConnections(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1, Hosts: LoopbackHosts, ReloadEvery: -1}, "m")
	addr := listen(t, s)
	talk := func(text string, half bool) string {
		t.Helper()
		c, err := net.Dial("tcp", addr)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(30 * time.Second))
		io.WriteString(c, text) // which a server that has had enough need not read
		if half {
			c.(*net.TCPConn).CloseWrite()
		}
		r, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			return "no answer"
		}
		defer r.Body.Close()
		body, _ := io.ReadAll(r.Body)
		return fmt.Sprint(r.StatusCode, " ", string(body))
	}
	post := "POST /v2/models/m/infer HTTP/1.1\r\nHost: localhost\r\n"
	length := fmt.Sprintf("Content-Length: %d\r\n\r\n", len(row))
	for _, tc := range []struct {
		name, text string
		half       bool
		want       string // one of these begins the answer, by |
	}{
		{"header flood", post + strings.Repeat("X-Flood: "+strings.Repeat("a", 1000)+"\r\n", 60) + length + row, false, "431|no answer"},
		{"a rebound name", strings.Replace(post, "localhost", "evil.example:"+addr[strings.LastIndex(addr, ":")+1:], 1) + length + row, false, "403"},
		{"two hosts", post + "Host: localhost\r\n" + length + row, false, "400"},
		{"no host", strings.Replace(post, "Host: localhost\r\n", "", 1) + length + row, false, "400"},
		{"two lengths", post + "Content-Length: 3\r\n" + length + row, false, "400"},
		{"a negative length", post + "Content-Length: -1\r\n\r\n" + row, false, "400"},
		{"a length beside chunks", post + "Transfer-Encoding: chunked\r\n" + length + "0\r\n\r\n", false, "400"},
		{"bad chunks", post + "Transfer-Encoding: chunked\r\n\r\nfffffffffffffffff\r\n", false, "400"},
		{"a body that ends early", post + length + row[:20], true, "499|no answer"},
		{"a half-closed connection", post + length + row, true, "200|499|no answer"}, // net/http takes it for a client that has left
		{"gRPC over HTTP/1.1", "POST " + grpcService + "ModelInfer HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/grpc\r\nContent-Length: 3\r\n\r\nabc", false, "200"},
		{"not HTTP", "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("\x00", 100) + "\r\n\r\n", false, "400|no answer"},
		{"a preface of HTTP/2 and no frames", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + strings.Repeat("\xff", 64), false, "no answer"},
		{"a good one", post + length + row, false, `200 {"model_name":"m"`},
	} {
		got := talk(tc.text, tc.half)
		ok := false
		for _, want := range strings.Split(tc.want, "|") {
			ok = ok || strings.HasPrefix(got, want)
		}
		if !ok {
			t.Errorf("%s: got %.200s, want %s", tc.name, got, tc.want)
		}
	}
	if n := s.metrics.Pending.Load(); n != 0 {
		t.Errorf("%d bytes stay reserved", n)
	}
}

// TestSlowBodies: a body that does not come ends its connection after the timeout of requests, and
// the answer says so. A request for a model that is not served is refused before its body comes.
func TestSlowBodies(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1, Hosts: LoopbackHosts, ReloadEvery: -1}, "m")
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	h := HTTPServer(s, 100*time.Millisecond, s.opts.Log)
	h.ReadTimeout -= headerTime // the headers of this test are quick
	done := make(chan struct{})
	go func() {
		defer close(done)
		h.Serve(l)
	}()
	t.Cleanup(func() {
		h.Close()
		<-done
	})
	for _, tc := range []struct{ name, head, want string }{
		{"REST", "POST /v2/models/m/infer HTTP/1.1\r\n", "504 Gateway Timeout"},
		{"gRPC", "POST " + grpcService + "ModelInfer HTTP/1.1\r\nContent-Type: application/grpc\r\n", "Grpc-Status: 4\r\n"},
		{"index", "POST /v2/repository/index HTTP/1.1\r\n", "504 Gateway Timeout"},
		{"no such model", "POST /v2/models/z/infer HTTP/1.1\r\n", "404 Not Found"},
		{"no such path", "POST /v3 HTTP/1.1\r\n", "404 Not Found"},
	} {
		c, err := net.Dial("tcp", l.Addr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		c.SetDeadline(time.Now().Add(10 * time.Second))
		io.WriteString(c, tc.head+"Host: localhost\r\nContent-Length: 1000000\r\n\r\n{")
		got, err := io.ReadAll(c)
		if errors.Is(err, os.ErrDeadlineExceeded) || !strings.Contains(string(got), tc.want) {
			t.Errorf("%s: got %.200q, %v; want %q and the end of the connection", tc.name, got, err, tc.want)
		}
	}
	var text bytes.Buffer
	for _, name := range []string{"m", "z"} {
		text.Reset()
		r := httptest.NewRequest("POST", "/v2/models/"+name+"/infer", io.TeeReader(strings.NewReader(row), &text))
		r.Host = "localhost"
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if read, want := text.Len() > 0, name == "m"; read != want {
			t.Errorf("model %s: %d bytes of the body were read for the answer %d", name, text.Len(), w.Code)
		}
	}
}

// TestHostileFrames: frames of gRPC that are cut off, long, empty or compressed, and
// messages whose tensors say what cannot be.
func TestHostileFrames(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1, ReloadEvery: -1}, "m")
	c, addr := client2(t), listen(t, s)
	whole := frame(rowsRequest(1, 0).AppendProto(nil))
	shaped := func(shape ...int64) []byte {
		req := rowsRequest(1, 0)
		req.Inputs[0].Shape = shape
		return frame(req.AppendProto(nil))
	}
	for _, tc := range []struct {
		name   string
		body   []byte
		status string
		want   string
	}{
		{"nothing", nil, "3", "no message"},
		{"half a head", whole[:3], "3", "no message"},
		{"cut off", whole[:len(whole)-1], "3", "send one message"},
		{"two messages", append(bytes.Clone(whole), whole...), "3", "send one message"},
		{"a length of 4 GiB", append([]byte{0, 255, 255, 255, 255}, whole[5:]...), "3", "send one message"},
		{"compressed", append([]byte{1}, whole[1:]...), "12", "compressed"},
		{"a flag that is not defined", append([]byte{7}, whole[1:]...), "12", "compressed"},
		{"no rows", shaped(0, 5), "3", "shape [0 5] wants 0"},
		{"negative rows", shaped(-1, 5), "3", "dimension -1"},
		{"the least dimension", shaped(-1<<63, 5), "3", "dimension -9223372036854775808"},
		{"a product that overflows", shaped(1<<62, 5), "3", "63 bits"},
		{"a product that overflows to what is there", shaped(1<<32, 1<<32, 5), "3", "63 bits"},
		{"zero times the largest", shaped(1<<62, 1<<62, 0), "3", "wants 0"},
		{"seventeen dimensions", shaped(make([]int64, 17)...), "3", "more than 16 dimensions"},
		{"no dimensions", shaped(), "3", "5 elements of INT32; shape [] wants 1"},
		{"a good one", whole, "0", ""},
	} {
		_, status, text := call2(t, c, addr, grpcService+"ModelInfer", tc.body)
		if status != tc.status || !strings.Contains(text, tc.want) {
			t.Errorf("%s: got %s %s, want %s %s", tc.name, status, text, tc.status, tc.want)
		}
	}
}

// TestPathsOfOthers: a path with dots, with slashes too many or of another method is a 404 in the
// protocol's form, not a redirect, and a line says which method a path wants.
func TestPathsOfOthers(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1}, "m")
	for _, tc := range []struct{ method, path, want string }{
		{"GET", "/v2/models/../../etc/passwd", "/v2/models/../../etc/passwd is not a path"},
		{"POST", "//v2/models/m/infer", "//v2/models/m/infer is not a path"},
		{"GET", "/v2//models", "/v2//models is not a path"},
		{"GET", "/v2/models/m/infer", "GET /v2/models/m/infer; this server has it with POST"},
		{"DELETE", "/v2/models/m", "DELETE /v2/models/m; this server has it with GET"},
		{"PUT", "/v2/models/m/elsewhere", "/v2/models/m/elsewhere is not a path"},
	} {
		w := httptest.NewRecorder()
		r := httptest.NewRequest(tc.method, "http://localhost/", nil)
		r.URL.Path = tc.path
		s.ServeHTTP(w, r)
		if w.Code != 404 || !strings.HasPrefix(w.Body.String(), `{"error":"`) || !strings.Contains(w.Body.String(), tc.want) {
			t.Errorf("%s %s: %d %s, want 404 and %q", tc.method, tc.path, w.Code, w.Body, tc.want)
		}
	}
}

// TestTooLargeAlone: what takes more memory than all requests together may is refused as too large, as it would be
// later: a body, and what one becomes.
func TestTooLargeAlone(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1, MaxBody: 4 << 20, MaxPending: 1 << 20, ReloadEvery: -1}, "m")
	numbers := strings.TrimSuffix(strings.Repeat("0,0,0,10,0,", 40_000), ",")
	for _, body := range []string{strings.Repeat(" ", 2<<20), `{"inputs":[{"name":"x","datatype":"INT64","shape":[40000,5],"data":[` + numbers + `]}]}`} {
		w := ask(t, s, "POST", "/v2/models/m/infer", body)
		if w.Code != 413 || w.Header().Get("Retry-After") != "" || !strings.Contains(w.Body.String(), "the request takes 2 MiB, and all together may take 1; send fewer rows") {
			t.Errorf("a body of %d bytes: %d %.200s", len(body), w.Code, w.Body)
		}
		r := httptest.NewRequest("POST", grpcService+"ModelInfer", bytes.NewReader(frame([]byte(body))))
		r.Header.Set("Content-Type", "application/grpc")
		g := httptest.NewRecorder()
		if s.ServeHTTP(g, r); len(body) > 1<<20 && (g.Header().Get("Grpc-Status") != "8" || g.Header().Get("Grpc-Retry-Pushback-Ms") != "") {
			t.Errorf("gRPC: %v", g.Header())
		}
	}
	if n := s.metrics.Pending.Load(); n != 0 {
		t.Errorf("%d bytes stay reserved", n)
	}
	// A server that is told to take larger bodies has memory for one.
	if o := (Options{MaxBody: 2 << 30}).withDefaults(); o.MaxPending != 4<<30 {
		t.Errorf("%d bytes for bodies of %d", o.MaxPending, o.MaxBody)
	}
}
