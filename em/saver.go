package em

import (
	"fmt"
	"io"
	"log/slog"
)

// saver writes checkpoints, one at a time. The run waits until its state is in the
// file; that the file lasts (sync, rename, sync of the directory, removal of old ones) is
// left to a goroutine, while the run continues.
type saver struct {
	dir   *checkpointDir
	log   *slog.Logger
	steps int64      // of the checkpoint at work
	done  chan error // its outcome; nil: there is none at work
}

// save takes a checkpoint after steps steps. fill writes the state and is called once
// before save returns, unless there is an error. An error of the checkpoint before is
// returned in place of this one, which then is not begun.
func (s *saver) save(steps int64, fill func(io.Writer) error) error {
	if err := s.wait(); err != nil {
		return err
	}
	filled, done := make(chan error, 1), make(chan error, 1)
	go func() {
		done <- s.dir.save(steps, func(w io.Writer) error {
			err := fill(w)
			filled <- err
			return err
		})
	}()
	s.steps, s.done = steps, done
	select {
	case err := <-filled:
		if err == nil {
			return nil
		}
	case err := <-done: // the file could not be made, or all has been done meanwhile
		done <- err
		if err == nil {
			return nil
		}
	}
	return s.wait()
}

// wait returns when no checkpoint is at work, with the error of the last.
func (s *saver) wait() error {
	if s.done == nil {
		return nil
	}
	err := <-s.done
	s.done = nil
	if err != nil {
		return fmt.Errorf("em: the checkpoint after step %d: %w", s.steps, err)
	}
	s.log.Debug("checkpoint written", "step", s.steps)
	return nil
}
