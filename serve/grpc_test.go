package serve

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/pce-engine/pce/internal/golden"
	"github.com/pce-engine/pce/serve/oip"
)

// listen serves a handler as commands do, and returns its address.
func listen(t testing.TB, h http.Handler) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	s := HTTPServer(h, time.Minute, Options{}.withDefaults().Log)
	done := make(chan struct{})
	go func() {
		defer close(done)
		s.Serve(l)
	}()
	t.Cleanup(func() {
		s.Close()
		<-done
	})
	return l.Addr().String()
}

// client2 speaks HTTP/2 without TLS.
func client2(t testing.TB) *http.Client {
	var p http.Protocols
	p.SetUnencryptedHTTP2(true)
	tr := &http.Transport{Protocols: &p}
	t.Cleanup(tr.CloseIdleConnections)
	return &http.Client{Transport: tr}
}

// frame puts a message of gRPC into its frame.
func frame(message []byte) []byte {
	return append(binary.BigEndian.AppendUint32([]byte{0}, uint32(len(message))), message...)
}

// call makes a call and returns the message of the answer, or its status.
func call2(t testing.TB, c *http.Client, addr, method string, body []byte, header ...string) (message []byte, status, text string) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+addr+method, bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/grpc")
	r.Header.Set("Te", "trailers")
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	w, err := c.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Body.Close()
	out, err := io.ReadAll(w.Body)
	if err != nil {
		t.Fatal(err)
	}
	if w.StatusCode != 200 || w.ProtoMajor != 2 || w.Header.Get("Content-Type") != "application/grpc" {
		t.Fatalf("%s: %s %s", method, w.Proto, w.Status)
	}
	if s := w.Header.Get("Grpc-Status"); s != "" {
		return nil, s, w.Header.Get("Grpc-Message")
	}
	if len(out) < 5 || !bytes.Equal(frame(out[5:]), out) {
		t.Fatalf("%s: frame %x", method, out)
	}
	return out[5:], w.Trailer.Get("Grpc-Status"), w.Trailer.Get("Grpc-Message")
}

func TestConformanceGRPC(t *testing.T) {
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1, ModelControl: true, MaxBody: 4096}, "m")
	addr, c := listen(t, s), client2(t)
	ok := func(method string, body []byte, want string, header ...string) {
		t.Helper()
		got, status, text := call2(t, c, addr, method, frame(body), header...)
		if status != "0" || string(got) != want {
			t.Errorf("%s: %s %s\ngot  %q\nwant %q", method, status, text, got, want)
		}
	}
	bad := func(method string, framed []byte, code, want string, header ...string) {
		t.Helper()
		_, status, text := call2(t, c, addr, method, framed, header...)
		if status != code || !strings.Contains(text, want) {
			t.Errorf("%s: got %s %s, want %s %s", method, status, text, code, want)
		}
	}
	name := "\x0a\x01m"
	ok(grpcService+"ServerLive", nil, "\x08\x01")
	ok(grpcService+"ServerReady", nil, "\x08\x01")
	ok(grpcHealth+"Check", nil, "\x08\x01")
	ok(grpcHealth+"Check", []byte("\x0a\x1einference.GRPCInferenceService"), "\x08\x01")
	ok(grpcService+"ModelReady", []byte(name), "\x08\x01")
	ok(grpcService+"ModelReady", []byte(name+"\x12\x011"), "\x08\x01")
	ok(grpcService+"ServerMetadata", nil, string(s.info().AppendProto(nil)))
	info, err := s.describe(t.Context(), "m", "")
	if err != nil {
		t.Fatal(err)
	}
	ok(grpcService+"ModelMetadata", []byte(name), string(info.AppendProto(nil)))
	ok(grpcService+"RepositoryIndex", nil, string(oip.AppendIndex(nil, s.models.index(false))))

	req := rowsRequest(2, 7)
	req.ID = "r1"
	want := &oip.Response{Model: "m", Version: "1", ID: "r1", Outputs: []oip.Tensor{{Name: "log_prob", Datatype: oip.FP64, Shape: []int64{2}}}}
	for _, x := range []float64{-7, -8} {
		want.Outputs[0].Raw, _ = oip.AppendFloat(want.Outputs[0].Raw, oip.FP64, x)
	}
	ok(grpcService+"ModelInfer", req.AppendProto(nil), string(want.AppendProto(nil)))
	ok(grpcService+"ModelInfer", req.AppendProto(nil), string(want.AppendProto(nil)), "Grpc-Timeout", "10S", "Content-Type", "application/grpc+proto")

	infer := grpcService + "ModelInfer"
	bad(infer, frame((&oip.Request{Model: "x"}).AppendProto(nil)), "5", `model "x"`)
	bad(infer, frame((&oip.Request{Model: "m", Version: "9"}).AppendProto(nil)), "5", `version "9"`)
	bad(infer, frame((&oip.Request{Model: "m"}).AppendProto(nil)), "3", `input "x": missing`)
	bad(infer, frame([]byte{8, 1}), "3", `model_name: field 1 has the wire type 0`)
	bad(infer, []byte{0, 0}, "3", "no message")
	bad(infer, append(frame(nil), 1), "3", "send one message")
	bad(infer, append([]byte{1}, frame(nil)[1:]...), "12", `compressed as "gzip"`, "Grpc-Encoding", "gzip")
	bad(infer, frame(make([]byte, 5000)), "8", "more than 4096 bytes")
	bad(infer, frame(req.AppendProto(nil)), "4", "not there in time", "Grpc-Timeout", "1n")
	bad(infer, frame(req.AppendProto(nil)), "3", "grpc-timeout", "Grpc-Timeout", "123456789S")
	bad(infer, frame(req.AppendProto(nil)), "3", "grpc-timeout", "Grpc-Timeout", "5x")
	bad(grpcService+"ModelStreamInfer", frame(nil), "12", "is not a method of this server")
	bad(grpcHealth+"Watch", frame(nil), "12", "is not a method of this server")
	bad(grpcHealth+"Check", frame([]byte("\x0a\x01x")), "5", `service "x"`)
	bad(grpcService+"ModelReady", frame([]byte("\x0a\x01x")), "5", `model "x"`)
	bad("/other.Service/Call", frame(nil), "12", "/other.Service/Call is not a method of this server")
	bad(grpcService+"a/b", frame(nil), "12", "is not a method of this server")
	bad("/grpc.reflection.v1.ServerReflection/ServerReflectionInfo", nil, "12", "is not a method of this server")
	if got := percent("a%é\n"); got != "a%25%C3%A9%0A" {
		t.Error(got)
	}

	stats, status, _ := call2(t, c, addr, grpcService+"ModelStatistics", frame([]byte(name)))
	if status != "0" || !bytes.Contains(stats, []byte("\x0a\x01m\x12\x011")) {
		t.Errorf("%q", stats)
	}
	bad(grpcService+"RepositoryModelLoad", frame([]byte("\x12\x01m\x1a\x0c\x0a\x06config\x12\x02\x1a\x00")), "3", `parameters: "config" is not known`)
	ok(grpcService+"RepositoryModelUnload", []byte("\x12\x01m\x1a\x17\x0a\x11unload_dependents\x12\x02\x08\x00"), "") // as clients of Triton send it
	ok(grpcService+"ModelReady", []byte(name), "")
	bad(infer, frame(req.AppendProto(nil)), "14", `model "m" is unloaded; load it first`)
	ok(grpcService+"RepositoryModelLoad", []byte("\x12\x01m"), "")
	ok(grpcService+"ModelReady", []byte(name+"\x12\x012"), "\x08\x01")

	// The same port speaks HTTP/1.1 and REST over HTTP/2.
	for _, client := range []*http.Client{http.DefaultClient, c} {
		r, err := http.NewRequestWithContext(t.Context(), "POST", "http://"+addr+"/v2/models/m/infer", strings.NewReader(row))
		if err != nil {
			t.Fatal(err)
		}
		w, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		text, err := io.ReadAll(w.Body)
		w.Body.Close()
		if err != nil || w.StatusCode != 200 || !strings.Contains(string(text), "-155") {
			t.Errorf("%s %d %s %v", w.Proto, w.StatusCode, text, err)
		}
	}
	http.DefaultClient.CloseIdleConnections()
	if w := ask(t, s, "POST", infer, ""); w.Code != http.StatusUnsupportedMediaType {
		t.Error(w.Code)
	}
}

// TestLongMessagesGRPC: the header that tells an error stays small enough for clients, however long what the model says is, and has
// whole letters.
func TestLongMessagesGRPC(t *testing.T) {
	for _, letter := range []string{"e", "é", "%"} {
		l := &fakeLoader{bytes: 1, make: func(string) *fakeModel {
			return &fakeModel{schema: fakeSchema(), bytes: 1, device: "cpu", fail: errors.New(strings.Repeat(letter, 40000))}
		}}
		addr := listen(t, testServer(t, l, Options{MaxQueueDelay: -1}, "m"))
		_, status, text := call2(t, client2(t), addr, grpcService+"ModelInfer", frame(rowsRequest(1, 7).AppendProto(nil)))
		said, err := url.PathUnescape(text)
		if status != "13" || len(text) > 4<<10 || err != nil || !utf8.ValidString(said) || !strings.HasPrefix(said, "internal error: query log_prob of model") || !strings.HasSuffix(said, letter+"...") {
			t.Errorf("%s, a message of %d bytes, %v: %.200s", status, len(text), err, text)
		}
	}
}

// nodeModules is where npm has put @grpc/grpc-js and @grpc/proto-loader.
func nodeModules() string {
	for _, dir := range filepath.SplitList(nodePath) {
		if _, err := os.Stat(filepath.Join(dir, "@grpc", "grpc-js")); err == nil {
			return dir
		}
	}
	return ""
}

// TestConformanceNode calls the server with a client that we did not write, which
// knows the public names and numbers alone.
func TestConformanceNode(t *testing.T) {
	node, err := exec.LookPath("node")
	modules := nodeModules()
	if err != nil || modules == "" {
		t.Skipf("SKIPPED: node is %q, @grpc/grpc-js in %q; install Node and set -node to its node_modules after npm install @grpc/grpc-js @grpc/proto-loader", node, nodePath)
	}
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1, ModelControl: true, Token: "secret"}, "m")
	addr := listen(t, s)
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, node, "testdata/client.js", addr)
	cmd.Env = append(cmd.Environ(), "NODE_PATH="+modules)
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	golden.Run(t, "testdata/client.txt", func(string, []string, string) string { return string(out) })
}

// TestConformanceCurl calls the server with curl.
func TestConformanceCurl(t *testing.T) {
	curl, err := exec.LookPath("curl")
	if err != nil {
		t.Skip("SKIPPED: curl is not installed")
	}
	s := testServer(t, &fakeLoader{bytes: 1}, Options{MaxQueueDelay: -1}, "m")
	addr := listen(t, s)
	for _, version := range []string{"--http1.1", "--http2-prior-knowledge", "--http2"} {
		out, err := exec.CommandContext(t.Context(), curl, "-sS", version, "-w", " %{http_code}", "-d", row, "http://"+addr+"/v2/models/m/infer").CombinedOutput()
		if want := `{"model_name":"m","model_version":"1","outputs":[{"name":"log_prob","shape":[1],"datatype":"FP32","data":[-155]}]} 200`; err != nil || string(out) != want {
			t.Errorf("%s: %v %s", version, err, out)
		}
	}
	body := filepath.Join(t.TempDir(), "body")
	head := `{"inputs":[{"name":"x","datatype":"UINT8","shape":[1,5],"parameters":{"binary_data_size":5}}]}`
	if err := os.WriteFile(body, []byte(head+"\x01\x96\x02\x14\x03"), 0o644); err != nil {
		t.Fatal(err)
	}
	out, err := exec.CommandContext(t.Context(), curl, "-sS", "--data-binary", "@"+body, "-H", fmt.Sprintf("%s: %d", headerLength, len(head)), "http://"+addr+"/v2/models/m/infer").CombinedOutput()
	if err != nil || !strings.Contains(string(out), "[-155]") {
		t.Errorf("%v %s", err, out)
	}
}
