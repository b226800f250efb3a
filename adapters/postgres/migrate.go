package postgres

import (
	"bytes"
	"context"
	"crypto/sha256"
	"embed"
	"fmt"
	"io/fs"
	"math"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
)

//go:embed migrations/*.sql
var migrations embed.FS

// Migrations returns the SQL files that make the schema, for hosts with a migration
// tool of their own: numbered, going up only, each beginning with the line
// "-- +goose Up". They make the schema healthlab and put everything into it. A host uses
// either its tool or [Migrate], since neither knows what the other has applied.
func Migrations() fs.FS {
	sub, err := fs.Sub(migrations, "migrations")
	if err != nil {
		panic(err) // the folder is embedded
	}
	return sub
}

const noTransaction = "-- +goose NO TRANSACTION"

// Migrate brings the schema up to date: it applies the files that were not applied yet,
// each in a transaction of its own, and notes them in healthlab.migration. Several
// processes may call it at once. What a newer version of this library has applied
// besides is left alone.
//
// [healthlab.Precondition] if a file was edited after it was applied, so that the
// schema is unknown.
func Migrate(ctx context.Context, database DB) error {
	return MigrateWith(ctx, database, func(string, int, int) {})
}

// MigrateWith is [Migrate] that shows how far it is: it calls applied after each file that it
// applied, with the file's name, its place from 1, and how many files there are.
func MigrateWith(ctx context.Context, database DB, applied func(name string, n, total int)) error {
	return migrateFiles(ctx, database, math.MaxInt, applied)
}

// Ping checks that the database answers and that its schema has every file of [Migrate].
// Precondition if a file is missing, Unavailable if the database does not answer.
func (s *Store) Ping(ctx context.Context) error {
	files, err := fs.Glob(Migrations(), "*.sql")
	if err != nil {
		return fmt.Errorf("ping: %w", err)
	}
	applied := 0
	if err := s.db.QueryRow(ctx, countMigrations, files).Scan(&applied); err != nil {
		return fmt.Errorf("ping: %w", db.Classify(ctx, err))
	}
	if applied < len(files) {
		return fmt.Errorf("ping: %w: the schema lacks %d migrations; call Migrate", healthlab.Precondition, len(files)-applied)
	}
	return nil
}

// migrateFiles applies the first files, at most as many as most says.
func migrateFiles(ctx context.Context, database DB, most int, applied func(name string, n, total int)) error {
	files, err := fs.Glob(Migrations(), "*.sql")
	if err != nil {
		return fmt.Errorf("migrate: %w", err)
	}
	for i, name := range files[:min(most, len(files))] {
		text, err := fs.ReadFile(Migrations(), name)
		if err != nil {
			return fmt.Errorf("migrate: %w", err)
		}
		made, err := migrateFile(ctx, database, name, text)
		if err != nil {
			return fmt.Errorf("migrate %s: %w", name, db.Classify(ctx, err))
		}
		if made {
			applied(name, i+1, len(files))
		}
	}
	return nil
}

const createMigrationTable = `
create schema if not exists healthlab;
create table if not exists healthlab.migration (
	version    integer     not null,
	name       text        not null,
	checksum   bytea       not null,
	applied_at timestamptz not null default now(),
	constraint migration_pkey primary key (version)
);
comment on table healthlab.migration is 'The migration files that were applied, and what they looked like.';
comment on constraint migration_pkey on healthlab.migration is 'A file is applied once.';`

const (
	selectMigration = `select checksum from healthlab.migration where version = $1`
	countMigrations = `select count(*) from healthlab.migration where name = any ($1)`
	insertMigration = `insert into healthlab.migration (version, name, checksum) values ($1, $2, $3)`
)

// migrateFile applies a file, and reports whether it was not applied before.
func migrateFile(ctx context.Context, database DB, name string, text []byte) (made bool, err error) {
	number, _, _ := strings.Cut(name, "_")
	version, err := strconv.Atoi(number)
	if err != nil {
		return false, fmt.Errorf("a migration begins with its number: %w", err)
	}
	sum := sha256.Sum256(text)
	tx, err := database.Begin(ctx)
	if err != nil {
		return false, err
	}
	defer func() { _ = tx.Rollback(context.WithoutCancel(ctx)) }()
	if _, err := tx.Exec(ctx, "select pg_advisory_xact_lock($1)", int64(db.MigrationLock)); err != nil {
		return false, err
	}
	if _, err := tx.Exec(ctx, createMigrationTable); err != nil {
		return false, err
	}
	var known []byte
	switch err := tx.QueryRow(ctx, selectMigration, version).Scan(&known); {
	case err == nil && bytes.Equal(known, sum[:]):
		return false, nil
	case err == nil:
		return false, fmt.Errorf("%w: the file was applied with another content", healthlab.Precondition)
	case err != pgx.ErrNoRows: //nolint:errorlint // Scan returns it as it is
		return false, err
	}
	if bytes.HasPrefix(text, []byte(noTransaction)) {
		// It holds one statement that can be repeated; another process may be at it, too.
		if _, err := database.Exec(ctx, string(text)); err != nil {
			return false, err
		}
	} else if _, err := tx.Exec(ctx, string(text)); err != nil {
		return false, err
	}
	if _, err := tx.Exec(ctx, insertMigration, version, name, sum[:]); err != nil {
		return false, err
	}
	return true, tx.Commit(ctx)
}
