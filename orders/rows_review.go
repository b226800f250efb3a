package orders

import (
	"context"
	"encoding/base64"
	"fmt"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/store"
)

// NewReviewStore returns the results under review of a store whose tables include [Tables]. Its
// orders are those of [NewStore].
func NewReviewStore(s store.Store, opts *StoreOptions) ReviewStore {
	return reviewRows{newOrderRows(s, opts)}
}

type reviewRows struct{ orderRows }

func errNoResult() error { return fmt.Errorf("%w: result under review", healthlab.NotFound) }

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
			return fmt.Errorf("%w: the result is there", healthlab.Conflict)
		}
		if u := store.StateOf(got[0]); !r.Owner().IsZero() && !u.Known {
			if err := v.opts.newUser(u, "result"); err != nil {
				return err
			}
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
	q, err := q.Normal()
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
	page := ResultPage{Results: []RawResult{}}
	ask := store.Query{Key: reviewTable.Key(store.Key{Team: q.Team}), By: store.ByFirst}
	for last, end := "", ""; ; {
		list, err := reviewTable.Look(ctx, v.s, ask.After(last, scanPage))
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
		if len(list) < scanPage {
			return page, nil
		}
	}
}

// UpdateResult implements [ReviewStore].
func (v reviewRows) UpdateResult(ctx context.Context, team healthlab.TeamID, id RawResultID, change func(*RawResult) ([]healthlab.Event, error)) (RawResult, error) {
	return v.AssignResult(ctx, team, id, Assignment{}, func(r *RawResult, _, _ *Record) ([]healthlab.Event, error) {
		return change(r)
	})
}

// AssignResult implements [ReviewStore].
func (v reviewRows) AssignResult(ctx context.Context, team healthlab.TeamID, id RawResultID, s Assignment, change AssignChange) (out RawResult, err error) {
	err = v.s.Update(ctx, func(ctx context.Context, tx store.Tx) error {
		item, err := reviewTable.Get(tx, reviewKey(team, id), store.Held)
		if err != nil {
			return err
		}
		if item == nil {
			return errNoResult()
		}
		w := &orderWriter{tx: tx, opts: &v.opts, ids: v.ids, team: team}
		was, made, err := w.assigned(s)
		if err != nil {
			return err
		}
		r, revision := &item.Value, item.Value.Revision
		events, err := change(r, was, made)
		if err != nil {
			return err
		}
		if r.Team != team || r.ID != id {
			return fmt.Errorf("%w: a result keeps its id and its team", healthlab.Invalid)
		}
		if _, err := store.LockUser(tx, team, r.Owner()); err != nil {
			return err
		}
		r.Revision, r.CandidateGroups, r.AllowedActions = revision+1, nil, nil
		if err := reviewTable.Put(tx, item); err != nil {
			return err
		}
		if err := w.write(ctx, events); err != nil {
			return err
		}
		kept, err := reviewTable.Get(tx, reviewKey(team, id), store.Held)
		if err != nil {
			return err
		}
		out = kept.Value
		return nil
	})
	return out, err
}

// assigned returns the orders that a decision about a result changes: the one that is there, and
// the one that is new; nil for none.
func (w *orderWriter) assigned(s Assignment) (was, made *Record, err error) {
	var first *orderEdit
	if !s.Order.IsZero() {
		if first, err = w.load(s.Order); err != nil {
			return nil, nil, err
		}
		was = &first.Record
	}
	if s.New != nil {
		if s.New.TeamID != w.team || s.New.ID.IsZero() {
			return nil, nil, fmt.Errorf("%w: an order needs its team and an id", healthlab.Invalid)
		}
		var e *orderEdit
		if first != nil {
			e, err = w.addAfter(first, *s.New)
		} else {
			e, err = w.add(*s.New)
		}
		if err != nil {
			return nil, nil, err
		}
		made = &e.Record
	}
	if len(w.orders) == 0 {
		return nil, nil, nil
	}
	return was, made, w.start()
}
