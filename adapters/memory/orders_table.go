package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/personkey"
)

// orderTable keeps the orders of all teams.
type orderTable struct {
	byID          map[orders.OrderID]*keptOrder
	byTerm        map[teamTerm]map[orders.OrderID]*keptOrder
	byTransaction map[teamTransaction][]orders.OrderID
	bySample      map[string]orders.OrderID
	eventIDs      map[healthlab.TeamID]int64 // the next one of each team
	feeds         map[string]feed
	keys          map[idempotency.Scope]*orderKey
	labTests      map[catalogue.LabTestID]catalogue.TeamTest
	reservations  map[teamReservation]orders.OrderID
	slots         map[slotSite]appointment.CachedSlots
	users         *userTable

	// When each order may be claimed: for its laboratory, for its appointments, and for
	// messages to its patient.
	labDue, visitsDue, notificationsDue work.Due[orders.OrderID]

	personKeys *personkey.Keys
}

// keptOrder is an order as it was written, encrypted, and what indexes, claims and lists
// need of it, for reading only.
type keptOrder struct {
	data   []byte
	read   orders.Record // without what is about the person
	terms  []int64       // tokens of orders.SearchTerms
	parent *orders.OrderID
}

// clearOrder returns the part of an order that is kept in clear: ids, statuses and instants.
func clearOrder(r *orders.Record) orders.Record {
	step := func(e orders.OrderEvent) orders.OrderEvent {
		return orders.OrderEvent{ID: e.ID, CreatedAt: e.CreatedAt, Status: e.Status}
	}
	out := orders.Record{
		Order: orders.Order{
			ID: r.ID, TeamID: r.TeamID, UserID: r.UserID, Details: orders.Details{Type: r.Details.Type}, SampleID: r.SampleID,
			CreatedAt: r.CreatedAt, UpdatedAt: r.UpdatedAt, Status: r.Status, LastEvent: step(r.LastEvent), ActivateBy: r.ActivateBy,
			Interpretation: r.Interpretation, Origin: r.Origin, OrderTransaction: r.OrderTransaction,
		},
		Revision: r.Revision, Lab: r.Lab, VisitWork: r.VisitWork, Notifications: orders.Notifications{Due: r.Notifications.Due, Lease: r.Notifications.Lease},
	}
	for _, e := range r.Events {
		out.Events = append(out.Events, step(e))
	}
	for _, v := range r.Visits {
		c := orders.Visit{Keys: v.Keys}
		c.Type, c.Status, c.Provider = v.Type, v.Status, v.Provider
		if v.Move != nil {
			c.Move = &orders.VisitMove{Key: v.Move.Key}
		}
		out.Visits = append(out.Visits, c)
	}
	return out
}

// teamTerm is a token of orders.SearchTerms that orders of a team have.
type teamTerm struct {
	team  healthlab.TeamID
	token int64
}

type teamTransaction struct {
	team healthlab.TeamID
	id   orders.TransactionID
}

type feed struct {
	cursor string
	until  time.Time
}

// teamReservation is a name that one order of a team has.
type teamReservation struct {
	team healthlab.TeamID
	name string
}

// slotSite is a center whose free slots are kept.
type slotSite struct{ lab, site string }

// orderKey is what is kept of an idempotency key.
type orderKey struct {
	order       orders.OrderID
	fingerprint string
	until       time.Time        // of the latest claim; zero if it was given back
	answer      []byte           // encrypted
	user        healthlab.UserID // whom the answer is about; zero for the order's user, or none
	keep        time.Time        // until when the answer is kept
}

func newOrderTable(keys *personkey.Keys, users *userTable) *orderTable {
	return &orderTable{
		personKeys: keys, users: users,
		byID:          map[orders.OrderID]*keptOrder{},
		byTerm:        map[teamTerm]map[orders.OrderID]*keptOrder{},
		byTransaction: map[teamTransaction][]orders.OrderID{},
		bySample:      map[string]orders.OrderID{},
		eventIDs:      map[healthlab.TeamID]int64{},
		feeds:         map[string]feed{},
		keys:          map[idempotency.Scope]*orderKey{},
		labTests:      map[catalogue.LabTestID]catalogue.TeamTest{},
		reservations:  map[teamReservation]orders.OrderID{},
		slots:         map[slotSite]appointment.CachedSlots{},
	}
}

// ofDeletedUser reports whether the user of an order is deleted.
func (t *orderTable) ofDeletedUser(r *orders.Record) bool {
	return t.users.isDeleted(r.TeamID, r.UserID)
}

// checkUser checks that a new order is for a user who is there. A team that has no
// users here keeps them elsewhere. It is called with the lock held.
func (t *orderTable) checkUser(r *orders.Record) error {
	if u := t.users.find(r.TeamID, r.UserID); u == nil && len(t.users.of(r.TeamID)) > 0 || u != nil && !u.user.Live() {
		return fmt.Errorf("%w: the user of the order", healthlab.NotFound)
	}
	return nil
}

func (t *orderTable) get(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
	kept := t.byID[id]
	if kept == nil || kept.read.TeamID != team {
		return orders.Record{}, fmt.Errorf("%w: order", healthlab.NotFound)
	}
	return t.load(ctx, kept)
}

// load returns a copy of what is kept, with what is drawn when an order is read.
func (t *orderTable) load(ctx context.Context, kept *keptOrder) (orders.Record, error) {
	r, err := t.decode(ctx, kept)
	if err != nil {
		return orders.Record{}, err
	}
	r.LabTest.Fill()
	r.UserDeleted = t.ofDeletedUser(&r)
	r.OrderTransaction = t.transaction(&r)
	return r, nil
}

// decode returns a copy of what is kept.
func (t *orderTable) decode(ctx context.Context, kept *keptOrder) (r orders.Record, err error) {
	if err := openDocument(ctx, t.personKeys, refOfOrder(&kept.read), personkey.RowOrder(kept.read.ID), kept.data, &r); err != nil {
		return orders.Record{}, fmt.Errorf("decode order: %w", err)
	}
	return r, nil
}

func refOfOrder(r *orders.Record) personkey.Ref { return personkey.Ref{Team: r.TeamID, User: r.UserID} }

// transaction returns the transaction of an order, without orders of other users that are
// deleted.
func (t *orderTable) transaction(r *orders.Record) orders.OrderTransaction {
	id := r.OrderTransaction.ID
	members := []orders.TransactionMember{}
	for _, member := range t.byTransaction[teamTransaction{r.TeamID, id}] {
		kept := t.byID[member]
		if member != r.ID && t.ofDeletedUser(&kept.read) {
			continue
		}
		m := kept.read.Member()
		m.ParentID = kept.parent
		members = append(members, m)
	}
	return orders.NewTransaction(id, members)
}

// nextEventID is the first id of an event that no order of the team has.
func (t *orderTable) nextEventID(team healthlab.TeamID) int64 { return max(t.eventIDs[team], 1) }

// eventRoom is how many ids of events a change may use.
const eventRoom = 100

// identity is what no change may change.
type identity struct {
	team        healthlab.TeamID
	id          orders.OrderID
	transaction orders.TransactionID
}

func identityOf(r *orders.Record) identity { return identity{r.TeamID, r.ID, r.OrderTransaction.ID} }

// check returns a changed order as it is to be kept.
func (t *orderTable) check(ctx context.Context, r orders.Record, was identity, revision int64) (*keptOrder, error) {
	if identityOf(&r) != was {
		return nil, fmt.Errorf("%w: an order keeps its id, its team and its transaction", healthlab.Invalid)
	}
	if r.SampleID != nil {
		if other, taken := t.bySample[*r.SampleID]; taken && other != r.ID {
			return nil, fmt.Errorf("%w: another order has this sample id", healthlab.Conflict)
		}
	}
	for _, name := range r.Reservations() {
		if other, taken := t.reservations[teamReservation{r.TeamID, name}]; taken && other != r.ID {
			return nil, &orders.ReservedError{Name: name}
		}
	}
	r.Revision = revision + 1
	r.Lab.Due, r.Lab.Lease = instant(r.Lab.Due), instant(r.Lab.Lease)
	r.Notifications.Due, r.Notifications.Lease = instant(r.Notifications.Due), instant(r.Notifications.Lease)
	r.VisitWork.Due, r.VisitWork.Lease = instant(r.VisitWork.Due), instant(r.VisitWork.Lease)
	kept := &keptOrder{parent: r.Parent()}
	doc, err := document(r)
	if err != nil {
		return nil, err
	}
	var as orders.Record // as it will be read
	if err := json.Unmarshal(doc, &as); err != nil {
		return nil, fmt.Errorf("decode order: %w", err)
	}
	kept.read = clearOrder(&as)
	if kept.terms, err = t.personKeys.Tokens(ctx, r.TeamID, orders.SearchTerms(&r.Order)); err != nil {
		return nil, err
	}
	kept.data, err = t.personKeys.Seal(ctx, refOfOrder(&r), personkey.RowOrder(r.ID), doc)
	return kept, err
}

// keep puts an order into the indexes. It cannot fail.
func (t *orderTable) keep(kept *keptOrder) {
	r := &kept.read
	if before := t.byID[r.ID]; before == nil {
		id := teamTransaction{r.TeamID, r.OrderTransaction.ID}
		t.byTransaction[id] = append(t.byTransaction[id], r.ID)
	} else {
		if before.read.SampleID != nil {
			delete(t.bySample, *before.read.SampleID)
		}
		t.releaseReservations(&before.read)
		t.dropTerms(before)
	}
	for _, token := range kept.terms {
		term := teamTerm{r.TeamID, token}
		if t.byTerm[term] == nil {
			t.byTerm[term] = map[orders.OrderID]*keptOrder{}
		}
		t.byTerm[term][r.ID] = kept
	}
	for _, name := range r.Reservations() {
		t.reservations[teamReservation{r.TeamID, name}] = r.ID
	}
	if r.SampleID != nil {
		t.bySample[*r.SampleID] = r.ID
	}
	t.byID[r.ID] = kept
	t.schedule(r.ID, r)
	t.eventIDs[r.TeamID] = max(t.eventIDs[r.TeamID], r.LastEvent.ID+1)
}

// releaseReservations gives back what an order reserves.
func (t *orderTable) releaseReservations(r *orders.Record) {
	for _, name := range r.Reservations() {
		delete(t.reservations, teamReservation{r.TeamID, name})
	}
}

// dropTerms removes an order from the index of terms.
func (t *orderTable) dropTerms(kept *keptOrder) {
	for _, token := range kept.terms {
		term := teamTerm{kept.read.TeamID, token}
		if delete(t.byTerm[term], kept.read.ID); len(t.byTerm[term]) == 0 {
			delete(t.byTerm, term)
		}
	}
}

// schedule notes when an order may be claimed. A nil record takes the order off the schedule.
func (t *orderTable) schedule(id orders.OrderID, r *orders.Record) {
	if r == nil {
		r = &orders.Record{}
	}
	t.labDue.Set(id, r.Lab.Due)
	t.visitsDue.Set(id, r.VisitWork.Due)
	t.notificationsDue.Set(id, r.Notifications.Due)
}

// dueUnlessLeased returns due, or the zero time if the lease has not ended at the instant at.
func dueUnlessLeased(due, lease, at time.Time) time.Time {
	if lease.After(at) {
		return time.Time{}
	}
	return due
}

// due returns up to n of the scheduled orders whose time has come, the longest due first.
// Orders without a time are left out.
func (t *orderTable) due(n int, now time.Time, scheduled *work.Due[orders.OrderID], when func(*orders.Record) time.Time) []*keptOrder {
	var due []*keptOrder
	for _, id := range scheduled.Until(now) {
		if kept := t.byID[id]; !when(&kept.read).IsZero() {
			due = append(due, kept)
		}
	}
	slices.SortFunc(due, func(a, b *keptOrder) int {
		return cmp.Or(when(&a.read).Compare(when(&b.read)), bytes.Compare(a.read.ID.UUID[:], b.read.ID.UUID[:]))
	})
	return due[:max(min(n, len(due)), 0)]
}

// claim moves the times of orders that are due, and returns those whose persons are not erased.
func (t *orderTable) claim(ctx context.Context, due []*keptOrder, move func(*orders.Record)) ([]orders.Record, error) {
	out := make([]orders.Record, 0, len(due))
	for _, kept := range due {
		loaded, err := t.updateTimes(ctx, kept, move)
		if errors.Is(err, personkey.ErrErased) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, loaded)
	}
	return out, nil
}

// updateTimes keeps an order whose times alone change.
func (t *orderTable) updateTimes(ctx context.Context, kept *keptOrder, move func(*orders.Record)) (orders.Record, error) {
	r, err := t.decode(ctx, kept)
	if errors.Is(err, personkey.ErrErased) {
		move(&kept.read)
		t.schedule(kept.read.ID, &kept.read)
	}
	if err != nil {
		return orders.Record{}, err
	}
	move(&r)
	data, err := sealDocument(ctx, t.personKeys, refOfOrder(&r), personkey.RowOrder(r.ID), r)
	if err != nil {
		return orders.Record{}, err
	}
	kept.read, kept.data = clearOrder(&r), data
	t.schedule(r.ID, &kept.read)
	return t.load(ctx, kept)
}

// tokenLists returns the tokens of lists of terms.
func tokenLists(ctx context.Context, keys *personkey.Keys, team healthlab.TeamID, lists [][]string) ([][]int64, error) {
	var out [][]int64
	for _, terms := range lists {
		tokens, err := keys.Tokens(ctx, team, terms)
		if err != nil {
			return nil, err
		}
		out = append(out, tokens)
	}
	return out, nil
}

// hasTokens reports whether a row has all of the wanted tokens.
func hasTokens(has, wanted []int64) bool {
	return !slices.ContainsFunc(wanted, func(w int64) bool { return !slices.Contains(has, w) })
}

// hasAnyTokens reports whether a row has all tokens of one of the lists.
func hasAnyTokens(has []int64, lists [][]int64) bool {
	return slices.ContainsFunc(lists, func(l []int64) bool { return hasTokens(has, l) })
}

// transactionWith is the transaction of an order with another one that is about to come in.
func transactionWith(parent, child *orders.Record) orders.OrderTransaction {
	return orders.NewTransaction(parent.OrderTransaction.ID, append(slices.Clone(parent.OrderTransaction.Orders),
		orders.TransactionMember{ID: child.ID, Origin: child.Origin, ParentID: &parent.ID, CreatedAt: child.CreatedAt, UpdatedAt: child.CreatedAt}))
}

// dropAnswers takes away the answers about a user. It is called with the lock held.
func (t *orderTable) dropAnswers(team healthlab.TeamID, user healthlab.UserID) {
	for scope, k := range t.keys {
		order := t.byID[k.order]
		if scope.Team == team && k.answer != nil && (k.user == user || order != nil && order.read.UserID == user) {
			k.answer = nil
		}
	}
}

// erase removes the orders of a user, and what the requests that placed them were
// answered. It is called with the lock held.
func (t *orderTable) erase(team healthlab.TeamID, user healthlab.UserID) {
	gone := map[orders.OrderID]bool{}
	for id, kept := range t.byID {
		if kept.read.TeamID != team || kept.read.UserID != user {
			continue
		}
		gone[id] = true
		delete(t.byID, id)
		if s := kept.read.SampleID; s != nil {
			delete(t.bySample, *s)
		}
		t.releaseReservations(&kept.read)
		t.dropTerms(kept)
		t.schedule(id, nil)
		name := teamTransaction{team, kept.read.OrderTransaction.ID}
		t.byTransaction[name] = slices.DeleteFunc(t.byTransaction[name], func(member orders.OrderID) bool { return member == id })
		if len(t.byTransaction[name]) == 0 {
			delete(t.byTransaction, name)
		}
	}
	for scope, k := range t.keys {
		if scope.Team == team && (gone[k.order] || k.user == user) {
			delete(t.keys, scope)
		}
	}
}
