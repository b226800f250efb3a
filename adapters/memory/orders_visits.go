package memory

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

// ClaimVisits implements [orders.VisitStore].
func (v ordersStore) ClaimVisits(ctx context.Context, n int, now time.Time, lease time.Duration) ([]orders.Record, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	at := v.clock()
	due := v.orders.due(n, now, &v.orders.visitsDue, func(r *orders.Record) time.Time { return dueUnlessLeased(r.VisitWork.Due, r.VisitWork.Lease, at) })
	return v.orders.claim(ctx, due, func(r *orders.Record) { r.VisitWork.Lease = at.Add(lease) })
}

type slotCache struct {
	*database
	orders *orderTable
}

func (v slotCache) PutSlots(ctx context.Context, lab string, at time.Time, slots map[string][]appointment.Slot) error {
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	for site, free := range slots {
		name := slotSite{lab, site}
		if kept, ok := v.orders.slots[name]; ok && kept.At.After(instant(at)) {
			continue
		}
		v.orders.slots[name] = appointment.CachedSlots{At: instant(at), Slots: normalSlots(free)}
	}
	return nil
}

func (v slotCache) CachedSlots(ctx context.Context, lab string, sites []string) (map[string]appointment.CachedSlots, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	out := map[string]appointment.CachedSlots{}
	for _, site := range sites {
		if kept, ok := v.orders.slots[slotSite{lab, site}]; ok {
			out[site] = appointment.CachedSlots{At: kept.At, Slots: normalSlots(kept.Slots)}
		}
	}
	return out, nil
}

// normalSlots is a copy in the form in which slots are kept.
func normalSlots(list []appointment.Slot) []appointment.Slot {
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
