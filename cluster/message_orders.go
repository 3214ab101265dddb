package cluster

import (
	"fmt"
	"math"

	"github.com/pce-engine/pce/kernels/tensor"
)

// prepareOrder has a worker load a run.
type prepareOrder struct {
	Spec Spec `json:"spec"`
}

// enrollOrder has a worker take part in a term. Version are the parameters that
// count, zero before there are any, and MovedIn the term in which their last move
// was made.
type enrollOrder struct {
	Version Version     `json:"version"`
	MovedIn Term        `json:"moved_in"`
	Leader  memberRef   `json:"leader"`
	Members []memberRef `json:"members"`
	Reset   bool        `json:"reset,omitempty"` // give up all shards that are held
}

// syncOrder has a worker fetch the parameters of a version from a member, or from
// the leader.
type syncOrder struct {
	Version Version `json:"version"`
	Source  string  `json:"source"` // its ID
}

// workOrder has a worker compute shards of a task. Version and MovedIn are those
// of a commit that may have been lost. The payload is the request of a query.
type workOrder struct {
	Version Version `json:"version"`
	MovedIn Term    `json:"moved_in"`
	Task    task    `json:"task"`
	Shards  runs    `json:"shards"` // of a query: one
}

// reduceOrder has a worker move the parameters of a version by the flows of all
// shards of a task.
type reduceOrder struct {
	Version Version         `json:"version"`
	Task    task            `json:"task"`
	Rule    *tensor.Rule    `json:"rule"`
	Held    map[string]runs `json:"held"` // ID of a member → the shards whose flows it holds
}

// commitOrder makes a move count: all members have the parameters of the version.
type commitOrder struct {
	Version Version `json:"version"`
	MovedIn Term    `json:"moved_in"`
}

// releaseOrder has a worker forget a run. One that is over is not computed for to the end of a shard; else the worker is given up alone, and
// comes back when it has finished what it is at.
type releaseOrder struct {
	Over bool `json:"over,omitempty"`
}

// memberRef is a member of a term, and how the others reach it.
type memberRef struct {
	ID       string   `json:"id"`
	Inbox    string   `json:"inbox"`
	Endpoint Endpoint `json:"endpoint"`
}

func (*prepareOrder) kind() messageKind { return prepareMsg }
func (*enrollOrder) kind() messageKind  { return enrollMsg }
func (*syncOrder) kind() messageKind    { return syncMsg }
func (*workOrder) kind() messageKind    { return workMsg }
func (*reduceOrder) kind() messageKind  { return reduceMsg }
func (*commitOrder) kind() messageKind  { return commitMsg }
func (*releaseOrder) kind() messageKind { return releaseMsg }

func (b *prepareOrder) check(payload []byte) error {
	if !isName(b.Spec.Run) {
		return fmt.Errorf("run %.40q (%d bytes), want 1..%d bytes", b.Spec.Run, len(b.Spec.Run), maxName)
	}
	return noPayload(payload)
}

func (b *enrollOrder) check(payload []byte) error {
	if err := b.Version.check(0); err != nil {
		return err
	}
	if n := len(b.Members); n < 1 || n > maxMembers {
		return fmt.Errorf("%d members, want 1..%d", n, maxMembers)
	}
	if err := b.Leader.check(); err != nil {
		return fmt.Errorf("leader: %w", err)
	}
	ids, inboxes := map[string]bool{}, map[string]bool{}
	for i := range b.Members {
		s := &b.Members[i]
		if err := s.check(); err != nil {
			return fmt.Errorf("member %d: %w", i, err)
		}
		if ids[s.ID] || inboxes[s.Inbox] {
			return fmt.Errorf("member %d is %.80q at %.80q, as another one is", i, s.ID, s.Inbox)
		}
		ids[s.ID], inboxes[s.Inbox] = true, true
	}
	return noPayload(payload)
}

func (b *syncOrder) check(payload []byte) error {
	if err := b.Version.check(0); err != nil {
		return err
	}
	if b.Version.Lineage == 0 {
		return fmt.Errorf("parameters of no version")
	}
	if !isName(b.Source) {
		return fmt.Errorf("source %.40q (%d bytes), want 1..%d bytes", b.Source, len(b.Source), maxName)
	}
	return noPayload(payload)
}

func (b *workOrder) check(payload []byte) error {
	if err := b.Version.check(0); err != nil {
		return err
	}
	if err := b.Task.check(); err != nil {
		return err
	}
	most := maxShards
	if b.Task.Kind == queryTask {
		most = 1
	}
	if err := b.Shards.check(b.Task.shards(), most); err != nil {
		return err
	}
	if b.Task.Kind == queryTask {
		return nil
	}
	return noPayload(payload)
}

func (b *reduceOrder) check(payload []byte) error {
	if err := b.Version.check(0); err != nil {
		return err
	}
	if err := b.Task.check(); err != nil {
		return err
	}
	switch n := len(b.Held); {
	case b.Version.Lineage == 0:
		return fmt.Errorf("parameters of no version")
	case b.Task.Kind != flowTask:
		return fmt.Errorf("task %s, want %s", b.Task.Kind, flowTask)
	case b.Rule == nil:
		return fmt.Errorf("no rule")
	case n < 1 || n > maxMembers:
		return fmt.Errorf("shards of %d members, want 1..%d", n, maxMembers)
	}
	for id, shards := range b.Held {
		if !isName(id) {
			return fmt.Errorf("shards of member %.40q (%d bytes), want 1..%d bytes", id, len(id), maxName)
		}
		if err := shards.check(b.Task.shards(), maxShards); err != nil {
			return fmt.Errorf("member %.80q: %w", id, err)
		}
	}
	return noPayload(payload)
}

func (b *commitOrder) check(payload []byte) error {
	if err := b.Version.check(1); err != nil {
		return err
	}
	return noPayload(payload)
}

func (b *releaseOrder) check(payload []byte) error { return noPayload(payload) }

func (s *memberRef) check() error {
	switch {
	case !isName(s.ID):
		return fmt.Errorf("ID %.40q (%d bytes), want 1..%d bytes", s.ID, len(s.ID), maxName)
	case !isName(s.Inbox):
		return fmt.Errorf("inbox %.40q (%d bytes), want 1..%d bytes", s.Inbox, len(s.Inbox), maxName)
	}
	e := &s.Endpoint
	for _, part := range []struct{ name, text string }{
		{"transport", e.Transport}, {"address", e.Address}, {"fingerprint", e.Fingerprint}, {"local", e.Local},
	} {
		if len(part.text) > maxAddress {
			return fmt.Errorf("%s of %d bytes, want 0..%d", part.name, len(part.text), maxAddress)
		}
	}
	return nil
}

// check refuses versions that cannot exist: with fewer moves than least, with moves
// but without a lineage, or whose next one would overflow.
func (v Version) check(least int64) error {
	if v.Moves < least || v.Moves == math.MaxInt64 || v.Lineage == 0 && v.Moves > 0 {
		return fmt.Errorf("version %d of lineage %x, want %d..%d, and a lineage behind the first", v.Moves, v.Lineage, least, int64(math.MaxInt64-1))
	}
	return nil
}

// isName reports whether a text may name a member, an inbox, a run or a source.
func isName(s string) bool { return s != "" && len(s) <= maxName }

func noPayload(payload []byte) error {
	if len(payload) > 0 {
		return fmt.Errorf("payload of %d bytes, want none", len(payload))
	}
	return nil
}
