package main

import (
	"bufio"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"iter"
	"math"
	"os"
	"path/filepath"
	"time"

	"github.com/pce-engine/pce/internal/atomicfile"
)

// The files of answers that are not complete yet.
const (
	answersFile = "answers.part"
	journalFile = "answers.json"
)

// answerInterval is how often answers are made to last.
const answerInterval = 2 * time.Second

// answers collects the answers about rows, in order, in a file. What the journal
// says is in it survives a kill at any moment; what stands behind that does not
// count, and is written over.
type answers struct {
	dir   string
	f     *os.File
	at    journal
	saved time.Time
}

// journal says how far a file of answers can be trusted.
type journal struct {
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
}

// openAnswers opens the answers in dir; there are none at first.
func openAnswers(dir string) (*answers, error) {
	a := &answers{dir: dir, saved: time.Now()}
	text, err := os.ReadFile(filepath.Join(dir, journalFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		if err := strictJSON(text, &a.at); err != nil || a.at.Rows < 0 || a.at.Bytes < 0 {
			return nil, fmt.Errorf("%s cannot be read: %v; remove it to begin anew", filepath.Join(dir, journalFile), err)
		}
	}
	if a.f, err = os.OpenFile(filepath.Join(dir, answersFile), os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, err
	}
	info, err := a.f.Stat()
	if err == nil && info.Size() < a.at.Bytes { // the file was lost: begin anew
		a.at = journal{}
	}
	if err == nil {
		_, err = a.f.Seek(a.at.Bytes, io.SeekStart)
	}
	if err != nil {
		a.f.Close()
		return nil, err
	}
	return a, nil
}

// append adds the answers about so many rows, and now and then makes all last.
func (a *answers) append(answer []byte, rows int) error {
	if _, err := a.f.Write(answer); err != nil {
		return err
	}
	a.at.Rows += int64(rows)
	a.at.Bytes += int64(len(answer))
	if time.Since(a.saved) < answerInterval {
		return nil
	}
	return a.save()
}

// save makes all answers last.
func (a *answers) save() error {
	if err := a.f.Sync(); err != nil {
		return err
	}
	a.saved = time.Now()
	return atomicfile.Write(filepath.Join(a.dir, journalFile), 0o644, func(w io.Writer) error {
		return json.NewEncoder(w).Encode(a.at)
	})
}

// reader returns a reader of all answers.
func (a *answers) reader() io.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(a.f, 0, a.at.Bytes), 1<<20)
}

// numbers yields the answers as float64 numbers. What goes wrong is left in err.
func (a *answers) numbers(err *error) iter.Seq[float64] {
	return func(yield func(float64) bool) {
		r := a.reader()
		var number [8]byte
		for range a.at.Rows {
			if _, *err = io.ReadFull(r, number[:]); *err != nil {
				return
			}
			if !yield(math.Float64frombits(binary.LittleEndian.Uint64(number[:]))) {
				return
			}
		}
	}
}

// close closes the file. What has come is kept for the next time.
func (a *answers) close() error { return errors.Join(a.save(), a.f.Close()) }

// remove closes and removes the files.
func (a *answers) remove() error {
	err := a.f.Close()
	for _, name := range []string{journalFile, answersFile} {
		if e := os.Remove(filepath.Join(a.dir, name)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
