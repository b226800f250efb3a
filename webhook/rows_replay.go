package webhook

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

const (
	defaultReplayPage = 500
	keyPage           = 200 // number of events of a key per read
)

// Replay implements [Deliveries].
func (s *Store) Replay(ctx context.Context, r Replay) (Replayed, error) {
	var done Replayed
	err := s.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		done = Replayed{}
		q := newQueue(tx, s.events.retention)
		got, err := q.lockRouter(store.Held, endpointRows.One(endpointKey(r.Team, r.Endpoint), store.Shared))
		if err != nil {
			return err
		}
		found, err := endpointRows.Decoded(got[0])
		switch {
		case err != nil:
			return err
		case len(found) == 0:
			return noEndpoint()
		case found[0].Value.Disabled:
			return fmt.Errorf("replay: %w: the endpoint is disabled; enable it first", healthlab.Precondition)
		}
		to := &found[0].Value
		if r.Event != uuid.Nil {
			done.Queued, err = q.replayEvent(to, &r)
		} else {
			done, err = q.replaySince(to, &r)
		}
		if err != nil {
			return err
		}
		return q.flush()
	})
	if err != nil {
		return Replayed{}, err
	}
	return done, nil
}

// replayEvent resends one message, and others if the mode of its type requires that. It returns the number of messages.
func (q *queue) replayEvent(to *Endpoint, r *Replay) (int, error) {
	found, err := eventRows.Find(q.tx, eventByID(r.Team, r.Event))
	if err != nil {
		return 0, err
	}
	if len(found) == 0 {
		return 0, fmt.Errorf("replay: message: %w", healthlab.NotFound)
	}
	e := &found[0].Value
	if !to.Matches(e.Event) {
		return 0, fmt.Errorf("replay: %w: the endpoint does not subscribe to the message's event type, or the message is about the endpoint itself", healthlab.Precondition)
	}
	routed, err := q.routed([]*eventRow{e})
	if err != nil {
		return 0, err
	}
	if !routed[e] {
		return 0, fmt.Errorf("replay: %w: the message is not routed yet; it is sent without a replay", healthlab.Precondition)
	}
	mode := modeOf(r.Modes, e.Type)
	again, err := q.eventsToResend(to, e, mode)
	switch {
	case err != nil:
		return 0, err
	case mode == healthlab.Latest && len(again) > 1:
		return 0, fmt.Errorf("replay: %w: the newer message %s replaces this one",
			healthlab.Precondition, MessageID(again[len(again)-1].ID))
	case emptied(again):
		return 0, bodyDeleted()
	}
	if err := q.loadUnfinished(again, []EndpointID{to.ID}); err != nil {
		return 0, err
	}
	for _, e := range again {
		list, err := q.unfinished(e, to.ID)
		if err != nil {
			return 0, err
		}
		if slices.ContainsFunc(list, func(u unfinished) bool { return u.sending(q.now) }) {
			return 0, fmt.Errorf("replay: %w: the message, or a later one of its key, is being sent; try again after that attempt", healthlab.Precondition)
		}
	}
	return len(again), q.requeue(to, again, mode, TriggerRetry)
}

func (u *unfinished) sending(now time.Time) bool { return u.waiting == nil && u.lane.Value.leased(now) }

func emptied(events []*eventRow) bool {
	return slices.ContainsFunc(events, func(e *eventRow) bool { return e.body == nil })
}

// routed reports for each event whether it was routed.
func (q *queue) routed(events []*eventRow) (map[*eventRow]bool, error) {
	read := make([]store.Query, len(events))
	for i, e := range events {
		read[i] = keyRows.One(store.Key{Team: e.Team, ID: keyID(&e.Event)}, store.Plain)
	}
	got, err := q.tx.Read(read...)
	if err != nil {
		return nil, err
	}
	out := map[*eventRow]bool{}
	for i, e := range events {
		found, err := keyRows.Decoded(got[i])
		if err != nil {
			return nil, err
		}
		out[e] = len(found) == 0 || e.Key != "" && e.Seq <= found[0].Value.Routed
	}
	return out, nil
}

// eventsToResend returns the messages to resend with the event e, which the endpoint must match: e itself and, unless
// its mode is Independent or it has no key, the later routed events of its key that the endpoint matches, in the order
// of Seq. The bodies of events that are read for this are cut to one byte.
func (q *queue) eventsToResend(to *Endpoint, e *eventRow, mode healthlab.Mode) ([]*eventRow, error) {
	if e.Key == "" || mode == healthlab.Independent {
		return []*eventRow{e}, nil
	}
	k, err := keyRows.Get(q.tx, store.Key{Team: e.Team, ID: keyID(&e.Event)}, store.Plain)
	if err != nil || k == nil {
		return []*eventRow{e}, err
	}
	out := []*eventRow{}
	list := store.Query{
		Key: store.Key{Team: e.Team}, By: store.ByID, From: eventID(&e.Event), To: k.Value.ID + store.Int(k.Value.Routed+1),
	}
	for last := ""; ; {
		page, err := eventRows.Find(q.tx, list.After(last, keyPage))
		if err != nil {
			return nil, err
		}
		for _, f := range page {
			later := &f.Value
			last = eventID(&later.Event)
			if to.Matches(later.Event) {
				later.body = later.body[:min(1, len(later.body))] // only the existence of the body matters
				out = append(out, later)
			}
		}
		if len(page) < keyPage {
			return out, nil
		}
	}
}

// requeue adds deliveries of the events at the end of their lane, in order. It removes their unfinished deliveries,
// except one that is being sent: that message is sent twice.
func (q *queue) requeue(to *Endpoint, events []*eventRow, mode healthlab.Mode, by Trigger) error {
	var quiet time.Time
	for _, e := range events {
		for {
			list, err := q.unfinished(e, to.ID)
			if err != nil {
				return err
			}
			at := slices.IndexFunc(list, func(u unfinished) bool { return !u.sending(q.now) })
			if at < 0 {
				break
			}
			if err := q.remove(list[at]); err != nil {
				return err
			}
			if l := list[at].lane; l.Value.Quiet.After(quiet) {
				quiet = l.Value.Quiet
			}
		}
	}
	for _, e := range events {
		if err := q.enqueue(to, e, mode, by); err != nil {
			return err
		}
	}
	l, err := q.lane(placeOf(to, &events[0].Event, mode))
	if err == nil && !l.empty && quiet.After(l.Value.Quiet) {
		l.Value.Quiet, l.changed = quiet, true
	}
	return err
}

// replaySince resends the lost messages in a time range, one page per call: see [Deliveries].Replay.
func (q *queue) replaySince(to *Endpoint, r *Replay) (Replayed, error) {
	after, err := decodeCursor(r.After, 8+len(Lane{})+8)
	if err != nil {
		return Replayed{}, err
	}
	most := r.Max
	if most <= 0 {
		most = defaultReplayPage
	}
	since := to.CreatedAt
	if r.Since.After(since) {
		since = r.Since
	}
	list := store.Query{Key: store.Key{Team: r.Team}, By: store.BySecond, From: store.Time(since)}
	if !r.Until.IsZero() {
		list.To = store.Time(r.Until)
	}
	found, err := eventRows.Find(q.tx, list.After(after, most+1))
	if err != nil {
		return Replayed{}, err
	}
	var done Replayed
	if len(found) > most {
		found = found[:most]
		done.Next = cursorOf(eventRows.Row(&found[most-1].Value).Index[1])
	}
	var lost []*eventRow
	for _, f := range found {
		if to.Matches(f.Value.Event) {
			lost = append(lost, &f.Value)
		}
	}
	if err := q.loadUnfinished(lost, []EndpointID{to.ID}); err != nil {
		return Replayed{}, err
	}
	routed, err := q.routed(lost)
	if err != nil {
		return Replayed{}, err
	}
	ended, err := q.deliveredOrSuperseded(lost, to.ID)
	if err != nil {
		return Replayed{}, err
	}
	for _, e := range lost {
		if !routed[e] || ended[e] {
			continue
		}
		n, err := q.recoverLost(to, e, modeOf(r.Modes, e.Type))
		if err != nil {
			return Replayed{}, err
		}
		done.Queued += n
	}
	return done, nil
}

// deliveredOrSuperseded reports for each event whether its last delivery to the endpoint succeeded or was superseded by
// a newer event.
func (q *queue) deliveredOrSuperseded(events []*eventRow, to EndpointID) (map[*eventRow]bool, error) {
	read := make([]store.Query, len(events))
	for i, e := range events {
		read[i] = prefixed(store.Query{
			Key: attemptRows.Key(store.Key{Team: e.Team}), By: store.BySecond, Desc: true, Lock: store.Plain,
		}, store.UUID(e.ID))
	}
	got, err := q.tx.Read(read...)
	if err != nil {
		return nil, err
	}
	out := map[*eventRow]bool{}
	for i, e := range events {
		lines, err := attemptRows.Decoded(got[i])
		if err != nil {
			return nil, err
		}
		for _, l := range lines {
			if l.Value.Endpoint == to && l.Value.State.Final() {
				out[e] = l.Value.State == Succeeded || l.Value.Reason == ReasonSuperseded
				break
			}
		}
	}
	return out, nil
}

// recoverLost resends a lost message, with the later ones of its key if the mode is Ordered. It returns the number of
// messages: 0 if the message is still to be sent, if a body was deleted, or if the mode is Latest and the key has a
// newer message.
func (q *queue) recoverLost(to *Endpoint, e *eventRow, mode healthlab.Mode) (int, error) {
	list, err := q.unfinished(e, to.ID)
	if err != nil || len(list) > 0 {
		return 0, err
	}
	again, err := q.eventsToResend(to, e, mode)
	if err != nil {
		return 0, err
	}
	if mode == healthlab.Latest && len(again) > 1 || emptied(again) {
		return 0, nil // the newest of the key is resent instead, or there is nothing to send
	}
	return len(again), q.requeue(to, again, mode, TriggerRecover)
}
