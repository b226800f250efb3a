package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab/webhook"
)

// randomReader is the source of random secrets.
var randomReader = rand.Reader

// receiver is the tour's receiver of events, like a customer's own server: it checks the signatures of events, and
// stores each event once.
type receiver struct {
	url    string
	secret webhook.Secret
	server *http.Server

	mu     sync.Mutex
	events []received
	known  map[string]bool
	forged int
	more   chan struct{}
	// passing is true after the tour: the receiver then acknowledges events without storing them.
	passing bool
}

type received struct {
	eventType string
}

// receive starts a receiver on a free port of this machine. It accepts events that were signed with secret.
func receive(ctx context.Context, secret webhook.Secret) (*receiver, error) {
	l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	r := &receiver{
		url: "http://" + l.Addr().String() + "/events", secret: secret,
		known: map[string]bool{}, more: make(chan struct{}, 1),
	}
	r.server = &http.Server{Handler: r, ReadHeaderTimeout: 10 * time.Second}
	go func() { _ = r.server.Serve(l) }()
	return r, nil
}

func (r *receiver) close() error { return r.server.Close() }

func (r *receiver) forget() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events, r.known, r.passing = nil, nil, true
}

// ServeHTTP checks and stores one event.
func (r *receiver) ServeHTTP(w http.ResponseWriter, req *http.Request) {
	body, err := io.ReadAll(io.LimitReader(req.Body, 2<<20))
	if err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	if err := webhook.Verify(body, req.Header, time.Now(), r.secret); err != nil {
		r.mu.Lock()
		r.forged++
		r.mu.Unlock()
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	var event struct {
		Type string `json:"event_type"`
	}
	if err := json.Unmarshal(body, &event); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	id := req.Header.Get("webhook-id")
	r.mu.Lock()
	if !r.passing && !r.known[id] {
		r.known[id] = true
		r.events = append(r.events, received{event.Type})
	}
	r.mu.Unlock()
	select {
	case r.more <- struct{}{}:
	default:
	}
	w.WriteHeader(http.StatusNoContent)
}

// patience is how long waitFor waits for the next event.
const patience = 30 * time.Second

// waitFor waits until enough returns true for the events that have arrived since the last call, and returns these
// events. It fails if none arrives for the duration patience, or if an event had a wrong signature.
func (r *receiver) waitFor(ctx context.Context, enough func([]received) bool) ([]received, error) {
	for {
		r.mu.Lock()
		events, forged := r.events, r.forged
		done := enough(events)
		if done {
			r.events = nil
		}
		r.mu.Unlock()
		switch {
		case forged > 0:
			return nil, fmt.Errorf("%d events had a wrong signature", forged)
		case done:
			return events, nil
		}
		select {
		case <-r.more:
		case <-time.After(patience):
			return nil, fmt.Errorf("no event arrived for %v, after %d events", patience, len(events))
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}
