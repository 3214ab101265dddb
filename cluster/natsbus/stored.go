package natsbus

import (
	"context"
	"fmt"

	"github.com/nats-io/nats.go"

	"github.com/pce-engine/pce/cluster"
)

// stored is a message of a stream.
type stored struct {
	Subject  string `json:"subject"`
	Sequence uint64 `json:"seq"`
	Hdrs     []byte `json:"hdrs"`
	Data     []byte `json:"data"`
	header   nats.Header
}

// query asks for one message: the last of a subject, that of a sequence number,
// or the next of a subject, which may have wildcards, from a number on.
type query struct {
	Seq  uint64 `json:"seq,omitempty"`
	Last string `json:"last_by_subj,omitempty"`
	Next string `json:"next_by_subj,omitempty"`
}

// get asks the stream's leader, so it sees all that was confirmed. It matches
// cluster.ErrNoRecord if there is no such message.
func (b *Bus) get(ctx context.Context, stream string, q query) (stored, error) {
	return b.getAt(ctx, stream, q, quick)
}

func (b *Bus) getAt(ctx context.Context, stream string, q query, p pace) (stored, error) {
	var resp struct {
		Message *stored `json:"message"`
	}
	_, err := b.askAt(ctx, "STREAM.MSG.GET."+stream, q, &resp, p)
	switch {
	case hasCode(err, codeMessageNotFound):
		return stored{}, cluster.ErrNoRecord
	case hasCode(err, codeStreamNotFound):
		return stored{}, fmt.Errorf("%w: the broker has no stream %s yet", cluster.ErrNoRecord, stream)
	case err != nil:
		return stored{}, err
	case resp.Message == nil:
		return stored{}, fmt.Errorf("%w: the broker's answer lacks the message", cluster.ErrCluster)
	}
	m := *resp.Message
	if len(m.Hdrs) > 0 {
		if m.header, err = nats.DecodeHeadersMsg(m.Hdrs); err != nil {
			return stored{}, fmt.Errorf("%w: message %d of stream %s is damaged: %v", cluster.ErrCluster, m.Sequence, stream, err)
		}
	}
	return m, nil
}

// walk calls visit with the messages of a subject from a sequence number on, in
// order, up to the last one, and returns the number to continue from. What is
// written while it walks comes later in the stream, so what is there all the
// time is seen.
func (b *Bus) walk(ctx context.Context, stream, subject string, from uint64, visit func(stored) (more bool, err error)) (uint64, error) {
	for {
		m, err := b.get(ctx, stream, query{Seq: max(from, 1), Next: subject})
		if isNoRecord(err) {
			return from, nil
		}
		if err != nil {
			return from, err
		}
		from = m.Sequence + 1
		if more, err := visit(m); !more || err != nil {
			return from, err
		}
	}
}
