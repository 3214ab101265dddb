package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strconv"
	"time"
)

// pairs are the circuits that are measured beside PyJuice. The budget holds its import,
// the compilation of its kernels, and pce before and after.
var pairs = []pair{
	{hclt, 64, secs(85)},
	{ratspn, 512, secs(95)},
	{pd, 128, secs(110)},
	{hclt, 512, secs(130)},
	{hmm, 2048, secs(130)},
}

// pair is a circuit of both.
type pair struct {
	structure
	latents int
	budget  time.Duration
}

// peerBatch is the batch of both.
const peerBatch = 512

func (p *pair) name(cute bool) string {
	kernels := "Triton"
	if cute {
		kernels = "CuTe"
	}
	return fmt.Sprintf("%s-%d beside PyJuice, %s", p.structure.name, p.latents, kernels)
}

// besidePyJuice measures pce, PyJuice and pce again, in one part: what happens to the
// card between two calls does not come between them.
func (o *options) besidePyJuice(p pair, cute bool) part {
	own := part{name: p.name(cute), budget: p.budget, measures: true}
	kernels, env := "off", o.env
	if cute {
		kernels, env = "auto", append(env[:len(env):len(env)], "PYJUICE_CUTLASS_PATH="+o.cutlass)
	}
	peer := step{
		name: "pyjuice", env: env,
		prepare: func() error { // a path that is wrong would look like a slow import
			_, err := os.Stat(o.peer)
			return err
		},
		command: []string{
			o.python, o.peer, "--pyjuice", o.pyjuice, "--only", fmt.Sprintf("%s:%d", p.peer, p.latents), "--batches", strconv.Itoa(peerBatch),
			"--repeats", "3", "--max-s", "1", "--cuda-kernels", kernels,
		},
		read: readPeer,
	}
	own.steps = []step{o.bench("pce", p.structure, p.latents, peerBatch), peer, o.bench("pce again", p.structure, p.latents, peerBatch)}
	return own
}

// readPeer returns the last result of PyJuice's benchmark, which prints an error as a result too and ends well.
func readPeer(output []byte) (any, error) {
	for lines := bytes.Split(output, []byte("\n")); len(lines) > 0; lines = lines[:len(lines)-1] {
		line := bytes.TrimSpace(lines[len(lines)-1])
		if !bytes.HasPrefix(line, []byte("{")) || !json.Valid(line) {
			continue
		}
		var r peerResult
		switch err := json.Unmarshal(line, &r); {
		case err != nil:
			return nil, err
		case r.Error != "":
			return json.RawMessage(line), errors.New(r.Error)
		case !(r.Per60k > 0):
			return json.RawMessage(line), fmt.Errorf("no seconds_per_60k in %s", line)
		}
		return json.RawMessage(line), nil
	}
	return nil, fmt.Errorf("no JSON object in the output: %s", tail(output))
}
