package main

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// How far log-likelihoods of a card may be from the CPU's: what the conformance suite
// allows of float32, as a share, and of mixed precision, in nats for each variable.
const (
	float32Noise = 1e-5
	mixedNoise   = 2e-4
)

// comparison is how far the card is from the CPU in HCLT-64.
type comparison struct {
	Rows          int     `json:"rows"`
	CPUMean       float64 `json:"cpu_mean_log_likelihood"`
	CardMean      float64 `json:"card_mean_log_likelihood"`
	WorstRow      int     `json:"worst_row"`
	Worst         float64 `json:"worst_difference"`
	Allowed       float64 `json:"allowed_difference"` // of the worst row
	CPUTrainMean  float64 `json:"cpu_train_log_likelihood"`
	CardTrainMean float64 `json:"card_train_log_likelihood"`
}

// besideCPU takes one training step of HCLT-64 on the card and on the CPU, and compares
// the log-likelihoods of the step's rows, and then those that each finds for all rows
// under the card's model, in float32.
func (o *options) besideCPU(budget time.Duration) part {
	rows, vars := "builtin:random?rows=4096&vars=784&categories=256", 784
	if o.rehearse {
		rows = o.rehearsalRows(hclt)
	}
	at := func(name string) string { return filepath.Join(o.work, name) }
	train := func(name, device string) step {
		command := append([]string{o.pce, "train"}, o.circuit(hclt, 64)...)
		command = append(command, "--set", "train.steps=1", "--device", device, "--out", at(name), "--json")
		clean := func() error { return os.RemoveAll(at(name)) } // of an attempt that did not end
		return step{name: name, command: command, env: o.env, prepare: clean}
	}
	query := func(name, device string) step {
		read := func([]byte) (any, error) {
			list, err := numbers(at(name + ".csv"))
			return map[string]int{"rows": len(list)}, err
		}
		command := []string{o.pce, "query", "loglik", "--model", filepath.Join(at(trainCard), "model.safetensors"), "--data", rows, "--device", device, "--out", at(name + ".csv"), "--force"}
		return step{name: name, command: command, env: o.env, read: read}
	}
	compare := func(before []outcome) (any, error) {
		card, err := numbers(at("rows on the card.csv"))
		if err != nil {
			return nil, err
		}
		cpu, err := numbers(at("rows on the CPU.csv"))
		if err != nil {
			return nil, err
		}
		c, err := compare(card, cpu)
		if err != nil {
			return nil, err
		}
		return c, c.trained(before, vars)
	}
	return part{name: "hclt-64 beside the CPU", budget: budget, steps: []step{
		train(trainCard, o.device), train(trainCPU, "cpu"), query("rows on the card", o.device), query("rows on the CPU", "cpu"),
		{name: "compare", do: compare},
	}}
}

// The steps that train.
const (
	trainCard = "train on the card"
	trainCPU  = "train on the CPU"
)

// trained compares the mean log-likelihoods that the two training runs report.
func (c *comparison) trained(before []outcome, vars int) error {
	for _, run := range []struct {
		name string
		to   *float64
	}{{trainCard, &c.CardTrainMean}, {trainCPU, &c.CPUTrainMean}} {
		var result struct {
			LL *float64 `json:"train_ll"`
		}
		r := record{Steps: before}
		if !r.result(run.name, &result) || result.LL == nil {
			return fmt.Errorf("%s: no train_ll in its result", run.name)
		}
		*run.to = *result.LL
	}
	allowed := mixedNoise*float64(vars) + float32Noise*math.Abs(c.CPUTrainMean)
	if diff := math.Abs(c.CardTrainMean - c.CPUTrainMean); !(diff <= allowed) {
		return fmt.Errorf("the training step: the card's mean log-likelihood %v, the CPU's %v; want a difference of %.3g at most", c.CardTrainMean, c.CPUTrainMean, allowed)
	}
	return nil
}

// compare finds the row in which two lists of log-likelihoods are furthest apart for
// what is allowed. NaN is never near.
func compare(card, cpu []float64) (*comparison, error) {
	if len(card) != len(cpu) || len(card) == 0 {
		return nil, fmt.Errorf("%d log-likelihoods from the card, %d from the CPU", len(card), len(cpu))
	}
	c := &comparison{Rows: len(card)}
	share := -1.0
	for i := range card {
		c.CardMean += card[i] / float64(len(card))
		c.CPUMean += cpu[i] / float64(len(card))
		allowed := float32Noise * max(1, math.Abs(cpu[i]))
		diff := math.Abs(card[i] - cpu[i])
		if s := diff / allowed; !(s <= share) { // NaN stays the worst
			share, c.WorstRow, c.Worst, c.Allowed = s, i, diff, allowed
		}
		if math.IsNaN(share) {
			break
		}
	}
	if !(share <= 1) {
		return c, fmt.Errorf("row %d: the card's log-likelihood %v, the CPU's %v; want a difference of %.3g at most", c.WorstRow, card[c.WorstRow], cpu[c.WorstRow], c.Allowed)
	}
	return c, nil
}

// numbers reads a file of one number per line.
func numbers(path string) ([]float64, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	var list []float64
	for i, line := range strings.Fields(string(data)) {
		x, err := strconv.ParseFloat(line, 64)
		if err != nil {
			return nil, fmt.Errorf("%s: line %d: %w", path, i+1, err)
		}
		list = append(list, x)
	}
	return list, nil
}
