// Command scale prints how long training steps take on clusters of many sizes,
// by the simulation of package cluster/scale.
//
// # Shapes and units
//
// Times are seconds, links Gb/s, efficiency the speed-up over the workers.
//
// # Errors
//
// One line on standard error and exit code 1 or, for flags, 2.
//
// # Source
//
// docs/scaling.md says where the figures come from that the flags default to.
package main

import (
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/pce-engine/pce/cluster/scale"
)

func main() {
	o, err := parse(os.Args[1:])
	if errors.Is(err, flag.ErrHelp) {
		return
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench/scale:", err)
		os.Exit(2)
	}
	if err := o.run(os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bench/scale:", err)
		os.Exit(1)
	}
}

// options are the flags.
type options struct {
	models, transports []string
	workers            []int
	links              []float64 // Gb/s
	setting            scale.Setting
	node, edge, speed  float64
	wireTCP, wireNATS  float64
	show               string
	json               bool
	threshold          float64
	latency            float64
}

// goodput is the share of a link's bits that is payload: 1460 of the 1538 bytes
// that a full Ethernet frame takes.
const goodput = 1460.0 / 1538

func parse(args []string) (*options, error) {
	o := &options{}
	f := flag.NewFlagSet("scale", flag.ContinueOnError)
	models := f.String("models", "hclt:16:64,hclt:48,hclt:288,hclt:1184", "STRUCTURE:LATENTS[:CATEGORIES], comma-separated; structures are hclt, hmm (tied), untied-hmm, pd, rat-spn")
	workers := f.String("workers", "1,2,4,8,16,32,64,128,256", "numbers of workers, of which the first is compared with")
	transports := f.String("transports", "tcp,nats", "tcp, nats or both")
	links := f.String("links", "1,10,25,100", "speeds of links in Gb/s")
	j, c := &o.setting.Job, &o.setting.Costs
	f.IntVar(&j.Rows, "rows", 1<<20, "rows of an epoch")
	f.IntVar(&j.Batch, "batch", 0, "rows of a step; 0: all")
	f.IntVar(&j.Shard, "shard", 512, "rows of a shard")
	f.Float64Var(&o.node, "node-ns", 0.40, "nanoseconds per node and row, on one worker")
	f.Float64Var(&o.edge, "edge-ns", 0.020, "nanoseconds per sum edge and row, on one worker")
	f.Float64Var(&o.speed, "speed", 1, "times as fast as that")
	f.IntVar(&c.Cores, "cores", 2, "cores of a worker's host")
	f.IntVar(&c.BrokerCores, "broker-cores", 8, "cores of the broker's host")
	f.Float64Var(&o.latency, "latency-us", 50, "microseconds from one host to another")
	f.Float64Var(&o.wireTCP, "tcp-ns", 1.0, "nanoseconds per byte for a sender and a receiver, by TCP with TLS")
	f.Float64Var(&o.wireNATS, "nats-ns", 1.22, "nanoseconds per byte for a sender, the broker and a receiver, by NATS")
	fold := f.Float64("fold-ns", 0.50, "nanoseconds per byte of flows that an owner checks and adds")
	memory := f.Float64("copy-ns", 0.37, "nanoseconds per byte that is copied, cleared or summed up")
	apply := f.Float64("apply-ns", 1, "nanoseconds per parameter that moves")
	message := f.Float64("message-us", 5, "microseconds per message of the coordinator")
	perByte := f.Float64("message-byte-ns", 27, "and nanoseconds for each of its bytes")
	look := f.Float64("look-ns", 12, "nanoseconds per worker when a shard is assigned")
	control := f.Float64("control-us", 20, "microseconds that a message takes beside the latency")
	f.Float64Var(&o.setting.Noise, "noise", 0.05, "deviation of the logarithm of a shard's time")
	f.Float64Var(&o.setting.Spread, "spread", 0, "deviation of the logarithm of a worker's speed")
	f.Uint64Var(&o.setting.Seed, "seed", 1, "of both")
	f.StringVar(&o.show, "show", "efficiency", "cells of the table: efficiency, seconds (an epoch), both, or rows (of a step, from which on the efficiency is the threshold, if what is lost stays what it is)")
	f.Float64Var(&o.threshold, "threshold", 0.9, "the efficiency that the table's last columns are about")
	f.BoolVar(&o.json, "json", false, "print a JSON object per line instead")
	if err := f.Parse(args); err != nil {
		return nil, err
	}
	if f.NArg() > 0 {
		return nil, fmt.Errorf("argument %q; there are only flags", f.Arg(0))
	}
	if !slices.Contains([]string{"efficiency", "seconds", "both", "rows"}, o.show) {
		return nil, fmt.Errorf("-show %q; want efficiency, seconds, both or rows", o.show)
	}
	if !(o.threshold > 0 && o.threshold < 1) {
		return nil, fmt.Errorf("-threshold %v; want a number between 0 and 1", o.threshold)
	}
	if !(o.speed > 0) {
		return nil, fmt.Errorf("-speed %v; want more than 0", o.speed)
	}
	if j.Batch == 0 {
		j.Batch = j.Rows
	}
	c.Fold, c.Copy, c.Apply = *fold*1e-9, *memory*1e-9, *apply*1e-9
	c.Message, c.Byte, c.Look, c.Control = *message*1e-6, *perByte*1e-9, *look*1e-9, *control*1e-6
	o.models, o.transports = strings.Split(*models, ","), strings.Split(*transports, ",")
	for _, w := range strings.Split(*workers, ",") {
		n, err := strconv.Atoi(w)
		if err != nil {
			return nil, fmt.Errorf("-workers: %q is not a number", w)
		}
		o.workers = append(o.workers, n)
	}
	for _, l := range strings.Split(*links, ",") {
		x, err := strconv.ParseFloat(l, 64)
		if err != nil {
			return nil, fmt.Errorf("-links: %q is not a number", l)
		}
		o.links = append(o.links, x)
	}
	return o, nil
}

// row is what is printed of a model on a network.
type row struct {
	Model     string  `json:"model"`
	Params    int64   `json:"parameters"`
	Bytes     int64   `json:"bytes"` // of all flows and parameters, as they are sent
	Owners    int     `json:"owners"`
	Largest   float64 `json:"largest_owner"` // its share of the bytes
	Transport string  `json:"transport"`
	Link      float64 `json:"gbit_per_second"`
	Cells     []cell  `json:"cells"`

	row float64 // seconds that a worker computes a row
}

type cell struct {
	Workers    int     `json:"workers"`
	Epoch      float64 `json:"epoch_seconds"`
	Step       float64 `json:"step_seconds"`
	Compute    float64 `json:"compute_seconds"`
	Exchange   float64 `json:"exchange_seconds"`
	Ideal      float64 `json:"ideal_seconds"` // rows by the sum of speeds
	Efficiency float64 `json:"efficiency"`
	Limit      string  `json:"limit"`
}

func (o *options) run(w io.Writer) error {
	o.header(w)
	for _, name := range o.models {
		m, params, err := o.model(name)
		if err != nil {
			return err
		}
		for _, transport := range o.transports {
			for _, link := range o.links {
				r := row{Model: name, Params: params, Bytes: m.Bytes(), Owners: len(m.Owners), Largest: m.Largest(), Transport: transport, Link: link, row: m.Row}
				if err := o.fill(&r, m); err != nil {
					return err
				}
				if err := o.print(w, &r); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// fill simulates a row.
func (o *options) fill(r *row, m scale.Model) error {
	s := o.setting
	s.Model = m
	s.Network = scale.Network{Transport: scale.Transport(r.Transport), Bandwidth: r.Link * 1e9 / 8 * goodput, Latency: o.latency * 1e-6}
	s.Costs.Wire = o.wireTCP * 1e-9
	if s.Network.Transport == scale.NATS {
		s.Costs.Wire = o.wireNATS * 1e-9
	}
	for _, n := range o.workers {
		s.Workers = n
		x, err := scale.Simulate(s)
		if err != nil {
			return err
		}
		c := cell{Workers: n, Epoch: x.Epoch, Step: x.Step, Compute: x.Compute, Exchange: x.Exchange, Ideal: x.Ideal, Efficiency: 1, Limit: x.Limit}
		if len(r.Cells) > 0 {
			first := r.Cells[0]
			c.Efficiency = first.Step / first.Ideal * x.Ideal / x.Step // speeds may differ
		}
		r.Cells = append(r.Cells, c)
	}
	return nil
}

func (o *options) header(w io.Writer) {
	if o.json {
		return
	}
	fmt.Fprint(w, "| model | parameters | by | Gb/s |")
	for _, n := range o.workers {
		fmt.Fprintf(w, " %d |", n)
	}
	fmt.Fprintf(w, " up to | then |\n|%s\n", strings.Repeat("---|", len(o.workers)+6))
}

func (o *options) print(w io.Writer, r *row) error {
	if o.json {
		text, err := json.Marshal(r)
		if err != nil {
			return err
		}
		_, err = fmt.Fprintf(w, "%s\n", text)
		return err
	}
	fmt.Fprintf(w, "| %s | %.2g | %s | %g |", r.Model, float64(r.Params), r.Transport, r.Link)
	most, then := 0, ""
	for _, c := range r.Cells {
		switch o.show {
		case "efficiency":
			fmt.Fprintf(w, " %.2f |", c.Efficiency)
		case "seconds":
			fmt.Fprintf(w, " %.3g |", c.Epoch)
		case "both":
			fmt.Fprintf(w, " %.3g / %.2f |", c.Epoch, c.Efficiency)
		}
		if o.show == "rows" {
			lost := c.Step - float64(o.setting.Job.Batch)*r.row/float64(c.Workers)
			fmt.Fprintf(w, " %.2g |", max(0, o.threshold/(1-o.threshold)*lost*float64(c.Workers)/r.row))
		}
		if then == "" && c.Efficiency >= o.threshold {
			most = c.Workers
		} else if then == "" {
			then = c.Limit
		}
	}
	_, err := fmt.Fprintf(w, " %d | %s |\n", most, then)
	return err
}
