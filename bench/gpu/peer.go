package main

import (
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
	}
	own.steps = []step{o.bench("pce", p.structure, p.latents, peerBatch), peer, o.bench("pce again", p.structure, p.latents, peerBatch)}
	return own
}
