package db

import (
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// Ids come back as they were, also none and no list at all.
func TestIDsAsArguments(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	a, b := uuid.New(), uuid.New()
	for _, tt := range []struct {
		argument any
		sql      string
		want     string
	}{
		{a, "$1::uuid::text", a.String()},
		{&b, "$1::uuid::text", b.String()},
		{(*uuid.UUID)(nil), "coalesce($1::uuid::text, 'null')", "null"},
		{[]uuid.UUID{a, b}, "array_to_string($1::uuid[], ' ')", a.String() + " " + b.String()},
		{[]uuid.UUID{}, "coalesce(array_length($1::uuid[], 1), 0)::text", "0"},
		{[]uuid.UUID(nil), "coalesce($1::uuid[]::text, 'null')", "null"},
		{[]*uuid.UUID{nil, &b}, "array_to_string($1::uuid[], ' ', 'null')", "null " + b.String()},
		{[]*uuid.UUID(nil), "coalesce($1::uuid[]::text, 'null')", "null"},
	} {
		var got string
		require.NoError(t, pool.QueryRow(t.Context(), "select "+tt.sql, plainly(tt.argument)).Scan(&got))
		require.Equal(t, tt.want, got, tt.sql)
	}
}

// Ids are read as they are, also where there is none.
func TestIDsAsTargets(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	a, b := uuid.New(), uuid.New()
	var id uuid.UUID
	var some, none *uuid.UUID
	word := ""
	none = &a
	err := pool.QueryRow(t.Context(), "select $1::uuid, $2::uuid, null::uuid, 'a'", a, b).Scan(PlainTargets(&id, &some, &none, &word)...)
	require.NoError(t, err)
	require.Equal(t, a, id)
	require.Equal(t, &b, some)
	require.Nil(t, none)
	require.Equal(t, "a", word)
}
