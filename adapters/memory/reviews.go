package memory

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/matchtest"
	"github.com/healthlab-dev/healthlab/personkey"
)

// reviewTable keeps results under review, and the test runs of their queue, in bytes
// that no caller can edit.
type reviewTable struct {
	results map[teamResult]*keptResult
	trials  map[matchtest.RunID]*matchTestRunRecord
	sealed  *personkey.Keys
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

type matchTestRunRecord struct {
	team healthlab.TeamID
	id   matchtest.RunID
	key  string
	due  time.Time
	data []byte
}

func newReviewTable() reviewTable {
	return reviewTable{results: map[teamResult]*keptResult{}, trials: map[matchtest.RunID]*matchTestRunRecord{}}
}

// erase removes what is a user's. It is called with the lock held.
func (t *reviewTable) erase(team healthlab.TeamID, user healthlab.UserID) {
	for id, k := range t.results {
		if id.team == team && k.read.Owner() == user {
			delete(t.results, id)
		}
	}
}

// Reviews returns the store as an [orders.ReviewStore].
func (s *Store) Reviews() orders.ReviewStore { return reviews{s} }

type reviews struct{ s *Store }

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
	if k.terms, err = t.sealed.Tokens(ctx, r.Team, r.SearchTerms()); err != nil {
		return nil, err
	}
	k.data, err = t.sealed.Seal(ctx, refOfResult(&r), personkey.RowResult(r.ID), doc)
	return k, err
}

func refOfResult(r *orders.RawResult) personkey.Ref {
	return personkey.Ref{Team: r.Team, User: r.Owner()}
}

func (t *reviewTable) load(ctx context.Context, k *keptResult) (r orders.RawResult, err error) {
	return r, openDocument(ctx, t.sealed, refOfResult(&k.read), personkey.RowResult(k.read.ID), k.data, &r)
}

func noResult() error { return fmt.Errorf("%w: result under review", healthlab.NotFound) }

func (v reviews) InsertResult(ctx context.Context, r orders.RawResult, events []healthlab.Event) error {
	r.Revision = 1
	kept, err := v.s.reviews.keep(ctx, r)
	if err != nil {
		return err
	}
	if err := v.s.lock(ctx); err != nil {
		return err
	}
	defer v.s.mu.Unlock()
	id := teamResult{r.Team, r.ID}
	if v.s.reviews.results[id] != nil {
		return fmt.Errorf("%w: the result is there", healthlab.Conflict)
	}
	if user := r.Owner(); !user.IsZero() && v.s.users.find(r.Team, user) == nil && len(v.s.users.of(r.Team)) > 0 {
		return fmt.Errorf("%w: the user of the result", healthlab.NotFound)
	}
	if err := v.s.emit(ctx, events); err != nil {
		return err
	}
	v.s.reviews.results[id] = kept
	return nil
}

func (v reviews) Result(ctx context.Context, team healthlab.TeamID, id orders.RawResultID) (orders.RawResult, error) {
	if err := v.s.lock(ctx); err != nil {
		return orders.RawResult{}, err
	}
	defer v.s.mu.Unlock()
	k := v.s.reviews.results[teamResult{team, id}]
	if k == nil || v.s.users.isDeleted(team, k.read.Owner()) {
		return orders.RawResult{}, noResult()
	}
	return v.s.reviews.load(ctx, k)
}

func (v reviews) Results(ctx context.Context, q orders.ResultQuery) (orders.ResultPage, error) {
	q, err := q.Normal()
	if err != nil {
		return orders.ResultPage{}, err
	}
	if err := v.s.lock(ctx); err != nil {
		return orders.ResultPage{}, err
	}
	defer v.s.mu.Unlock()
	after, err := parsePlace(q.Cursor)
	if err != nil {
		return orders.ResultPage{}, catalogue.BadCursor()
	}
	// The newest first, ties by id; a page goes on behind its place, whatever became of that.
	order := func(a, b place) int { return cmp.Or(b.at.Compare(a.at), compareIDs(a.id, b.id)) }
	at := func(k *keptResult) place { return place{k.read.CreatedAt.Time, k.read.ID.UUID} }
	page := orders.ResultPage{Results: []orders.RawResult{}}
	search, err := tokenLists(ctx, v.s.keys, q.Team, q.SearchTerms())
	if err != nil {
		return orders.ResultPage{}, err
	}
	var found []*keptResult
	for _, k := range v.s.reviews.results {
		if !q.MatchClear(&k.read) || len(search) > 0 && !hasAnyTokens(k.terms, search) || v.s.users.isDeleted(q.Team, k.read.Owner()) {
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
		r, err := v.s.reviews.load(ctx, k)
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
	if err := v.s.lock(ctx); err != nil {
		return orders.RawResult{}, err
	}
	defer v.s.mu.Unlock()
	t := &v.s.orders
	held := v.s.reviews.results[teamResult{team, id}]
	if held == nil {
		return orders.RawResult{}, noResult()
	}
	item, err := v.s.reviews.load(ctx, held)
	if err != nil {
		return item, err
	}
	revision := item.Revision
	if s.New != nil && s.Order.IsZero() {
		if err := v.s.userOfOrder(s.New); err != nil {
			return orders.RawResult{}, err
		}
	}
	was, made, err := t.sides(ctx, team, s, v.s.clock())
	if err != nil {
		return orders.RawResult{}, err
	}
	wasBefore, madeBefore := orNone(was), orNone(made)
	events, err := change(&item, was, made)
	if err != nil {
		return orders.RawResult{}, err
	}
	if item.Team != team || item.ID != id {
		return orders.RawResult{}, fmt.Errorf("%w: a result keeps its id and its team", healthlab.Invalid)
	}
	item.Revision = revision + 1
	kept, err := v.s.reviews.keep(ctx, item)
	if err != nil {
		return orders.RawResult{}, err
	}
	keep, err := t.checkSides(ctx, was, made, &wasBefore, &madeBefore)
	if err != nil {
		return orders.RawResult{}, err
	}
	if err := v.s.emit(ctx, events); err != nil {
		return orders.RawResult{}, err
	}
	for _, k := range keep {
		t.keep(k)
	}
	v.s.reviews.results[teamResult{team, id}] = kept
	return v.s.reviews.load(ctx, kept)
}

// sides are the orders that a decision about a result changes: the one that is there,
// and the one that is new; nil for none.
func (t *orderTable) sides(ctx context.Context, team healthlab.TeamID, s orders.Assignment, now time.Time) (was, made *orders.Record, err error) {
	if !s.Order.IsZero() {
		r, err := t.get(ctx, team, s.Order)
		if err != nil {
			return nil, nil, err
		}
		r.NextEventID, r.StoreTime = t.nextEvent(team), now
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
		r.OrderTransaction = joined(was, &r)
	}
	r.NextEventID, r.StoreTime = t.nextEvent(team)+eventRoom, now
	return was, &r, nil
}

// orNone returns a copy of an order; an empty one of none.
func orNone(r *orders.Record) orders.Record {
	if r == nil {
		return orders.Record{}
	}
	return *r
}

// checkSides returns the orders as they are to be kept, but for nil: the new one as if the
// other one, whose sample id it may have now, were written.
func (t *orderTable) checkSides(ctx context.Context, was, made, wasBefore, madeBefore *orders.Record) ([]*keptOrder, error) {
	var keep []*keptOrder
	if was != nil {
		k, err := t.check(ctx, *was, identityOf(wasBefore), was.Revision)
		if err != nil {
			return nil, err
		}
		keep = append(keep, k)
		t.sampleMoves(wasBefore, &k.read)
		defer t.sampleMoves(&k.read, wasBefore)
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

// sampleMoves indexes the sample id of an order as it is afterwards.
func (t *orderTable) sampleMoves(before, after *orders.Record) {
	if before.SampleID != nil {
		delete(t.bySample, *before.SampleID)
	}
	if after.SampleID != nil {
		t.bySample[*after.SampleID] = after.ID
	}
}

// joined is the transaction of an order with another one that is about to come in.
func joined(parent, child *orders.Record) orders.OrderTransaction {
	return orders.NewTransaction(parent.OrderTransaction.ID, append(slices.Clone(parent.OrderTransaction.Orders),
		orders.TransactionMember{ID: child.ID, Origin: child.Origin, ParentID: &parent.ID, CreatedAt: child.CreatedAt, UpdatedAt: child.CreatedAt}))
}

// MatchTestRuns returns the store as a [matchtest.Store].
func (s *Store) MatchTestRuns() matchtest.Store { return trials{s} }

type trials struct{ s *Store }

// keep encodes a test run, under the team's own key: its persons are made up.
func (v trials) keep(ctx context.Context, t matchtest.Record) (*matchTestRunRecord, error) {
	t.Due = instant(t.Due)
	data, err := sealDocument(ctx, v.s.keys, personkey.Ref{Team: t.Team}, personkey.RowMatchTestRun(t.RunID), t)
	if err != nil {
		return nil, err
	}
	return &matchTestRunRecord{t.Team, t.RunID, t.Key, t.Due, data}, nil
}

func (v trials) load(ctx context.Context, k *matchTestRunRecord) (t matchtest.Record, err error) {
	return t, openDocument(ctx, v.s.keys, personkey.Ref{Team: k.team}, personkey.RowMatchTestRun(k.id), k.data, &t)
}

func (v trials) StartMatchTestRun(ctx context.Context, t matchtest.Record) (matchtest.Record, bool, error) {
	kept, err := v.keep(ctx, t)
	if err != nil {
		return matchtest.Record{}, false, err
	}
	if err := v.s.lock(ctx); err != nil {
		return matchtest.Record{}, false, err
	}
	defer v.s.mu.Unlock()
	for _, k := range v.s.reviews.trials {
		if k.team == t.Team && k.key == t.Key {
			had, err := v.load(ctx, k)
			return had, false, err
		}
	}
	v.s.reviews.trials[t.RunID] = kept
	fresh, err := v.load(ctx, kept)
	return fresh, true, err
}

func (v trials) get(ctx context.Context, team healthlab.TeamID, id matchtest.RunID) (matchtest.Record, error) {
	k := v.s.reviews.trials[id]
	if k == nil || k.team != team {
		return matchtest.Record{}, fmt.Errorf("%w: test run", healthlab.NotFound)
	}
	return v.load(ctx, k)
}

func (v trials) MatchTestRun(ctx context.Context, team healthlab.TeamID, id matchtest.RunID) (matchtest.Record, error) {
	if err := v.s.lock(ctx); err != nil {
		return matchtest.Record{}, err
	}
	defer v.s.mu.Unlock()
	return v.get(ctx, team, id)
}

func (v trials) UpdateMatchTestRun(ctx context.Context, team healthlab.TeamID, id matchtest.RunID, change func(*matchtest.Record) error) (matchtest.Record, error) {
	if err := v.s.lock(ctx); err != nil {
		return matchtest.Record{}, err
	}
	defer v.s.mu.Unlock()
	t, err := v.get(ctx, team, id)
	if err != nil {
		return matchtest.Record{}, err
	}
	was := t
	if err := change(&t); err != nil {
		return matchtest.Record{}, err
	}
	t.Team, t.RunID, t.Key, t.Fingerprint = was.Team, was.RunID, was.Key, was.Fingerprint
	kept, err := v.keep(ctx, t)
	if err != nil {
		return matchtest.Record{}, err
	}
	v.s.reviews.trials[id] = kept
	return v.load(ctx, kept)
}

func (v trials) ClaimMatchTestRuns(ctx context.Context, n int, lease time.Duration) ([]matchtest.Record, error) {
	if err := v.s.lock(ctx); err != nil {
		return nil, err
	}
	defer v.s.mu.Unlock()
	now := v.s.clock()
	var due []matchtest.RunID
	for id, k := range v.s.reviews.trials {
		if !k.due.IsZero() && !k.due.After(now) {
			due = append(due, id)
		}
	}
	slices.SortFunc(due, func(a, b matchtest.RunID) int {
		return cmp.Or(v.s.reviews.trials[a].due.Compare(v.s.reviews.trials[b].due), compareIDs(a.UUID, b.UUID))
	})
	out := []matchtest.Record{}
	for _, id := range due[:max(min(n, len(due)), 0)] {
		t, err := v.load(ctx, v.s.reviews.trials[id])
		if err != nil {
			return nil, err
		}
		t.Due = now.Add(lease)
		kept, err := v.keep(ctx, t)
		if err != nil {
			return nil, err
		}
		v.s.reviews.trials[id] = kept
		if t, err = v.load(ctx, kept); err != nil {
			return nil, err
		}
		out = append(out, t)
	}
	return out, nil
}

func compareIDs(a, b uuid.UUID) int { return bytes.Compare(a[:], b[:]) }
