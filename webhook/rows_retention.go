package webhook

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

const (
	sweepBatch = 200  // number of messages that a sweep removes at most
	sweepLines = 1000 // number of log entries that a sweep removes at most
	sweepRest  = time.Hour
	teamsPage  = 500
)

// sweep removes a batch of messages and log entries whose retention has ended. Events that are not routed stay. When
// all is removed, sweep does nothing for an hour.
func (s *Store) sweep(ctx context.Context) error {
	if time.Duration(s.routed.Load()-s.swept.Load())*time.Microsecond < sweepRest {
		return nil
	}
	var rest time.Time
	err := s.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		rest = time.Time{}
		due := store.Query{By: store.ByDue, Until: tx.Now(), Lock: store.Skip}
		old, lines := due, due
		old.Table, old.Limit = eventRows.Name, sweepBatch
		lines.Table, lines.Limit, lines.Bare = attemptRows.Name, sweepLines, true
		got, err := tx.Read(old, lines)
		if err != nil {
			return err
		}
		for _, r := range got[1] {
			tx.Delete(r.Key)
		}
		if len(got[0]) < sweepBatch && len(got[1]) < sweepLines {
			rest = tx.Now()
		}
		found, err := eventRows.Decoded(got[0])
		if err != nil || len(found) == 0 {
			return err
		}
		return s.expire(tx, found)
	})
	if err == nil && !rest.IsZero() {
		s.swept.Store(rest.UnixMicro())
	}
	return err
}

// expire removes routed events and their unfinished deliveries.
func (s *Store) expire(tx store.Tx, found []*store.Entry[eventRow]) error {
	q := newQueue(tx, s.events.retention)
	events := make([]*eventRow, len(found))
	for i, f := range found {
		events[i] = &f.Value
	}
	routed, err := q.routed(events)
	if err != nil {
		return err
	}
	for _, f := range found {
		if e := &f.Value; routed[e] {
			endpoints, err := q.endpointIDs(e.Team)
			if err != nil {
				return err
			}
			if err := q.removeUnfinished(e, endpoints); err != nil {
				return err
			}
			eventRows.Delete(tx, f)
		}
	}
	return q.flush()
}

// endpointIDs returns the ids of the endpoints of a team.
func (q *queue) endpointIDs(team healthlab.TeamID) ([]EndpointID, error) {
	all := allEndpoints(team).Unlocked()
	all.Bare = true
	got, err := q.tx.Read(all)
	if err != nil {
		return nil, err
	}
	out := make([]EndpointID, len(got[0]))
	for i, r := range got[0] {
		out[i].UUID = store.ParseUUID(r.ID)
	}
	return out, nil
}

// removeUnfinished removes all unfinished deliveries of an event.
func (q *queue) removeUnfinished(e *eventRow, endpoints []EndpointID) error {
	if err := q.loadUnfinished([]*eventRow{e}, endpoints); err != nil {
		return err
	}
	for _, to := range endpoints {
		for {
			list, err := q.unfinished(e, to)
			if err != nil {
				return err
			}
			if len(list) == 0 {
				break
			}
			if err := q.remove(list[0]); err != nil {
				return err
			}
		}
	}
	return nil
}

// Teams implements [Bodies].
func (s *Store) Teams(ctx context.Context) ([]healthlab.TeamID, error) {
	var out []healthlab.TeamID
	all := store.Query{By: store.ByID}
	for last := ""; ; {
		page, err := teamRows.Look(ctx, s.s, all.After(last, teamsPage))
		if err != nil {
			return nil, err
		}
		var read []store.Query
		for _, t := range page {
			last = store.UUID(t.Value.Team.UUID)
			read = append(read, store.Query{Key: eventRows.Key(store.Key{Team: t.Value.Team}), By: store.ByID, Limit: 1, Bare: true})
		}
		if len(read) == 0 {
			return out, nil
		}
		got, err := s.s.Read(ctx, read...)
		if err != nil {
			return nil, err
		}
		for i, t := range page {
			if len(got[i]) > 0 {
				out = append(out, t.Value.Team)
			}
		}
		if len(page) < teamsPage {
			return out, nil
		}
	}
}

// EmptyBodies implements [Bodies].
func (s *Store) EmptyBodies(ctx context.Context, team healthlab.TeamID, ended time.Time, n int) (int, error) {
	emptied := 0
	err := s.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		emptied = 0
		q := newQueue(tx, s.events.retention)
		list := store.Query{Key: store.Key{Team: team}, By: store.BySecond, To: store.Time(ended), Lock: store.Held}
		for last := ""; emptied < n; {
			page, err := eventRows.Find(tx, list.After(last, n))
			if err != nil {
				return err
			}
			if len(page) == 0 {
				return nil
			}
			last = eventRows.Row(&page[len(page)-1].Value).Index[1]
			done, err := q.delivered(page, ended)
			if err != nil {
				return err
			}
			for _, e := range page {
				if emptied == n || !done[&e.Value] {
					continue
				}
				e.Value.body = nil
				if err := eventRows.Put(tx, e); err != nil {
					return err
				}
				emptied++
			}
			if len(page) < n {
				return nil
			}
		}
		return nil
	})
	if err != nil {
		return 0, err
	}
	return emptied, nil
}

// delivered reports for each event of page, all of one team, whether it was routed, has no unfinished delivery, and had
// no attempt at or after ended.
func (q *queue) delivered(page []*store.Entry[eventRow], ended time.Time) (map[*eventRow]bool, error) {
	events := make([]*eventRow, len(page))
	read := make([]store.Query, len(page))
	for i, e := range page {
		events[i] = &e.Value
		late := store.Query{Key: attemptRows.Key(store.Key{Team: e.Value.Team}), By: store.BySecond, Lock: store.Plain, Limit: 1, Bare: true}
		late = prefixed(late, store.UUID(e.Value.ID))
		late.From += store.Time(ended)
		read[i] = late
	}
	got, err := q.tx.Read(read...)
	if err != nil {
		return nil, err
	}
	routed, err := q.routed(events)
	if err != nil {
		return nil, err
	}
	endpoints, err := q.endpointIDs(events[0].Team)
	if err != nil {
		return nil, err
	}
	if err := q.loadUnfinished(events, endpoints); err != nil {
		return nil, err
	}
	out := map[*eventRow]bool{}
	for i, e := range events {
		out[e] = routed[e] && len(got[i]) == 0
		for _, to := range endpoints {
			list, err := q.unfinished(e, to)
			if err != nil {
				return nil, err
			}
			out[e] = out[e] && len(list) == 0
		}
	}
	return out, nil
}

// Forget implements [store.Events]. It deletes the messages about the user, their deliveries, and their log entries
// with the receivers' responses.
func (o *events) Forget(_ context.Context, tx store.Tx, team healthlab.TeamID, user healthlab.UserID) error {
	of := func(table string, bare bool) store.Query {
		return store.Query{Key: store.Key{Table: table, User: user}, By: store.ByUser, Lock: store.Held, Bare: bare}
	}
	got, err := tx.Read(
		of(eventRows.Name, true), of(attemptRows.Name, true), of(keyRows.Name, false), of(waitingRows.Name, false), of(laneRows.Name, false),
	)
	if err != nil {
		return err
	}
	for _, rows := range got[:2] {
		for _, r := range rows {
			tx.Delete(r.Key)
		}
	}
	keys, err := keyRows.Decoded(got[2])
	if err != nil {
		return err
	}
	for _, k := range keys {
		if k.Value.Seq == 0 {
			keyRows.Delete(tx, k)
			continue
		}
		k.Value.Routed, k.Value.Since = k.Value.Seq, time.Time{}
		if err := keyRows.Put(tx, k); err != nil {
			return err
		}
	}
	q := newQueue(tx, o.retention)
	lanes, err := laneRows.Decoded(got[4])
	if err != nil {
		return err
	}
	for _, l := range lanes {
		q.add(l)
	}
	waiting, err := waitingRows.Decoded(got[3])
	if err != nil {
		return err
	}
	for _, w := range waiting {
		if err := q.removeWaiting(w); err != nil {
			return err
		}
	}
	for _, l := range lanes {
		if err := q.removeHead(q.lanes[l.Value.lanePlace]); err != nil {
			return err
		}
	}
	return q.flush()
}
