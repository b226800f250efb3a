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

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/personkey"
)

// reviewTable keeps results under review, in bytes that no caller can edit.
type reviewTable struct {
	results map[teamResult]*keptResult
	keys    *personkey.Keys
}

type teamResult struct {
	team healthlab.TeamID
	id   orders.RawResultID
}

// keptResult is a result as it was written, encrypted, and what lists need of it.
type keptResult struct {
	data  []byte
	read  orders.RawResult // without what is about the person; for reading only
	terms []int64          // tokens of its SearchTerms
}

func newReviewTable(keys *personkey.Keys) *reviewTable {
	return &reviewTable{keys: keys, results: map[teamResult]*keptResult{}}
}

// erase removes what is a user's. It is called with the lock held.
func (t *reviewTable) erase(team healthlab.TeamID, user healthlab.UserID) {
	for id, k := range t.results {
		if id.team == team && k.read.Owner() == user {
			delete(t.results, id)
		}
	}
}

type reviews struct {
	*database
	users   *userTable
	outbox  *outbox
	orders  *orderTable
	reviews *reviewTable
}

// keep encodes a result as it is to be kept.
func (t *reviewTable) keep(ctx context.Context, r orders.RawResult) (*keptResult, error) {
	r.CandidateGroups, r.AllowedActions = nil, nil
	doc, err := document(r)
	if err != nil {
		return nil, err
	}
	var as orders.RawResult // as it will be read
	if err := json.Unmarshal(doc, &as); err != nil {
		return nil, err
	}
	k := &keptResult{read: orders.RawResult{Team: as.Team, Escalated: as.Escalated, Subject: as.Subject}}
	k.read.ID, k.read.Status, k.read.DecisionCode, k.read.Lab = as.ID, as.Status, as.DecisionCode, as.Lab
	k.read.CreatedAt, k.read.ResolvedUserID = as.CreatedAt, as.ResolvedUserID
	if k.terms, err = t.keys.Tokens(ctx, r.Team, r.SearchTerms()); err != nil {
		return nil, err
	}
	k.data, err = t.keys.Seal(ctx, refOfResult(&r), personkey.RowResult(r.ID), doc)
	return k, err
}

func refOfResult(r *orders.RawResult) personkey.Ref {
	return personkey.Ref{Team: r.Team, User: r.Owner()}
}

func (t *reviewTable) load(ctx context.Context, k *keptResult) (r orders.RawResult, err error) {
	return r, openDocument(ctx, t.keys, refOfResult(&k.read), personkey.RowResult(k.read.ID), k.data, &r)
}

func noResult() error { return fmt.Errorf("%w: result under review", healthlab.NotFound) }

func (v reviews) InsertResult(ctx context.Context, r orders.RawResult, events []healthlab.Event) error {
	r.Revision = 1
	kept, err := v.reviews.keep(ctx, r)
	if err != nil {
		return err
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	id := teamResult{r.Team, r.ID}
	if v.reviews.results[id] != nil {
		return fmt.Errorf("%w: the result is there", healthlab.Conflict)
	}
	if user := r.Owner(); !user.IsZero() && v.users.find(r.Team, user) == nil && len(v.users.of(r.Team)) > 0 {
		return fmt.Errorf("%w: the user of the result", healthlab.NotFound)
	}
	if err := v.outbox.emit(ctx, events); err != nil {
		return err
	}
	v.reviews.results[id] = kept
	return nil
}

func (v reviews) Result(ctx context.Context, team healthlab.TeamID, id orders.RawResultID) (orders.RawResult, error) {
	if err := v.lock(ctx); err != nil {
		return orders.RawResult{}, err
	}
	defer v.mu.Unlock()
	k := v.reviews.results[teamResult{team, id}]
	if k == nil || v.users.isDeleted(team, k.read.Owner()) {
		return orders.RawResult{}, noResult()
	}
	return v.reviews.load(ctx, k)
}

func (v reviews) Results(ctx context.Context, q orders.ResultQuery) (orders.ResultPage, error) {
	q, err := q.Normal()
	if err != nil {
		return orders.ResultPage{}, err
	}
	if err := v.lock(ctx); err != nil {
		return orders.ResultPage{}, err
	}
	defer v.mu.Unlock()
	after, err := parseCursor(q.Cursor)
	if err != nil {
		return orders.ResultPage{}, catalogue.BadCursor()
	}
	// The newest first, ties by id; a page goes on behind its place, whatever became of that.
	order := func(a, b cursor) int { return cmp.Or(b.at.Compare(a.at), compareIDs(a.id, b.id)) }
	at := func(k *keptResult) cursor { return cursor{k.read.CreatedAt.Time, k.read.ID.UUID} }
	page := orders.ResultPage{Results: []orders.RawResult{}}
	search, err := tokenLists(ctx, v.keys, q.Team, q.SearchTerms())
	if err != nil {
		return orders.ResultPage{}, err
	}
	var found []*keptResult
	for _, k := range v.reviews.results {
		if !q.MatchClear(&k.read) || len(search) > 0 && !hasAnyTokens(k.terms, search) || v.users.isDeleted(q.Team, k.read.Owner()) {
			continue
		}
		page.Total++
		if q.Cursor == "" || order(after, at(k)) < 0 {
			found = append(found, k)
		}
	}
	slices.SortFunc(found, func(a, b *keptResult) int { return order(at(a), at(b)) })
	if len(found) > q.Limit {
		found = found[:q.Limit]
		page.Next = at(found[q.Limit-1]).String()
	}
	for _, k := range found {
		r, err := v.reviews.load(ctx, k)
		if errors.Is(err, personkey.ErrErased) {
			continue
		}
		if err != nil {
			return orders.ResultPage{}, err
		}
		page.Results = append(page.Results, r)
	}
	return page, nil
}

func (v reviews) UpdateResult(ctx context.Context, team healthlab.TeamID, id orders.RawResultID, change func(*orders.RawResult) ([]healthlab.Event, error)) (orders.RawResult, error) {
	return v.AssignResult(ctx, team, id, orders.Assignment{}, func(r *orders.RawResult, _, _ *orders.Record) ([]healthlab.Event, error) {
		return change(r)
	})
}

func (v reviews) AssignResult(ctx context.Context, team healthlab.TeamID, id orders.RawResultID, s orders.Assignment, change orders.AssignChange) (orders.RawResult, error) {
	if err := v.lock(ctx); err != nil {
		return orders.RawResult{}, err
	}
	defer v.mu.Unlock()
	t := v.orders
	held := v.reviews.results[teamResult{team, id}]
	if held == nil {
		return orders.RawResult{}, noResult()
	}
	item, err := v.reviews.load(ctx, held)
	if err != nil {
		return item, err
	}
	revision := item.Revision
	if s.New != nil && s.Order.IsZero() {
		if err := v.orders.checkUser(s.New); err != nil {
			return orders.RawResult{}, err
		}
	}
	was, made, err := t.assignedOrders(ctx, team, s, v.clock())
	if err != nil {
		return orders.RawResult{}, err
	}
	wasBefore, madeBefore := orZero(was), orZero(made)
	events, err := change(&item, was, made)
	if err != nil {
		return orders.RawResult{}, err
	}
	if item.Team != team || item.ID != id {
		return orders.RawResult{}, fmt.Errorf("%w: a result keeps its id and its team", healthlab.Invalid)
	}
	item.Revision = revision + 1
	kept, err := v.reviews.keep(ctx, item)
	if err != nil {
		return orders.RawResult{}, err
	}
	keep, err := t.checkAssigned(ctx, was, made, &wasBefore, &madeBefore)
	if err != nil {
		return orders.RawResult{}, err
	}
	if err := v.outbox.emit(ctx, events); err != nil {
		return orders.RawResult{}, err
	}
	for _, k := range keep {
		t.keep(k)
	}
	v.reviews.results[teamResult{team, id}] = kept
	return v.reviews.load(ctx, kept)
}

// assignedOrders are the orders that a decision about a result changes: the one that is there,
// and the one that is new; nil for none.
func (t *orderTable) assignedOrders(ctx context.Context, team healthlab.TeamID, s orders.Assignment, now time.Time) (was, made *orders.Record, err error) {
	if !s.Order.IsZero() {
		r, err := t.get(ctx, team, s.Order)
		if err != nil {
			return nil, nil, err
		}
		r.NextEventID, r.StoreTime = t.nextEventID(team), now
		was = &r
	}
	if s.New == nil {
		return was, nil, nil
	}
	r := *s.New
	if r.TeamID != team || r.ID.IsZero() {
		return nil, nil, fmt.Errorf("%w: an order needs its team and an id", healthlab.Invalid)
	}
	if t.byID[r.ID] != nil {
		return nil, nil, fmt.Errorf("%w: the order's id is taken", healthlab.Conflict)
	}
	r.Revision = 0
	if was != nil {
		r.OrderTransaction = transactionWith(was, &r)
	}
	r.NextEventID, r.StoreTime = t.nextEventID(team)+eventRoom, now
	return was, &r, nil
}

// orZero returns a copy of an order, or an empty order for nil.
func orZero(r *orders.Record) orders.Record {
	if r == nil {
		return orders.Record{}
	}
	return *r
}

// checkAssigned returns the orders as they are to be kept, but for nil: the new one as if the
// other one, whose sample id it may have now, were written.
func (t *orderTable) checkAssigned(ctx context.Context, was, made, wasBefore, madeBefore *orders.Record) ([]*keptOrder, error) {
	var keep []*keptOrder
	if was != nil {
		k, err := t.check(ctx, *was, identityOf(wasBefore), was.Revision)
		if err != nil {
			return nil, err
		}
		keep = append(keep, k)
		t.moveSample(wasBefore, &k.read)
		defer t.moveSample(&k.read, wasBefore)
	}
	if made != nil {
		k, err := t.check(ctx, *made, identityOf(madeBefore), made.Revision)
		if err != nil {
			return nil, err
		}
		keep = append(keep, k)
	}
	return keep, nil
}

// moveSample indexes the sample id of an order as it is afterwards.
func (t *orderTable) moveSample(before, after *orders.Record) {
	if before.SampleID != nil {
		delete(t.bySample, *before.SampleID)
	}
	if after.SampleID != nil {
		t.bySample[*after.SampleID] = after.ID
	}
}

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
