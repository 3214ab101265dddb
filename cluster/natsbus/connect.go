package natsbus

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
	"github.com/nats-io/nuid"

	"github.com/pce-engine/pce/cluster"
)

// Bus is a connection to the broker. It implements cluster.Bus.
type Bus struct {
	nc       *nats.Conn
	link     *link
	denials  denials
	log      *slog.Logger
	opts     Options
	lease    time.Duration
	takers   takersState
	events   *eventQueue
	late     sync.WaitGroup // pulls that were given up
	patience time.Duration  // patience, shorter in tests
	stubborn time.Duration  // storagePatience
	closing  atomic.Bool    // Close has been called: what ends now was meant to
}

var _ cluster.Bus = (*Bus)(nil)

// Connect connects to a broker, and makes what it lacks of buckets and streams
// as far as the credentials allow. It tries until ctx ends, unless the broker
// refuses the credentials.
func Connect(ctx context.Context, opts Options) (*Bus, error) {
	servers, err := opts.servers()
	if err != nil {
		return nil, err
	}
	if opts.Lease < 0 || opts.Lease != 0 && opts.Lease < 500*time.Millisecond {
		return nil, fmt.Errorf("%w: a lease of %v is too short: at least 500ms", cluster.ErrCluster, opts.Lease)
	}
	b := &Bus{link: newLink(), log: opts.Logger, opts: opts, patience: patience, stubborn: storagePatience}
	if b.log == nil {
		b.log = slog.New(slog.DiscardHandler)
	}
	settings, err := b.settings()
	if err != nil {
		return nil, err
	}
	if err := b.dial(ctx, servers, settings); err != nil {
		return nil, err
	}
	if err := checkVersion(b.nc.ConnectedServerVersion()); err != nil {
		b.nc.Close()
		return nil, err
	}
	if u := b.nc.ConnectedUrlRedacted(); !IsLoopback(hostOf(u)) {
		if _, err := b.nc.TLSConnectionState(); err != nil {
			b.log.Warn("the connection to the broker is not encrypted", "broker", u)
		}
	}
	if err := b.prepare(ctx); err != nil {
		up := b.nc.IsConnected()
		b.closing.Store(true)
		b.nc.Close()
		if errors.Is(ctx.Err(), context.DeadlineExceeded) && up && !errors.Is(err, ErrStorage) { // a signal says nothing of the broker
			err = fmt.Errorf("%w: %w", ErrStorage, err)
		}
		return nil, err
	}
	b.events = newEventQueue(b)
	return b, nil
}

func (b *Bus) settings() ([]nats.Option, error) {
	key, settings, err := b.opts.identity()
	if err != nil {
		return nil, err
	}
	security, err := b.opts.security()
	if err != nil {
		return nil, err
	}
	if security != nil {
		settings = append(settings, nats.Secure(security))
	}
	if key == "" {
		key = nuid.Next()
	}
	return append(settings,
		nats.Name(b.opts.Name),
		nats.CustomInboxPrefix(replyPrefix(key)),
		nats.MaxReconnects(-1),
		nats.IgnoreAuthErrorAbort(),
		nats.ReconnectWait(100*time.Millisecond),
		nats.ReconnectJitter(100*time.Millisecond, 200*time.Millisecond),
		nats.ReconnectBufSize(-1), // a call tries again itself
		nats.Timeout(3*time.Second),
		nats.PingInterval(10*time.Second),
		nats.MaxPingsOutstanding(3),
		nats.PermissionErrOnSubscribe(true),
		nats.ReconnectHandler(func(*nats.Conn) {
			b.link.connected()
			b.log.Info("connected to the broker again")
		}),
		nats.DisconnectErrHandler(func(_ *nats.Conn, err error) {
			if err == nil {
				err = nats.ErrDisconnected
			}
			b.link.disconnected(err)
			if !b.closing.Load() {
				b.log.Warn("connection to the broker lost", "err", err)
			}
		}),
		nats.ClosedHandler(func(*nats.Conn) { b.link.close() }),
		nats.ErrorHandler(func(_ *nats.Conn, sub *nats.Subscription, err error) {
			if errors.Is(err, nats.ErrPermissionViolation) && b.denials.deny(err) {
				return
			}
			subject := ""
			if sub != nil {
				subject = sub.Subject
			}
			b.log.Warn("broker", "err", err, "subject", subject)
		}),
	), nil
}

// dial connects for the first time.
func (b *Bus) dial(ctx context.Context, servers []string, settings []nats.Option) error {
	for try := 0; ; try++ {
		nc, err := nats.Connect(strings.Join(servers, ","), settings...)
		if err == nil {
			b.nc = nc
			b.link.connected()
			return nil
		}
		if refused(err) && b.opts.Credentials == "" {
			return fmt.Errorf("%w: broker %s refused a connection without a key: give --credentials FILE", ErrDenied, strings.Join(servers, ","))
		}
		if refused(err) {
			return fmt.Errorf("%w: broker %s: credentials refused: check that the file %q belongs to this cluster",
				ErrDenied, strings.Join(servers, ","), b.opts.Credentials)
		}
		if strings.Contains(err.Error(), "x509:") { // no other try will do better
			return fmt.Errorf("%w: broker %s: %v", cluster.ErrCluster, strings.Join(servers, ","), err)
		}
		if end := pause(ctx, try); end != nil {
			return fmt.Errorf("%w: broker %s: %v: %w", cluster.ErrUnreachable, strings.Join(servers, ","), err, end)
		}
	}
}

// minVersion is that of per-subject expectations and republished messages as
// they are used here.
var minVersion = [2]int{2, 11}

func checkVersion(version string) error {
	parts := strings.SplitN(version, ".", 3)
	if len(parts) == 3 {
		major, err1 := strconv.Atoi(parts[0])
		minor, err2 := strconv.Atoi(parts[1])
		if err1 == nil && err2 == nil && (major > minVersion[0] || major == minVersion[0] && minor >= minVersion[1]) {
			return nil
		}
	}
	return fmt.Errorf("%w: the broker is NATS server %q: %d.%d or newer is needed", cluster.ErrCluster, version, minVersion[0], minVersion[1])
}

func hostOf(url string) string {
	_, rest, _ := strings.Cut(url, "://")
	if i := strings.LastIndex(rest, ":"); i >= 0 {
		rest = rest[:i]
	}
	return strings.Trim(rest, "[]")
}

// replyPrefix is where the answers for the owner of a key come.
func replyPrefix(key string) string { return "_INBOX." + key }

// Conn is the connection, for bulk data between members.
func (b *Bus) Conn() *nats.Conn { return b.nc }

// Client is the name of the client whose credentials these are.
func (b *Bus) Client() string { return ClientName(b.opts.Credentials) }

// Lease is how long records of members and the lead live.
func (b *Bus) Lease() time.Duration { return b.lease }

// LeaseNow asks the broker how long records of members and the lead live: it may have been started with another lease than that with
// which this bus was connected.
func (b *Bus) LeaseNow(ctx context.Context) (time.Duration, error) {
	var info jetstream.StreamInfo
	if _, err := b.ask(ctx, "STREAM.INFO."+membersStream, nil, &info); err != nil {
		return 0, fmt.Errorf("stream %s: %w", membersStream, err)
	}
	return info.Config.MaxAge, nil
}

// MaxPayload is the most bytes of a message.
func (b *Bus) MaxPayload() int { return int(b.nc.MaxPayload()) }

// Close stores the events that wait, for at most two seconds, and disconnects.
func (b *Bus) Close() error {
	err := b.events.close(2 * time.Second)
	b.closing.Store(true)
	b.nc.Close()
	b.link.close()
	b.late.Wait()
	return err
}

// Send gives a message to the listeners at an address. It fails, and matches
// cluster.ErrUnreachable, while there is no connection.
func (b *Bus) Send(to string, message []byte) error {
	subject, err := addressSubject(to)
	if err != nil {
		return err
	}
	if err := b.checkSize(message, nil); err != nil {
		return fmt.Errorf("message to %s: %w", to, err)
	}
	if err := b.nc.Publish(subject, message); err != nil {
		return fmt.Errorf("%w: message to %s: %v", cluster.ErrUnreachable, to, err)
	}
	return nil
}

// checkSize refuses a message that is too long for the broker, which counts its headers too.
func (b *Bus) checkSize(message []byte, header nats.Header) error {
	most := b.MaxPayload()
	if n := len(message) + (&nats.Msg{Header: header}).Size(); n > most {
		return fmt.Errorf("%w: %d bytes are too many: the broker takes %d", cluster.ErrCluster, n, most)
	}
	return nil
}

// Listen calls handle for each message to an address. A call in progress may
// outlast stop.
func (b *Bus) Listen(address string, handle func(message []byte)) (stop func(), err error) {
	subject, err := addressSubject(address)
	if err != nil {
		return nil, err
	}
	sub, err := b.nc.SubscribeSync(subject)
	if err != nil {
		return nil, fmt.Errorf("%w: listening at %s: %v", cluster.ErrUnreachable, address, err)
	}
	// The answer to a flush comes behind a refusal of the subscription. Without a
	// connection it is made when there is one again.
	var first *nats.Msg
	if b.nc.FlushTimeout(patience) == nil {
		first, err = sub.NextMsg(time.Nanosecond)
		if errors.Is(err, nats.ErrPermissionViolation) {
			_ = sub.Unsubscribe()
			return nil, fmt.Errorf("%w: the credentials may not listen at %s", ErrDenied, address)
		}
	}
	ctx, cancel := context.WithCancel(context.Background())
	go func() {
		if first != nil {
			handle(first.Data)
		}
		for {
			msg, err := sub.NextMsgWithContext(ctx)
			switch {
			case err == nil:
				if ctx.Err() == nil {
					handle(msg.Data)
				}
			case errors.Is(err, nats.ErrSlowConsumer):
				b.log.Warn("messages were lost: they came faster than they were handled", "address", address)
			case errors.Is(err, nats.ErrPermissionViolation):
				b.log.Warn("the broker does not allow listening any more", "address", address)
				if pause(ctx, 6) != nil {
					return
				}
			default: // stopped, or the connection is closed
				return
			}
		}
	}()
	return func() {
		cancel()
		_ = sub.Unsubscribe()
	}, nil
}
