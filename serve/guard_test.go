package serve

import (
	"net"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestToken(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1, Token: "s3cret"}, "m")
	for header, status := range map[string]int{
		"": 401, "s3cret": 401, "Bearer": 401, "Bearer ": 401, "Bearer s3cre": 401, "Bearer s3crett": 401, "Basic s3cret": 401,
		"Bearer s3cret": 200, "bearer s3cret": 200,
	} {
		w := ask(t, s, "POST", "/v2/models/m/infer", row, "Authorization", header)
		if w.Code != status || status == 401 && w.Header().Get("WWW-Authenticate") != "Bearer" {
			t.Errorf("%q: %d %s", header, w.Code, w.Body)
		}
	}
	for path, status := range map[string]int{"/v2/health/live": 200, "/v2/health/ready": 200, "/v2": 401, "/metrics": 401, "/v2/models/m": 401, "/": 200, "/page/page.js": 200, "/pages": 401, "/page": 401} {
		if w := ask(t, s, "GET", path, ""); w.Code != status {
			t.Errorf("%s: %d", path, w.Code)
		}
	}
	for path, code := range map[string]string{
		grpcHealth + "Check": "0", grpcService + "ServerLive": "0", grpcService + "ServerReady": "0", grpcService + "ServerMetadata": "16", grpcService + "ModelReady": "16",
	} {
		w := ask(t, s, "POST", path, "\x00\x00\x00\x00\x00", "Content-Type", "application/grpc")
		if got := w.Header().Get("Grpc-Status"); got != code {
			t.Errorf("%s: %s, want %s", path, got, code)
		}
	}
}

func TestHost(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{Hosts: LoopbackHosts}, "m")
	for host, status := range map[string]int{
		"localhost": 200, "LOCALHOST:8080": 200, "127.0.0.1:1": 200, "[::1]:8080": 200, "[::1]": 200,
		"evil.example": 403, "localhost.evil.example": 403, "127.0.0.1.nip.io:8080": 403, "": 403, "localhost:8080:1": 403,
	} {
		r := httptest.NewRequest("GET", "/v2", nil)
		r.Host = host
		w := httptest.NewRecorder()
		s.ServeHTTP(w, r)
		if w.Code != status {
			t.Errorf("host %q: %d %s", host, w.Code, w.Body)
		}
	}
}

// TestOrigins: a page of another origin cannot send requests, not even simple ones.
func TestOrigins(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1}, "m")
	for _, tc := range []struct {
		header []string
		status int
	}{
		{nil, 200},
		{[]string{"Sec-Fetch-Site", "same-origin"}, 200},
		{[]string{"Origin", "http://example.com"}, 200}, // the host of the request
		{[]string{"Sec-Fetch-Site", "cross-site", "Content-Type", "text/plain"}, 403},
		{[]string{"Origin", "http://evil.example", "Content-Type", "text/plain"}, 403},
		{[]string{"Origin", "null"}, 403},
	} {
		if w := ask(t, s, "POST", "/v2/models/m/infer", row, tc.header...); w.Code != tc.status {
			t.Errorf("%v: %d %s", tc.header, w.Code, w.Body)
		}
	}
}

func TestHeaders(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{}, "m")
	for _, path := range []string{"/v2", "/nothing", "/metrics"} {
		h := ask(t, s, "GET", path, "").Header()
		if !strings.HasPrefix(h.Get("Content-Security-Policy"), "default-src 'none'") || h.Get("X-Content-Type-Options") != "nosniff" {
			t.Errorf("%s: %v", path, h)
		}
	}
	// The answer of a POST is for a program: it says what it is, and has no header that browsers alone read.
	h := ask(t, s, "POST", "/v2/models/m/infer", row).Header()
	if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Content-Security-Policy") != "" {
		t.Errorf("infer: %v", h)
	}
}

func TestCheckAddress(t *testing.T) {
	for _, tc := range []struct {
		ip         string
		token, tls bool
		ok         bool
	}{
		{"127.0.0.1", false, false, true}, {"127.9.9.9", false, false, true}, {"::1", false, false, true},
		{"0.0.0.0", false, false, false}, {"::", false, false, false}, {"10.0.0.1", false, false, false},
		{"0.0.0.0", true, false, true}, {"10.0.0.1", false, true, true},
	} {
		if err := CheckAddress(&net.TCPAddr{IP: net.ParseIP(tc.ip)}, tc.token, tc.tls); (err == nil) != tc.ok {
			t.Errorf("%+v: %v", tc, err)
		}
	}
}

// TestRefusedCounts: metrics count the requests for answers of models that were refused at the door, and not those for the page, for
// metrics or for what the server is.
func TestRefusedCounts(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1, Token: "s3cret"}, "m")
	counted := func() int {
		return strings.Count(s.metrics.Text(nil), `pce_inference_requests_total{model="",query="",code="401"} `)
	}
	for _, path := range []string{"/v2", "/metrics", "/favicon.ico", "/v2/models/m"} {
		ask(t, s, "GET", path, "")
	}
	ask(t, s, "POST", "/v2/repository/index", "")
	ask(t, s, "POST", grpcService+"ServerMetadata", string(frame(nil)), "Content-Type", "application/grpc")
	if counted() != 0 {
		t.Error(s.metrics.Text(nil))
	}
	ask(t, s, "POST", "/v2/models/m/infer", row)
	ask(t, s, "POST", "/v2/models/m/versions/1/infer", row)
	ask(t, s, "POST", grpcService+"ModelInfer", string(frame(nil)), "Content-Type", "application/grpc")
	if !strings.Contains(s.metrics.Text(nil), `code="401"} 3`) {
		t.Error(s.metrics.Text(nil))
	}
}
