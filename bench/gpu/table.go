package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
)

// measured is what the table shows of a result of pce bench.
type measured struct {
	SecondsPer1k float64            `json:"seconds_per_1k_samples"`
	Fraction     float64            `json:"fraction_of_floor"`
	Phases       map[string]float64 `json:"phase_seconds_per_1k"`
	Bytes        int64              `json:"device_memory_bytes"`
}

// peerResult is what the table shows of the peer's.
type peerResult struct {
	Batch  int     `json:"batch"`
	Per60k float64 `json:"seconds_per_60k"`
	Bytes  int64   `json:"peak_mem_bytes"`
}

// printTable writes the results of a file as a Markdown table.
func printTable(w io.Writer, path string) error {
	records, err := readRecords(path)
	if err != nil {
		return err
	}
	peers := map[string]peerResult{}
	for _, r := range records {
		circuit, ok := strings.CutPrefix(r.Task, "pyjuice ")
		if !ok {
			continue
		}
		for _, raw := range r.Results {
			var p peerResult
			if json.Unmarshal(raw, &p) == nil && p.Per60k > 0 {
				peers[fmt.Sprintf("%s batch %d", circuit, p.Batch)] = p
			}
		}
	}
	fmt.Fprintln(w, "| circuit | s / 60 K samples | forward | backward | update | of the floor | MiB | PyJuice s / 60 K | times | MiB |")
	fmt.Fprintln(w, "|---|---|---|---|---|---|---|---|---|---|")
	for _, r := range records {
		if len(r.Results) == 0 || strings.HasPrefix(r.Task, "pyjuice ") {
			continue
		}
		var m measured
		if json.Unmarshal(r.Results[len(r.Results)-1], &m) != nil || m.SecondsPer1k == 0 {
			continue
		}
		fmt.Fprintf(w, "| %s | %.3g | %.3g | %.3g | %.3g | %.0f %% | %d |", r.Task, 60*m.SecondsPer1k,
			60*m.Phases["forward"], 60*m.Phases["backward"], 60*m.Phases["update"], 100*m.Fraction, m.Bytes>>20)
		if p, ok := peers[r.Task]; ok {
			fmt.Fprintf(w, " %.3g | %.1f | %d |\n", p.Per60k, p.Per60k/(60*m.SecondsPer1k), p.Bytes>>20)
		} else {
			fmt.Fprintln(w, " | | |")
		}
	}
	return nil
}
