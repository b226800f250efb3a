package orderstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/personkey"
)

// orderColumns are what scanOrder reads, of a row o of orders. The members are those of
// the moment of reading.
const orderColumns = `
o.team_id, o.order_id, o.user_id, o.doc, o.revision, o.lab_due, o.lab_lease, o.lab_attempts, o.lab_started, o.visit_due, o.visit_lease, o.later_due, o.later_lease, o.hidden,
(select json_agg(m.member) from healthlab.orders m
	where m.team_id = o.team_id and m.transaction_id = o.transaction_id and (not m.hidden or m.order_id = o.order_id))`

func (s *Store) scanOrder(ctx context.Context, row pgx.Row, r *orders.Record) error {
	var w orderRow
	if err := w.scan(row); err != nil {
		return err
	}
	return s.decodeOrder(ctx, &w, r)
}

// orderRow is an order as it is stored: orderColumns.
type orderRow struct {
	ref                  personkey.Ref
	id                   orders.OrderID
	doc, members         []byte
	due, lease           *time.Time
	visitDue, visitLease *time.Time
	laterDue, laterLease *time.Time
	revision             int64
	attempts             int
	started, hidden      bool
}

func (w *orderRow) scan(row pgx.Row) error {
	return row.Scan(&w.ref.Team.UUID, &w.id.UUID, &w.ref.User.UUID, &w.doc, &w.revision, &w.due, &w.lease, &w.attempts, &w.started, &w.visitDue, &w.visitLease, &w.laterDue, &w.laterLease, &w.hidden, &w.members)
}

func (s *Store) decodeOrder(ctx context.Context, w *orderRow, r *orders.Record) error {
	var kept orders.Record
	if err := s.db.OpenDocument(ctx, w.ref, personkey.RowOrder(w.id), w.doc, &kept); err != nil {
		return fmt.Errorf("decode order: %w", err)
	}
	kept.LabTest.Fill()
	list := []orders.TransactionMember{}
	if err := json.Unmarshal(w.members, &list); err != nil {
		return fmt.Errorf("decode order transaction: %w", err)
	}
	kept.OrderTransaction = orders.NewTransaction(kept.OrderTransaction.ID, list)
	kept.Revision = w.revision
	kept.Lab.Due, kept.Lab.Lease = db.TimeOrZero(w.due), db.TimeOrZero(w.lease)
	kept.Lab.Attempts, kept.Lab.Started = w.attempts, w.started
	kept.Notifications.Due, kept.Notifications.Lease = db.TimeOrZero(w.laterDue), db.TimeOrZero(w.laterLease)
	kept.VisitWork = orders.VisitWork{Due: db.TimeOrZero(w.visitDue), Lease: db.TimeOrZero(w.visitLease)}
	kept.UserDeleted = w.hidden
	*r = kept
	return nil
}

const (
	insertOrder = `
with found as (
	insert into healthlab.order_search (team_id, order_id, transaction_id, user_id, method, last_status, created_at, updated_at,
		event_at, activate_by, interpretation, tokens, sort_name)
	values ($1, $2, $3, $4, $7, $9, $10, $11, $12, $13, $14, $15, $16))
insert into healthlab.orders (team_id, order_id, transaction_id, user_id, revision, sample_id, method, status, last_status,
	created_at, updated_at, event_at, activate_by, interpretation, tokens, sort_name,
	lab_due, lab_lease, lab_attempts, lab_started, member, doc, visit_due, visit_lease, later_due, later_lease)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19, $20, $21, $22, $23, $24, $25, $26)`

	updateOrder = `
with found as (
	update healthlab.order_search set transaction_id = $3, user_id = $4, method = $7, last_status = $9, created_at = $10,
		updated_at = $11, event_at = $12, activate_by = $13, interpretation = $14, tokens = $15, sort_name = $16
	where team_id = $1 and order_id = $2)
update healthlab.orders set transaction_id = $3, user_id = $4, revision = $5, sample_id = $6, method = $7, status = $8,
	last_status = $9, created_at = $10, updated_at = $11, event_at = $12, activate_by = $13, interpretation = $14,
	tokens = $15, sort_name = $16, lab_due = $17, lab_lease = $18, lab_attempts = $19, lab_started = $20, member = $21, doc = $22,
	visit_due = $23, visit_lease = $24, later_due = $25, later_lease = $26
where team_id = $1 and order_id = $2`
)

// orderKept is what no change may change.
type orderKept struct {
	team        healthlab.TeamID
	id          orders.OrderID
	transaction orders.TransactionID
}

func orderIdentity(r *orders.Record) orderKept {
	return orderKept{r.TeamID, r.ID, r.OrderTransaction.ID}
}

// checkStatus accepts the statuses of the lifecycles, and none before the first event.
func checkStatus(s orders.Status) error {
	if known, ok := orders.ParseStatus(string(s)); s != "" && (!ok || known != s) {
		return fmt.Errorf("%w: last_event.status: must be one of orders.Statuses", healthlab.Invalid)
	}
	return nil
}

// keepOrder returns the arguments of insertOrder and updateOrder for a changed order.
func (s *Store) keepOrder(ctx context.Context, r *orders.Record, was orderKept, revision int64) ([]any, error) {
	if orderIdentity(r) != was {
		return nil, fmt.Errorf("%w: an order keeps its id, its team and its transaction", healthlab.Invalid)
	}
	o := &r.Order
	if err := checkStatus(o.LastEvent.Status); err != nil {
		return nil, err
	}
	member, err := json.Marshal(o.Member())
	if err != nil {
		return nil, fmt.Errorf("encode order transaction: %w", err)
	}
	stored := *r
	stored.Revision = 0
	stored.OrderTransaction = orders.OrderTransaction{ID: was.transaction}
	stored.Lab.Due, stored.Lab.Lease, stored.Lab.Attempts, stored.Lab.Started = time.Time{}, time.Time{}, 0, false
	stored.VisitWork = orders.VisitWork{}
	stored.Notifications.Due, stored.Notifications.Lease = time.Time{}, time.Time{}
	ref := personkey.Ref{Team: r.TeamID, User: r.UserID}
	doc, err := s.db.SealDocument(ctx, ref, personkey.RowOrder(r.ID), stored)
	if err != nil {
		return nil, err
	}
	tokens, err := s.db.Keys.Tokens(ctx, r.TeamID, orders.SearchTerms(o))
	if err != nil {
		return nil, err
	}
	sortName := []byte(o.PatientDetails.SortName())
	if len(sortName) > 0 {
		if sortName, err = s.db.Keys.Seal(ctx, ref, personkey.RowSortName(r.ID), sortName); err != nil {
			return nil, err
		}
	}
	var read *string
	if o.Interpretation != nil {
		text := string(*o.Interpretation)
		read = &text
	}
	return []any{
		r.TeamID.UUID, r.ID.UUID, was.transaction.UUID, r.UserID.UUID, revision, r.SampleID, string(o.Method()),
		string(o.LowLevel()), string(o.LastEvent.Status), db.Instant(o.CreatedAt.Time), db.Instant(o.UpdatedAt.Time),
		db.Instant(o.LastEvent.CreatedAt.Time), db.TimeOf(o.ActivateBy), read, tokens, sortName, db.Nullable(db.Instant(r.Lab.Due)), db.Nullable(db.Instant(r.Lab.Lease)),
		r.Lab.Attempts, r.Lab.Started, member, doc, db.Nullable(db.Instant(r.VisitWork.Due)), db.Nullable(db.Instant(r.VisitWork.Lease)),
		db.Nullable(db.Instant(r.Notifications.Due)), db.Nullable(db.Instant(r.Notifications.Lease)),
	}, nil
}
