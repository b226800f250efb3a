package webhook

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// Route implements [Deliveries]. It also removes some rows that are older than the retention.
func (s *Store) Route(ctx context.Context, modes map[string]healthlab.Mode, most int) (Routed, error) {
	if err := s.sweep(ctx); err != nil {
		return Routed{}, err
	}
	var routed Routed
	var at time.Time
	err := s.s.Update(ctx, func(_ context.Context, tx store.Tx) (err error) {
		at = tx.Now()
		routed, err = s.route(tx, modes, most)
		return err
	})
	if err != nil {
		return Routed{}, err
	}
	s.routed.Store(at.UnixMicro())
	return routed, nil
}

// arrival is an event to route, with its position in the order of routing: by after, then by tie.
type arrival struct {
	*eventRow
	after time.Time // latest time of writing of this event and the earlier ones of its key
	tie   uuid.UUID // greatest id of those events that were written at the time after
}

// route adds deliveries of at most most events to lanes. It locks the keys of the events, so that no other transaction
// appends to or routes them, and the users, so that they are not deleted.
func (s *Store) route(tx store.Tx, modes map[string]healthlab.Mode, most int) (Routed, error) {
	q := newQueue(tx, s.events.retention)
	keys, err := q.unroutedKeys(most)
	if err != nil || len(keys) == 0 {
		return Routed{}, err
	}
	endpoints, err := q.lockUsersAndEndpoints(keys)
	if err != nil {
		return Routed{}, err
	}
	arrivals, err := q.arrivals(keys, most)
	if err != nil {
		return Routed{}, err
	}
	if err := q.loadLanes(arrivals, endpoints, modes); err != nil {
		return Routed{}, err
	}
	to := map[EndpointID]bool{}
	for _, e := range arrivals {
		for i := range endpoints[e.Team] {
			if t := &endpoints[e.Team][i].Value; t.canReceive(e.Event) {
				to[t.ID] = true
				if err := q.enqueue(t, e.eventRow, modeOf(modes, e.Type), TriggerEvent); err != nil {
					return Routed{}, err
				}
			}
		}
	}
	return Routed{Events: len(arrivals), Endpoints: slices.Collect(maps.Keys(to))}, q.flush()
}

// lockRouter reads q.ids, the row with the last delivery id, and locks it. With the lock Skip, q.ids stays nil if
// another transaction has locked the row. It returns the results of the queries in also, which it runs in the same
// round trip.
func (q *queue) lockRouter(lock store.Lock, also ...store.Query) ([][]store.Row, error) {
	read := append([]store.Query{routerRows.One(routerKey, store.Plain), routerRows.One(routerKey, lock)}, also...)
	got, err := q.tx.Read(read...)
	if err != nil {
		return nil, err
	}
	found, err := routerRows.Decoded(got[1])
	switch {
	case err != nil:
		return nil, err
	case len(found) > 0:
		q.ids = found[0]
	case len(got[0]) == 0: // the first delivery in the store
		q.ids = &store.Entry[routerRow]{}
	}
	return got[2:], nil
}

// unroutedKeys returns keys with events that are not routed, the longest waiting first; none if another
// transaction routes. A key to which a transaction appends is skipped.
func (q *queue) unroutedKeys(most int) ([]*store.Entry[keyRow], error) {
	due := store.Query{Key: keyRows.Key(store.Key{}), By: store.ByDue, Until: q.now, Limit: most, Lock: store.Skip}
	got, err := q.lockRouter(store.Skip, due)
	if err != nil || q.ids == nil {
		return nil, err
	}
	return keyRows.Decoded(got[0])
}

// arrivals reads at most most events of the keys, and marks them as routed. It returns them in the order of writing,
// and those of one key in the order of Seq, whatever their times and ids are.
func (q *queue) arrivals(keys []*store.Entry[keyRow], most int) ([]arrival, error) {
	var read []store.Query
	taken := make([]int64, 0, len(keys))
	for _, k := range keys {
		from, to := k.Value.Routed+1, min(k.Value.Seq, k.Value.Routed+int64(most-len(read)))
		if k.Value.Seq == 0 { // a single event without a key
			from, to = 0, int64(min(1, most-len(read))-1)
		}
		for seq := from; seq <= to; seq++ {
			id := store.Key{Team: k.Value.Team, ID: k.Value.ID + store.Int(seq)}
			read = append(read, eventRows.One(id, store.Plain))
		}
		taken = append(taken, to-from+1)
	}
	got, err := q.tx.Read(read...)
	if err != nil {
		return nil, err
	}
	var out []arrival
	for i, k := range keys {
		last := arrival{}
		for _, rows := range got[:taken[i]] {
			found, err := eventRows.Decoded(rows)
			if err != nil {
				return nil, err
			}
			for _, e := range found { // none if the event was removed
				last = last.advance(&e.Value)
				out = append(out, last)
			}
		}
		got = got[taken[i]:]
		if err := q.countRouted(k, taken[i], last); err != nil {
			return nil, err
		}
	}
	slices.SortStableFunc(out, func(a, b arrival) int {
		return cmp.Or(a.after.Compare(b.after), slices.Compare(a.tie[:], b.tie[:]))
	})
	return out, nil
}

// advance returns the arrival of e, the next event of the key after a. Its position is not before that of a, even if
// the clock was set back in between.
func (a arrival) advance(e *eventRow) arrival {
	next := arrival{e, e.written, e.ID}
	if c := a.after.Compare(next.after); c > 0 || c == 0 && slices.Compare(a.tie[:], next.tie[:]) > 0 {
		next.after, next.tie = a.after, a.tie
	}
	return next
}

// countRouted records that the next n events of a key are routed. last is the last one of them.
func (q *queue) countRouted(k *store.Entry[keyRow], n int64, last arrival) error {
	switch {
	case n == 0:
		return nil
	case k.Value.Seq == 0:
		keyRows.Delete(q.tx, k)
		return nil
	}
	k.Value.Routed += n
	switch {
	case k.Value.Routed == k.Value.Seq:
		k.Value.Since = time.Time{}
	case last.after.After(k.Value.Since):
		k.Value.Since = last.after
	}
	return keyRows.Put(q.tx, k)
}

// lockUsersAndEndpoints locks the users of the keys, so that they are not deleted during the transaction. It returns
// the endpoints of the keys' teams, and locks them. It also stores teams that had no row.
func (q *queue) lockUsersAndEndpoints(keys []*store.Entry[keyRow]) (map[healthlab.TeamID][]*store.Entry[Endpoint], error) {
	out := map[healthlab.TeamID][]*store.Entry[Endpoint]{}
	var teams []healthlab.TeamID
	var read, users []store.Query
	for _, k := range keys {
		team := k.Value.Team
		if !k.Value.User.IsZero() {
			users = append(users, store.User(team, k.Value.User))
		}
		if _, known := out[team]; !known {
			out[team] = nil
			teams = append(teams, team)
			read = append(read, allEndpoints(team), teamRows.One(teamKey(team), store.Plain))
		}
	}
	got, err := q.tx.Read(append(read, users...)...)
	if err != nil {
		return nil, err
	}
	for i, team := range teams {
		if out[team], err = endpointRows.Decoded(got[2*i]); err != nil {
			return nil, err
		}
		if len(got[2*i+1]) == 0 {
			if err := teamRows.Insert(q.tx, &teamRow{Team: team}); err != nil {
				return nil, err
			}
		}
	}
	return out, nil
}

func allEndpoints(team healthlab.TeamID) store.Query {
	return store.Query{Key: endpointRows.Key(store.Key{Team: team}), By: store.ByID}
}

// loadLanes reads, in two round trips, the rows that [queue.enqueue] needs for the arrivals.
func (q *queue) loadLanes(arrivals []arrival, endpoints map[healthlab.TeamID][]*store.Entry[Endpoint], modes map[string]healthlab.Mode) error {
	type wish struct {
		lanePlace
		key string
	}
	var wishes []wish
	var places []lanePlace
	for _, e := range arrivals {
		for _, to := range endpoints[e.Team] {
			if to.Value.canReceive(e.Event) {
				mode := modeOf(modes, e.Type)
				p := placeOf(&to.Value, &e.Event, mode)
				places = append(places, p)
				wishes = append(wishes, wish{p, SupersedeKey(e.Event, mode)})
			}
		}
	}
	if err := q.load(places); err != nil {
		return err
	}
	var read []store.Query
	for _, w := range wishes {
		if w.key != "" && q.lanes[w.lanePlace].waited {
			read = append(read, waitingByKeyQuery(&w.lanePlace, w.key))
		}
	}
	if len(read) == 0 {
		return nil
	}
	_, err := q.tx.Read(read...)
	return err
}
