package main

import (
	"bufio"
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/pce-engine/pce/serve"
)

// certificate writes a certificate of this machine and its key, and returns what
// clients trust.
func certificate(t *testing.T) (cert, key string, roots *x509.CertPool) {
	t.Helper()
	pair, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "pce"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	signed, err := x509.CreateCertificate(rand.Reader, template, template, &pair.PublicKey, pair)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(pair)
	if err != nil {
		t.Fatal(err)
	}
	roots = x509.NewCertPool()
	for name, block := range map[string]*pem.Block{"cert.pem": {Type: "CERTIFICATE", Bytes: signed}, "key.pem": {Type: "PRIVATE KEY", Bytes: secret}} {
		text := pem.EncodeToMemory(block)
		if err := os.WriteFile(name, text, 0o600); err != nil {
			t.Fatal(err)
		}
		roots.AppendCertsFromPEM(text)
	}
	return "cert.pem", "key.pem", roots
}

// TestServeToken: the line end of a token in the environment is not part of it, as in a file, and a blank one is
// refused, as the server would want none.
func TestServeToken(t *testing.T) {
	t.Chdir(t.TempDir())
	mixedModel(t)
	url, stop := serving(t, []string{"PCE_SERVE_TOKEN=s3cret\r\n"}, "--model", "m=run/model.safetensors")
	for token, want := range map[string]int{"s3cret": 200, "other": 401, "": 401} {
		r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/v2/models", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", "Bearer "+token)
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if w.Body.Close(); w.StatusCode != want {
			t.Errorf("the token %q gives %d, want %d", token, w.StatusCode, want)
		}
	}
	if code, said := stop(); code != 0 {
		t.Errorf("exit %d: %s", code, said)
	}
	var out, errs bytes.Buffer
	args := []string{"serve", "--addr", "127.0.0.1:0", "--model", "m=none"}
	if code := Run(t.Context(), args, []string{"PCE_SERVE_TOKEN= \n"}, strings.NewReader(""), &out, &errs); code != exitUsage || !strings.Contains(errs.String(), "PCE_SERVE_TOKEN is blank") {
		t.Errorf("a blank token: exit %d: %s", code, &errs)
	}
	errs.Reset()
	if code := Run(t.Context(), args, []string{"PCE_SERVE_TOKEN=a\nb"}, strings.NewReader(""), &out, &errs); code != exitUsage || !strings.Contains(errs.String(), "control characters") {
		t.Errorf("a token of two lines: exit %d: %s", code, &errs)
	}
}

// TestServeStopsEarly: a signal that comes before the server listens interrupts it, as one does while models are loaded.
func TestServeStopsEarly(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	code := Run(ctx, []string{"serve", "--addr", "localhost:0", "--model", "m=none"}, nil, strings.NewReader(""), &out, &errs)
	if code != exitInterrupted || !strings.Contains(errs.String(), "interrupted") {
		t.Errorf("exit %d: %s", code, &errs)
	}
}

// TestServeFlags: flags without a sensible value, and tokens that no header can have, are refused by name, and any
// address of loopback is a host that is answered, with a token file whose mark of an editor is left out.
func TestServeFlags(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"lines": "a\nb", "marked": "\ufeffs3cret\n"} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range [][2]string{
		{"--max-batch-rows=0", "--max-batch-rows 0; want 1 or more rows"}, {"--max-queue-rows=-1", "--max-queue-rows -1"}, {"--timeout=0", "--timeout 0s; want more than 0"},
		{"--timeout=-1s", "--timeout -1s"}, {"--threads=-5", "--threads -5: want 0 to 4096"}, {"--max-queue-delay=-1s", "--max-queue-delay -1s"}, {"--token-file=lines", "control characters within the token"},
	} {
		var out, errs bytes.Buffer
		args := []string{"serve", "--addr", "127.0.0.1:0", "--model", "m=none", "--parallel=2", tc[0]}
		if code := Run(t.Context(), args, nil, strings.NewReader(""), &out, &errs); code != exitUsage || !strings.Contains(errs.String(), tc[1]) {
			t.Errorf("%s: exit %d: %s", tc[0], code, &errs)
		}
	}
	f := serveFlags{models: []string{"m=none"}, bodyMiB: 1, conns: 1, tokenFile: "marked", options: serve.Options{Parallel: 1, MaxBatchRows: 1, Timeout: 1}}
	if err := f.complete(t.Context(), &app{}, nil); err != nil || f.options.MaxQueueDelay >= 0 || f.options.Token != "s3cret" {
		t.Errorf("%v; the delay is %v, of which 0 is the default, and the token %q", err, f.options.MaxQueueDelay, f.options.Token)
	}
	mixedModel(t)
	url, stop := serving(t, nil, "--model", "m=run/model.safetensors", "--addr", "127.0.0.2:0")
	defer stop()
	w, err := http.Get(url + "/v2")
	if err != nil {
		t.Fatal(err)
	}
	if w.Body.Close(); w.StatusCode != 200 {
		t.Errorf("%s gives %d", url, w.StatusCode)
	}
	for addr, hosts := range map[string]string{"127.0.0.1:0": "[localhost 127.0.0.1 ::1]", "127.0.0.2:0": "[localhost 127.0.0.1 ::1 127.0.0.2]"} {
		url, stop := serving(t, nil, "--model", "m=run/model.safetensors", "--addr", addr)
		r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/v2", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Host = "elsewhere"
		w, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		said, _ := io.ReadAll(w.Body)
		if w.Body.Close(); w.StatusCode != 403 || !strings.Contains(string(said), "answers to "+hosts) {
			t.Errorf("%s: %d %s, want %s", addr, w.StatusCode, said, hosts)
		}
		stop()
	}
}

// TestServeTLS: with a certificate the server speaks TLS 1.2 and later, as HTTP/1.1 and
// HTTP/2, and nothing else; a token is wanted all the same.
func TestServeTLS(t *testing.T) {
	t.Chdir(t.TempDir())
	mixedModel(t)
	cert, key, roots := certificate(t)
	if err := os.WriteFile("token", []byte("s3cret\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	url, stop := serving(t, nil, "--model", "m=run/model.safetensors", "--tls-cert", cert, "--tls-key", key, "--token-file", "token")
	addr, ok := strings.CutPrefix(url, "https://")
	if !ok {
		t.Errorf("it says that it answers at %s", url)
	}
	for _, tc := range []struct {
		major  int
		tls    *tls.Config
		token  string
		status int // 0: no answer
	}{
		{1, &tls.Config{RootCAs: roots}, "s3cret", 200},
		{2, &tls.Config{RootCAs: roots}, "s3cret", 200},
		{2, &tls.Config{RootCAs: roots}, "other", 401},
		{2, &tls.Config{RootCAs: roots}, "", 401},
		{1, &tls.Config{RootCAs: roots, MaxVersion: tls.VersionTLS11, MinVersion: tls.VersionTLS10}, "s3cret", 0},
		{1, &tls.Config{}, "s3cret", 0}, // the client does not trust it
	} {
		var p http.Protocols
		p.SetHTTP1(tc.major == 1)
		p.SetHTTP2(tc.major == 2)
		tr := &http.Transport{TLSClientConfig: tc.tls, Protocols: &p}
		r, err := http.NewRequestWithContext(t.Context(), "GET", url+"/v2/models/m", nil)
		if err != nil {
			t.Fatal(err)
		}
		if tc.token != "" {
			r.Header.Set("Authorization", "Bearer "+tc.token)
		}
		status := 0
		if w, err := (&http.Client{Transport: tr}).Do(r); err == nil {
			if status = w.StatusCode; w.ProtoMajor != tc.major {
				t.Errorf("%s for HTTP/%d", w.Proto, tc.major)
			}
			w.Body.Close()
		}
		if status != tc.status {
			t.Errorf("HTTP/%d with token %q: status %d, want %d", tc.major, tc.token, status, tc.status)
		}
		tr.CloseIdleConnections()
	}
	if w, err := http.Get("http://" + addr + "/v2/health/live"); err == nil {
		if w.StatusCode == 200 {
			t.Error("it answers without TLS")
		}
		w.Body.Close()
	}
	http.DefaultClient.CloseIdleConnections()
	if code, said := stop(); code != 0 {
		t.Errorf("exit %d: %s", code, said)
	}
}

// TestServeKilled: a server that is killed while it answers leaves nothing that keeps the
// next one from answering the same at once, at the same address.
func TestServeKilled(t *testing.T) {
	t.Chdir(t.TempDir())
	rows := mixedModel(t)
	ask := `{"inputs":[{"name":"x","datatype":"BYTES","shape":[1,4],"data":["` + strings.ReplaceAll(rows[0], ",", `","`) + `"]}]}`
	addr := "127.0.0.1:0"
	var first []byte
	for round := range 3 {
		cmd := exec.CommandContext(t.Context(), os.Args[0], "serve", "--addr", addr, "--model", "m="+filepath.Join("run", "model.safetensors"))
		cmd.Env = append(cmd.Environ(), roleVariable+"=pce")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		var errs strings.Builder
		cmd.Stderr = &errs
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		line, err := bufio.NewReader(out).ReadString('\n')
		if err != nil {
			cmd.Wait()
			t.Fatalf("round %d: %v: %s", round, err, &errs)
		}
		url := strings.TrimSpace(line)
		addr = strings.TrimPrefix(url, "http://")
		status, text := post(t, url+"/v2/models/m/infer", ask)
		if status != 200 || first != nil && string(text) != string(first) {
			t.Errorf("round %d: %d %s, before it was killed %s", round, status, text, first)
		}
		first = text
		if err := cmd.Process.Kill(); err != nil {
			t.Fatal(err)
		}
		cmd.Wait()
		http.DefaultClient.CloseIdleConnections()
	}
}

// TestServeParallel: batches that are computed at a time share the threads, each has a
// copy of the parameters that memory is planned for, and answers are the same.
func TestServeParallel(t *testing.T) {
	t.Chdir(t.TempDir())
	rows := mixedModel(t)[:64]
	log := slog.New(slog.DiscardHandler)
	a := &app{stderr: io.Discard}
	var planned, taken [3]int64
	for n := 1; n <= 2; n++ {
		f := serveFlags{models: []string{"m=run/model.safetensors"}, bodyMiB: 1, conns: 1, run: deviceFlags{device: "cpu", threads: 5}}
		f.options.Parallel, f.options.MaxBatchRows, f.options.Timeout = n, 1024, time.Minute
		if err := f.complete(t.Context(), a, log); err != nil {
			t.Fatal(err)
		}
		l := f.options.Loader.(*modelLoader)
		if want := 5 / n; l.run.Threads != want || l.run.Engines != n {
			t.Errorf("%d batches: %d threads each, want %d, and %d engines", n, l.run.Threads, want, l.run.Engines)
		}
		l.run.Threads = 1 // threads take memory too
		var err error
		if planned[n], err = l.Plan(t.Context(), "run/model.safetensors"); err != nil {
			t.Fatal(err)
		}
		m, err := l.Open(t.Context(), "run/model.safetensors")
		if err != nil {
			t.Fatal(err)
		}
		taken[n] = m.Bytes()
		if err := m.Close(); err != nil {
			t.Error(err)
		}
	}
	if planned[2] != 2*planned[1] || taken[2] != 2*taken[1] {
		t.Errorf("%d and %d bytes are planned for one and two batches, %d and %d taken", planned[1], planned[2], taken[1], taken[2])
	}
	var cells []string
	for _, row := range rows {
		cells = append(cells, `"`+strings.ReplaceAll(row, ",", `","`)+`"`)
	}
	ask := fmt.Sprintf(`{"inputs":[{"name":"x","datatype":"BYTES","shape":[%d,4],"data":[%s]}]}`, len(rows), strings.Join(cells, ","))
	var answers [2]string
	for i, flags := range [][]string{nil, {"--parallel", "2", "--max-batch-rows", "16"}} {
		url, stop := serving(t, nil, append(flags, "--model", "m=run/model.safetensors")...)
		status, text := post(t, url+"/v2/models/m/infer", ask)
		if answers[i] = string(text); status != 200 {
			t.Errorf("%v: %d %s", flags, status, text)
		}
		http.DefaultClient.CloseIdleConnections()
		stop()
	}
	if answers[0] != answers[1] {
		t.Errorf("%s\nwith two batches at a time: %s", answers[0], answers[1])
	}
}

// waitingLoader opens no model before the server ends.
type waitingLoader struct{ began chan struct{} }

func (l waitingLoader) Plan(ctx context.Context, _ string) (int64, error) {
	close(l.began)
	<-ctx.Done()
	return 0, ctx.Err()
}

func (l waitingLoader) Open(context.Context, string) (serve.Model, error) {
	return nil, errors.New("Plan has failed")
}

// TestServeInterrupted: a signal while models are being loaded ends the server as it ends other commands.
func TestServeInterrupted(t *testing.T) {
	loader := waitingLoader{make(chan struct{})}
	s, err := serve.New(serve.Options{Loader: loader, Models: []serve.Source{{Name: "m", Path: "m"}}})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	go func() {
		<-loader.began
		cancel()
	}()
	f := serveFlags{drain: time.Second, options: serve.Options{Timeout: time.Second}}
	err = (&app{stdout: io.Discard, stderr: io.Discard}).answer(ctx, &f, s, l, nil, slog.New(slog.DiscardHandler))
	if code := exitCode(err); code != exitInterrupted || asFlags(err) != `serve: model "m" is still being loaded: interrupted` {
		t.Errorf("exit %d: %v", code, err)
	}
}
