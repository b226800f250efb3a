package pgtest

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

// mostUses is the number of tests after which a database is dropped, because deleted rows take space until a vacuum.
const mostUses = 50

// reuse holds the emptied databases of finished tests, because creating a database costs
// the server hundreds of files. Safe for concurrent use.
type reuse struct {
	shape     string   // fingerprint of the template's schema
	functions string   // statements that make the template's functions
	kept      []string // tables with rows in the template; not emptied

	mu   sync.Mutex
	free []idle
}

type idle struct {
	address string
	uses    int
}

// ourTables is the part of a select statement after from: it selects all tables except those of PostgreSQL.
const ourTables = ` pg_class c join pg_namespace n on n.oid = c.relnamespace
	where c.relkind = 'r' and n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast') `

// newReuse reads the schema of the template, and which of its tables have rows.
func newReuse(ctx context.Context, template *pgx.Conn) (*reuse, error) {
	rows, err := template.Query(ctx, `select format('%I.%I', n.nspname, c.relname) from`+ourTables+`order by 1`)
	if err != nil {
		return nil, err
	}
	tables, err := pgx.CollectRows(rows, pgx.RowTo[string])
	if err != nil {
		return nil, err
	}
	r := &reuse{}
	for _, t := range tables {
		var some bool
		if err := template.QueryRow(ctx, `select exists (select 1 from only `+t+`)`).Scan(&some); err != nil {
			return nil, err
		}
		if some {
			r.kept = append(r.kept, t)
		}
	}
	if run.cluster == nil { // on a cluster, functions of the extension would be included and other nodes missed
		err = template.QueryRow(ctx, `select coalesce(string_agg(pg_get_functiondef(oid), ';'), '') from pg_proc
			where oid >= 16384 and prokind in ('f', 'p')`).Scan(&r.functions)
		if err != nil {
			return nil, err
		}
	}
	r.shape, err = r.fingerprint(ctx, template)
	return r, err
}

// fingerprint returns a hash of a database's schema, including its functions, and of the rows of the kept tables. Two
// databases that were made from one template have the same hash.
func (r *reuse) fingerprint(ctx context.Context, conn *pgx.Conn) (string, error) {
	parts := []string{`
		select string_agg(c.oid || ':' || c.xmin, ',' order by c.oid) from pg_class c join pg_namespace n on n.oid = c.relnamespace
			where n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`, `
		select string_agg(attrelid || ':' || attnum || ':' || a.xmin, ',' order by attrelid, attnum)
			from pg_attribute a join pg_class c on c.oid = attrelid join pg_namespace n on n.oid = c.relnamespace
			where n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast')`, `
		select string_agg(s.setrole || ':' || s.setconfig::text, ',' order by s.setrole) from pg_db_role_setting s
			where s.setdatabase = (select oid from pg_database where datname = current_database())`, `
		select string_agg(p::text, ',' order by oid) from pg_proc p where oid >= 16384`,
	}
	for _, catalog := range []string{"pg_namespace", "pg_constraint", "pg_attrdef", "pg_trigger", "pg_rewrite", "pg_policy", "pg_type", "pg_default_acl"} {
		// Lower oids belong to objects of the server itself, which no test changes.
		parts = append(parts, `select string_agg(oid || ':' || xmin, ',' order by oid) from `+catalog+` where oid >= 16384`)
	}
	for _, t := range r.kept {
		parts = append(parts, `select string_agg(x::text, ',' order by x::text) from only `+t+` x`)
	}
	var shape string
	err := conn.QueryRow(ctx, `select md5(concat_ws('|', (`+strings.Join(parts, "), (")+`)))`).Scan(&shape)
	return shape, err
}

// acquire returns the URL of an empty database with the template's schema. When the test ends, acquire empties the
// database for the next test. base is the URL of the server.
func (r *reuse) acquire(t testing.TB, base, template string) string {
	t.Helper()
	r.mu.Lock()
	var g idle
	if n := len(r.free); n > 0 {
		g, r.free = r.free[n-1], r.free[:n-1]
	}
	r.mu.Unlock()
	if g.address == "" {
		var err error
		if g.address, err = build(base, "create database "+newName()+" template "+template); err != nil {
			t.Fatalf("pgtest: %v", err)
		}
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		g.uses++
		// Goroutines of a failed test may still write.
		if g.uses < mostUses && !t.Failed() && r.clear(ctx, g.address) == nil {
			r.mu.Lock()
			defer r.mu.Unlock()
			r.free = append(r.free, g)
			return
		}
		if err := remove(base, g.address); err != nil {
			t.Logf("pgtest: the database is left behind: %v", err)
		}
	})
	return g.address
}

// clear deletes the rows of all tables except the kept ones, and restores replaced functions. It returns an error if
// the schema, or a kept row, differs from the template's.
func (r *reuse) clear(ctx context.Context, address string) error {
	conn, err := pgx.Connect(ctx, address)
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close(ctx) }()
	// Terminate the sessions of the finished test.
	_, err = conn.Exec(ctx, `select pg_terminate_backend(pid, 10000) from pg_stat_activity where datname = current_database() and pid <> pg_backend_pid()`)
	if err != nil {
		return err
	}
	shape, err := r.fingerprint(ctx, conn)
	if err != nil {
		return err
	}
	if shape != r.shape { // the test may have replaced a function, such as the clock
		if _, err := conn.Exec(ctx, r.functions); err != nil {
			return err
		}
		if shape, err = r.fingerprint(ctx, conn); err != nil {
			return err
		}
	}
	if shape != r.shape {
		return errors.New("the schema must be the same as the template database's")
	}
	return r.empty(ctx, conn)
}

// empty deletes the rows of all tables except the kept ones.
func (r *reuse) empty(ctx context.Context, db interface {
	Exec(ctx context.Context, sql string, arguments ...any) (pgconn.CommandTag, error)
}) error {
	spread := ""
	if run.cluster != nil { // the rows of a distributed table are in shards on all nodes
		spread = `for t in select logicalrelid::text from pg_catalog.pg_dist_partition loop execute 'delete from ' || t; end loop;`
	}
	_, err := db.Exec(ctx, `do $$ declare t text; begin `+spread+`
		for t in select format('%I.%I', n.nspname, c.relname) from`+ourTables+`and pg_relation_size(c.oid) > 0 loop
			if t <> all ('{`+strings.Join(r.kept, ",")+`}'::text[]) then execute 'delete from only ' || t; end if;
		end loop;
		perform setval(seqrelid::regclass, seqstart, false) from pg_sequence;
	end $$`)
	return err
}

// drop drops the databases that no test uses. base is the URL of the server.
func (r *reuse) drop(base string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, g := range r.free {
		_ = remove(base, g.address)
	}
}
