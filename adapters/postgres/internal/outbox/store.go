// Package outbox keeps messages on PostgreSQL: the interfaces of package webhook. Stores of
// other domains write events with [Store.Emit], in the transaction that writes what the events
// tell. [Store.Deliveries] routes messages to endpoints, and claims, records and replays their
// deliveries; [Store.RunRetention] takes old messages away.
package outbox

import (
	"log/slog"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Store writes messages, and keeps what becomes of them. Safe for
// concurrent use as its database is.
type Store struct {
	db        *db.DB
	envelope  webhook.Envelope
	retention time.Duration
	log       *slog.Logger
	emptied   emptiedUntil
}

// New returns a store of messages. The envelope says how bodies are made; retention is
// how long messages are kept; log receives what went wrong in the background.
func New(d *db.DB, envelope webhook.Envelope, retention time.Duration, log *slog.Logger) *Store {
	return &Store{db: d, envelope: envelope, retention: retention, log: log}
}

// emptiedUntil says by team until when this process has found no bodies. Events get no older
// time than that of their writing, which is the database's: only a write whose transaction lasts
// longer than bodies are kept escapes, until the process restarts.
type emptiedUntil struct {
	mu sync.Mutex // guards by
	by map[healthlab.TeamID]time.Time
}

func (e *emptiedUntil) of(team healthlab.TeamID) time.Time {
	e.mu.Lock()
	defer e.mu.Unlock()
	if at, ok := e.by[team]; ok {
		return at
	}
	return time.Unix(0, 0).UTC()
}

func (e *emptiedUntil) put(team healthlab.TeamID, at time.Time) {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.by == nil {
		e.by = map[healthlab.TeamID]time.Time{}
	}
	e.by[team] = at
}
