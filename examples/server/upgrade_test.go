package main

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
)

// nextMigration changes the schema as a next version that older programs can serve beside may: it adds a
// column to every table, and a table.
func nextMigration(t *testing.T, database string) {
	t.Helper()
	db := pgtest.Connect(t, database)
	rows, err := db.Query(t.Context(), `select oid::regclass::text from pg_class
		where relnamespace = 'healthlab'::regnamespace and relkind in ('r', 'p') and not relispartition order by 1`)
	require.NoError(t, err)
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	require.Greater(t, len(tables), 20)
	for _, table := range tables {
		_, err := db.Exec(t.Context(), "alter table "+table+" add column of_the_next_version text not null default 'x'")
		require.NoError(t, err, table)
	}
	_, err = db.Exec(t.Context(), `create table healthlab.of_the_next_version (id uuid primary key)`)
	require.NoError(t, err)
}

// customer uses a process over and over until the context ends, and fails the test if a
// request is refused.
func customer(ctx context.Context, p *program, name string) (users int) {
	for ; ctx.Err() == nil; users++ {
		var user struct {
			ID string `json:"user_id"`
		}
		ask(p, "POST", "/v2/user/", `{"client_user_id":"`+fmt.Sprint(name, " ", users)+`"}`, 200, &user)
		ask(p, "POST", "/v2/link/provider/manual/manual", `{"user_id":"`+user.ID+`"}`, 200, nil)
		for minute := range 3 {
			ask(p, "POST", "/v2/timeseries/"+user.ID+"/heartrate", fmt.Sprintf(
				`{"provider":"manual","source":{"type":"app"},"data":[{"timestamp":"2026-03-01T07:0%d:00+00:00","unit":"bpm","value":61}]}`, minute), 200, nil)
		}
		ask(p, "GET", "/v2/timeseries/"+user.ID+"/heartrate/grouped?start_date=2026-03-01&end_date=2026-03-02", "", 200, nil)
		var placed struct{ Order struct{ ID string } }
		ask(p, "POST", "/v3/order", fmt.Sprintf(anOrder, user.ID, tourLabTest, 1980), 200, &placed)
		ask(p, "GET", "/v3/order/"+placed.Order.ID, "", 200, nil)
		ask(p, "GET", "/v3/orders?user_id="+user.ID, "", 200, nil)
		ask(p, "PATCH", "/v2/user/"+user.ID, `{"client_user_id":"`+uuid.NewString()+`"}`, 204, nil)
	}
	return users
}

// While the schema is brought to the next version, two processes of this version serve
// without an error, and deliver each event once. A process of this version can also be
// started on the newer schema, and processes are replaced one at a time.
func TestUpgrade_servesWithoutErrorsDuringTheMigration(t *testing.T) {
	t.Parallel()
	b := &inbox{seen: map[string]int{}, got: make(chan string, 100_000)}
	hook := newServer(t, b.ServeHTTP)
	database := pgtest.Empty(t)
	args := []string{"-database-url", database, "-secret-file", secretFile(t), "-files", t.TempDir(), "-webhook-url", hook, "-sandbox-users", "100000"}
	type process struct {
		*program
		*os.Process
	}
	begin := func() process {
		p, of := spawn(t, args...)
		return process{p, of}
	}
	end := func(p process) {
		require.NoError(t, p.Signal(os.Interrupt))
		for range p.lines { // until it has ended
		}
		require.NoError(t, <-p.done)
	}
	ready := func(p process) {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+"/readyz", http.NoBody)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		require.Equal(t, http.StatusOK, answer.StatusCode)
	}
	users := 0
	var mu sync.Mutex
	use := func(name string, ps []process, meanwhile func()) {
		ctx, stop := context.WithCancel(t.Context())
		var all sync.WaitGroup
		for i, p := range ps {
			all.Go(func() {
				n := customer(ctx, p.program, fmt.Sprint(name, " ", i))
				mu.Lock()
				defer mu.Unlock()
				users += n
			})
		}
		meanwhile()
		for _, p := range ps {
			ready(p)
		}
		for range 20 { // events of this phase
			select {
			case <-b.got:
			case <-time.After(time.Minute):
				t.Error("no event for a minute")
			}
		}
		stop()
		all.Wait()
	}

	one, two := begin(), begin()
	use("before", []process{one, two}, func() {})
	use("during", []process{one, two}, func() { nextMigration(t, database) })
	var three process
	use("after", []process{one, two}, func() { three = begin() })
	use("replaced", []process{two, three}, func() { end(one) })
	wait(t, func() bool {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, two.url+metricsPath, http.NoBody)
		require.NoError(t, err)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		return bytes.Contains(body, []byte(`healthlab_webhook_backlog{kind="event"} 0`)) && bytes.Contains(body, []byte(`healthlab_webhook_backlog{kind="delivery"} 0`))
	})
	end(two)
	end(three)
	b.mu.Lock()
	defer b.mu.Unlock()
	require.GreaterOrEqual(t, len(b.seen), 2*users, "connections and orders")
	for message, n := range b.seen {
		require.Equal(t, 1, n, message)
	}
}
