package postgres_test

import (
	"context"
	"io/fs"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/accesslog"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/healthdatatest"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/webhook/webhooktest"
)

// texts returns the first column of a query.
func texts(t testing.TB, pool *pgxpool.Pool, sql string, args ...any) []string {
	t.Helper()
	rows, err := pool.Query(t.Context(), sql, args...)
	require.NoError(t, err)
	out, err := pgx.CollectRows(rows, pgx.RowTo[string])
	require.NoError(t, err)
	return out
}

// eventually calls condition each millisecond until it returns true, and fails the test if it
// does not within the time. It calls condition in the test's goroutine, so that condition may
// end the test.
func eventually(t testing.TB, within time.Duration, condition func() bool) {
	t.Helper()
	for deadline := time.Now().Add(within); !condition(); time.Sleep(time.Millisecond) {
		require.True(t, time.Now().Before(deadline), "the condition is not met after %v", within)
	}
}

const ourTables = ` pg_class c where c.relnamespace = 'healthlab'::regnamespace and c.relkind in ('r', 'p') `

func TestSchema(t *testing.T) {
	t.Parallel()
	pool := migrated(t)
	for what, sql := range map[string]string{
		"a table without a comment": `select relname from` + ourTables + `and obj_description(c.oid, 'pg_class') is null`,
		"a constraint without a comment": `
			select conname from pg_constraint k where connamespace = 'healthlab'::regnamespace and coninhcount = 0
				and obj_description(k.oid, 'pg_constraint') is null`,
		"a foreign key": `select conname from pg_constraint where connamespace = 'healthlab'::regnamespace and contype = 'f'`,
		"a table without a primary key": `select relname from` + ourTables + `
			and not exists (select from pg_constraint where conrelid = c.oid and contype = 'p')`,
		"a primary key that begins with something else than the user or the team": `
			select c.relname from` + ourTables + `and c.relname <> 'migration' and not exists (
				select from pg_constraint k join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
				where k.conrelid = c.oid and k.contype = 'p' and a.attname in ('user_id', 'team_id'))`,
		"a table without a team": `select relname from` + ourTables + `and relname <> 'migration'
			and not exists (select from pg_attribute where attrelid = c.oid and attname = 'team_id' and attnotnull)`,
		"a table without row-level security": `select relname from` + ourTables + `and relname <> 'migration'
			and not (relrowsecurity and exists (select from pg_policy where polrelid = c.oid))`,
		"a view that sees with its owner's rights": `
			select relname from pg_class where relnamespace = 'healthlab'::regnamespace and relkind = 'v'
				and not 'security_invoker=true' = any (reloptions)`,
		"something outside of the schema": `
			select relname from pg_class c join pg_namespace n on n.oid = c.relnamespace
			where n.nspname not in ('healthlab', 'information_schema') and n.nspname not like 'pg\_%'
				and not exists (select from pg_depend d where d.objid = c.oid and d.deptype = 'e')`,
	} {
		require.Empty(t, texts(t, pool, sql), what)
	}
}

func TestMigrateTwiceAndTogether(t *testing.T) {
	t.Parallel()
	pool := pgtest.Connect(t, pgtest.Empty(t))
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			if err := postgres.Migrate(t.Context(), pool); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	files, err := fs.Glob(postgres.Migrations(), "*.sql")
	require.NoError(t, err)
	require.Equal(t, files, texts(t, pool, `select name from healthlab.migration order by version`))
}

func TestMigrateGuardsChecksums(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	_, err := pool.Exec(t.Context(), `update healthlab.migration set checksum = '\x00' where version = 1`)
	require.NoError(t, err)
	err = postgres.Migrate(t.Context(), pool)
	require.ErrorIs(t, err, healthlab.Precondition)
	require.ErrorContains(t, err, "0001_healthdata.sql")
}

func TestMigrateLeavesNewerAlone(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	_, err := pool.Exec(t.Context(), `insert into healthlab.migration (version, name, checksum) values (9999, 'later', '\x00')`)
	require.NoError(t, err)
	require.NoError(t, postgres.Migrate(t.Context(), pool))
}

func TestMigrateFailsAsAWhole(t *testing.T) {
	t.Parallel()
	pool := pgtest.Connect(t, pgtest.Empty(t))
	_, err := pool.Exec(t.Context(), `create schema healthlab; create table healthlab.record (n int)`)
	require.NoError(t, err)
	require.Error(t, postgres.Migrate(t.Context(), pool))
	require.Equal(t, []string{"record"}, texts(t, pool, `select relname from`+ourTables))
}

// The files are plain SQL that other tools take.
func TestMigrationsArePlain(t *testing.T) {
	t.Parallel()
	pool := pgtest.Connect(t, pgtest.Empty(t))
	files, err := fs.Glob(postgres.Migrations(), "*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	for _, name := range files {
		require.Regexp(t, `^[0-9]{4}_[a-z_]+\.sql$`, name)
		text, err := fs.ReadFile(postgres.Migrations(), name)
		require.NoError(t, err)
		require.True(t, strings.HasPrefix(string(text), "-- +goose Up\n"), name)
		require.Equal(t, strings.Count(string(text), "-- +goose StatementBegin"), strings.Count(string(text), "-- +goose StatementEnd"), name)
		_, err = pool.Exec(t.Context(), string(text))
		require.NoError(t, err, name)
	}
}

// restricted returns connections of a role that owns nothing.
func restricted(t testing.TB) *pgxpool.Pool {
	pool, _ := restrictedOf(t)
	return pool
}

func restrictedOf(t testing.TB) (pool, owner *pgxpool.Pool) {
	if pgtest.Spread() {
		t.Skip("row-level security is not for databases that are spread")
	}
	owner = pgtest.Pool(t)
	config := owner.Config()
	config.AfterConnect = func(ctx context.Context, conn *pgx.Conn) error {
		_, err := conn.Exec(ctx, `set role `+postgres.RestrictedRole)
		return err
	}
	pool, err := pgxpool.NewWithConfig(t.Context(), config)
	require.NoError(t, err)
	t.Cleanup(pool.Close)
	return pool, owner
}

func newRestricted(t testing.TB) *postgres.Store {
	return postgres.New(restricted(t), &postgres.Options{RowSecurity: true})
}

// skipRowSecurity skips a test in a plain run, in which its suite runs only without row-level
// security. TestUsersWithRowSecurity, TestDataWithRowSecurity and TestRowSecurity always run.
func skipRowSecurity(t *testing.T) {
	t.Helper()
	if !prove.All() {
		t.Skip("with row-level security in CI and under make prove")
	}
}

// The suites pass for a role that row-level security holds for.
func TestUsersWithRowSecurity(t *testing.T) {
	t.Parallel()
	healthdatatest.RunUsers(t, func(t testing.TB) healthdatatest.UsersHarness {
		s := newRestricted(t)
		return healthdatatest.UsersHarness{Users: s.Users(), Messages: s.WebhookLog(), Data: s.Data()}
	})
}

func restrictedWebhooks(t *testing.T) func(t *testing.T) webhooktest.Harness {
	pool, owner := restrictedOf(t)
	return emptied(postgres.New(pool, &postgres.Options{RowSecurity: true}), owner)
}

func TestDeliveriesWithRowSecurity(t *testing.T) {
	skipRowSecurity(t)
	t.Parallel()
	webhooktest.RunDeliveries(t, restrictedWebhooks(t))
}

func TestEndpointsWithRowSecurity(t *testing.T) {
	skipRowSecurity(t)
	t.Parallel()
	webhooktest.RunEndpoints(t, restrictedWebhooks(t))
}

func TestDataWithRowSecurity(t *testing.T) {
	t.Parallel()
	healthdatatest.RunData(t, func(t testing.TB) healthdatatest.DataHarness {
		s := newRestricted(t)
		return healthdatatest.DataHarness{Data: s.Data(), Users: s.Users(), Messages: s.WebhookLog()}
	})
}

// A statement that forgets the team finds rows of the team that was set, and none
// where none was set.
func TestRowSecurity(t *testing.T) {
	t.Parallel()
	pool := restricted(t)
	s := postgres.New(pool, &postgres.Options{RowSecurity: true})
	ann, bob := newPerson(t, s), newPerson(t, s)
	for _, u := range []healthdata.User{ann, bob} {
		deliverTo(t, s, u)
	}
	for _, u := range []healthdata.User{ann, bob} {
		everySample(t, s, u)
		require.NoError(t, s.Outbox().Append(t.Context(), []healthlab.Event{event(u, "k")}))
		insure(t, s, u)
		hold(t, s, u)
		r := placeOrder(t, s, u)
		_, err := s.Orders().Update(t.Context(), u.Team, r.ID, func(r *orders.Record) ([]healthlab.Event, error) {
			r.Visits = []orders.Visit{{Keys: []uuid.UUID{uuid.New()}}}
			return nil, nil
		})
		require.NoError(t, err)
		_, err = s.OrderKeys().StartKey(t.Context(), idempotency.Scope{Team: u.Team, Endpoint: "order", Key: "k"}, "print", r.ID, time.Minute)
		require.NoError(t, err)
		require.NoError(t, s.LabTests().InsertLabTest(t.Context(), ownTest(u)))
		link(t, s, u)
		require.NoError(t, s.ParsingJobs().Insert(t.Context(), jobOf(u), 0, nil))
		report(t, s, u)
		require.NoError(t, s.PersonExports().Insert(t.Context(), exportOf(u), 10))
		fetch(t, s, u)
		watch(t, s, u)
		_, err = s.Teams().UpdateChoices(t.Context(), u.Team, func(c teamsettings.Choices) (teamsettings.Choices, error) { return c, nil })
		require.NoError(t, err)
		register(t, s, u)
		found(t, s, u)
		require.NoError(t, s.AccessLog().Append(t.Context(), accessOf(u), signAccess))
		require.NoError(t, s.AccessLog().AddAnchor(t.Context(), accesslog.Anchor{Head: accesslog.Head{Team: u.Team, Seq: 1}, At: noon.Time, KeyID: "k", Signature: []byte("s")}))
		require.NoError(t, s.Linking().TryCode(t.Context(), u.Team, [32]byte{1}, "wrong", func(x *linking.CodeAttempt) { _, _ = x.Redeem(time.Now()) }))
		require.NoError(t, s.Data().PutRecords(t.Context(), u.Team, u.ID, []healthdata.Record{{
			Resource: "sleep", ID: uuid.New(), Provider: "acme_band", SourceType: "watch", Index: noon.Time, Doc: []byte(`{}`),
			CreatedAt: noon.Time, UpdatedAt: noon.Time,
		}}, nil))
	}
	tables := texts(t, pool, `select relname from`+ourTables+`and relname not in ('migration', 'lab_journal', 'order_feed', 'psc_center', 'pull_notice', 'seen', 'slot_cache', 'webhook_event_rest')`)
	require.NotEmpty(t, tables)
	for _, table := range tables {
		count := func(team string) (n int) {
			tx, err := pool.Begin(t.Context())
			require.NoError(t, err)
			defer func() { require.NoError(t, tx.Rollback(t.Context())) }()
			if team != "" {
				_, err = tx.Exec(t.Context(), `select set_config('healthlab.team', $1, true)`, team)
				require.NoError(t, err)
			}
			require.NoError(t, tx.QueryRow(t.Context(), `select count(*) from healthlab.`+table+` where team_id <> '00000000-0000-0000-0000-000000000000'`).Scan(&n), table)
			return n
		}
		one := count(ann.Team.String())
		require.NotZero(t, one, table)
		require.Equal(t, one, count(bob.Team.String()), table)
		require.Equal(t, 2*one, count("all"), table)
		require.Zero(t, count(""), table)
		require.Zero(t, count(uuid.NewString()), table)
	}

	// No write reaches another team.
	tx, err := pool.Begin(t.Context())
	require.NoError(t, err)
	defer func() { _ = tx.Rollback(context.Background()) }()
	_, err = tx.Exec(t.Context(), `select set_config('healthlab.team', $1, true)`, ann.Team.String())
	require.NoError(t, err)
	_, err = tx.Exec(t.Context(), `insert into healthlab.team values ($1)`, bob.Team.UUID)
	require.ErrorContains(t, err, "42501")
}

// Erasing leaves no row of the user in any table.
func TestEraseLeavesNothing(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := postgres.New(pool, nil)
	u, other := fullPerson(t, s), fullPerson(t, s)
	appendEvents(t, s, event(u, "k"), event(other, "k"))
	tables := texts(t, pool, `
		select c.relname from`+ourTables+`and exists (select from pg_attribute a where a.attrelid = c.oid and a.attname = 'user_id') order by 1`)
	require.NotEmpty(t, tables)
	// These have rows of a message each, and each of these people is a team.
	tables = append(tables, "webhook_delivery", "webhook_attempt")
	count := func(table string, u healthdata.User) (n int) {
		by, id := "user_id", u.ID.UUID
		if table == "webhook_delivery" || table == "webhook_attempt" {
			by, id = "team_id", u.Team.UUID
		}
		require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from healthlab.`+table+` where `+by+` = $1`, id).Scan(&n))
		return n
	}
	before := map[string]int{}
	for _, table := range tables {
		before[table] = count(table, other)
		require.Equal(t, before[table], count(table, u), table)
		require.NotZero(t, before[table], "%s belongs to eraseUser, and to the people of this test", table)
	}
	_, err := s.Users().Update(t.Context(), u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.DeletedAt = noon.Time
		return nil, nil
	})
	require.NoError(t, err)
	require.NoError(t, s.Users().Erase(t.Context(), u.Team, u.ID))
	for _, table := range tables {
		require.Zero(t, count(table, u), table)
		require.Equal(t, before[table], count(table, other), table)
	}
}

// fullPerson adds a user with a row in every table, but that of messages to be routed.
func fullPerson(t testing.TB, s *postgres.Store) healthdata.User {
	t.Helper()
	u := personOf(healthlab.TeamID{UUID: uuid.New()})
	u.Connections = []healthdata.Connection{{Provider: "acme_band", Status: healthdata.Connected, CreatedOn: noon.Time}}
	require.NoError(t, s.Users().Insert(t.Context(), u, 10))
	everySample(t, s, u)
	require.NoError(t, s.Data().PutRecords(t.Context(), u.Team, u.ID, []healthdata.Record{{
		Resource: "sleep", ID: uuid.New(), Provider: "acme_band", SourceType: "watch", Index: noon.Time, Doc: []byte(`{"n":1}`),
		CreatedAt: noon.Time, UpdatedAt: noon.Time,
	}}, nil))
	placeOrder(t, s, u)
	link(t, s, u)
	fetch(t, s, u)
	insure(t, s, u)
	deliverTo(t, s, u)
	hold(t, s, u)
	require.NoError(t, s.ParsingJobs().Insert(t.Context(), jobOf(u), 0, nil))
	report(t, s, u)
	require.NoError(t, s.PersonExports().Insert(t.Context(), exportOf(u), 10))
	watch(t, s, u)
	return u
}
