package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync/atomic"
	"time"

	"github.com/pce-engine/pce/cluster"
	"github.com/pce-engine/pce/cluster/natsbus"
	"github.com/pce-engine/pce/internal/periodic"
)

const (
	// healthAddress is where the coordinator beside an embedded broker is asked how that is.
	healthAddress = "c-health"
	// storageInterval is the time between two looks at the broker's storage, and between
	// two questions about it. Two looks in a row decide.
	storageInterval = 5 * time.Second
	// probePatience is how long the broker may take to store a record.
	probePatience = 4 * time.Second
	// healthPatience is how long a status waits for an answer.
	healthPatience = 400 * time.Millisecond
)

// healthQuestion asks for a healthAnswer.
type healthQuestion struct {
	Reply string `json:"reply"` // address
}

// healthAnswer says what is wrong with the broker's storage; "": nothing.
type healthAnswer struct {
	Storage string `json:"storage"`
}

// watchStorage looks at the storage of a broker now and then, logs when it breaks and
// when it is sound again, and answers those who ask.
func watchStorage(ctx context.Context, bus cluster.Bus, problem func() error, log *slog.Logger) (stop func(), err error) {
	var known atomic.Value // string
	known.Store("")
	failed := false
	look := func() {
		err := problem()
		before := known.Load().(string)
		switch {
		case err == nil && before != "":
			known.Store("")
			log.Info("the broker's storage is sound again")
		case err != nil && failed && before == "":
			known.Store(oneLine(err.Error()))
			log.Error("the broker cannot keep what it is given", "err", err)
		}
		failed = err != nil
	}
	deaf, err := bus.Listen(healthAddress, func(message []byte) {
		var q healthQuestion
		if json.Unmarshal(message, &q) != nil {
			return
		}
		text, err := json.Marshal(healthAnswer{known.Load().(string)})
		if err == nil {
			err = bus.Send(q.Reply, text)
		}
		if err != nil {
			log.Debug("a question about the storage was not answered", "err", err)
		}
	})
	if err != nil {
		return nil, err
	}
	unwatched := periodic.Start(ctx, storageInterval, func(context.Context) { look() })
	return func() {
		deaf()
		unwatched()
	}, nil
}

// storageProblem says what is wrong with a broker by looking at its files, and else by
// storing something.
func storageProblem(ctx context.Context, files func() error, probe func(context.Context) error) error {
	if err := files(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, probePatience)
	defer cancel()
	if err := probe(ctx); err != nil {
		return fmt.Errorf("it has not stored a record: %w; if its disk was full, start pce cluster up again: its runs continue", err)
	}
	return nil
}

// askStorage asks what is wrong with the broker's storage. known is false where no
// coordinator says anything in time, as none does for a broker that pce did not start.
func askStorage(ctx context.Context, bus cluster.Bus) (problem string, known bool) {
	name := natsbus.DefaultClient
	if c, ok := bus.(interface{ Client() string }); ok {
		name = c.Client()
	}
	at := "c-" + name + "-ask-" + strings.ToLower(rand.Text()[:10])
	answers := make(chan healthAnswer, 1)
	stop, err := bus.Listen(at, func(message []byte) {
		var a healthAnswer
		if json.Unmarshal(message, &a) != nil {
			return
		}
		select {
		case answers <- a:
		default:
		}
	})
	if err != nil {
		return "", false
	}
	defer stop()
	question, err := json.Marshal(healthQuestion{at})
	if err != nil || bus.Send(healthAddress, question) != nil {
		return "", false
	}
	select {
	case a := <-answers:
		return oneLine(a.Storage), true
	case <-time.After(healthPatience):
	case <-ctx.Done():
	}
	return "", false
}

// endWithStorage returns a context that ends, with a reason as its cause, when the
// broker cannot store. Stop ends the watch.
func endWithStorage(parent context.Context, bus cluster.Bus) (ctx context.Context, stop func()) {
	ctx, cancel := context.WithCancelCause(parent)
	ended := periodic.Start(ctx, storageInterval, func(ctx context.Context) {
		if problem, _ := askStorage(ctx, bus); problem != "" {
			cancel(fmt.Errorf("%w: %s", cluster.ErrUnreachable, problem))
		}
	})
	return ctx, func() {
		cancel(context.Canceled)
		ended()
	}
}
