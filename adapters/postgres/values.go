package postgres

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

// instant returns t as it is kept: in UTC, to the microsecond.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// optional returns nil for the zero id.
func optional(id uuid.UUID) *uuid.UUID {
	if id == uuid.Nil {
		return nil
	}
	return &id
}

// nullable returns nil for the zero time.
func nullable(t time.Time) *time.Time {
	if t.IsZero() {
		return nil
	}
	return &t
}

// nullText is null for an empty text.
func nullText(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func timeOf(d *healthlab.Date) *time.Time {
	if d == nil {
		return nil
	}
	t := d.At(time.UTC)
	return &t
}

func timeOrZero(t *time.Time) time.Time {
	if t == nil {
		return time.Time{}
	}
	return t.UTC()
}

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }

// count keeps the tag of a statement.
func count(q *pgx.QueuedQuery, tag *pgconn.CommandTag) {
	q.Exec(func(t pgconn.CommandTag) error {
		*tag = t
		return nil
	})
}

// absent lets a row that is not there be none.
func absent(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return nil
	}
	return err
}

// missingRow says of a row that is not there what it means.
func missingRow(err error, what string) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("%w: %s", healthlab.NotFound, what)
	}
	return err
}

func badCursor() error {
	return &healthlab.InvalidError{Problems: []healthlab.Problem{{
		Path: []any{"cursor"}, Code: "bad_cursor", Msg: "the cursor is not one of this list",
	}}}
}
