package job

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"

	"github.com/pce-engine/pce/cluster"
)

// ErrCancelled is the cause of a context that ends because a client cancelled
// its run.
var ErrCancelled = errors.New("cancelled")

// ErrNoRun means that an ID is not that of a run, or that of one to which this
// cannot happen any more.
var ErrNoRun = errors.New("job")

// Bad returns an error about a job that matches cluster.ErrJob and, if one is
// wrapped, the class of its cause.
func Bad(id, format string, args ...any) error {
	return fmt.Errorf("%w %.80s: %w", cluster.ErrJob, id, fmt.Errorf(format, args...))
}

// setbacks are errors after which a run continues, because their cause may pass: it
// lies in the cluster, or in a full disk, and not in the job.
var setbacks = []error{cluster.ErrLost, cluster.ErrDeposed, cluster.ErrUnreachable, syscall.ENOSPC, syscall.EDQUOT}

// IsSetback reports whether a run that ends with err may succeed when it continues.
func IsSetback(err error) bool {
	return slices.ContainsFunc(setbacks, func(class error) bool { return errors.Is(err, class) })
}

// Over reports whether a run that ends with err will not continue: it is done, was
// cancelled, or failed for good.
func Over(ctx context.Context, err error) bool {
	if context.Cause(ctx) != nil {
		return errors.Is(context.Cause(ctx), ErrCancelled)
	}
	return !IsSetback(err)
}

// maxText bounds the text of an error in a record or a dead letter, which has to fit a message of the broker.
const maxText = 16 << 10

// TextOf returns the text of an error, the beginning of one that is very long.
func TextOf(err error) string {
	text := err.Error()
	if len(text) <= maxText {
		return text
	}
	return strings.ToValidUTF8(text[:maxText], "") + fmt.Sprintf(" ... (%d bytes)", len(text))
}
