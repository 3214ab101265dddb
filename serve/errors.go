package serve

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/pce-engine/pce/serve/oip"
)

var (
	// ErrOptions means that Options do not make sense.
	ErrOptions = errors.New("serve: bad options")
	// ErrRequest means that a request does not say what the model or the protocol wants.
	ErrRequest = oip.ErrMessage
	// ErrModel means that there is no model or version of that name.
	ErrModel = errors.New("no such model")
	// ErrTooLarge means that a request is beyond a limit, and would be at any time.
	ErrTooLarge = errors.New("request too large")
	// ErrFull means that the queue is full for now.
	ErrFull = errors.New("too many requests")
	// ErrUnavailable means that a model is not loaded or the server is going away.
	ErrUnavailable = errors.New("unavailable")
	// ErrMemory means that a model needs more memory than models may take.
	ErrMemory = errors.New("not enough memory")
	// ErrLate means that the deadline passed before the answer was there.
	ErrLate = errors.New("deadline exceeded")
	// ErrToken means that a request lacks the server's token.
	ErrToken = errors.New("unauthorized")
	// ErrForbidden means that the server does not do this, or not for this origin.
	ErrForbidden = errors.New("forbidden")
	// ErrInternal means that the model failed.
	ErrInternal = errors.New("internal error")
	// errCompressed means that a message of gRPC is compressed, which has a code of its own.
	errCompressed = errors.New("compressed message")
)

// codes of gRPC.
const (
	grpcOK               = 0
	grpcCanceled         = 1
	grpcInvalid          = 3
	grpcDeadline         = 4
	grpcNotFound         = 5
	grpcForbidden        = 7
	grpcExhausted        = 8
	grpcUnimplemented    = 12
	grpcInternal         = 13
	grpcUnavailable      = 14
	grpcUnauthenticated  = 16
	statusClientWentAway = 499 // nginx's code for a client that has gone; only metrics use it
)

// classes lists what errors become; the first match holds.
var classes = []struct {
	class  error
	status int
	code   int
}{
	{ErrTooLarge, http.StatusRequestEntityTooLarge, grpcExhausted},
	{ErrFull, http.StatusTooManyRequests, grpcExhausted},
	{ErrUnavailable, http.StatusServiceUnavailable, grpcUnavailable},
	{ErrModel, http.StatusNotFound, grpcNotFound},
	{ErrToken, http.StatusUnauthorized, grpcUnauthenticated},
	{ErrForbidden, http.StatusForbidden, grpcForbidden},
	{ErrLate, http.StatusGatewayTimeout, grpcDeadline},
	{context.DeadlineExceeded, http.StatusGatewayTimeout, grpcDeadline},
	{context.Canceled, statusClientWentAway, grpcCanceled},
	{errCompressed, http.StatusNotImplemented, grpcUnimplemented},
	{ErrRequest, http.StatusBadRequest, grpcInvalid},
	{ErrInternal, http.StatusInternalServerError, grpcInternal},
}

// statusOf returns the HTTP status and the gRPC code of an error.
func statusOf(err error) (status, code int) {
	if err == nil {
		return http.StatusOK, grpcOK
	}
	for _, c := range classes {
		if errors.Is(err, c.class) {
			return c.status, c.code
		}
	}
	return http.StatusInternalServerError, grpcInternal
}

// fail returns an error of a class.
func fail(class error, format string, args ...any) error {
	return fmt.Errorf("%w: %s", class, fmt.Sprintf(format, args...))
}

// retryError is an error after which a client may try again.
type retryError struct {
	error
	after time.Duration
}

// Unwrap gives the error its class, and so its status.
func (e *retryError) Unwrap() error { return e.error }

// retryAfter returns how long a client should wait, in whole seconds, or 0.
func retryAfter(err error) int {
	var r *retryError
	if !errors.As(err, &r) {
		return 0
	}
	return max(1, int((r.after+time.Second-1)/time.Second))
}
