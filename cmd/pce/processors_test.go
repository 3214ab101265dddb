package main

import (
	"bytes"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"

	"github.com/pce-engine/pce/forest"
	"github.com/pce-engine/pce/forest/format/xgboost"
)

// TestProcessors runs the program on emulated processors without AVX-512 and without AVX,
// where an instruction that they lack ends it. What it trains and answers has the same bits
// as here, where the program is only told to do without these instructions.
func TestProcessors(t *testing.T) {
	if testing.Short() {
		t.Skip("ten seconds of emulated processors; without -short")
	}
	if runtime.GOARCH != "amd64" {
		t.Skipf("the processors are of amd64, this machine is of %s", runtime.GOARCH)
	}
	var qemu string
	for _, name := range []string{"qemu-x86_64-static", "qemu-x86_64"} {
		if path, err := exec.LookPath(name); err == nil {
			qemu = path
			break
		}
	}
	if qemu == "" {
		t.Skip("SKIPPED: no emulator of processors; install qemu-x86_64-static (Debian's package is qemu-user-static)")
	}

	dir := t.TempDir()
	write := func(name, content string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(content), 0o666); err != nil {
			t.Fatal(err)
		}
		return path
	}
	network := write("network.spn", "(0.25*(Categorical(V0|p=[0.25, 0.75]) * Gaussian(V1|mean=1.0;stdev=2.0)) + 0.75*(Categorical(V0|p=[0.5, 0.5]) * Gaussian(V1|mean=-2.0;stdev=0.5)))\n")
	cells := write("cells.csv", "V0,V1\n0,0.5\n1,-2.25\n,3\n1,\n")
	trees := &forest.Forest{Target: "binary:logistic", Features: 2, Outputs: 1, Base: []float64{0.5}}
	for i := range 20 {
		trees.Trees = append(trees.Trees, forest.Tree{Weight: 1,
			Nodes:  []forest.Node{{Feature: int32(i % 2), Test: forest.Less, Threshold: float64(i) - 10, MissingYes: true, Yes: 1, No: 2}, {Last: 1, ID: 1}, {First: 1, Last: 2, ID: 2}},
			Values: []forest.Value{{Value: 0.25}, {Value: -0.125}}})
	}
	var b bytes.Buffer
	if err := xgboost.Write(&b, trees); err != nil {
		t.Fatal(err)
	}
	model := write("forest.json", b.String())
	var rows strings.Builder
	rng := rand.New(rand.NewPCG(1, 1))
	for range 700 { // a whole block and a part of one
		rows.WriteString(strconv.Itoa(rng.IntN(24)-12) + "," + strconv.Itoa(rng.IntN(24)-12) + "\n")
	}
	features := write("features.csv", rows.String())

	for _, processor := range []struct{ name, lacks, kernels string }{
		{"Haswell", "cpu.avx512f=off,cpu.avx512bf16=off", "avx2"},
		{"Nehalem", "cpu.avx512f=off,cpu.avx512bf16=off,cpu.avx2=off,cpu.avx=off,cpu.fma=off", "generic"},
	} {
		t.Run(processor.name, func(t *testing.T) {
			out := filepath.Join(t.TempDir(), "run")
			commands := [][]string{
				{"query", "loglik", network, "--data", cells},
				{"predict", "--model", model, "--data", features, "--set", "data.header=no"},
				append([]string{"train", "--config", "../../configs/hclt.yaml", "--device", "cpu", "--out", out, "--set", "precision=fp32", "--set", "train.steps=2",
					"--set", "model.latents=32", "--set", "train.batch_size=256", "--set", "train.samples=0"}, sets(small)...),
			}
			play := func(env string, argv ...string) (stdout []byte) {
				t.Helper()
				cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
				cmd.Env = append(os.Environ(), roleVariable+"=pce", env)
				var errs bytes.Buffer
				cmd.Stderr = &errs
				stdout, err := cmd.Output()
				if err != nil {
					t.Fatalf("%s %q: %v\n%s", env, argv, err, &errs)
				}
				return stdout
			}
			emulator := []string{qemu, "-cpu", processor.name, os.Args[0]}
			if said := play("PCE_CPU=", append(emulator, "doctor")...); !bytes.Contains(said, []byte("\nkernels    "+processor.kernels+" (")) {
				t.Fatalf("doctor on %s says\n%s", processor.name, said)
			}
			for _, command := range commands {
				got := play("PCE_CPU=", append(emulator, command...)...)
				if command[0] == "train" {
					got = readFile(t, out, "model.safetensors")
					if err := os.RemoveAll(out); err != nil {
						t.Fatal(err)
					}
				}
				want := play("GODEBUG="+processor.lacks, append([]string{os.Args[0]}, command...)...)
				if command[0] == "train" {
					want = readFile(t, out, "model.safetensors")
				}
				if len(got) == 0 || !bytes.Equal(got, want) {
					t.Errorf("%s gives %.200q on %s, %.200q here without its instructions", command[:2], got, processor.name, want)
				}
			}

			refused := exec.CommandContext(t.Context(), emulator[0], append(emulator[1:], commands[1]...)...)
			refused.Env = append(os.Environ(), roleVariable+"=pce", "PCE_CPU=avx512")
			said, err := refused.CombinedOutput()
			if refused.ProcessState.ExitCode() == 0 || refused.ProcessState.ExitCode() == -1 || !bytes.Contains(said, []byte("avx512")) || bytes.Contains(said, []byte("SIGILL")) {
				t.Errorf("avx512 asked of %s: %v, %s", processor.name, err, said)
			}
		})
	}
}

// sets returns the settings as options.
func sets(settings []string) (options []string) {
	for _, s := range settings {
		options = append(options, "--set", s)
	}
	return options
}
