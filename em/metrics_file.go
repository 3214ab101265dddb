package em

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"math"
	"os"
	"path/filepath"

	"github.com/pce-engine/pce/internal/atomicfile"
)

// maxLine bounds the bytes of a line that is read.
const maxLine = 4096

// maxTail bounds the bytes of lines that a checkpoint keeps: thousands of epochs.
// Without a bound a run of very many short epochs would write more and more for
// each of them.
const maxTail = 1 << 20

// mostLost bounds the lines without numbers that a file gets for epochs of which it has none.
const mostLost = 1 << 24

// keepTail returns the last whole lines of text, at most maxTail bytes.
func keepTail(text []byte) []byte {
	if len(text) <= maxTail {
		return text
	}
	cut := len(text) - maxTail
	return text[cut+bytes.IndexByte(text[cut-1:], '\n'):]
}

// metricsFile is a file of one line per epoch. A line is on the disk when append
// returns.
type metricsFile struct{ f *os.File }

// openMetrics opens or creates a file, and leaves it with the lines of its first
// epochs, which it returns. tail are the last ones of these, as the checkpoint has
// them. If the file had others, what says so.
func openMetrics(path string, epochs int, tail []byte) (m *metricsFile, text []byte, what string, err error) {
	have, err := readMetrics(path, epochs)
	if err != nil {
		return nil, nil, "", fmt.Errorf("em: metrics: %w", err)
	}
	if found := bytes.Count(have, []byte("\n")) + bytes.Count(tail, []byte("\n")); epochs-found > mostLost {
		return nil, nil, "", fmt.Errorf("em: metrics: the checkpoint is of epoch %d, and %s has lines of at most %d; restore the file", epochs, path, found)
	}
	text, mended, lost := mend(have, epochs, tail)
	if !bytes.HasPrefix(have, text) {
		what = damage(mended, lost)
		if err := atomicfile.Write(path, 0o644, func(w io.Writer) error { _, err := w.Write(text); return err }); err != nil {
			return nil, nil, "", fmt.Errorf("em: metrics: %w", err)
		}
	}
	_, err = os.Stat(path)
	created := errors.Is(err, fs.ErrNotExist)
	f, err := os.OpenFile(path, os.O_RDWR|os.O_CREATE, 0o644)
	if err != nil {
		return nil, nil, "", fmt.Errorf("em: metrics: %w", err)
	}
	err = f.Truncate(int64(len(text)))
	if err == nil {
		_, err = f.Seek(int64(len(text)), io.SeekStart)
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil && created {
		err = atomicfile.SyncDir(filepath.Dir(path))
	}
	if err != nil {
		f.Close()
		return nil, nil, "", fmt.Errorf("em: metrics: %w", err)
	}
	return &metricsFile{f}, text, what, nil
}

// damage says in words what was wrong with a metrics file, for the log line of a resumed run.
// mended are the epochs whose lines the checkpoint had, lost those whose lines it has not; at
// most ten of each are named. It is called only if something was wrong.
func damage(mended, lost []int) string {
	if len(mended)+len(lost) == 0 {
		return "lines that belong to no epoch are removed"
	}
	text := ""
	for _, x := range []struct {
		epochs []int
		what   string
	}{{mended, "restored from the checkpoint"}, {lost, "lost, as the checkpoint has later ones only"}} {
		const most = 10
		if len(x.epochs) == 0 {
			continue
		}
		if text != "" {
			text += "; "
		}
		text += fmt.Sprintf("lines of %d epochs are %s: %v", len(x.epochs), x.what, x.epochs[:min(most, len(x.epochs))])
		if len(x.epochs) > most {
			text += " and others"
		}
	}
	return text
}

// readMetrics reads what the given number of epochs may take of a file; nothing of a file that
// is not there.
func readMetrics(path string, epochs int) ([]byte, error) {
	if epochs == 0 {
		return nil, nil
	}
	f, err := os.Open(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, int64(epochs)*maxLine))
}

// mend returns the lines of epochs 1, 2, ... up to epochs: those of the tail, which
// are the last ones, and before them those of a file. It lists the epochs whose
// line in the tail is not in the file, and those that neither has, which get a line
// without numbers.
func mend(file []byte, epochs int, tail []byte) (text []byte, mended, lost []int) {
	last := bytes.SplitAfter(tail, []byte("\n"))
	last = last[:len(last)-1] // nothing follows the end of the last line
	first := epochs - len(last) + 1
	for i := range last {
		if !isLine(last[i], first+i) { // of no checkpoint that this program writes
			last, first = nil, epochs+1
			break
		}
	}
	have := map[string]bool{}
	of := map[int][]byte{} // lines of the file, by epoch
	for line := range bytes.Lines(file) {
		if epoch := epochOf(line); epoch >= first {
			have[string(line)] = true
		} else if _, twice := of[epoch]; epoch > 0 && !twice {
			of[epoch] = line
		}
	}
	for epoch := 1; epoch <= epochs; epoch++ {
		line := of[epoch]
		switch {
		case epoch >= first:
			if line = last[epoch-first]; !have[string(line)] {
				mended = append(mended, epoch)
			}
		case line == nil:
			line, lost = metricsText(Metrics{Epoch: epoch, TrainLL: math.NaN(), ValidLL: math.NaN(), StepSize: math.NaN()}), append(lost, epoch)
		}
		text = append(text, line...)
	}
	return text, mended, lost
}

// metricsText returns the line of an epoch.
func metricsText(m Metrics) []byte {
	line, err := json.Marshal(m)
	if err != nil {
		panic("BUG: em: metrics: " + err.Error())
	}
	return append(line, '\n')
}

// isLine reports whether a line is that of an epoch.
func isLine(line []byte, epoch int) bool { return epoch > 0 && epochOf(line) == epoch }

// epochOf returns the epoch of a whole line; 0: it is none.
func epochOf(line []byte) int {
	var x struct{ Epoch int }
	if len(line) > maxLine || !bytes.HasSuffix(line, []byte("\n")) || json.Unmarshal(line, &x) != nil {
		return 0
	}
	return max(0, x.Epoch)
}

// append adds a line.
func (m *metricsFile) append(line []byte) error {
	_, err := m.f.Write(line)
	if err == nil {
		err = m.f.Sync()
	}
	if err != nil {
		return fmt.Errorf("em: metrics: %w; free space and resume the run", err)
	}
	return nil
}

func (m *metricsFile) close() error {
	if err := m.f.Close(); err != nil {
		return fmt.Errorf("em: metrics: %w", err)
	}
	return nil
}
