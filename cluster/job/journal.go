package job

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/pce-engine/pce/internal/atomicfile"
)

// The files of answers that are not complete yet, in the directory of a run.
const (
	AnswersFile = "answers.part"
	JournalFile = "answers.json"
)

// answerInterval is how often answers are saved while they come.
const answerInterval = 2 * time.Second

// journal collects the answers about rows, in order, in a file. What its mark says
// is in the file survives a kill at any moment; what the file has behind the mark
// does not count, and is written over.
type journal struct {
	dir   string
	f     *os.File
	at    mark
	saved time.Time
}

// mark says how far a file of answers can be trusted.
type mark struct {
	Form  int   `json:"form"` // journalForm
	Rows  int64 `json:"rows"`
	Bytes int64 `json:"bytes"`
}

// journalForm counts the forms in which kinds keep answers. Those in another, which a coordinator
// of another version has left, are asked for anew.
const journalForm = 2

// openJournal opens the answers in dir, after those that were marked as kept; there are none at
// first. Answers that were lost, or are in another form, make it begin anew; a mark that cannot be read is an error,
// since the answers may be good.
func openJournal(dir string) (*journal, error) {
	j := &journal{dir: dir, at: mark{Form: journalForm}, saved: time.Now()}
	text, err := os.ReadFile(filepath.Join(dir, JournalFile))
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return nil, err
	default:
		j.at.Form = 0
		if err := ReadJSON(text, &j.at); err != nil || j.at.Rows < 0 || j.at.Bytes < 0 {
			return nil, fmt.Errorf("%s cannot be read: %v; remove it to begin anew", filepath.Join(dir, JournalFile), err)
		}
	}
	if j.f, err = os.OpenFile(filepath.Join(dir, AnswersFile), os.O_RDWR|os.O_CREATE, 0o644); err != nil {
		return nil, err
	}
	info, err := j.f.Stat()
	if err == nil && (info.Size() < j.at.Bytes || j.at.Form != journalForm) { // the file was lost, or tells nothing: begin anew
		j.at = mark{Form: journalForm}
	}
	if err == nil {
		_, err = j.f.Seek(j.at.Bytes, io.SeekStart)
	}
	if err != nil {
		j.f.Close()
		return nil, err
	}
	return j, nil
}

// append adds answers about the given number of rows. Every answerInterval it saves.
func (j *journal) append(answer []byte, rows int) error {
	if _, err := j.f.Write(answer); err != nil {
		return err
	}
	j.at.Rows += int64(rows)
	j.at.Bytes += int64(len(answer))
	if time.Since(j.saved) < answerInterval {
		return nil
	}
	return j.save()
}

// save puts all answers on the disk, and then the mark that counts them.
func (j *journal) save() error {
	if err := j.f.Sync(); err != nil {
		return err
	}
	j.saved = time.Now()
	return atomicfile.Write(filepath.Join(j.dir, JournalFile), 0o644, func(w io.Writer) error {
		return json.NewEncoder(w).Encode(j.at)
	})
}

// reader returns a reader of all answers.
func (j *journal) reader() io.Reader {
	return bufio.NewReaderSize(io.NewSectionReader(j.f, 0, j.at.Bytes), 1<<20)
}

// close closes the file. What has come is kept for the next time.
func (j *journal) close() error { return errors.Join(j.save(), j.f.Close()) }

// remove closes and removes the files.
func (j *journal) remove() error { return errors.Join(j.f.Close(), removeAnswers(j.dir)) }

// removeAnswers removes the files of answers that are not complete, if there are any.
func removeAnswers(dir string) (err error) {
	for _, name := range []string{JournalFile, AnswersFile} {
		if e := os.Remove(filepath.Join(dir, name)); e != nil && !errors.Is(e, fs.ErrNotExist) {
			err = errors.Join(err, e)
		}
	}
	return err
}
