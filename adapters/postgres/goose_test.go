package postgres_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/jackc/pgx/v5/stdlib"
	"github.com/pressly/goose/v3"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// A host's own migration tool makes the schema that Migrate makes, but for the table in
// which Migrate notes what it has applied.
func TestGooseMakesTheSameSchema(t *testing.T) {
	t.Parallel()
	theirs := pgtest.Connect(t, pgtest.Empty(t))
	db := stdlib.OpenDBFromPool(theirs)
	defer db.Close()
	tool, err := goose.NewProvider(goose.DialectPostgres, db, postgres.Migrations())
	require.NoError(t, err)
	applied, err := tool.Up(t.Context())
	require.NoError(t, err)
	require.NotEmpty(t, applied)

	want := slices.DeleteFunc(texts(t, migrated(t), schemaText), func(line string) bool {
		return strings.HasPrefix(line, "migration") || strings.Contains(line, "healthlab.migration ") || strings.Contains(line, "healthlab.migration:")
	})
	require.Equal(t, want, texts(t, theirs, schemaText))

	again, err := tool.Up(t.Context())
	require.NoError(t, err)
	require.Empty(t, again)
}
