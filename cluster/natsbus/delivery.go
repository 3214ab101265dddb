package natsbus

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nuid"

	"github.com/pce-engine/pce/cluster"
)

// takeLeases is for how many leases a taker has a job without saying that it
// works. It is over before the server hands the job out again.
const (
	takeLeases   = 2
	redeliveries = 3 // leases
)

// ackPatience is how long the answer to an acknowledgement may take. After a
// crash the server may have forgotten that it handed the job out; then there is
// no answer.
const ackPatience = 2 * time.Second

// delivery is a cluster.Delivery. The server's own record of who has a job may
// be lost in a crash, so a taker writes one, which no other can write while it
// is there.
type delivery struct {
	bus      *Bus
	id       string
	job      []byte
	attempt  int
	sequence uint64
	reply    string // where the server wants to hear of it
	taker    []byte
	take     uint64 // revision of the taker's record
}

func (d *delivery) ID() string   { return d.id }
func (d *delivery) Job() []byte  { return d.job }
func (d *delivery) Attempt() int { return d.attempt }

// takes are the records of who works on which job.
func (b *Bus) takes() *bucket {
	return &bucket{bus: b, stream: takesStream, prefix: bucketSubjects(takesStream)}
}

// Probe stores a record that vanishes by itself, to see whether the broker stores: a
// server that once could not write a file may refuse for good.
func (b *Bus) Probe(ctx context.Context) error {
	_, err := b.takes().Put(ctx, "broker-probe", nil)
	return err
}

// claim makes the job this taker's, unless it is another's or done.
func (d *delivery) claim(ctx context.Context) (mine bool, err error) {
	d.taker = []byte(nuid.Next())
	d.take, err = d.begin(ctx)
	if errors.Is(err, cluster.ErrConflict) {
		return false, nil
	}
	return err == nil, err
}

// disclaim removes the record of a claim that failed, as the broker may have written it all the same where its answer was not waited for:
// no other taker could have the job for as long as it is there.
func (d *delivery) disclaim(ctx context.Context) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), ackPatience)
	defer cancel()
	_ = cluster.Withdraw(ctx, d.bus.takes(), d.id, d.taker) // else it vanishes by itself
}

// begin writes the taker's record where none is left. It matches cluster.ErrConflict if another has written one, or the job was done.
func (d *delivery) begin(ctx context.Context) (revision uint64, err error) {
	revision, err = d.bus.takes().Create(ctx, d.id, d.taker)
	if err != nil {
		return 0, err
	}
	return d.unlessDone(ctx, revision)
}

// unlessDone removes the taker's record, which has that revision, and matches cluster.ErrConflict if the job was done: between its delivery
// and the claim, or while this taker could not say that it works.
func (d *delivery) unlessDone(ctx context.Context, revision uint64) (uint64, error) {
	if _, err := d.bus.get(ctx, jobsStream, query{Seq: d.sequence}); !isNoRecord(err) {
		return revision, err
	}
	if err := d.bus.takes().Delete(ctx, d.id, revision); err != nil {
		return 0, err
	}
	return 0, cluster.ErrConflict
}

// Working matches cluster.ErrConflict if the job has become another's.
func (d *delivery) Working(ctx context.Context) error {
	take, err := d.bus.takes().Update(ctx, d.id, d.taker, d.take)
	if errors.Is(err, cluster.ErrConflict) {
		take, err = d.retake(ctx)
	}
	if err != nil {
		return d.wrap(err)
	}
	d.take = take
	_, _, err = d.bus.call(ctx, &nats.Msg{Subject: d.reply, Data: []byte("+WPI")}, quick)
	return d.wrap(err)
}

// retake writes the taker's record where it has not the revision that was expected. The word whose answer was lost may have
// been heard: the record is this taker's then. Where there is none the word comes too late, but maybe no other taker has the job, or has
// done it. The record may also be that of such a late word, behind which nothing was heard of the job.
func (d *delivery) retake(ctx context.Context) (revision uint64, err error) {
	takes := d.bus.takes()
	r, err := takes.Get(ctx, d.id)
	switch {
	case isNoRecord(err):
		return d.begin(ctx)
	case err != nil:
		return 0, err
	case !bytes.Equal(r.Value, d.taker):
		return 0, cluster.ErrConflict
	}
	if revision, err = takes.Update(ctx, d.id, d.taker, r.Revision); err != nil {
		return 0, err
	}
	return d.unlessDone(ctx, revision)
}

func (d *delivery) Done(ctx context.Context) error {
	if err := d.remove(ctx); err != nil {
		return d.wrap(err)
	}
	err := d.bus.takes().Delete(ctx, d.id, d.take)
	if errors.Is(err, cluster.ErrConflict) { // of another, which will find no job
		return nil
	}
	return d.wrap(err)
}

func (d *delivery) remove(ctx context.Context) error {
	up, err := d.bus.link.wait(ctx)
	if err != nil {
		return d.bus.unreachable(nil, err)
	}
	_, _, err = d.bus.try(ctx, up, &nats.Msg{Subject: d.reply, Data: []byte("+ACK")}, pace{patience: ackPatience})
	if err == nil || errors.Is(err, ErrDenied) {
		return err
	}
	request := map[string]uint64{"seq": d.sequence}
	_, err = d.bus.ask(ctx, "STREAM.MSG.DELETE."+jobsStream, request, nil)
	var refusal *apiError
	if errors.As(err, &refusal) {
		if _, getErr := d.bus.get(ctx, jobsStream, query{Seq: d.sequence}); isNoRecord(getErr) {
			return nil
		}
	}
	return err
}

// Release is tried once: a second try could take the job from its next taker.
// If that is lost, the job returns as if its taker had vanished.
func (d *delivery) Release(ctx context.Context) error {
	err := d.bus.takes().Delete(ctx, d.id, d.take)
	if errors.Is(err, cluster.ErrConflict) {
		var take uint64
		if take, err = d.retake(ctx); err == nil {
			err = d.bus.takes().Delete(ctx, d.id, take)
		}
	}
	if err != nil {
		return d.wrap(err)
	}
	up, err := d.bus.link.wait(ctx)
	if err != nil {
		return d.wrap(d.bus.unreachable(nil, err))
	}
	_, _, err = d.bus.try(ctx, up, &nats.Msg{Subject: d.reply, Data: []byte("-NAK")}, quick)
	if err != nil && !errors.Is(err, ErrDenied) {
		err = fmt.Errorf("%w: broker: %v", cluster.ErrUnreachable, err)
	}
	return d.wrap(err)
}

func (d *delivery) wrap(err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("job %s: %w", d.id, err)
}
