package orders

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/store"
)

// OfUser implements [Store].
func (v orderRows) OfUser(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]OrderID, error) {
	rows, err := v.s.Read(ctx, store.Query{Key: orderTable.Key(store.Key{User: user}), By: store.ByUser, Bare: true})
	if err != nil {
		return nil, err
	}
	ids := []OrderID{}
	for _, r := range rows[0] {
		if r.Team == team {
			ids = append(ids, idOfOrder(r.ID))
		}
	}
	return ids, nil
}

func idOfOrder(id string) OrderID { return OrderID{UUID: store.ParseUUID(id)} }

// FindSample implements [Store].
func (v orderRows) FindSample(ctx context.Context, team healthlab.TeamID, sampleID string) (Record, error) {
	if err := healthlab.CheckText(sampleID); err != nil {
		return Record{}, err
	}
	found, err := orderSamples.Look(ctx, v.s, withSample(sampleID, store.Plain))
	if err != nil {
		return Record{}, err
	}
	if len(found) == 0 || found[0].Value.Team != team {
		return Record{}, fmt.Errorf("%w: no order of the team has this sample id", healthlab.NotFound)
	}
	return v.Get(ctx, team, found[0].Value.Order)
}

// CountByStatus implements [Store].
func (v orderRows) CountByStatus(ctx context.Context, team healthlab.TeamID) (map[LowLevel]int, error) {
	q, err := Query{Team: team}.Normal()
	if err != nil {
		return nil, err
	}
	counts := map[LowLevel]int{}
	ask := q.scan()
	ask.Bare = true
	return counts, v.each(ctx, &q, ask, func(o *Order) { counts[o.LowLevel()]++ })
}

// List implements [Store]. A list sorted by creation or last status that is filtered only by ids, times of
// creation, statuses and methods decrypts the orders of its page; any other list decrypts all orders that may
// match.
func (v orderRows) List(ctx context.Context, q Query) (Page, error) {
	q, err := q.Normal()
	if err != nil {
		return Page{}, err
	}
	ask := q.scan()
	ask.Bare = q.isBare()
	var found []listedOrder
	err = v.each(ctx, &q, ask, func(o *Order) {
		l := listedOrder{orderPlace: orderPlace{q.Team, o.ID, o.UserID, o.OrderTransaction.ID}, at: o.CreatedAt, status: o.LastEvent.Status}
		if q.Sort == SortPatientName {
			l.patient = o.PatientDetails
		}
		found = append(found, l)
	})
	if err == nil {
		err = q.checkSorted(len(found))
	}
	if err != nil {
		return Page{}, err
	}
	slices.SortFunc(found, func(a, b listedOrder) int {
		if q.Less(a.order(), b.order()) {
			return -1
		}
		return 1
	})
	out := Page{Orders: []Order{}, Total: len(found)}
	first := min((q.Page-1)*q.Size, len(found))
	var places []orderPlace
	for _, l := range found[first:min(first+q.Size, len(found))] {
		places = append(places, l.orderPlace)
	}
	page, err := loadOrdersOf(v.reader(ctx), places)
	if err != nil {
		return Page{}, err
	}
	for _, r := range page {
		out.Orders = append(out.Orders, r.Order)
	}
	return out, nil
}

// listedOrder has the fields of an order by which lists are sorted.
type listedOrder struct {
	orderPlace
	at      healthlab.Time
	status  Status
	patient *people.PatientDetails
}

func (l *listedOrder) order() *Order {
	return &Order{ID: l.id, CreatedAt: l.at, LastEvent: OrderEvent{Status: l.status}, PatientDetails: l.patient}
}

func (q *Query) isBare() bool {
	return q.Sort != SortPatientName && q.Search == "" && q.PatientName == "" && q.Recipient == "" &&
		q.UpdatedFrom.IsZero() && q.UpdatedBefore.IsZero() && q.EventFrom.IsZero() && q.EventBefore.IsZero() &&
		len(q.Activations) == 0 && q.Critical == nil && q.Interpretation == ""
}

// scan returns the store query for the orders that may match.
func (q *Query) scan() store.Query {
	ask := store.Query{Key: orderTable.Key(store.Key{Team: q.Team}), By: store.ByFirst}
	switch {
	case !q.Transaction.IsZero():
		ask.By, ask.From = store.BySecond, store.UUID(q.Transaction.UUID)
		ask.To = store.End(ask.From)
	case !q.User.IsZero():
		ask.By, ask.User = store.ByUser, q.User
	default: // the latest first
		if !q.CreatedBefore.IsZero() {
			ask.From = createdIndex(q.CreatedBefore)
		}
		if !q.CreatedFrom.IsZero() {
			ask.To = store.End(createdIndex(q.CreatedFrom))
		}
	}
	return ask
}

// Number of orders that are read at once, with and without their documents.
const (
	scanPage     = 200
	bareScanPage = 5_000
)

// each calls f with the orders that match a query, in no order. ask is the query's scan; if it is Bare, f gets
// orders with only ids, the time of creation, the last status and the method.
func (v orderRows) each(ctx context.Context, q *Query, ask store.Query, f func(*Order)) error {
	page := scanPage
	if ask.Bare {
		page = bareScanPage
	}
	ctx = store.Ahead(ctx, func() []store.Query {
		return []store.Query{store.DeletedUsers(q.Team).WithoutDocs(), ask.After("", page)}
	})
	deleted, err := store.DeletedIDs(ctx, v.s, q.Team)
	if err != nil {
		return err
	}
	for last := ""; ; {
		got, err := v.s.Read(ctx, ask.After(last, page))
		if err != nil {
			return err
		}
		list, err := ordersOf(ask, got[0])
		if err != nil {
			return err
		}
		for _, o := range list {
			if !deleted[o.UserID] && q.Match(o) {
				f(o)
			}
		}
		if len(got[0]) < page {
			return nil
		}
		last = position(ask, &got[0][len(got[0])-1])
	}
}

// position returns the index value from which a query continues after the row r. In Index[0] the value is greater than
// that of r with any status, because the order may change its status between two reads.
func position(ask store.Query, r *store.Row) string {
	switch ask.By {
	case store.ByFirst:
		return r.Index[0][:placeLength] + "\xff"
	case store.BySecond:
		return r.Index[1]
	default:
		return r.ID
	}
}

// ordersOf returns the orders of rows. If ask is Bare, the rows have no documents, and the orders have only ids, the
// creation time, the last status and the method.
func ordersOf(ask store.Query, rows []store.Row) ([]*Order, error) {
	out := make([]*Order, len(rows))
	if !ask.Bare {
		list, err := orderTable.Decoded(rows)
		for i, e := range list {
			out[i] = &e.Value.Order
		}
		return out, err
	}
	for i, r := range rows {
		status, method, _ := strings.Cut(r.Index[0][placeLength:], statusEnd)
		out[i] = &Order{
			ID: idOfOrder(r.ID), TeamID: r.Team, UserID: r.User, CreatedAt: healthlab.At(createdAt(r.Index[0])),
			LastEvent: OrderEvent{Status: Status(status)}, Details: Details{Type: catalogue.CollectionMethod(method)},
			OrderTransaction: OrderTransaction{ID: transactionOf(&r)},
		}
	}
	return out, nil
}
