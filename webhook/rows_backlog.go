package webhook

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab/store"
)

// backlogLook is the highest number of keys and of lanes that Store.Backlog reads.
const backlogLook = 10_000

// Backlog counts undelivered events and deliveries of all teams. Of more than 10,000 keys or lanes it counts
// those that are due first.
func (s *Store) Backlog(ctx context.Context) (Backlog, error) {
	var b Backlog
	err := s.s.Update(ctx, func(_ context.Context, tx store.Tx) error { // reads the store's clock
		b = Backlog{}
		ever := store.Query{By: store.ByDue, Until: tx.Now().AddDate(1, 0, 0), Limit: backlogLook, Lock: store.Plain}
		ofKeys, ofLanes := ever, ever
		ofKeys.Table, ofLanes.Table = keyRows.Name, laneRows.Name
		got, err := tx.Read(ofKeys, ofLanes)
		if err != nil {
			return err
		}
		keys, err := keyRows.Decoded(got[0])
		if err != nil {
			return err
		}
		lanes, err := laneRows.Decoded(got[1])
		if err != nil {
			return err
		}
		oldest := tx.Now()
		since := func(t time.Time) {
			if t.Before(oldest) {
				oldest = t
			}
		}
		for _, k := range keys {
			b.Unrouted += max(1, int(k.Value.Seq-k.Value.Routed)) // an event without a key has no Seq
			since(k.Value.Since)
		}
		for _, l := range lanes {
			b.Unfinished += 1 + l.Value.Waiting
			since(l.Value.Head.Queued)
		}
		b.Oldest = tx.Now().Sub(oldest)
		return nil
	})
	return b, err
}
