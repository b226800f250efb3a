package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
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
	holds         map[teamHold]orders.OrderID
	slots         map[slotSite]appointment.CachedSlots
	deleted       func(healthlab.TeamID, healthlab.UserID) bool // users

	// When each order may be claimed: for its laboratory, for its appointments, and for
	// messages to its patient.
	labDue, visitsDue, notificationsDue work.Due[orders.OrderID]

	sealed *personkey.Keys
}

// hidden reports whether the user of an order is deleted.
func (t *orderTable) hidden(r *orders.Record) bool { return t.deleted(r.TeamID, r.UserID) }

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

func newOrderTable() orderTable {
	return orderTable{
		byID:          map[orders.OrderID]*keptOrder{},
		byTerm:        map[teamTerm]map[orders.OrderID]*keptOrder{},
		byTransaction: map[teamTransaction][]orders.OrderID{},
		bySample:      map[string]orders.OrderID{},
		eventIDs:      map[healthlab.TeamID]int64{},
		feeds:         map[string]feed{},
		keys:          map[idempotency.Scope]*orderKey{},
		labTests:      map[catalogue.LabTestID]catalogue.TeamTest{},
		holds:         map[teamHold]orders.OrderID{},
		slots:         map[slotSite]appointment.CachedSlots{},
	}
}

// Orders returns the store as an [orders.Store].
func (s *Store) Orders() orders.Store { return ordersStore{s} }

type ordersStore struct{ s *Store }

func (v ordersStore) Insert(ctx context.Context, r orders.Record, change orders.Change) (orders.Record, error) {
	if r.TeamID.IsZero() || r.ID.IsZero() {
		return orders.Record{}, fmt.Errorf("%w: an order needs a team and an id", healthlab.Invalid)
	}
	if err := v.s.lock(ctx); err != nil {
		return orders.Record{}, err
	}
	defer v.s.mu.Unlock()
	if err := v.s.userOfOrder(&r); err != nil {
		return orders.Record{}, err
	}
	if v.s.orders.byID[r.ID] != nil {
		return orders.Record{}, fmt.Errorf("%w: the order's id is taken", healthlab.Conflict)
	}
	r.Revision = 0
	return v.write(ctx, r, change)
}

// userOfOrder checks that a new order is for a user who is there. A team that has no
// users here keeps them elsewhere. It is called with the lock held.
func (s *Store) userOfOrder(r *orders.Record) error {
	if u := s.users.find(r.TeamID, r.UserID); u == nil && len(s.users.of(r.TeamID)) > 0 || u != nil && !u.user.Live() {
		return fmt.Errorf("%w: the user of the order", healthlab.NotFound)
	}
	return nil
}

func (v ordersStore) InsertAfter(ctx context.Context, parent orders.OrderID, child orders.Record, change orders.PairChange) (orders.Record, orders.Record, error) {
	if child.TeamID.IsZero() || child.ID.IsZero() {
		return orders.Record{}, orders.Record{}, fmt.Errorf("%w: an order needs a team and an id", healthlab.Invalid)
	}
	if err := v.s.lock(ctx); err != nil {
		return orders.Record{}, orders.Record{}, err
	}
	defer v.s.mu.Unlock()
	t := &v.s.orders
	p, err := t.get(ctx, child.TeamID, parent)
	if err != nil {
		return orders.Record{}, orders.Record{}, err
	}
	if t.byID[child.ID] != nil {
		return orders.Record{}, orders.Record{}, fmt.Errorf("%w: the order's id is taken", healthlab.Conflict)
	}
	child.Revision = 0
	child.OrderTransaction = joined(&p, &child)
	wasParent, wasChild, revision := identityOf(&p), identityOf(&child), p.Revision
	p.NextEventID = t.nextEvent(p.TeamID)
	child.NextEventID = p.NextEventID + eventRoom
	now := v.s.clock()
	p.StoreTime, child.StoreTime = now, now
	events, err := change(&p, &child)
	if err != nil {
		return orders.Record{}, orders.Record{}, err
	}
	keptParent, err := t.check(ctx, p, wasParent, revision)
	if err != nil {
		return orders.Record{}, orders.Record{}, err
	}
	if !child.OrderTransaction.ID.IsZero() {
		wasChild.transaction = child.OrderTransaction.ID // it may be one of its own
	}
	keptChild, err := t.check(ctx, child, wasChild, 0)
	if err != nil {
		return orders.Record{}, orders.Record{}, err
	}
	if s := child.SampleID; s != nil && p.SampleID != nil && *s == *p.SampleID {
		return orders.Record{}, orders.Record{}, fmt.Errorf("%w: another order has this sample id", healthlab.Conflict)
	}
	if err := v.s.emit(ctx, events); err != nil {
		return orders.Record{}, orders.Record{}, err
	}
	t.keep(keptParent)
	t.keep(keptChild)
	if p, err = t.load(ctx, keptParent); err != nil {
		return orders.Record{}, orders.Record{}, err
	}
	child, err = t.load(ctx, keptChild)
	return p, child, err
}

func (v ordersStore) Get(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
	if err := v.s.lock(ctx); err != nil {
		return orders.Record{}, err
	}
	defer v.s.mu.Unlock()
	return v.s.orders.get(ctx, team, id)
}

func (t *orderTable) get(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
	kept := t.byID[id]
	if kept == nil || kept.read.TeamID != team {
		return orders.Record{}, fmt.Errorf("%w: order", healthlab.NotFound)
	}
	return t.load(ctx, kept)
}

func (v ordersStore) Update(ctx context.Context, team healthlab.TeamID, id orders.OrderID, change orders.Change) (orders.Record, error) {
	if err := v.s.lock(ctx); err != nil {
		return orders.Record{}, err
	}
	defer v.s.mu.Unlock()
	r, err := v.s.orders.get(ctx, team, id)
	if err != nil {
		return orders.Record{}, err
	}
	return v.write(ctx, r, change)
}

func (v ordersStore) CountByStatus(ctx context.Context, team healthlab.TeamID) (map[orders.LowLevel]int, error) {
	q, err := orders.Query{Team: team}.Normal()
	if err != nil {
		return nil, err
	}
	if err := v.s.lock(ctx); err != nil {
		return nil, err
	}
	defer v.s.mu.Unlock()
	counts := map[orders.LowLevel]int{}
	for _, kept := range v.s.orders.byID {
		if q.MatchClear(&kept.read.Order) && !v.s.orders.hidden(&kept.read) {
			counts[kept.read.LowLevel()]++
		}
	}
	return counts, nil
}

func (v ordersStore) List(ctx context.Context, q orders.Query) (orders.Page, error) {
	q, err := q.Normal()
	if err != nil {
		return orders.Page{}, err
	}
	if err := v.s.lock(ctx); err != nil {
		return orders.Page{}, err
	}
	defer v.s.mu.Unlock()
	found, err := v.s.orders.matching(ctx, &q)
	if err == nil {
		err = v.s.orders.sort(ctx, &q, found)
	}
	if err != nil {
		return orders.Page{}, err
	}
	page := orders.Page{Orders: []orders.Order{}, Total: len(found)}
	first := min((q.Page-1)*q.Size, len(found))
	for _, kept := range found[first:min(first+q.Size, len(found))] {
		r, err := v.s.orders.load(ctx, kept)
		if err != nil {
			return orders.Page{}, err
		}
		page.Orders = append(page.Orders, r.Order)
	}
	return page, nil
}

// matching returns the orders that a query asks for, in no order.
func (t *orderTable) matching(ctx context.Context, q *orders.Query) ([]*keptOrder, error) {
	all, err := t.sealed.Tokens(ctx, q.Team, q.Terms())
	if err != nil {
		return nil, err
	}
	search, err := tokenLists(ctx, t.sealed, q.Team, q.SearchTerms())
	if err != nil {
		return nil, err
	}
	among := t.byID
	for _, token := range all {
		if with := t.byTerm[teamTerm{q.Team, token}]; len(with) < len(among) {
			among = with
		}
	}
	var found []*keptOrder
	for _, kept := range among {
		if q.MatchClear(&kept.read.Order) && !t.hidden(&kept.read) && hasTokens(kept.terms, all) &&
			(len(search) == 0 || q.MatchID(&kept.read.Order) || hasAnyTokens(kept.terms, search)) {
			found = append(found, kept)
		}
	}
	return found, nil
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

// sort orders a list. Names are decrypted for it.
func (t *orderTable) sort(ctx context.Context, q *orders.Query, found []*keptOrder) error {
	if err := q.CheckSorted(len(found)); err != nil {
		return err
	}
	by := make(map[*keptOrder]*orders.Order, len(found))
	for _, kept := range found {
		by[kept] = &kept.read.Order
		if q.Sort == orders.SortPatientName {
			r, err := t.decode(ctx, kept)
			if err != nil {
				return err
			}
			by[kept] = &r.Order
		}
	}
	slices.SortFunc(found, func(a, b *keptOrder) int {
		if q.Less(by[a], by[b]) {
			return -1
		}
		return 1
	})
	return nil
}

func (v ordersStore) OfUser(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]orders.OrderID, error) {
	if err := v.s.lock(ctx); err != nil {
		return nil, err
	}
	defer v.s.mu.Unlock()
	ids := []orders.OrderID{}
	for id, kept := range v.s.orders.byID {
		if kept.read.TeamID == team && kept.read.UserID == user {
			ids = append(ids, id)
		}
	}
	slices.SortFunc(ids, func(a, b orders.OrderID) int { return bytes.Compare(a.UUID[:], b.UUID[:]) })
	return ids, nil
}

func (v ordersStore) FindSample(ctx context.Context, team healthlab.TeamID, sampleID string) (orders.Record, error) {
	if err := v.s.lock(ctx); err != nil {
		return orders.Record{}, err
	}
	defer v.s.mu.Unlock()
	if err := healthlab.CheckText(sampleID); err != nil {
		return orders.Record{}, err
	}
	id, ok := v.s.orders.bySample[sampleID]
	if !ok {
		return orders.Record{}, fmt.Errorf("%w: sample", healthlab.NotFound)
	}
	return v.s.orders.get(ctx, team, id)
}

func (v ordersStore) Claim(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
	if err := v.s.lock(ctx); err != nil {
		return nil, err
	}
	defer v.s.mu.Unlock()
	at := v.s.clock()
	due := v.s.orders.due(n, now, &v.s.orders.labDue, func(r *orders.Record) time.Time { return unleased(r.Lab.Due, r.Lab.Lease, at) })
	out := make([]orders.Record, 0, len(due))
	for _, kept := range due {
		loaded, err := v.s.orders.moved(ctx, kept, func(r *orders.Record) {
			r.Lab.Lease = at.Add(lease)
			r.Lab.Attempts++
			r.Lab.Started = true
		})
		if err != nil {
			return nil, err
		}
		out = append(out, loaded)
	}
	return out, nil
}

func (v ordersStore) ClaimNotifications(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
	if err := v.s.lock(ctx); err != nil {
		return nil, err
	}
	defer v.s.mu.Unlock()
	at := v.s.clock()
	due := v.s.orders.due(n, now, &v.s.orders.notificationsDue, func(r *orders.Record) time.Time {
		if v.s.orders.hidden(r) {
			return time.Time{}
		}
		return unleased(r.Notifications.Due, r.Notifications.Lease, at)
	})
	out := make([]orders.Record, 0, len(due))
	for _, kept := range due {
		loaded, err := v.s.orders.moved(ctx, kept, func(r *orders.Record) { r.Notifications.Lease = at.Add(lease) })
		if err != nil {
			return nil, err
		}
		out = append(out, loaded)
	}
	return out, nil
}

// unleased returns due, or the zero time if the lease has not ended at the instant at.
func unleased(due, lease, at time.Time) time.Time {
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

// moved keeps an order whose times alone change.
func (t *orderTable) moved(ctx context.Context, kept *keptOrder, move func(*orders.Record)) (orders.Record, error) {
	r, err := t.decode(ctx, kept)
	if err != nil {
		return orders.Record{}, err
	}
	move(&r)
	data, err := sealDocument(ctx, t.sealed, refOfOrder(&r), personkey.RowOrder(r.ID), r)
	if err != nil {
		return orders.Record{}, err
	}
	kept.read, kept.data = clearOrder(&r), data
	t.schedule(r.ID, &kept.read)
	return t.load(ctx, kept)
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

func refOfOrder(r *orders.Record) personkey.Ref { return personkey.Ref{Team: r.TeamID, User: r.UserID} }

// decode returns a copy of what is kept.
func (t *orderTable) decode(ctx context.Context, kept *keptOrder) (r orders.Record, err error) {
	if err := openDocument(ctx, t.sealed, refOfOrder(&kept.read), personkey.RowOrder(kept.read.ID), kept.data, &r); err != nil {
		return orders.Record{}, fmt.Errorf("decode order: %w", err)
	}
	return r, nil
}

func (v ordersStore) ClaimFeed(ctx context.Context, lab string, lease time.Duration) (string, time.Time, error) {
	if err := v.s.lock(ctx); err != nil {
		return "", time.Time{}, err
	}
	defer v.s.mu.Unlock()
	f, now := v.s.orders.feeds[lab], v.s.clock()
	if f.until.After(now) {
		return "", time.Time{}, nil
	}
	f.until = now.Add(lease)
	v.s.orders.feeds[lab] = f
	return f.cursor, f.until, nil
}

func (v ordersStore) MoveFeed(ctx context.Context, lab string, until time.Time, cursor string) error {
	if err := v.s.lock(ctx); err != nil {
		return err
	}
	defer v.s.mu.Unlock()
	f, ok := v.s.orders.feeds[lab]
	if !ok || !f.until.Equal(instant(until)) {
		return fmt.Errorf("%w: somebody else has the feed", healthlab.Precondition)
	}
	v.s.orders.feeds[lab] = feed{cursor: cursor}
	return nil
}

// load returns a copy of what is kept, with what is drawn when an order is read.
func (t *orderTable) load(ctx context.Context, kept *keptOrder) (orders.Record, error) {
	r, err := t.decode(ctx, kept)
	if err != nil {
		return orders.Record{}, err
	}
	r.LabTest.Fill()
	r.UserDeleted = t.hidden(&r)
	r.OrderTransaction = t.transaction(&r)
	return r, nil
}

// transaction returns the transaction of an order, without orders of other users that are
// deleted.
func (t *orderTable) transaction(r *orders.Record) orders.OrderTransaction {
	id := r.OrderTransaction.ID
	members := []orders.TransactionMember{}
	for _, member := range t.byTransaction[teamTransaction{r.TeamID, id}] {
		kept := t.byID[member]
		if member != r.ID && t.hidden(&kept.read) {
			continue
		}
		m := kept.read.Member()
		m.ParentID = kept.parent
		members = append(members, m)
	}
	return orders.NewTransaction(id, members)
}

// eventRoom is how many ids of events a change may use.
const eventRoom = 100

// nextEvent is the first id of an event that no order of the team has.
func (t *orderTable) nextEvent(team healthlab.TeamID) int64 { return max(t.eventIDs[team], 1) }

// identity is what no change may change.
type identity struct {
	team        healthlab.TeamID
	id          orders.OrderID
	transaction orders.TransactionID
}

func identityOf(r *orders.Record) identity { return identity{r.TeamID, r.ID, r.OrderTransaction.ID} }

// write runs change on r, checks the outcome, and keeps it with its events. It is
// called with the lock held; an error means that nothing was written.
func (v ordersStore) write(ctx context.Context, r orders.Record, change orders.Change) (orders.Record, error) {
	t := &v.s.orders
	was, revision := identityOf(&r), r.Revision
	r.NextEventID, r.StoreTime = t.nextEvent(r.TeamID), v.s.clock()
	events, err := change(&r)
	if err != nil {
		return orders.Record{}, err
	}
	kept, err := t.check(ctx, r, was, revision)
	if err != nil {
		return orders.Record{}, err
	}
	if err := v.s.emit(ctx, events); err != nil {
		return orders.Record{}, err
	}
	t.keep(kept)
	return t.load(ctx, kept)
}

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
		if other, taken := t.holds[teamHold{r.TeamID, name}]; taken && other != r.ID {
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
	if kept.terms, err = t.sealed.Tokens(ctx, r.TeamID, orders.SearchTerms(&r.Order)); err != nil {
		return nil, err
	}
	kept.data, err = t.sealed.Seal(ctx, refOfOrder(&r), personkey.RowOrder(r.ID), doc)
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
		t.release(&before.read)
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
		t.holds[teamHold{r.TeamID, name}] = r.ID
	}
	if r.SampleID != nil {
		t.bySample[*r.SampleID] = r.ID
	}
	t.byID[r.ID] = kept
	t.schedule(r.ID, r)
	t.eventIDs[r.TeamID] = max(t.eventIDs[r.TeamID], r.LastEvent.ID+1)
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

// spoilt reports whether any text of a document that was encoded as JSON has the
// character NUL, or was not UTF-8: the encoder writes either of them as an escape.
func spoilt(doc []byte) bool {
	for i := 0; i < len(doc); i++ {
		if doc[i] != '\\' {
			continue
		}
		if rest := doc[i:]; bytes.HasPrefix(rest, []byte(`\u0000`)) || bytes.HasPrefix(rest, []byte(`\ufffd`)) {
			return true
		}
		i++ // the escaped character is no escape itself
	}
	return false
}
