package natsbus

import (
	"context"
	"errors"
	"sync"
)

var errClosed = errors.New("the bus is closed")

// link says whether there is a connection, and ends the context of what was
// asked over one that is lost.
type link struct {
	mu     sync.Mutex
	up     context.Context // of the connection; ended: none
	cancel context.CancelFunc
	ready  chan struct{} // closed while there is a connection
	closed chan struct{} // closed for good
	down   error         // why there is none
}

func newLink() *link {
	l := &link{ready: make(chan struct{}), closed: make(chan struct{})}
	l.up, l.cancel = context.WithCancel(context.Background())
	l.cancel()
	return l
}

func (l *link) connected() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.up.Err() == nil {
		return
	}
	l.up, l.cancel = context.WithCancel(context.Background())
	l.down = nil
	close(l.ready)
}

func (l *link) disconnected(why error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if why != nil {
		l.down = why
	}
	if l.up.Err() != nil {
		return
	}
	l.cancel()
	l.ready = make(chan struct{})
}

func (l *link) close() {
	l.disconnected(errClosed)
	l.mu.Lock()
	defer l.mu.Unlock()
	select {
	case <-l.closed:
	default:
		close(l.closed)
	}
}

// wait returns the context of the connection as soon as there is one.
func (l *link) wait(ctx context.Context) (context.Context, error) {
	for {
		if err := ctx.Err(); err != nil {
			return nil, err
		}
		l.mu.Lock()
		up, ready := l.up, l.ready
		l.mu.Unlock()
		if up.Err() == nil {
			return up, nil
		}
		select {
		case <-ready:
		case <-l.closed:
			return nil, errClosed
		case <-ctx.Done():
		}
	}
}

// why says why there is no connection.
func (l *link) why() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.down
}
