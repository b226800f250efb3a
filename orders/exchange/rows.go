package exchange

import (
	"context"
	"encoding/base64"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/store"
)

// reviewTable stores results under review. Index[0] sorts them by time, the newest first, then by id.
var reviewTable = store.Table[RawResult]{Name: "order_review", Row: func(r *RawResult) store.Row {
	id := store.UUID(r.ID.UUID)
	return store.Row{Key: store.Key{Team: r.Team, User: r.Owner(), ID: id}, Index: [2]string{createdIndex(r.CreatedAt.Time) + id}}
}}

func reviewKey(team healthlab.TeamID, id RawResultID) store.Key {
	return store.Key{Team: team, ID: store.UUID(id.UUID)}
}

func createdIndex(at time.Time) string { return store.Reverse(store.Time(at)) }

// Tables declares the tables that [NewReviewStore] needs in addition to [orders.Tables].
func Tables() []store.Definition { return []store.Definition{reviewTable.Definition()} }

// NewReviewStore returns a ReviewStore over a store whose tables must include [Tables]. Its orders are those of
// [orders.NewStore] with the same options.
func NewReviewStore(s store.Store, opts *orders.StoreOptions) ReviewStore {
	v := reviewRows{s: s, orders: orders.NewStore(s, opts)}
	if opts != nil {
		v.opts = *opts
	}
	return v
}

type reviewRows struct {
	s      store.Store
	orders orders.Store
	opts   orders.StoreOptions
}

func errNoResult() error {
	return fmt.Errorf("%w: the team has no such result under review", healthlab.NotFound)
}

// InsertResult implements [ReviewStore].
func (v reviewRows) InsertResult(ctx context.Context, r RawResult, events []healthlab.Event) error {
	r.Revision = 1
	r.CandidateGroups, r.AllowedActions = nil, nil
	return v.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		got, err := tx.Read(store.User(r.Team, r.Owner()), reviewTable.One(reviewKey(r.Team, r.ID), store.Held))
		if err != nil {
			return err
		}
		if len(got[1]) > 0 {
			return fmt.Errorf("%w: a result with this id is under review", healthlab.Conflict)
		}
		if u := store.StateOf(got[0]); !r.Owner().IsZero() && !u.Known && !v.opts.UsersElsewhere {
			return fmt.Errorf("%w: the user of the result does not exist", healthlab.NotFound)
		}
		if err := reviewTable.Insert(tx, &r); err != nil {
			return err
		}
		return store.AppendEvents(ctx, v.opts.Events, tx, events)
	})
}

// Result implements [ReviewStore].
func (v reviewRows) Result(ctx context.Context, team healthlab.TeamID, id RawResultID) (RawResult, error) {
	r, err := reviewTable.LookOne(ctx, v.s, reviewTable.Key(reviewKey(team, id)))
	if err != nil {
		return RawResult{}, err
	}
	if r == nil {
		return RawResult{}, errNoResult()
	}
	got, err := v.s.Read(ctx, store.User(team, r.Value.Owner()))
	if err != nil {
		return RawResult{}, err
	}
	if u := store.StateOf(got[0]); u.Known && !u.Live {
		return RawResult{}, errNoResult()
	}
	return r.Value, nil
}

// Results implements [ReviewStore].
func (v reviewRows) Results(ctx context.Context, q ResultQuery) (ResultPage, error) {
	q, err := q.normalized()
	if err != nil {
		return ResultPage{}, err
	}
	after, err := base64.RawURLEncoding.DecodeString(q.Cursor)
	if err != nil || len(after) != 0 && len(after) != len(createdIndex(q.CreatedFrom))+len(uuid.UUID{}) {
		return ResultPage{}, catalogue.BadCursor()
	}
	deleted, err := store.DeletedIDs(ctx, v.s, q.Team)
	if err != nil {
		return ResultPage{}, err
	}
	const pageSize = 200
	page := ResultPage{Results: []RawResult{}}
	ask := store.Query{Key: reviewTable.Key(store.Key{Team: q.Team}), By: store.ByFirst}
	for last, end := "", ""; ; {
		list, err := reviewTable.Look(ctx, v.s, ask.After(last, pageSize))
		if err != nil {
			return ResultPage{}, err
		}
		for _, e := range list {
			last = reviewTable.Row(&e.Value).Index[0]
			if deleted[e.Value.Owner()] || !q.Match(&e.Value) {
				continue
			}
			page.Total++
			switch {
			case last <= string(after):
			case len(page.Results) < q.Limit:
				page.Results, end = append(page.Results, e.Value), last
			default:
				page.Next = base64.RawURLEncoding.EncodeToString([]byte(end))
			}
		}
		if len(list) < pageSize {
			return page, nil
		}
	}
}

// UpdateResult implements [ReviewStore].
func (v reviewRows) UpdateResult(ctx context.Context, team healthlab.TeamID, id RawResultID, change func(*RawResult) ([]healthlab.Event, error)) (RawResult, error) {
	return v.AssignResult(ctx, team, id, Assignment{}, func(r *RawResult, _, _ *orders.Record) ([]healthlab.Event, error) {
		return change(r)
	})
}

// AssignResult implements [ReviewStore].
func (v reviewRows) AssignResult(ctx context.Context, team healthlab.TeamID, id RawResultID, to Assignment, change AssignChange) (out RawResult, err error) {
	err = v.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		item, err := reviewTable.Get(tx, reviewKey(team, id), store.Held)
		if err != nil {
			return err
		}
		if item == nil {
			return errNoResult()
		}
		kept := item.Value
		decide := func(was, made *orders.Record) ([]healthlab.Event, error) {
			item.Value = kept // change gets the stored result again if it runs more than once
			events, err := change(&item.Value, was, made)
			if err == nil && (item.Value.Team != team || item.Value.ID != id) {
				err = fmt.Errorf("%w: result under review: an update must not change its id or team", healthlab.Invalid)
			}
			return events, err
		}
		if err := v.decideWithOrders(ctx, tx, team, to, decide); err != nil {
			return err
		}
		r := &item.Value
		if _, err := store.LockUser(tx, team, r.Owner()); err != nil {
			return err
		}
		r.Revision, r.CandidateGroups, r.AllowedActions = kept.Revision+1, nil, nil
		if err := reviewTable.Put(tx, item); err != nil {
			return err
		}
		written, err := reviewTable.Get(tx, reviewKey(team, id), store.Held)
		if err != nil {
			return err
		}
		out = written.Value
		return nil
	})
	return out, err
}

// decideWithOrders calls decide with the orders of an assignment, and writes them with the returned events. was is the
// existing order and made the new one; nil if the assignment has none.
func (v reviewRows) decideWithOrders(ctx context.Context, tx store.Tx, team healthlab.TeamID, to Assignment,
	decide func(was, made *orders.Record) ([]healthlab.Event, error),
) (err error) {
	switch {
	case to.New != nil && to.New.TeamID != team:
		return fmt.Errorf("%w: order: must be of the same team as the result", healthlab.Invalid)
	case to.Order.IsZero() && to.New == nil:
		events, err := decide(nil, nil)
		if err != nil {
			return err
		}
		return store.AppendEvents(ctx, v.opts.Events, tx, events)
	case to.New == nil:
		_, err = v.orders.Update(ctx, team, to.Order, func(was *orders.Record) ([]healthlab.Event, error) { return decide(was, nil) })
	case to.Order.IsZero():
		_, err = v.orders.Insert(ctx, *to.New, func(made *orders.Record) ([]healthlab.Event, error) { return decide(nil, made) })
	default:
		_, _, err = v.orders.InsertAfter(ctx, to.Order, *to.New, decide)
	}
	return err
}
