package natsbus

import (
	"bytes"
	"log/slog"
	"testing"
	"time"
)

// TestCloseIsQuiet wants no warning of a connection that this side closes.
func TestCloseIsQuiet(t *testing.T) {
	broker := startBroker(t, BrokerOptions{})
	var log bytes.Buffer
	b, err := Connect(within(t, time.Minute), Options{URLs: broker.URL(), Lease: testLease, Logger: slog.New(slog.NewTextHandler(&log, &slog.HandlerOptions{Level: slog.LevelWarn}))})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Error(err)
	}
	<-b.link.closed // the handlers of the connection have been called
	if log.Len() > 0 {
		t.Errorf("Close warns: %s", &log)
	}
}
