// Package userstore keeps users and their connections on PostgreSQL: the interface
// healthdata.Users. Stores of other domains read and change a user in their own transactions
// with [Store.Lock] and [Store.Change].
package userstore

import (
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/outbox"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Store keeps users. Safe for concurrent use as its database is.
type Store struct {
	db       *db.DB
	messages *outbox.Store
	follow   func(b *pgx.Batch, old, next *healthdata.User)
	erase    []string
}

// New returns a store of users. follow adds to a batch what other tables change when a
// user is deleted or restored. The statements of erase delete what other tables keep of the
// user $1.
func New(d *db.DB, m *outbox.Store, follow func(b *pgx.Batch, old, next *healthdata.User), erase []string) *Store {
	return &Store{db: d, messages: m, follow: follow, erase: erase}
}

// Users returns the store as a [healthdata.Users].
func (v *Store) Users() healthdata.Users { return users{v} }

type users struct{ s *Store }
