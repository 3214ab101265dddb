package serve

import (
	"log/slog"
	"sync"
	"sync/atomic"

	"github.com/pce-engine/pce/dataset"
	"github.com/pce-engine/pce/serve/cells"
	"github.com/pce-engine/pce/serve/metrics"
)

// version is an open model. It is closed when the repository and all requests have
// let go of it.
type version struct {
	name    string
	number  string
	model   Model
	schema  *dataset.Schema
	queries []Query
	unasked []answers // of each query, for requests that name no outputs
	rows    *cells.Reader
	bytes   int64
	lane    *lane
	stats   *metrics.Statistics
	log     *slog.Logger

	spare sync.Pool // of *dataset.Batch, for requests to come

	holders atomic.Int64
	closed  func() // called once, by the last to let go

	// Set by lane.open.
	account *account
	costs   []*cost // of queries, in the account
}

// batch returns a batch of rows missing cells, which may have been used before.
func (v *version) batch(rows int) *dataset.Batch {
	if b, ok := v.spare.Get().(*dataset.Batch); ok {
		b.Resize(v.schema, rows)
		return b
	}
	return dataset.NewBatch(v.schema, rows)
}

// hold keeps the version open until release. The caller holds the version already,
// or the repository's lock.
func (v *version) hold() { v.holders.Add(1) }

func (v *version) release() {
	if v.leave() {
		v.closed()
	}
}

// leave is release for a caller that cannot close the version now: it reports whether the caller was the last to hold it, and
// has to call closed.
func (v *version) leave() bool {
	n := v.holders.Add(-1)
	if n < 0 {
		panic("BUG: serve: version " + v.number + " of " + v.name + " released twice")
	}
	return n == 0
}

// query returns the index of a query, or false.
func (v *version) query(name string) (int, bool) {
	if name == "" {
		return 0, len(v.queries) > 0
	}
	for i := range v.queries {
		if v.queries[i].Name == name {
			return i, true
		}
	}
	return 0, false
}
