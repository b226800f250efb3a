package postgres_test

import (
	"context"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/store"
	"github.com/healthlab-dev/healthlab/store/storetest"
)

// BenchmarkEngine compares an update that reads a user and a row, and writes the row and a new one, with
// the same statements by hand in as many trips, by turns.
func BenchmarkEngine(b *testing.B) {
	pool := pgtest.Pool(b)
	e := openEngine(b, pool, storetest.Tables(), postgres.Options{})
	team := anyTeam()
	var rows []store.Row
	for range 1000 {
		user := healthlab.UserID{UUID: uuid.New()}
		row := plainRow(team, store.UUID(user.UUID))
		row.User, row.Doc = user, make([]byte, 500)
		rows = append(rows, store.Row{Key: store.UserKey(team, user)}, row)
	}
	require.NoError(b, put(b.Context(), e, rows...))
	for range 3 {
		for name, update := range map[string]func(ctx context.Context, user healthlab.UserID) error{
			"engine": func(ctx context.Context, user healthlab.UserID) error { return benchUpdate(ctx, e, team, user) },
			"bare":   func(ctx context.Context, user healthlab.UserID) error { return bareUpdate(ctx, pool, team, user) },
		} {
			b.Run(name, func(b *testing.B) {
				b.RunParallel(func(pb *testing.PB) {
					for i := time.Now().Nanosecond(); pb.Next(); i++ {
						if err := update(b.Context(), rows[2*(i%1000)].User); err != nil {
							b.Error(err)
							return
						}
					}
				})
			})
		}
	}
}

func benchUpdate(ctx context.Context, s store.Store, team healthlab.TeamID, user healthlab.UserID) error {
	return s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		got, err := tx.Read(store.User(team, user), store.Query{Key: plainRow(team, store.UUID(user.UUID)).Key}.Hold())
		if err != nil {
			return err
		}
		added := plainRow(team, store.UUID(uuid.Must(uuid.NewV7())))
		added.User, added.Doc = user, got[1][0].Doc
		tx.Put(got[1][0], added)
		return nil
	})
}

func bareUpdate(ctx context.Context, pool *pgxpool.Pool, team healthlab.TeamID, user healthlab.UserID) error {
	return pool.AcquireFunc(ctx, func(conn *pgxpool.Conn) error {
		const of = ` where team = $1 and id = $2`
		b, doc, revision := &pgx.Batch{}, []byte(nil), int64(0)
		b.Queue("begin")
		b.Queue(`select from `+rowSchema+`.user`+of+` for share`, [16]byte(team.UUID), user.UUID[:])
		b.Queue(`select doc, revision from `+rowSchema+`.plain`+of+` for update`, [16]byte(team.UUID), user.UUID[:]).
			QueryRow(func(row pgx.Row) error { return row.Scan(&doc, &revision) })
		if err := conn.SendBatch(ctx, b).Close(); err != nil {
			return err
		}
		b = &pgx.Batch{}
		b.Queue(`update `+rowSchema+`.plain set doc = $3, revision = $4`+of, [16]byte(team.UUID), user.UUID[:], doc, revision+1)
		id := uuid.Must(uuid.NewV7())
		b.Queue(`insert into `+rowSchema+`.plain (team, id, user_id, revision, doc) values ($1, $2, $3, 1, $4)`,
			[16]byte(team.UUID), id[:], [16]byte(user.UUID), doc)
		b.Queue("commit")
		return conn.SendBatch(ctx, b).Close()
	})
}
