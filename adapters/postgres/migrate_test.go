package postgres_test

import (
	"context"
	"fmt"
	"io/fs"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

func migrationFiles(t *testing.T) []string {
	t.Helper()
	files, err := fs.Glob(postgres.Migrations(), "*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// A database that an older version made, with the first files only, gets the others, and
// keeps its rows.
func TestMigrateContinues(t *testing.T) {
	t.Parallel()
	fresh := texts(t, migrated(t), schemaText)
	for n, name := range migrationFiles(t) {
		t.Run(fmt.Sprint("from ", name), func(t *testing.T) {
			t.Parallel()
			pool := pgtest.Connect(t, pgtest.Empty(t))
			require.NoError(t, postgres.MigrateSome(t.Context(), pool, n+1))
			team := uuid.New()
			_, err := pool.Exec(t.Context(), `insert into healthlab.team (team_id) values ($1)`, team)
			require.NoError(t, err)
			var applied []string
			require.NoError(t, postgres.MigrateWith(t.Context(), pool, func(name string, n, total int) {
				require.Equal(t, migrationFiles(t)[n-1], name)
				require.Len(t, migrationFiles(t), total)
				applied = append(applied, name)
			}))
			require.ElementsMatch(t, migrationFiles(t)[n+1:], applied)
			require.Equal(t, fresh, texts(t, pool, schemaText))
			require.Equal(t, []string{team.String()}, texts(t, pool, `select team_id::text from healthlab.team`))
			everyWrite(t, postgres.New(pool, nil))
		})
	}
}

// migrated returns a database with all migrations, which is not spread.
func migrated(t *testing.T) *pgxpool.Pool {
	t.Helper()
	pool := pgtest.Connect(t, pgtest.Empty(t))
	require.NoError(t, postgres.Migrate(t.Context(), pool))
	return pool
}

// schemaText is what the schema looks like, a line for each part.
const schemaText = `
with t as (select * from pg_class where relnamespace = 'healthlab'::regnamespace),
f as (select * from pg_proc where pronamespace = 'healthlab'::regnamespace)
select format('%s.%s %s %s %s %s %s %s %s', t.relname, a.attname, format_type(a.atttypid, a.atttypmod), a.attnotnull, a.attidentity, a.attgenerated,
	a.attstorage, a.attcollation::regcollation, (select pg_get_expr(d.adbin, d.adrelid) from pg_attrdef d where d.adrelid = t.oid and d.adnum = a.attnum))
from t join pg_attribute a on a.attrelid = t.oid and a.attnum > 0 and not a.attisdropped where t.relkind in ('r', 'p', 'v')
union all
select format('%s %s %s %s %s %s', relname, relkind, relrowsecurity, relforcerowsecurity, reloptions, pg_get_expr(relpartbound, oid)) from t
union all
select pg_get_viewdef(oid) from t where relkind = 'v'
union all
select pg_get_functiondef(oid) from f
union all
select pg_get_triggerdef(oid) from pg_trigger where tgrelid in (select oid from t) and not tgisinternal
union all
select indexdef from pg_indexes where schemaname = 'healthlab'
union all
select format('%s %s', conname, pg_get_constraintdef(oid)) from pg_constraint where connamespace = 'healthlab'::regnamespace
union all
select format('%s %s %s %s %s %s %s', tablename, policyname, permissive, roles, cmd, qual, with_check) from pg_policies where schemaname = 'healthlab'
union all
select format('%s: %s', pg_describe_object(classoid, objoid, objsubid), description) from pg_description
where objoid in (select oid from t union all select oid from f
	union all select oid from pg_constraint where connamespace = 'healthlab'::regnamespace
	union all select oid from pg_policy where polrelid in (select oid from t))
order by 1`

// gooseStatements cuts a file as goose does: at lines that end in a semicolon, but not
// between StatementBegin and StatementEnd.
func gooseStatements(t *testing.T, text string) []string {
	t.Helper()
	var out []string
	var statement strings.Builder
	inside, up := false, false
	for line := range strings.Lines(text) {
		if note, ok := strings.CutPrefix(line, "-- +goose "); ok {
			switch strings.TrimSpace(note) {
			case "Up":
				require.False(t, up, "goose wants it once")
				up = true
			case "StatementBegin":
				require.False(t, inside)
				require.Empty(t, strings.TrimSpace(statement.String()), "what is before it has ended")
				inside = true
			case "StatementEnd":
				require.True(t, inside)
				out = append(out, statement.String())
				statement.Reset()
				inside = false
			default:
				require.Equal(t, "NO TRANSACTION", strings.TrimSpace(note), "a note that we use")
			}
			continue
		}
		require.True(t, up || strings.TrimSpace(line) == "", "nothing comes before the note Up")
		if bare := strings.TrimSpace(line); statement.Len() == 0 && (bare == "" || strings.HasPrefix(bare, "--")) {
			continue
		}
		statement.WriteString(line)
		code, _, _ := strings.Cut(line, " --")
		if !inside && strings.HasSuffix(strings.TrimSpace(code), ";") {
			out = append(out, statement.String())
			statement.Reset()
		}
	}
	require.False(t, inside)
	require.Empty(t, strings.TrimSpace(statement.String()), "the last statement ends in a semicolon")
	return out
}

// Applied one statement at a time, as goose does, the files make the same schema.
func TestMigrationsInStatements(t *testing.T) {
	t.Parallel()
	pool := pgtest.Connect(t, pgtest.Empty(t))
	for _, name := range migrationFiles(t) {
		text, err := fs.ReadFile(postgres.Migrations(), name)
		require.NoError(t, err)
		tx, err := pool.Begin(t.Context())
		require.NoError(t, err)
		for _, statement := range gooseStatements(t, string(text)) {
			_, err := tx.Conn().PgConn().Exec(t.Context(), statement).ReadAll()
			require.NoError(t, err, "%s: %s", name, statement)
		}
		require.NoError(t, tx.Commit(context.Background()))
	}
	want := migrated(t)
	_, err := want.Exec(t.Context(), `drop table healthlab.migration`)
	require.NoError(t, err)
	require.Equal(t, texts(t, want, schemaText), texts(t, pool, schemaText))
}
