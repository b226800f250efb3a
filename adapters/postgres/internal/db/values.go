package db

import (
	"bytes"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
)

// Instant returns t as it is kept: in UTC, to the microsecond.
func Instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// Optional returns nil for the zero id.
func Optional(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

// Nullable returns nil for the zero time.
func Nullable(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// NullText is null for an empty text.
func NullText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

// TimeOf returns the start of a day in UTC, nil for nil.
func TimeOf(d *healthlab.Date) *time.Time {
	if d == nil {
		return nil
	}
	t := d.At(time.UTC)
	return &t
}

// TimeOrZero returns a time in UTC, the zero time for nil.
func TimeOrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

// CompareIDs compares ids by their bytes, as the server sorts them.
func CompareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

// KeepTag sets tag to the tag of a statement when its batch runs.
func KeepTag(q *pgx.QueuedQuery, tag *pgconn.CommandTag) {
	q.Exec(func(t pgconn.CommandTag) error {
		*tag = t
		return nil
	})
}

// Absent returns nil if err says that there is no row, else err.
func Absent(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// MissingRow returns NotFound, which names what is missing, if err says that there is no row,
// else err.
func MissingRow(err error, what string) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%w: %s", healthlab.NotFound, what)
	}
	return err
}

// BadCursor returns the Invalid error for a cursor that is not of the list.
func BadCursor() error {
	return &healthlab.InvalidError{Problems: []healthlab.Problem{{
		Path: []any{"cursor"}, Code: "bad_cursor", Msg: "the cursor is not one of this list",
	}}}
}
