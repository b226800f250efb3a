package postgres_test

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/stdlib"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// withStore runs f in one transaction of a database/sql pool that was opened with pgx's
// stdlib. f writes the host's rows with tx, and healthlab's with store.
func withStore(ctx context.Context, db *sql.DB, f func(tx pgx.Tx, store *postgres.Store) error) error {
	conn, err := db.Conn(ctx)
	if err != nil {
		return err
	}
	err = conn.Raw(func(driver any) error {
		return pgx.BeginFunc(ctx, driver.(*stdlib.Conn).Conn(), func(tx pgx.Tx) error {
			return f(tx, postgres.New(tx, nil))
		})
	})
	return errors.Join(err, conn.Close())
}

// A program on database/sql writes its rows and a user in one transaction: both are there, or
// neither is.
func TestDatabaseSQL(t *testing.T) {
	database := pgtest.Empty(t)
	pool := pgtest.Connect(t, database)
	require.NoError(t, postgres.Migrate(t.Context(), pool))
	db, err := sql.Open("pgx", database)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	_, err = db.ExecContext(t.Context(), `create table member (name text not null)`)
	require.NoError(t, err)

	u := personOf(healthlab.TeamID{UUID: uuid.New()})
	add := func(u healthdata.User, name any) error {
		return withStore(t.Context(), db, func(tx pgx.Tx, store *postgres.Store) error {
			if err := store.Users().Insert(t.Context(), u, 0); err != nil {
				return err
			}
			_, err := tx.Exec(t.Context(), `insert into member (name) values ($1)`, name)
			return err
		})
	}
	counts := func() (members, users int) {
		require.NoError(t, db.QueryRowContext(t.Context(), `select count(*) from member`).Scan(&members))
		page, err := postgres.New(pool, nil).Users().List(t.Context(), healthdata.UserQuery{Team: u.Team})
		require.NoError(t, err)
		return members, page.Total
	}
	require.Error(t, add(u, nil), "the member's row is refused")
	members, users := counts()
	require.Zero(t, members)
	require.Zero(t, users)
	require.NoError(t, add(u, "Kim"))
	members, users = counts()
	require.Equal(t, 1, members)
	require.Equal(t, 1, users)
}
