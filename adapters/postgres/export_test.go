package postgres

import (
	"context"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/outbox"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Routing is the advisory lock under which events are routed.
const Routing = int64(outbox.Routing)

// Waiting returns how many writes of samples wait to be gathered.
func Waiting(s *Store) int {
	s.writes.mu.Lock()
	defer s.writes.mu.Unlock()
	return len(s.writes.waiting)
}

// Running returns how many groups of samples are being written.
func Running(s *Store) int {
	s.writes.mu.Lock()
	defer s.writes.mu.Unlock()
	return s.writes.running
}

// MigrateSome applies the first n files, as an older version of this library would.
func MigrateSome(ctx context.Context, db DB, n int) error {
	return migrateFiles(ctx, db, n, func(string, int, int) {})
}

// LockNumbered is the statement by which a fold locks.
const LockNumbered = lockNumbered

// Fold folds the series of a user that have the numbers 1 to n.
func Fold(ctx context.Context, s *Store, u healthdata.User, n int32) error {
	var some []foldable
	for i := range n {
		some = append(some, foldable{userKey: userKey{u.Team, u.ID}, number: i + 1})
	}
	return s.fold(ctx, some)
}

// DropStale takes away all messages of a team that were routed, as retention does when they are old.
func DropStale(ctx context.Context, s *Store, team healthlab.TeamID) error {
	return New(s.db.Handle, &Options{Retention: time.Nanosecond}).messages.DropStale(ctx, team.UUID)
}

// Retain takes away the messages of a team that are older than the store keeps them.
func Retain(ctx context.Context, s *Store, team uuid.UUID) error {
	return s.messages.DropStale(ctx, team)
}

// Hurried makes a store try again without a pause.
func Hurried(s *Store) *Store {
	s.db.FirstPause = 0
	return s
}

// Impatient makes a signal ask every moment whether its connection is still there.
func Impatient(g webhook.Signal) webhook.Signal {
	g.(*outbox.Signal).Quiet = 20 * time.Millisecond
	return g
}
