package healthdata

import (
	"context"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/series"
)

// The user's fallback zone gives the offset of an item without a zone. An item that is sent again keeps its stored
// offset even if the fallback zone has changed, because the new zone does not say where the item was recorded.

func (in *intake) assumes(at time.Time, own *int, zone *string) bool {
	// The fallback zone may have been another one when the item was first stored.
	zoneOfUser := in.user.FallbackTimeZone
	return own == nil && zone == nil && in.TimeZone == "" && !in.clock.floating &&
		zoneOfUser.UpdatedAt.After(in.user.CreatedOn.Time) && at.Before(zoneOfUser.UpdatedAt.Add(futureLimit))
}

// assumedTimes has the times of those samples of a batch whose offset comes from the fallback zone.
type assumedTimes map[int64]bool

// restoreSampleOffsets sets the stored offset on samples whose offset comes from the fallback zone. assumed has an
// entry for each batch.
func (in *intake) restoreSampleOffsets(ctx context.Context, batches []SampleBatch, assumed []assumedTimes) error {
	for i := range batches {
		if len(assumed[i]) == 0 {
			continue
		}
		stored, err := in.storedOffsets(ctx, &batches[i], assumed[i])
		if err != nil {
			return fmt.Errorf("stored samples: %w", err)
		}
		if len(stored) == 0 {
			continue
		}
		var b series.Builder
		for _, sample := range batches[i].Samples.All() {
			if offset, ok := stored[sample.Time]; ok {
				sample.Offset = offset
			}
			b.Add(sample)
		}
		batches[i].Samples = b.Block()
	}
	return nil
}

// storedOffsets returns, by time, the stored offsets of the samples of a batch at the times in assumed.
func (in *intake) storedOffsets(ctx context.Context, batch *SampleBatch, assumed assumedTimes) (map[int64]int32, error) {
	r := series.Range{From: series.MaxTime, To: series.MinTime}
	for at := range assumed {
		r.From, r.To = min(r.From, at), max(r.To, at+1)
	}
	var out map[int64]int32
	err := in.data.View(ctx, in.team, in.user.ID, func(v View) error {
		out = map[int64]int32{}
		all, err := v.Series(ctx, SeriesQuery{Resources: []string{batch.Key.Resource}, From: r.From, To: r.To, Key: &batch.Key, Whole: true})
		if err != nil {
			return err
		}
		for i := range all {
			if all[i].Key != batch.Key {
				continue
			}
			err := readSeries(ctx, v, &all[i], r, func(b *series.Block) bool {
				for _, sample := range b.All() {
					if assumed[sample.Time] {
						out[sample.Time] = sample.Offset
					}
				}
				return true
			})
			if err != nil {
				return err
			}
		}
		return nil
	})
	return out, err
}

// restoreSummaryOffsets sets the stored offset on summaries whose offset comes from the fallback zone.
func (in *intake) restoreSummaryOffsets(ctx context.Context, items []Summary) error {
	assumed := map[uuid.UUID]Summary{}
	var q RecordQuery
	for _, item := range items {
		if !item.head().assumed.offset {
			continue
		}
		assumed[item.head().ID] = item
		at := item.index()
		if q.From.IsZero() || at.Before(q.From) {
			q.From = at
		}
		if at.After(q.To) {
			q.To = at
		}
	}
	if len(assumed) == 0 {
		return nil
	}
	q.Resource, q.Provider = in.resource.Slug, in.Provider
	var stored []Record
	err := in.data.View(ctx, in.team, in.user.ID, func(v View) (err error) {
		stored, err = v.Records(ctx, q)
		return err
	})
	if err != nil {
		return fmt.Errorf("stored summaries: %w", err)
	}
	for i := range stored {
		item := assumed[stored[i].ID]
		if item == nil {
			continue
		}
		old, err := stored[i].Decode()
		if err != nil {
			return fmt.Errorf("stored summaries: %w", err)
		}
		offset, _ := item.zone()
		*offset = &stored[i].Offset
		if s, ok := item.(session); ok {
			*s.offsets() = *old.(session).offsets()
		}
		if item.head().assumed.day {
			*dateOf(item) = healthlab.Date{}
			item.complete()
		}
	}
	return nil
}

// dateOf returns a pointer to the calendar date of a summary whose date is derived from its times; nil for
// others.
func dateOf(item Summary) *healthlab.Date {
	switch v := item.(type) {
	case *Sleep:
		return &v.CalendarDate
	case *Workout:
		return &v.CalendarDate
	case *Body:
		return &v.CalendarDate
	case *Meal:
		return &v.CalendarDate
	default:
		return nil
	}
}
