package memory

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

// teamHold is a name that one order of a team has.
type teamHold struct {
	team healthlab.TeamID
	name string
}

// slotSite is a center whose free slots are kept.
type slotSite struct{ lab, site string }

// release gives back what an order holds.
func (t *orderTable) release(r *orders.Record) {
	for _, name := range r.Reservations() {
		delete(t.holds, teamHold{r.TeamID, name})
	}
}

// ClaimVisits implements [orders.VisitStore].
func (v ordersStore) ClaimVisits(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
	if err := v.s.lock(ctx); err != nil {
		return nil, err
	}
	defer v.s.mu.Unlock()
	at := v.s.clock()
	due := v.s.orders.due(n, now, &v.s.orders.visitsDue, func(r *orders.Record) time.Time { return unleased(r.VisitWork.Due, r.VisitWork.Lease, at) })
	out := make([]orders.Record, 0, len(due))
	for _, kept := range due {
		loaded, err := v.s.orders.moved(ctx, kept, func(r *orders.Record) { r.VisitWork.Lease = at.Add(lease) })
		if err != nil {
			return nil, err
		}
		out = append(out, loaded)
	}
	return out, nil
}

// SlotCache returns the store as an [appointment.SlotCache].
func (s *Store) SlotCache() appointment.SlotCache { return slotCache{s} }

type slotCache struct{ s *Store }

func (v slotCache) PutSlots(ctx context.Context, lab string, at time.Time, slots map[string][]appointment.Slot) error {
	if err := v.s.lock(ctx); err != nil {
		return err
	}
	defer v.s.mu.Unlock()
	for site, free := range slots {
		name := slotSite{lab, site}
		if kept, ok := v.s.orders.slots[name]; ok && kept.At.After(instant(at)) {
			continue
		}
		v.s.orders.slots[name] = appointment.CachedSlots{At: instant(at), Slots: ownSlots(free)}
	}
	return nil
}

func (v slotCache) CachedSlots(ctx context.Context, lab string, sites []string) (map[string]appointment.CachedSlots, error) {
	if err := v.s.lock(ctx); err != nil {
		return nil, err
	}
	defer v.s.mu.Unlock()
	out := map[string]appointment.CachedSlots{}
	for _, site := range sites {
		if kept, ok := v.s.orders.slots[slotSite{lab, site}]; ok {
			out[site] = appointment.CachedSlots{At: kept.At, Slots: ownSlots(kept.Slots)}
		}
	}
	return out, nil
}

// ownSlots is a copy in the form in which slots are kept.
func ownSlots(list []appointment.Slot) []appointment.Slot {
	out := make([]appointment.Slot, 0, len(list))
	for _, slot := range list {
		slot.Start, slot.End = instant(slot.Start), instant(slot.End)
		if !slot.Expires.IsZero() {
			slot.Expires = instant(slot.Expires)
		}
		out = append(out, slot)
	}
	return out
}
