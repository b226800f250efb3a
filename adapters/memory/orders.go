package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
)

// ordersTable keeps orders. It shares the lock and the outbox of the store that it is
// a part of.
type ordersTable struct {
	mu   *sync.Mutex
	emit func([]healthlab.Event) error

	byID          map[orders.OrderID]*keptOrder
	byTransaction map[teamTransaction][]orders.OrderID
	bySample      map[string]orders.OrderID
	eventIDs      map[healthlab.TeamID]int64 // the next one of each team
	feeds         map[string]feed
}

// keptOrder is an order as it was written, in bytes that nobody can edit, and decoded
// for reading only.
type keptOrder struct {
	data   []byte
	read   orders.Record
	parent *orders.OrderID
}

type teamTransaction struct {
	team healthlab.TeamID
	id   orders.TransactionID
}

type feed struct {
	cursor string
	until  time.Time
}

func newOrders(mu *sync.Mutex, emit func([]healthlab.Event) error) *ordersTable {
	return &ordersTable{
		mu: mu, emit: emit,
		byID:          map[orders.OrderID]*keptOrder{},
		byTransaction: map[teamTransaction][]orders.OrderID{},
		bySample:      map[string]orders.OrderID{},
		eventIDs:      map[healthlab.TeamID]int64{},
		feeds:         map[string]feed{},
	}
}

func (t *ordersTable) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	t.mu.Lock()
	return nil
}

// Insert implements [orders.Store].
func (t *ordersTable) Insert(ctx context.Context, r orders.Record, change orders.Change) (orders.Record, error) {
	if r.TeamID.IsZero() || r.ID.IsZero() {
		return orders.Record{}, fmt.Errorf("%w: an order needs a team and an id", healthlab.Invalid)
	}
	if err := t.lock(ctx); err != nil {
		return orders.Record{}, err
	}
	defer t.mu.Unlock()
	if t.byID[r.ID] != nil {
		return orders.Record{}, fmt.Errorf("%w: the order's id is taken", healthlab.Conflict)
	}
	r.Revision = 0
	return t.write(r, change)
}

// Get implements [orders.Store].
func (t *ordersTable) Get(ctx context.Context, team healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
	if err := t.lock(ctx); err != nil {
		return orders.Record{}, err
	}
	defer t.mu.Unlock()
	return t.get(team, id)
}

func (t *ordersTable) get(team healthlab.TeamID, id orders.OrderID) (orders.Record, error) {
	kept := t.byID[id]
	if kept == nil || kept.read.TeamID != team {
		return orders.Record{}, fmt.Errorf("%w: order", healthlab.NotFound)
	}
	return t.load(kept)
}

// Update implements [orders.Store].
func (t *ordersTable) Update(ctx context.Context, team healthlab.TeamID, id orders.OrderID, change orders.Change) (orders.Record, error) {
	if err := t.lock(ctx); err != nil {
		return orders.Record{}, err
	}
	defer t.mu.Unlock()
	r, err := t.get(team, id)
	if err != nil {
		return orders.Record{}, err
	}
	return t.write(r, change)
}

// List implements [orders.Store].
func (t *ordersTable) List(ctx context.Context, q orders.Query) (orders.Page, error) {
	q, err := q.Normal()
	if err != nil {
		return orders.Page{}, err
	}
	if err := t.lock(ctx); err != nil {
		return orders.Page{}, err
	}
	defer t.mu.Unlock()
	var found []*keptOrder
	for _, kept := range t.byID {
		if q.Match(&kept.read.Order) {
			found = append(found, kept)
		}
	}
	slices.SortFunc(found, func(a, b *keptOrder) int {
		if q.Less(&a.read.Order, &b.read.Order) {
			return -1
		}
		return 1
	})
	page := orders.Page{Orders: []orders.Order{}, Total: len(found)}
	first := min((q.Page-1)*q.Size, len(found))
	for _, kept := range found[first:min(first+q.Size, len(found))] {
		r, err := t.load(kept)
		if err != nil {
			return orders.Page{}, err
		}
		page.Orders = append(page.Orders, r.Order)
	}
	return page, nil
}

// FindSample implements [orders.Store].
func (t *ordersTable) FindSample(ctx context.Context, team healthlab.TeamID, sampleID string) (orders.Record, error) {
	if err := t.lock(ctx); err != nil {
		return orders.Record{}, err
	}
	defer t.mu.Unlock()
	id, ok := t.bySample[sampleID]
	if !ok {
		return orders.Record{}, fmt.Errorf("%w: sample", healthlab.NotFound)
	}
	return t.get(team, id)
}

// Claim implements [orders.Store].
func (t *ordersTable) Claim(ctx context.Context, n int, now, until time.Time) ([]orders.Record, error) {
	if err := t.lock(ctx); err != nil {
		return nil, err
	}
	defer t.mu.Unlock()
	var due []*keptOrder
	for _, kept := range t.byID {
		if at := kept.read.Lab.Due; !at.IsZero() && !at.After(now) {
			due = append(due, kept)
		}
	}
	slices.SortFunc(due, func(a, b *keptOrder) int {
		return cmp.Or(a.read.Lab.Due.Compare(b.read.Lab.Due), bytes.Compare(a.read.ID.UUID[:], b.read.ID.UUID[:]))
	})
	out := make([]orders.Record, 0, min(n, len(due)))
	for _, kept := range due[:min(n, len(due))] {
		r := kept.read
		r.Lab.Due, r.Lab.Lease = instant(until), instant(until)
		r.Lab.Attempts++
		r.Lab.Started = true
		data, err := json.Marshal(r)
		if err != nil {
			return nil, err
		}
		kept.read, kept.data = r, data
		loaded, err := t.load(kept)
		if err != nil {
			return nil, err
		}
		out = append(out, loaded)
	}
	return out, nil
}

// ClaimFeed implements [orders.Store].
func (t *ordersTable) ClaimFeed(ctx context.Context, lab string, now, until time.Time) (string, bool, error) {
	if err := t.lock(ctx); err != nil {
		return "", false, err
	}
	defer t.mu.Unlock()
	f := t.feeds[lab]
	if f.until.After(now) {
		return "", false, nil
	}
	t.feeds[lab] = feed{f.cursor, instant(until)}
	return f.cursor, true, nil
}

// MoveFeed implements [orders.Store].
func (t *ordersTable) MoveFeed(ctx context.Context, lab string, until time.Time, cursor string) error {
	if err := t.lock(ctx); err != nil {
		return err
	}
	defer t.mu.Unlock()
	f, ok := t.feeds[lab]
	if !ok || !f.until.Equal(instant(until)) {
		return fmt.Errorf("%w: somebody else has the feed", healthlab.Precondition)
	}
	t.feeds[lab] = feed{cursor: cursor}
	return nil
}

// load returns a copy of what is kept, with what is drawn when an order is read.
func (t *ordersTable) load(kept *keptOrder) (orders.Record, error) {
	var r orders.Record
	if err := json.Unmarshal(kept.data, &r); err != nil {
		return orders.Record{}, fmt.Errorf("decode order: %w", err)
	}
	r.OrderTransaction = t.transaction(r.TeamID, r.OrderTransaction.ID)
	return r, nil
}

func (t *ordersTable) transaction(team healthlab.TeamID, id orders.TransactionID) orders.OrderTransaction {
	members := []orders.TransactionMember{}
	for _, member := range t.byTransaction[teamTransaction{team, id}] {
		kept := t.byID[member]
		m := kept.read.Member()
		m.ParentID = kept.parent
		members = append(members, m)
	}
	return orders.NewTransaction(id, members)
}

// write runs change on r, checks the outcome, and keeps it with its events. It is
// called with the lock held; an error means that nothing was written.
func (t *ordersTable) write(r orders.Record, change orders.Change) (orders.Record, error) {
	team, id, transaction, revision := r.TeamID, r.ID, r.OrderTransaction.ID, r.Revision
	first := max(t.eventIDs[team], 1)
	r.NextEventID = first
	events, err := change(&r)
	if err != nil {
		return orders.Record{}, err
	}
	if r.TeamID != team || r.ID != id || r.OrderTransaction.ID != transaction {
		return orders.Record{}, fmt.Errorf("%w: an order keeps its id, its team and its transaction", healthlab.Invalid)
	}
	if r.SampleID != nil {
		if other, taken := t.bySample[*r.SampleID]; taken && other != id {
			return orders.Record{}, fmt.Errorf("%w: another order has this sample id", healthlab.Conflict)
		}
	}
	r.Revision = revision + 1
	r.Lab.Due, r.Lab.Lease = instant(r.Lab.Due), instant(r.Lab.Lease)
	kept := &keptOrder{parent: r.Parent()}
	if kept.data, err = json.Marshal(r); err != nil {
		return orders.Record{}, fmt.Errorf("encode order: %w", err)
	}
	if holdsNUL(kept.data) {
		return orders.Record{}, fmt.Errorf("%w: text must not contain NUL", healthlab.Invalid)
	}
	if err := json.Unmarshal(kept.data, &kept.read); err != nil {
		return orders.Record{}, fmt.Errorf("decode order: %w", err)
	}
	if err := t.emit(events); err != nil {
		return orders.Record{}, err
	}
	t.keep(kept)
	t.eventIDs[team] = max(first, kept.read.LastEvent.ID+1)
	return t.load(kept)
}

// keep puts an order into the indexes. It cannot fail.
func (t *ordersTable) keep(kept *keptOrder) {
	r := &kept.read
	if before := t.byID[r.ID]; before == nil {
		id := teamTransaction{r.TeamID, r.OrderTransaction.ID}
		t.byTransaction[id] = append(t.byTransaction[id], r.ID)
	} else if before.read.SampleID != nil {
		delete(t.bySample, *before.read.SampleID)
	}
	if r.SampleID != nil {
		t.bySample[*r.SampleID] = r.ID
	}
	t.byID[r.ID] = kept
}

// holdsNUL reports whether any text of a JSON document has the character NUL.
func holdsNUL(doc []byte) bool {
	for i := 0; i < len(doc); i++ {
		if doc[i] != '\\' {
			continue
		}
		if bytes.HasPrefix(doc[i:], []byte(`\u0000`)) {
			return true
		}
		i++ // the escaped character is no escape itself
	}
	return false
}
