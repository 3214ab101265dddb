package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"testing"
	"time"
)

// waitingReader gives a text, then says that it is read and gives nothing more.
type waitingReader struct {
	text *strings.Reader
	read chan struct{}
}

func (r waitingReader) Read(p []byte) (int, error) {
	if r.text.Len() > 0 {
		return r.text.Read(p)
	}
	close(r.read)
	select {}
}

// TestInterruptStdin interrupts commands that wait for standard input, as that of a terminal: one signal ends them.
func TestInterruptStdin(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, text := range map[string]string{"rain.txt": "circuit 1\nrain = input x0 bernoulli 0.3\n", "forest.json": singleForest} {
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, tc := range []struct{ command, text string }{
		{"query loglik --model rain.txt --data -", ""}, {"query loglik --model rain.txt --data -", "1\n0\n"}, {"query mpe --model rain.txt --data -", "1\n0\n"},
		{"eval --model rain.txt --data -", "1\n0\n"}, {"eval --model rain.txt --data -", "\x1f\x8b"},
		{"predict --model forest.json --data -", ""}, {"predict --model forest.json --data -", "humidity,wind\n1,3\n"},
		{"compress --model rain.txt - out", ""}, {"compress --model rain.txt - out", "1\n0\n"}, {"decompress --model rain.txt - out", ""},
	} {
		command := fmt.Sprintf("%s with %q", tc.command, tc.text)
		ctx, interrupt := context.WithCancel(t.Context())
		in := waitingReader{strings.NewReader(tc.text), make(chan struct{})}
		var errs bytes.Buffer
		code := make(chan int)
		go func() { code <- Run(ctx, strings.Fields(tc.command), nil, in, io.Discard, &errs) }()
		select {
		case <-in.read:
			interrupt()
		case got := <-code:
			t.Fatalf("%s: exit %d, %s", command, got, &errs)
		}
		select {
		case got := <-code:
			if got != exitInterrupted || !strings.HasSuffix(strings.TrimSpace(errs.String()), "interrupted") {
				t.Errorf("%s: exit %d, %s", command, got, &errs)
			}
		case <-time.After(20 * time.Second):
			t.Fatalf("%s does not end", command)
		}
	}
}
