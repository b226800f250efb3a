package postgres_test

import (
	"context"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/orders"
)

func migrationFiles(t *testing.T) []string {
	t.Helper()
	files, err := fs.Glob(postgres.Migrations(), "*.sql")
	require.NoError(t, err)
	require.NotEmpty(t, files)
	return files
}

// Every beginning of the list of files is a version that somebody may have; released ones
// will be among them. A database of each, full of data, is brought up to date.
func TestUpgrades(t *testing.T) {
	t.Parallel()
	full := pgtest.Pool(t)
	s := postgres.New(full, nil)
	u := fullPerson(t, s)
	everyOrderWrite(t, s, u)
	named := orderOf(u)
	first, last := "Zoë 🜨", "O'Neil"
	named.PatientDetails = &orders.PatientDetails{FirstName: &first, LastName: &last, DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9}}
	named.PatientAddress = &orders.PatientAddress{ReceiverName: "Front Desk"}
	_, err := s.Orders().Insert(t.Context(), named, unchanged)
	require.NoError(t, err)
	// Older versions had no tails, and no segments without a header.
	require.NoError(t, postgres.Fold(t.Context(), s, u, 2))
	mergedSegment(t, s, u, 3000)
	samples := readSeries(t, s, u, heart)
	require.NotEmpty(t, samples)
	person, err := s.Users().Get(t.Context(), u.Team, u.ID)
	require.NoError(t, err)
	schema, kept := texts(t, full, schemaText), map[string]int{}
	for _, table := range texts(t, full, `select relname from`+ourTables) {
		kept[table] = rows(t, full, table)
	}
	oldest := pgtest.Empty(t) // gets one file after the other, and is copied in between
	for n, name := range migrationFiles(t) {
		t.Run(fmt.Sprint("from ", name), func(t *testing.T) {
			conn, err := pgx.Connect(t.Context(), oldest)
			require.NoError(t, err)
			require.NoError(t, postgres.MigrateSome(t.Context(), conn, n+1))
			require.NoError(t, conn.Close(t.Context()))
			old := pgtest.Connect(t, pgtest.Copy(t, oldest))
			tables := copyRows(t, full, old)
			require.NoError(t, postgres.Migrate(t.Context(), old))
			if slices.Contains(tables, "orders") {
				tables = append(tables, "order_search") // which an upgrade makes
			}
			for _, table := range tables {
				require.Equal(t, kept[table], rows(t, old, table), table)
			}
			require.Equal(t, schema, texts(t, old, schemaText), "the schema of a fresh database")

			upgraded := postgres.New(old, nil)
			got, err := upgraded.Users().Get(t.Context(), u.Team, u.ID)
			require.NoError(t, err)
			for i := range got.Connections { // what an upgrade fills in
				got.Connections[i].LinkedAt, got.Connections[i].Due = person.Connections[i].LinkedAt, person.Connections[i].Due
			}
			require.Equal(t, person, got)
			require.Equal(t, samples, readSeries(t, upgraded, u, heart))
			everyWrite(t, upgraded)
			_, err = upgraded.Users().Update(t.Context(), u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
				u.DeletedAt = noon.Time
				return []healthlab.Event{event(*u, "k")}, nil
			})
			require.NoError(t, err)
			require.NoError(t, upgraded.Users().Erase(t.Context(), u.Team, u.ID))
		})
	}
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

// copyRows fills the tables of an older schema with what a newer one holds, as far as
// the older one has room for it, and returns those that it filled.
func copyRows(t *testing.T, from, to *pgxpool.Pool) []string {
	t.Helper()
	var filled []string
	for _, table := range texts(t, to, `select relname from`+ourTables+`and relname <> 'migration' and not relispartition`) {
		const columnsOf = `select quote_ident(attname) from pg_attribute
			where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`
		columns, kept := texts(t, to, columnsOf, "healthlab."+table), texts(t, from, columnsOf, "healthlab."+table)
		if slices.ContainsFunc(columns, func(c string) bool { return !slices.Contains(kept, c) }) {
			continue // a newer version makes it anew
		}
		types := texts(t, to, `select format_type(atttypid, atttypmod) from pg_attribute
			where attrelid = $1::regclass and attnum > 0 and not attisdropped and attgenerated = '' order by attnum`, "healthlab."+table)
		var values []string
		for i, name := range types {
			values = append(values, fmt.Sprintf("($1::text[])[%d]::%s", i+1, name))
		}
		list, err := from.Query(t.Context(), `select array[`+strings.Join(columns, "::text, ")+`::text] from healthlab.`+table)
		require.NoError(t, err)
		all, err := pgx.CollectRows(list, pgx.RowTo[[]*string])
		require.NoError(t, err)
		for _, row := range all {
			_, err := to.Exec(t.Context(), `insert into healthlab.`+table+` (`+strings.Join(columns, ", ")+`) overriding system value
				select `+strings.Join(values, ", "), row)
			require.NoError(t, err, table)
		}
		filled = append(filled, table)
	}
	for _, sql := range texts(t, to, `
		select format('select setval(%L, (select max(%I) from healthlab.%I))', pg_get_serial_sequence('healthlab.' || relname, attname), attname, relname)
		from`+strings.Replace(ourTables, "where", "join pg_attribute a on a.attrelid = c.oid and a.attidentity <> '' where", 1)) {
		_, err := to.Exec(t.Context(), sql)
		require.NoError(t, err)
	}
	return filled
}

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
	want := pgtest.Pool(t)
	_, err := want.Exec(t.Context(), `drop table healthlab.migration`)
	require.NoError(t, err)
	require.Equal(t, texts(t, want, schemaText), texts(t, pool, schemaText))
}
