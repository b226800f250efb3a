package appointment

import (
	"context"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/store"
)

// siteSlots are the cached slots of one center of a lab.
type siteSlots struct {
	Lab, Site string
	CachedSlots
}

var slotRows = store.Table[siteSlots]{Name: "order_slot_cache", Row: func(c *siteSlots) store.Row {
	return store.Row{Key: siteKey(c.Lab, c.Site)}
}}

func siteKey(lab, site string) store.Key { return store.Key{ID: store.Text(lab) + store.Text(site)} }

// Tables declares the table of [NewSlotCache].
func Tables() []store.Definition { return []store.Definition{slotRows.Definition()} }

// NewSlotCache returns a SlotCache in a store whose tables must include [Tables].
func NewSlotCache(s store.Store) SlotCache { return rows{s} }

type rows struct{ s store.Store }

// PutSlots implements [SlotCache].
func (v rows) PutSlots(ctx context.Context, lab string, at time.Time, slots map[string][]Slot) error {
	at = healthlab.At(at).Time
	return v.s.Update(ctx, func(_ context.Context, tx store.Tx) error {
		var ask []store.Query
		var sites []string
		for site := range slots {
			sites, ask = append(sites, site), append(ask, slotRows.One(siteKey(lab, site), store.Held))
		}
		got, err := tx.Read(ask...)
		if err != nil {
			return err
		}
		for i, site := range sites {
			cached, err := slotRows.Decoded(got[i])
			if err != nil {
				return err
			}
			next := &store.Entry[siteSlots]{}
			if len(cached) > 0 {
				next = cached[0]
			}
			if next.Value.At.After(at) {
				continue
			}
			next.Value = siteSlots{lab, site, CachedSlots{At: at, Slots: normalSlots(slots[site])}}
			if err := slotRows.Put(tx, next); err != nil {
				return err
			}
		}
		return nil
	})
}

// normalSlots returns a copy of slots with times in UTC to the microsecond.
func normalSlots(list []Slot) []Slot {
	out := make([]Slot, 0, len(list))
	for _, slot := range list {
		slot.Start, slot.End = healthlab.At(slot.Start).Time, healthlab.At(slot.End).Time
		if !slot.Expires.IsZero() {
			slot.Expires = healthlab.At(slot.Expires).Time
		}
		out = append(out, slot)
	}
	return out
}

// CachedSlots implements [SlotCache].
func (v rows) CachedSlots(ctx context.Context, lab string, sites []string) (map[string]CachedSlots, error) {
	ask := make([]store.Query, len(sites))
	for i, site := range sites {
		ask[i] = slotRows.One(siteKey(lab, site), store.Plain)
	}
	got, err := v.s.Read(ctx, ask...)
	if err != nil {
		return nil, err
	}
	out := map[string]CachedSlots{}
	for i, site := range sites {
		cached, err := slotRows.Decoded(got[i])
		if err != nil {
			return nil, err
		}
		if len(cached) > 0 {
			out[site] = cached[0].Value.CachedSlots
		}
	}
	return out, nil
}
