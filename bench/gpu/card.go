package main

import (
	"encoding/csv"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// doctor says what the machine has.
func (o *options) doctor() step {
	return step{name: "doctor", command: []string{o.pce, "doctor", "--json"}, env: o.env}
}

// probe runs a part of the program that measures the card itself.
func (o *options) probe(name string) step {
	command := []string{o.card, "-device", o.device, "-part", name}
	if o.rehearse {
		command = append(command, "-tiny")
	}
	return step{name: name, command: command, env: o.env}
}

func (o *options) probePart(name string, budget time.Duration) part {
	return part{name: name, budget: budget, steps: []step{o.probe(name)}}
}

// clockFields are what nvidia-smi is asked for. It reads; no setting is changed.
var clockFields = []string{"name", "driver_version", "clocks.sm", "clocks.mem", "power.draw", "temperature.gpu", "memory.used", "memory.total"}

// clocks reads the card's clocks in MHz, power in W, temperature in °C and memory in
// MiB.
func (o *options) clocks(name string) step {
	command := []string{"nvidia-smi", "--query-gpu=" + strings.Join(clockFields, ","), "--format=csv,noheader,nounits"}
	if number, ok := strings.CutPrefix(o.device, "cuda:"); ok {
		command = append(command, "--id="+number)
	}
	return step{name: name, command: command, maybe: true, read: readClocks}
}

func readClocks(output []byte) (any, error) {
	fields, err := csv.NewReader(strings.NewReader(string(output))).Read()
	if err != nil {
		return nil, err
	}
	if len(fields) != len(clockFields) {
		return nil, fmt.Errorf("nvidia-smi prints %d fields, want %d: %s", len(fields), len(clockFields), tail(output))
	}
	values := map[string]string{}
	for i, f := range fields {
		values[clockFields[i]] = strings.TrimSpace(f)
	}
	return values, nil
}

// kernels times every kernel of a circuit's training step by events.
func (o *options) kernels(s structure, latents int, budget time.Duration) part {
	p := one(o.bench("kernels", s, latents, 512, "--kernels"), budget)
	p.name = fmt.Sprintf("kernels of %s-%d", s.name, latents)
	return p
}

// counted are the kernels whose hardware counters are read, and metrics what is read
// of them.
var (
	counted = []string{"forward_resident", "forward_wide", "backward_wide", "move_wide", "leaf_gather", "normalise"}
	metrics = []string{
		"gpu__time_duration.sum", "dram__bytes.sum", "lts__t_bytes.sum", "smsp__inst_executed.sum",
		"sm__warps_active.avg.pct_of_peak_sustained_active", "smsp__issue_active.avg.pct_of_peak_sustained_active",
	}
)

// counters reads hardware counters of some kernels of HCLT-512, two launches of each,
// where the profiler ncu is there. The clocks stay as they are.
func (o *options) counters(budget time.Duration) part {
	p := part{name: "counters of hclt-512", budget: budget}
	for _, kernel := range counted {
		log := filepath.Join(o.work, kernel+".csv")
		s := o.bench(kernel, hclt, 512, 512, "--warmup", "0", "--steps", "1")
		s.command = append([]string{
			"ncu", "--clock-control", "none", "--csv", "--page", "raw", "--log-file", log, "--metrics", strings.Join(metrics, ","),
			"--kernel-name", kernel, "--launch-count", "2",
		}, s.command...)
		s.maybe = true
		s.read = func([]byte) (any, error) { return readCounters(log) }
		p.steps = append(p.steps, s)
	}
	return p
}

// readCounters reads a table of the profiler: the names of columns, their units, and
// a line for each launch.
func readCounters(path string) (any, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	text := string(data)
	at := strings.Index(text, `"ID"`)
	if at < 0 {
		return nil, errors.New("the profiler has no table: " + tail(data))
	}
	lines, err := csv.NewReader(strings.NewReader(text[at:])).ReadAll()
	if err != nil {
		return nil, err
	}
	if len(lines) < 3 {
		return nil, errors.New("the profiler has seen no launch: " + tail(data))
	}
	var launches []map[string]string
	for _, line := range lines[2:] {
		launch := map[string]string{}
		for i, name := range lines[0] {
			if strings.Contains(name, "__") || name == "Block Size" || name == "Grid Size" {
				launch[name] = strings.TrimSpace(line[i] + " " + lines[1][i])
			}
		}
		launches = append(launches, launch)
	}
	return map[string]any{"launches": launches}, nil
}
