// Package linkstore keeps on PostgreSQL what connects users with providers: link sessions and
// codes, credentials, the clients of teams and the apps that are signed in ([Store]), and bulk
// operations on connections ([Bulk]).
package linkstore

import (
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/userstore"
)

// Store is a [linking.Store], a [linking.CredentialStore], a [linking.TeamClients] and a
// [linking.AppSessions]. Safe for concurrent use as its database is.
type Store struct {
	db    *db.DB
	users *userstore.Store
}

// New returns a store of links.
func New(d *db.DB, u *userstore.Store) *Store { return &Store{db: d, users: u} }
