package main

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
)

// record is a line of the results: one part that was run.
type record struct {
	Part    string  `json:"part"`
	Call    int     `json:"call"`
	Build   string  `json:"build"` // digest of the program that was measured
	Begun   string  `json:"begun"` // UTC
	Seconds float64 `json:"seconds"`
	Budget  float64 `json:"budget_seconds"`
	Suite   string  `json:"suite"` // what the conformance suite had said of this build: passed, failed or unknown
	// What a call has in common with the records of its build that it continues. Both are empty in older files.
	Precision string    `json:"precision,omitempty"` // of a part that measures
	Place     string    `json:"place,omitempty"`     // see options.place
	Steps     []outcome `json:"steps,omitempty"`
	Error     string    `json:"error,omitempty"`
}

// outcome is what one step of a part gave.
type outcome struct {
	Name    string            `json:"name"`
	Seconds float64           `json:"seconds"`
	Results []json.RawMessage `json:"results,omitempty"`
	Skipped string            `json:"skipped,omitempty"` // why it was not run
}

// result decodes the last result of a step, and reports whether there is one.
func (r *record) result(step string, to any) bool {
	for _, s := range r.Steps {
		if s.Name == step && len(s.Results) > 0 {
			return json.Unmarshal(s.Results[len(s.Results)-1], to) == nil
		}
	}
	return false
}

// The states of the conformance suite.
const (
	suitePassed  = "passed"
	suiteFailed  = "failed"
	suiteUnknown = "unknown"
)

// results is the file of records, open for more.
type results struct {
	records []record
	file    *os.File
}

// openResults opens the file at path, which begins with the lines of the file from,
// if one is named. A last line that was cut off while it was written is dropped.
func openResults(path, from string) (*results, error) {
	if from != "" {
		if _, err := os.Stat(path); err == nil {
			return nil, fmt.Errorf("%s exists; -in is for a new file of results, leave it out to continue this one", path)
		}
		data, err := os.ReadFile(from)
		if err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, data, 0o644); err != nil {
			return nil, err
		}
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, err
	}
	r := &results{file: f}
	if err := r.load(path); err != nil {
		f.Close()
		return nil, err
	}
	return r, nil
}

// load reads the records and leaves the file at the end of the last whole one.
func (r *results) load(path string) error {
	data, err := io.ReadAll(r.file)
	if err != nil {
		return err
	}
	var whole int
	if r.records, whole, err = parse(data); err != nil {
		return fmt.Errorf("%s: %w", path, err)
	}
	if err := r.file.Truncate(int64(whole)); err != nil {
		return err
	}
	if _, err := r.file.Seek(int64(whole), io.SeekStart); err != nil {
		return err
	}
	if whole > 0 && data[whole-1] != '\n' {
		_, err = r.file.WriteString("\n")
	}
	return err
}

// parse returns the records in data and how many bytes they take. The last line may
// be cut off.
func parse(data []byte) (records []record, whole int, err error) {
	for line := range bytes.Lines(data) {
		var one record
		if err := json.Unmarshal(line, &one); err != nil {
			if line[len(line)-1] != '\n' {
				break
			}
			return nil, 0, fmt.Errorf("line %d: %w", len(records)+1, err)
		}
		if one.Part == "" {
			return nil, 0, fmt.Errorf("line %d: a record without a part", len(records)+1)
		}
		records = append(records, one)
		whole += len(line)
	}
	return records, whole, nil
}

// add writes a record, whole before it counts.
func (r *results) add(one record) error {
	line, err := json.Marshal(one)
	if err != nil {
		return err
	}
	if _, err := r.file.Write(append(line, '\n')); err != nil {
		return err
	}
	r.records = append(r.records, one)
	return r.file.Sync()
}

// readRecords reads a file of results.
func readRecords(path string) ([]record, error) {
	data, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	records, _, err := parse(data)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", path, err)
	}
	return records, nil
}

// stateOf says what the conformance suite has said of a build: failed where its last
// run at some depth failed, passed where there is a run and none of these failed.
func stateOf(records []record, build string) string {
	last := map[string]string{}
	for _, r := range records {
		if r.Build != build || !isSuite(r.Part) {
			continue
		}
		last[r.Part] = suitePassed
		if r.Error != "" {
			last[r.Part] = suiteFailed
		}
	}
	state := suiteUnknown
	for _, s := range last {
		if s == suiteFailed {
			return suiteFailed
		}
		state = s
	}
	return state
}

// digest names a build by its bytes.
func digest(path string) (string, error) {
	f, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil))[:12], nil
}

// place says what a call measures, where results with the same names would not be the same: a card,
// whichever, or the emulator, with usual sizes or those of a rehearsal.
func (o *options) place() string {
	place := "card"
	if !strings.HasPrefix(o.device, "cuda") {
		place = o.device
	}
	if o.rehearse {
		place += ", rehearsal"
	}
	return place
}

// alike refuses files with results of this build that are of another precision or place: their
// parts would count as done.
func (o *options) alike(build string) error {
	for _, path := range []string{o.in, o.out} {
		records, err := readRecords(path)
		if err != nil {
			continue // it is not there yet, or openResults says what is wrong with it
		}
		for _, r := range records {
			if r.Build != build {
				continue
			}
			for _, c := range []struct{ has, is string }{{r.Precision, o.precision}, {r.Place, o.place()}} {
				if c.has != "" && c.has != c.is {
					return fmt.Errorf("%s has results of this build with %s, and this call is with %s; give it a file of its own", path, c.has, c.is)
				}
			}
		}
	}
	return nil
}
