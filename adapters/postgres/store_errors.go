package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// databaseError is a database error with its kind. Its text omits the server's message, which may quote values.
type databaseError struct {
	kind  healthlab.ErrorKind
	cause error
}

// Error returns the kind, and the code of the database error.
func (e *databaseError) Error() string {
	var pg *pgconn.PgError
	switch {
	case errors.As(e.cause, &pg) && pg.ConstraintName != "":
		return e.kind.Error() + ": PostgreSQL error " + pg.Code + " on " + pg.ConstraintName
	case errors.As(e.cause, &pg):
		return e.kind.Error() + ": PostgreSQL error " + pg.Code
	case isConnectionError(e.cause):
		return e.kind.Error() + ": no connection to PostgreSQL"
	}
	return e.kind.Error() + ": unexpected answer of PostgreSQL"
}

// Unwrap returns the kind and the cause.
func (e *databaseError) Unwrap() []error { return []error{e.kind, e.cause} }

// kindOfState maps the longest matching prefix of an SQLSTATE code to a kind.
var kindOfState = map[string]healthlab.ErrorKind{
	"08":    healthlab.Unavailable, // connection
	"22":    healthlab.Invalid,     // data
	"25006": healthlab.Unavailable, // read-only: a replica, or a server that is being moved
	"25P03": healthlab.Unavailable, // idle in transaction for too long
	"40":    healthlab.Unavailable, // serialization, deadlock
	"53":    healthlab.Unavailable, // disk full, out of memory, too many connections
	"54":    healthlab.Invalid,     // larger than a row can be
	"55P03": healthlab.Unavailable, // lock timeout
	"57":    healthlab.Unavailable, // statement timeout, shutdown, recovery
	"58":    healthlab.Unavailable, // the disk under the server
}

// classify returns a database error with its kind, or the error of the ended context.
func classify(ctx context.Context, err error) error {
	var known *databaseError
	switch {
	case err == nil:
		return nil
	case errors.As(err, &known), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case ctx.Err() != nil:
		return ctx.Err() // an interrupted statement looks like an outage
	case healthlab.KindOf(err) != healthlab.Unknown:
		return err
	}
	return &databaseError{stateKind(err), err}
}

func stateKind(err error) healthlab.ErrorKind {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		for n := len(pg.Code); n >= 2; n-- {
			if kind, ok := kindOfState[pg.Code[:n]]; ok {
				return kind
			}
		}
		return healthlab.Unknown
	}
	if isConnectionError(err) {
		return healthlab.Unavailable
	}
	return healthlab.Unknown
}

// isConnectionError reports whether an error means that the connection is broken.
func isConnectionError(err error) bool {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		return strings.HasPrefix(pg.Code, "08") || strings.HasPrefix(pg.Code, "57P") || pg.Code == "25P03" // idle for too long
	}
	var connect *pgconn.ConnectError
	var network net.Error
	return errors.As(err, &connect) || errors.As(err, &network) || pgconn.SafeToRetry(err) ||
		errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, net.ErrClosed) ||
		errors.Is(err, pgx.ErrTxClosed)
}

func contended(err error) bool {
	var pg *pgconn.PgError
	return errors.Is(err, store.ErrStale) || errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}
