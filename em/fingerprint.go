package em

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"github.com/pce-engine/pce/internal/safetensors"
)

// Fact is one thing that the bits of a run depend on, as text: a setting, the
// rows, the kernels. The facts of a run are its fingerprint. Checkpoints keep
// it, so that a run is not continued as another one by accident.
type Fact struct {
	Name  string `json:"name"`
	Value string `json:"value"`
	// Free facts may differ when a run is resumed: they change its length or
	// what is written, but no bit of a step.
	Free bool `json:"free,omitempty"`
}

// ValidRowsFact is the name of the fact that says which rows Options.Valid are. Where
// it has changed, what was the best by other rows is judged by these.
const ValidRowsFact = "validation rows"

// TrainRowsFact is the name of the fact that says which the training rows are. Where it has changed, the averages of Anemone begin anew.
const TrainRowsFact = "training rows"

// ObjectiveFact is the name of the fact that describes the objective of a discriminative run; other runs,
// whose objective is the log-likelihood of rows, lack it. Where it has changed, what was the best by another objective is judged by this one.
const ObjectiveFact = "objective"

// valueOf returns the value of a fact; "" if it is not among them.
func valueOf(facts []Fact, name string) string {
	for _, f := range facts {
		if f.Name == name {
			return f.Value
		}
	}
	return ""
}

// Change is a fact that has another value than it had in the checkpoint from
// which a run is resumed.
type Change struct {
	Name, Was, Now string
	Free           bool
}

// String returns the change as part of a line, with both values.
func (c Change) String() string {
	return fmt.Sprintf("%s: %s, now %s", c.Name, shown(c.Was), shown(c.Now))
}

// shown returns a value as part of a line.
func shown(value string) string {
	if value == "" || strings.ContainsFunc(value, unicode.IsControl) {
		return strconv.Quote(value)
	}
	return value
}

// ListChanges returns changes as a part of one line, divided by semicolons; "" for none.
func ListChanges(changes []Change) string {
	list := make([]string, len(changes))
	for i, c := range changes {
		list[i] = c.String()
	}
	return strings.Join(list, "; ")
}

// CompareFacts lists the facts with another value than before. A fact that only
// one side has is not compared: it belongs to a part of the run that the other
// side does not have, or to another version of the program.
func CompareFacts(was, now []Fact) []Change {
	before := make(map[string]string, len(was))
	for _, f := range was {
		before[f.Name] = f.Value
	}
	var changes []Change
	for _, f := range now {
		if old, ok := before[f.Name]; ok && old != f.Value {
			changes = append(changes, Change{f.Name, old, f.Value, f.Free})
		}
	}
	return changes
}

// binding lists the changes that are not free.
func binding(changes []Change) []Change {
	return slices.DeleteFunc(slices.Clone(changes), func(c Change) bool { return c.Free })
}

// fingerprint returns the facts of a run over rows training rows.
func (o *Options) fingerprint(rows int) []Fact {
	if o.Fingerprint != nil {
		return o.Fingerprint
	}
	return append(o.Facts(), Fact{Name: TrainRowsFact, Value: strconv.Itoa(rows)})
}

// Facts returns the facts that the options themselves are: seed, shards and
// phases. The epochs of a phase are free.
func (o *Options) Facts() []Fact {
	facts := []Fact{
		{Name: "seed", Value: strconv.FormatUint(o.Seed, 10)},
		{Name: "shard_rows", Value: strconv.Itoa(o.shardRows())},
	}
	for i, p := range o.Phases {
		at := fmt.Sprintf("phase %d: ", i+1)
		steps, err := json.Marshal(p.StepSize)
		if err != nil { // validate refuses what JSON has no numbers for
			steps = fmt.Append(nil, p.StepSize)
		}
		facts = append(facts,
			Fact{Name: at + "epochs", Value: strconv.Itoa(p.Epochs), Free: true},
			Fact{Name: at + "rule", Value: string(p.Rule)},
			Fact{Name: at + "batch_rows", Value: strconv.Itoa(p.BatchRows)},
			Fact{Name: at + "subsets", Value: strconv.Itoa(p.Subsets)},
			Fact{Name: at + "step_size", Value: string(steps)},
			Fact{Name: at + "momentum", Value: fmt.Sprint(p.Momentum)},
			Fact{Name: at + "pseudocount", Value: fmt.Sprint(p.Pseudocount)},
		)
	}
	return facts
}

// LastSteps returns after how many steps the newest checkpoint in a directory was written, -1 if there is none. Nothing of it is read.
func LastSteps(dir string) (int64, error) {
	all, err := (&checkpointDir{dir: dir}).list()
	if err != nil || len(all) == 0 {
		return -1, err
	}
	return all[0], nil
}

// LastFingerprint returns the fingerprint of the newest checkpoint in a directory that can be read, nil if there is
// none: Resume, which alone checks all bytes, passes over damaged ones, too.
func LastFingerprint(dir string) (facts []Fact) {
	newest(dir, func(meta map[string]string) bool {
		var all []Fact
		if json.Unmarshal([]byte(meta["fingerprint"]), &all) == nil {
			facts = all
		}
		return facts != nil
	})
	return facts
}

// LastProgram returns the digest of the program that the newest checkpoint in a directory which can be read is of, in hexadecimal digits; ""
// if there is none.
func LastProgram(dir string) (digest string) {
	newest(dir, func(meta map[string]string) bool {
		digest = meta["program"]
		return digest != ""
	})
	return digest
}

// newest hands the strings of the checkpoints in a directory that can be read to take, from the newest on, until it says that they are
// what is wanted.
func newest(dir string, take func(meta map[string]string) bool) {
	d := &checkpointDir{dir: dir}
	all, err := d.list()
	if err != nil {
		return
	}
	for _, steps := range all {
		f, err := safetensors.Open(d.path(steps))
		if err != nil {
			continue
		}
		found := take(f.Metadata)
		f.Close()
		if found {
			return
		}
	}
}
