package main

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"
)

// selfSigned writes tls.crt and tls.key for this machine to the current directory.
func selfSigned(t *testing.T) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "broker"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	cert, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	for name, block := range map[string]*pem.Block{"tls.crt": {Type: "CERTIFICATE", Bytes: cert}, "tls.key": {Type: "PRIVATE KEY", Bytes: private}} {
		if err := os.WriteFile(name, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

// TestUpThreads: what the help of cluster up says of threads is what its workers get.
func TestUpThreads(t *testing.T) {
	if code, out, _ := do(t, "", "cluster", "up", "--help"); code != exitOK || !strings.Contains(out, "0: the cores divided by --workers") {
		t.Errorf("exit %d, %s", code, out)
	}
	f := upFlags{dir: t.TempDir(), addr: "127.0.0.1:0", workers: 2, lease: time.Minute}
	if err := f.complete(func(flag string) bool { return flag == "workers" }); err != nil {
		t.Fatal(err)
	}
	if want := max(1, runtime.GOMAXPROCS(0)/2); f.run.threads != want {
		t.Errorf("%d threads, want %d", f.run.threads, want)
	}
}

// TestURLFileSpares: what is not of an earlier cluster is not removed for its address, and a folder, as all that is not a regular file, neither.
func TestURLFileSpares(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"notes": "a\nb\n", "folder/file": ""} {
		if err := os.MkdirAll(filepath.Dir(name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range []string{"notes", "folder", filepath.Join("folder", "file", "x")} {
		ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second) // of a cluster that starts
		var out, errs bytes.Buffer
		code := Run(ctx, []string{"cluster", "up", "--dir", "cluster", "--workers", "0", "--url-file", name}, nil, strings.NewReader(""), &out, &errs)
		cancel()
		if code != exitUsage || !strings.Contains(errs.String(), "not a file that cluster up wrote; name another file") {
			t.Errorf("%s: exit %d, %s", name, code, &errs)
		}
	}
	if text, err := os.ReadFile("notes"); err != nil || string(text) != "a\nb\n" {
		t.Errorf("notes has %q, %v", text, err)
	}
	for name, text := range map[string]string{"earlier": "tls://a:1\n/keys/client.nk\n", "empty": ""} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if err := removeURLFile(name); err != nil {
			t.Error(err)
		}
		if _, err := os.Stat(name); err == nil {
			t.Errorf("%s is left", name)
		}
	}
	if err := removeURLFile("none"); err != nil {
		t.Error(err)
	}
}

// TestURLFileOfAnother has a cluster end whose file another one has written since: it stays.
func TestURLFileOfAnother(t *testing.T) {
	t.Chdir(t.TempDir())
	for _, another := range []string{"", "tls://a:1\n/keys/client.nk\n"} {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		ended := make(chan int, 1)
		go func() {
			ended <- Run(ctx, []string{"cluster", "up", "--dir", "cluster", "--workers", "0", "--url-file", "url"}, nil, strings.NewReader(""), io.Discard, io.Discard)
		}()
		for {
			if _, err := os.Stat("url"); err == nil {
				break
			}
			select {
			case code := <-ended:
				t.Fatalf("exit %d before it is ready", code)
			case <-time.After(10 * time.Millisecond):
			}
		}
		if another != "" {
			if err := os.WriteFile("url", []byte(another), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		cancel()
		<-ended
		if have, err := os.ReadFile("url"); string(have) != another || (err == nil) != (another != "") {
			t.Errorf("the file says %q, %v; want %q", have, err, another)
		}
	}
}

// TestURLFile reads back what was written, and refuses what was not.
func TestURLFile(t *testing.T) {
	t.Chdir(t.TempDir())
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for _, u := range []urlFile{{url: "nats://127.0.0.1:4222", credentials: "client.nk"}, {url: "tls://a:1", credentials: "/k/client.nk", ca: "ca.pem"}} {
		if err := u.write("url"); err != nil {
			t.Fatal(err)
		}
		got, err := readURLFile(t.Context(), "url")
		if err != nil || got.url != u.url || filepath.Base(got.credentials) != "client.nk" || !filepath.IsAbs(got.credentials) || (got.ca != "") != (u.ca != "") {
			t.Errorf("wrote %+v, read %+v, %v", u, got, err)
		}
	}
	entries, err := os.ReadDir(".")
	if err != nil || len(entries) != 1 {
		t.Errorf("%d files left, %v", len(entries), err)
	}
	for name, text := range map[string]string{
		"empty": "", "one line": "nats://a:1\n", "four lines": "a\nb\nc\nd\n", "no url": "\nb\n", "zero": "a\x00\nb\n", "large": strings.Repeat("a", maxURLFile) + "\nb\n",
	} {
		if err := os.WriteFile("bad", []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		if _, err := readURLFile(t.Context(), "bad"); !errors.Is(err, errUsage) {
			t.Errorf("%s: %v", name, err)
		}
	}

	// What @FILE says holds unless a flag says otherwise.
	for _, name := range []string{"client.nk", "other.nk", "ca.pem"} {
		if err := os.WriteFile(name, nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := (urlFile{url: "tls://a:1", credentials: "client.nk", ca: "ca.pem"}).write("url"); err != nil {
		t.Fatal(err)
	}
	o, err := (&clusterFlags{cluster: "@url"}).options(t.Context(), "x")
	if err != nil || o.URLs != "tls://a:1" || o.Credentials != filepath.Join(dir, "client.nk") || o.CA != filepath.Join(dir, "ca.pem") {
		t.Errorf("options %+v, %v", o, err)
	}
	o, err = (&clusterFlags{cluster: "@url", credentials: "other.nk"}).options(t.Context(), "x")
	if err != nil || o.Credentials != "other.nk" {
		t.Errorf("options %+v, %v", o, err)
	}
	if _, err = (&clusterFlags{cluster: "@url", credentials: "none.nk"}).options(t.Context(), "x"); !errors.Is(err, errUsage) {
		t.Errorf("no key: %v", err)
	}
}
