package postgres

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

const (
	// schemaVersion is the version of the tables. A program refuses a database with a higher one.
	schemaVersion = 1
	// versionTable is the table with the schema version.
	versionTable = "schema_version"
	// engineLock is the key of the advisory lock that a migration holds, so that only one runs at a time.
	engineLock = 0x686c6162726f7773
	// teamSetting is the database setting with the team of a transaction, which row-level security policies
	// read.
	teamSetting = "healthlab.team"
	// allTeams is the value of teamSetting with which the row-level security policies show all rows.
	allTeams = "all"
	// commitTable is an empty distributed table. A transaction that deletes from it commits in two phases on
	// coordinator and workers.
	commitTable = "commit_both"
)

// table is a declared table with the SQL statements that write and create it.
type table struct {
	def       store.Definition
	sql       string // quoted name of the table
	one, many statements
	relations []relation
	spread    bool // distributed over the machines of a cluster, by user
}

// relation is a table or an index with its create statement.
type relation struct{ name, create string }

var tableName = regexp.MustCompile(`^[a-z][a-z0-9_]{0,47}$`)

func newTables(schema string, tables []store.Definition) (map[string]*table, error) {
	defs, err := store.Definitions(tables)
	if err != nil {
		return nil, err
	}
	out := map[string]*table{}
	for name, def := range defs {
		if out[name], err = newTable(schema, def); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func newTable(schema string, def store.Definition) (*table, error) {
	if !tableName.MatchString(def.Name) || def.Name == versionTable || def.Name == commitTable {
		return nil, fmt.Errorf("postgres: table %s: a name must have 1 to 48 characters a to z, 0 to 9 and _, begin with a letter, and not be %s or %s",
			def.Name, versionTable, commitTable)
	}
	if def.PerUser && def.Unique != [2]bool{} {
		return nil, fmt.Errorf("postgres: table %s: Unique must be false for a table with PerUser", def.Name)
	}
	t := &table{def: def, sql: pgx.Identifier{schema, def.Name}.Sanitize()}
	t.one, t.many = t.statementsForOne(), t.statementsForMany()
	user, key := "user_id uuid", "team, id"
	if def.PerUser {
		user, key = "user_id uuid not null", "user_id, team, id"
	}
	t.relations = []relation{
		// The fill factor leaves room to update a row in place, without its indexes.
		{def.Name, fmt.Sprintf(`
			create table %[1]s (
				team uuid not null, id bytea not null, %[5]s, due timestamptz, i0 bytea, i1 bytea, revision bigint not null, doc bytea,
				constraint %[2]s primary key (%[6]s)
			) with (fillfactor = 85);
			alter table %[1]s enable row level security;
			create policy team_only on %[1]s using (
				team = '00000000-0000-0000-0000-000000000000' or current_setting('%[3]s', true) in (team::text, '%[4]s'))`,
			t.sql, def.Name+"_pkey", teamSetting, allTeams, user, key)},
	}
	if !def.PerUser { // a table per user has no due times, and its primary key begins with the user
		t.relations = append(t.relations, t.index(def.Name+"_due", "due, team, id", "due"), t.index(def.Name+"_user", "user_id, team, id", "user_id"))
	}
	for i, unique := range def.Unique {
		column := indexColumn(i)
		if unique {
			r := t.index(uniqueIndex(def.Name, i), "team, "+column, column)
			r.create = strings.Replace(r.create, "create index", "create unique index", 1)
			t.relations = append(t.relations, r)
		} else {
			t.relations = append(t.relations, t.index(def.Name+"_"+column, "team, "+column+", id", column))
		}
	}
	return t, nil
}

const rowColumns = "(team, id, user_id, due, i0, i1, revision, doc)"

func (t *table) statementsForOne() statements {
	s := statements{
		insert: "insert into " + t.sql + " " + rowColumns + " values ($1, $2, $3, $4, $5, $6, $7, $8)",
		free:   "update " + t.sql + " set i0 = null, i1 = null where team = $1 and id = $2",
		delete: "delete from " + t.sql + " where team = $1 and id = $2",
	}
	if t.def.PerUser {
		s.delete += " and user_id = $3"
	}
	s.update = "with put as (" + t.updateRow() + " returning 1) select 1 / count(*) from put"
	return s
}

func (t *table) updateRow() string {
	if t.def.PerUser {
		return "update " + t.sql + " set due = $4, i0 = $5, i1 = $6, revision = $7, doc = $8 where team = $1 and id = $2 and user_id = $3 and revision = $9"
	}
	return "update " + t.sql + " set user_id = $3, due = $4, i0 = $5, i1 = $6, revision = $7, doc = $8 where team = $1 and id = $2 and revision = $9"
}

func (t *table) statementsForMany() statements {
	const (
		arrays = "unnest($1::uuid[], $2::bytea[], $3::uuid[], $4::timestamptz[], $5::bytea[], $6::bytea[], $7::bigint[], $8::bytea[]"
		keys   = "unnest($1::uuid[], $2::bytea[]) as w (team, id)"
		same   = "t.team = w.team and t.id = w.id"
	)
	s := statements{
		insert: "insert into " + t.sql + " " + rowColumns + " select * from " + arrays + ")",
		free:   "update " + t.sql + " t set i0 = null, i1 = null from " + keys + " where " + same,
		delete: "delete from " + t.sql + " t using " + keys + " where " + same,
	}
	set, match := "user_id = w.user_id, ", same
	if t.def.PerUser {
		s.delete = "delete from " + t.sql + " t using unnest($1::uuid[], $2::bytea[], $3::uuid[]) as w (team, id, user_id) where " + same + " and t.user_id = w.user_id"
		set, match = "", same+" and t.user_id = w.user_id"
	}
	s.update = "with put as (update " + t.sql + " t set " + set + "due = w.due, i0 = w.i0, i1 = w.i1, revision = w.revision, doc = w.doc from " +
		arrays + ", $9::bigint[]) as w (team, id, user_id, due, i0, i1, revision, doc, was) where " + match + " and t.revision = w.was returning 1)" +
		" select 1 / (count(*) = cardinality($9))::int from put"
	return s
}

func (t *table) index(name, columns, column string) relation {
	return relation{name, fmt.Sprintf("create index %s on %s (%s) where %s is not null", name, t.sql, columns, column)}
}

func indexColumn(i int) string { return fmt.Sprintf("i%d", i) }

func uniqueIndex(table string, i int) string { return table + "_" + indexColumn(i) + "_unique" }

// Migrate creates missing tables: the schema, tables and indexes, in one transaction. Several processes may call it
// concurrently. The role of db owns the created objects; another role for [New] needs USAGE on the schema and SELECT,
// INSERT, UPDATE and DELETE on its tables. It returns healthlab.Precondition if a newer program has made the tables.
func Migrate(ctx context.Context, db interface {
	Begin(ctx context.Context) (pgx.Tx, error)
}, tables []store.Definition, opts *Options) error {
	o := engineOptions(opts)
	declared, err := newTables(o.Schema, tables)
	if err != nil {
		return err
	}
	if err := pgx.BeginFunc(ctx, db, func(tx pgx.Tx) error { return createRelations(ctx, tx, &o, declared) }); err != nil {
		return fmt.Errorf("migrate the store: %w", classify(ctx, err))
	}
	return nil
}

func createRelations(ctx context.Context, tx pgx.Tx, o *Options, tables map[string]*table) error {
	// At read committed, statements that follow the lock see what another migration created while this one waited.
	if _, err := tx.Exec(ctx, fmt.Sprintf("set transaction isolation level read committed; select pg_advisory_xact_lock(%d)", int64(engineLock))); err != nil {
		return err
	}
	missing, err := missingRelations(ctx, tx, o.Schema, tables)
	fresh := errors.Is(err, errNoVersion)
	if fresh {
		err = createVersion(ctx, tx, o.Schema)
	}
	for i, r := range missing {
		if err == nil && !fresh && o.Migrating != nil {
			o.Migrating(i+1, len(missing), r.name)
		}
		if err == nil {
			_, err = tx.Exec(ctx, r.create)
		}
	}
	return err
}

// createVersion creates the schema, unless it exists, and the version table.
func createVersion(ctx context.Context, tx pgx.Tx, schema string) error {
	var exists bool
	err := tx.QueryRow(ctx, "select exists (select from pg_namespace where nspname = $1)", schema).Scan(&exists)
	if err == nil && !exists {
		_, err = tx.Exec(ctx, "create schema "+pgx.Identifier{schema}.Sanitize())
	}
	if err == nil {
		name := pgx.Identifier{schema, versionTable}.Sanitize()
		_, err = tx.Exec(ctx, fmt.Sprintf("create table %s (version integer not null); insert into %[1]s values (%d)", name, schemaVersion))
	}
	return err
}

// errNoVersion is the error of a database in which Migrate has not run.
var errNoVersion = fmt.Errorf("%w: the database has no tables of the store; call Migrate", healthlab.Precondition)

func missingError(missing []relation) error {
	return fmt.Errorf("%w: the database lacks %d of the store's tables and indexes, such as %s; call Migrate",
		healthlab.Precondition, len(missing), missing[0].name)
}

// missingRelations returns the tables and indexes that do not exist, each table before its indexes. With errNoVersion
// it returns all of them. It returns Precondition if a newer program has made the tables.
func missingRelations(ctx context.Context, tx pgx.Tx, schema string, tables map[string]*table) ([]relation, error) {
	rows, err := tx.Query(ctx, `
		select c.relname from pg_class c join pg_namespace n on n.oid = c.relnamespace where n.nspname = $1 and c.relkind in ('r', 'i', 'p', 'I')`, schema)
	if err != nil {
		return nil, err
	}
	names, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	found := map[string]bool{}
	for _, name := range names {
		found[name] = true
	}
	var missing []relation
	for _, t := range tables {
		for _, r := range t.relations {
			if !found[r.name] {
				missing = append(missing, r)
			} else if !found[versionTable] {
				return nil, fmt.Errorf("%w: another program has made the table or index %s in the schema; set Options.Schema to another schema", healthlab.Precondition, r.name)
			}
		}
	}
	if !found[versionTable] {
		return missing, errNoVersion
	}
	version := 0
	err = tx.QueryRow(ctx, "select version from "+pgx.Identifier{schema, versionTable}.Sanitize()).Scan(&version)
	if err == nil && version > schemaVersion {
		err = fmt.Errorf("%w: the tables have schema version %d, and this program knows versions up to %d; use a newer program",
			healthlab.Precondition, version, schemaVersion)
	}
	return missing, err
}
