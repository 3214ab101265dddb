package natsbus

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/pce-engine/pce/cluster"
)

// readsAtOnce is how many messages are asked for at a time where many are read: each takes a round trip.
const readsAtOnce = 32

// streamState is what there is in a stream.
type streamState struct {
	First    uint64            `json:"first_seq"`
	Last     uint64            `json:"last_seq"`
	Subjects map[string]uint64 `json:"subjects"` // with how many messages each has, if they were asked for
}

// state asks what there is in a stream: nothing before it is made. Subjects are those of a filter from an offset on, and total is
// how many the filter has; "": none.
func (b *Bus) state(ctx context.Context, stream, filter string, offset int) (s streamState, total int, err error) {
	request := struct {
		Offset int    `json:"offset,omitempty"`
		Filter string `json:"subjects_filter,omitempty"`
	}{offset, filter}
	var resp struct {
		Total int         `json:"total"`
		State streamState `json:"state"`
	}
	if _, err := b.ask(ctx, "STREAM.INFO."+stream, request, &resp); err != nil && !hasCode(err, codeStreamNotFound) {
		return s, 0, err
	}
	return resp.State, resp.Total, nil
}

// read asks for messages, several at a time, and returns those that there are, in the order of the queries. Their answers queue for one
// line, and come late where that is slow.
func (b *Bus) read(ctx context.Context, stream string, queries []query) ([]stored, error) {
	all, there := make([]stored, len(queries)), make([]bool, len(queries))
	reading, ctx := errgroup.WithContext(ctx)
	reading.SetLimit(readsAtOnce)
	for i, q := range queries {
		reading.Go(func() (err error) {
			all[i], err = b.getAt(ctx, stream, q, download)
			there[i] = err == nil
			if isNoRecord(err) { // it went meanwhile
				return nil
			}
			return err
		})
	}
	if err := reading.Wait(); err != nil {
		return nil, err
	}
	n := 0
	for i := range all {
		if there[i] {
			all[n] = all[i]
			n++
		}
	}
	return all[:n], nil
}

// List asks which keys there are, and then for the newest message of each.
func (k *bucket) List(ctx context.Context) ([]cluster.Record, error) {
	if k.err != nil {
		return nil, k.err
	}
	var queries []query
	for {
		s, total, err := k.bus.state(ctx, k.stream, k.prefix+">", len(queries))
		if err != nil {
			return nil, k.wrap("*", err)
		}
		for _, subject := range slices.Sorted(maps.Keys(s.Subjects)) {
			queries = append(queries, query{Last: subject})
		}
		if len(s.Subjects) == 0 || len(queries) >= total {
			break
		}
	}
	if len(queries) == 0 {
		queries = append(queries, query{Seq: 1, Next: k.prefix + ">"}) // more may ask for keys than for messages: those who may not are told
	}
	messages, err := k.bus.read(ctx, k.stream, queries)
	if err != nil {
		return nil, k.wrap("*", err)
	}
	newest := map[string]uint64{} // by key: an earlier version had other subjects, where it may have left older messages of one
	for _, m := range messages {
		newest[k.key(m.Subject)] = max(newest[k.key(m.Subject)], m.Sequence)
	}
	var list []cluster.Record
	for _, m := range messages {
		if key := k.key(m.Subject); !m.vacant() && m.Sequence == newest[key] {
			list = append(list, cluster.Record{Key: key, Value: m.Data, Revision: m.Sequence})
		}
	}
	return list, nil
}

// Dead reads all dead letters. Any client may have written one, so one that cannot be read is listed as such and hides no other.
func (q *queue) Dead(ctx context.Context) ([]cluster.DeadLetter, error) {
	s, _, err := q.bus.state(ctx, deadStream, "", 0)
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	var queries []query
	for seq := max(s.First, 1); seq <= s.Last; seq++ {
		queries = append(queries, query{Seq: seq})
	}
	messages, err := q.bus.read(ctx, deadStream, queries)
	if err != nil {
		return nil, fmt.Errorf("dead letters: %w", err)
	}
	var list []cluster.DeadLetter
	for _, m := range messages {
		var letter cluster.DeadLetter
		if err := json.Unmarshal(m.Data, &letter); err != nil {
			letter = cluster.DeadLetter{Shard: -1, Reason: fmt.Sprintf("dead letter %d cannot be read: %v", m.Sequence, err)}
		}
		list = append(list, letter)
	}
	return list, nil
}
