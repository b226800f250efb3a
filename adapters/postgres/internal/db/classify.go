package db

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// fault is an error of the database under the kind that is true for our callers. Its
// text holds no word of the server's, since those may quote values.
type fault struct {
	kind  healthlab.Kind
	cause error
}

func (f *fault) Error() string {
	var pg *pgconn.PgError
	if !errors.As(f.cause, &pg) {
		if Lost(f.cause) {
			return f.kind.Error() + ": no connection to PostgreSQL"
		}
		return f.kind.Error() + ": unexpected answer of PostgreSQL"
	}
	text := f.kind.Error() + ": PostgreSQL error " + pg.Code
	if pg.ConstraintName != "" {
		text += " on " + pg.ConstraintName
	}
	return text
}

func (f *fault) Unwrap() []error { return []error{f.kind, f.cause} }

// answer is an error that a caller's closure returned. It passes unchanged.
type answer struct{ error }

// Answer returns an error that a caller's closure returned as one that passes unchanged.
func Answer(err error) error { return answer{err} }

// constraints says what the violation of a constraint means.
var constraints = map[string]healthlab.Kind{
	"users_pkey":      healthlab.Conflict,
	"user_name_pkey":  healthlab.Conflict,
	"orders_pkey":     healthlab.Conflict,
	"orders_id":       healthlab.Conflict,
	"orders_sample":   healthlab.Conflict,
	"insurance_id":    healthlab.Conflict,
	"insurance_pkey":  healthlab.Conflict,
	"payor_pkey":      healthlab.Conflict,
	"order_hold_pkey": healthlab.Conflict,
	"raw_result_pkey": healthlab.Conflict,
	"lab_test_pkey":   healthlab.Conflict,
	"lab_test_id":     healthlab.Conflict,

	"continuous_query_pkey": healthlab.Conflict,
	"continuous_query_id":   healthlab.Conflict,
	"continuous_query_slug": healthlab.Conflict,
}

// eventTable is how the names of the partitions of messages begin; each has its own
// names of constraints, and all of them mean that an id is taken.
const eventTable = "webhook_event"

// states says what SQLSTATE codes mean, by the longest beginning that fits.
var states = map[string]healthlab.Kind{
	"08":    healthlab.Unavailable, // connection
	"21000": healthlab.Invalid,     // one row twice in one statement
	"22":    healthlab.Invalid,     // data
	"25006": healthlab.Unavailable, // read-only: a replica, or a server that is being moved
	"25P03": healthlab.Unavailable, // idle in transaction for too long
	"40":    healthlab.Unavailable, // serialization, deadlock
	"53":    healthlab.Unavailable, // disk full, out of memory, too many connections
	"54":    healthlab.Invalid,     // larger than an index entry or a row can be
	"55P03": healthlab.Unavailable, // lock timeout
	"57":    healthlab.Unavailable, // statement timeout, shutdown, recovery
	"58":    healthlab.Unavailable, // the disk under the server
}

// Classify returns an error of the database as our callers know it: with its kind, or
// as the error of the context that ended.
func Classify(ctx context.Context, err error) error {
	var said answer
	var known *fault
	switch {
	case err == nil:
		return nil
	case errors.As(err, &said):
		return said.error
	case errors.As(err, &known):
		return err
	case errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case ctx.Err() != nil:
		return ctx.Err() // what was interrupted looks like an outage
	case healthlab.KindOf(err) != healthlab.Unknown, errors.Is(err, series.ErrCorrupt):
		return err
	}
	return &fault{kindOf(err), err}
}

func kindOf(err error) healthlab.Kind {
	var pg *pgconn.PgError
	if errors.As(err, &pg) {
		if kind, ok := constraints[pg.ConstraintName]; ok && pg.Code == "23505" {
			return kind
		}
		if strings.HasPrefix(pg.TableName, eventTable) && pg.Code == "23505" {
			return healthlab.Conflict
		}
		for n := len(pg.Code); n >= 2; n-- {
			if kind, ok := states[pg.Code[:n]]; ok {
				return kind
			}
		}
		return healthlab.Unknown
	}
	if Lost(err) {
		return healthlab.Unavailable
	}
	return healthlab.Unknown
}

// Lost reports whether an error is about the connection and not about the statement.
func Lost(err error) bool {
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

// contended reports whether the same transaction may succeed when it is repeated.
func contended(err error) bool {
	var pg *pgconn.PgError
	return errors.Is(err, ErrChanged) || errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}

// ErrChanged says that rows which a transaction had read have changed; [DB.Do] repeats it.
var ErrChanged = errors.New("changed meanwhile")
