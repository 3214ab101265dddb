package cluster

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/pce-engine/pce/dataset"
)

// AuditLine is a step that counts: which worker's flows of which shards went
// into it, by the workers' own word.
type AuditLine struct {
	Step   int64           `json:"step"` // counted over the run, from 1
	At     dataset.Cursor  `json:"at"`
	Term   Term            `json:"term"`
	Shards int             `json:"shards"`
	By     map[string]runs `json:"by"` // worker → shards, as lo, hi, lo, hi, ...
}

// Check reports a shard that is missing or counted twice.
func (a *AuditLine) Check() error {
	if a.Shards < 0 || a.Shards > maxShards {
		return fmt.Errorf("%w: audit of step %d: %d shards, want 0..%d", ErrCluster, a.Step, a.Shards, maxShards)
	}
	seen := make([]string, a.Shards)
	for id, r := range a.By {
		if !r.valid(a.Shards) {
			return fmt.Errorf("%w: audit of step %d: %s has shards %v of %d", ErrCluster, a.Step, id, r, a.Shards)
		}
		for _, s := range r.all() {
			if seen[s] != "" {
				return fmt.Errorf("%w: audit of step %d: shard %d counts for %s and for %s", ErrCluster, a.Step, s, seen[s], id)
			}
			seen[s] = id
		}
	}
	for s, id := range seen {
		if id == "" {
			return fmt.Errorf("%w: audit of step %d: shard %d is missing", ErrCluster, a.Step, s)
		}
	}
	return nil
}

// CheckAudit reads an audit file and returns the number of its steps. It fails
// on a step that is missing, out of order, or whose shards do not add up.
func CheckAudit(r io.Reader) (steps int64, err error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(nil, 1<<24)
	for lines.Scan() {
		var a AuditLine
		if err := json.Unmarshal(lines.Bytes(), &a); err != nil {
			return steps, fmt.Errorf("%w: audit line %d cannot be read: %v", ErrCluster, steps+1, err)
		}
		if a.Step != steps+1 {
			return steps, fmt.Errorf("%w: audit line %d is step %d", ErrCluster, steps+1, a.Step)
		}
		if err := a.Check(); err != nil {
			return steps, err
		}
		steps++
	}
	return steps, lines.Err()
}

// auditFile appends to an audit.
type auditFile struct {
	f    *os.File
	step int64
}

// openAudit opens or creates a file; rewind says where it continues.
func openAudit(path string) (*auditFile, error) {
	if path == "" {
		return nil, nil
	}
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, fmt.Errorf("%w: audit: %w", ErrCluster, err)
	}
	return &auditFile{f: f}, nil
}

// rewind keeps the lines of the first steps, and cuts off what an earlier life wrote
// after its last checkpoint. A run that was trained without a cluster before, or whose
// audit was removed, has no line of those steps: the next one is the first.
func (a *auditFile) rewind(steps int64) error {
	if a == nil || a.step == steps && steps > 0 {
		return nil
	}
	if _, err := a.f.Seek(0, io.SeekStart); err != nil {
		return fmt.Errorf("%w: audit: %w", ErrCluster, err)
	}
	r := bufio.NewReader(a.f)
	size, last := int64(0), int64(0)
	for last < steps {
		step, length, err := auditStep(r)
		if errors.Is(err, io.EOF) || err == nil && step > steps {
			break
		}
		if err != nil {
			return fmt.Errorf("%w: audit: %s cannot be read behind step %d: %w; remove it to continue without what it said", ErrCluster, a.f.Name(), last, err)
		}
		size, last = size+length, step
	}
	if last > 0 && last < steps {
		return fmt.Errorf("%w: audit: %s ends with step %d, the run has done %d; it was cut or is of another run: remove it to continue without what it said", ErrCluster, a.f.Name(), last, steps)
	}
	if err := a.f.Truncate(size); err != nil {
		return fmt.Errorf("%w: audit: %w", ErrCluster, err)
	}
	if _, err := a.f.Seek(size, io.SeekStart); err != nil {
		return fmt.Errorf("%w: audit: %w", ErrCluster, err)
	}
	a.step = steps
	return nil
}

// auditStep reads a line, which may be long, and returns its step and its length. Without
// a whole line the error is io.EOF.
func auditStep(r *bufio.Reader) (step, length int64, err error) {
	for {
		part, err := r.ReadSlice('\n')
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return 0, 0, err
		}
		if length == 0 {
			if _, err := fmt.Sscanf(string(part), `{"step":%d,`, &step); err != nil {
				return 0, 0, err
			}
		}
		if length += int64(len(part)); err == nil {
			return step, length, nil
		}
	}
}

func (a *auditFile) append(line AuditLine) error {
	if a == nil {
		return nil
	}
	a.step++
	line.Step = a.step
	if err := line.Check(); err != nil {
		return err
	}
	text, err := json.Marshal(line)
	if err != nil {
		panic(fmt.Sprintf("BUG: cluster: audit: %v", err))
	}
	if _, err := a.f.Write(append(text, '\n')); err != nil {
		return fmt.Errorf("%w: audit: %w", ErrCluster, err)
	}
	return nil
}

// sync puts what was written on the disk.
func (a *auditFile) sync() error {
	if a == nil {
		return nil
	}
	return a.f.Sync()
}

func (a *auditFile) close() error {
	if a == nil {
		return nil
	}
	return a.f.Close()
}
