// Package orderstore keeps orders and what belongs to them on PostgreSQL: the interfaces of
// package orders and of the packages below it. Each is behind a method of [Store].
package orderstore

import (
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/outbox"
)

// Store keeps orders, and what belongs to them. Safe for concurrent use as its database is.
type Store struct {
	db       *db.DB
	messages *outbox.Store
}

// New returns the stores of orders.
func New(d *db.DB, m *outbox.Store) *Store { return &Store{db: d, messages: m} }
