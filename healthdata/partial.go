package healthdata

import (
	"cmp"
	"context"
	"fmt"
	"reflect"

	"github.com/google/uuid"
)

// mergeAttempts is the largest number of attempts to merge an upload with stored versions that other uploads change.
const mergeAttempts = 10

// mergedRecords merges the Partial items with their stored versions and returns the records of all items.
func (in *intake) mergedRecords(ctx context.Context, items []Summary) ([]Record, error) {
	if err := in.mergePartial(ctx, items); err != nil {
		return nil, fmt.Errorf("stored summaries: %w", err)
	}
	records := make([]Record, len(items))
	for i, item := range items {
		var err error
		if records[i], err = in.record(item); err != nil {
			return nil, err
		}
	}
	return records, nil
}

// mergePartial merges the Partial items with their stored versions, and sets what they replace.
func (in *intake) mergePartial(ctx context.Context, items []Summary) error {
	stored := map[uuid.UUID]*Record{}
	for _, item := range items {
		if item.head().Partial {
			stored[item.head().ID] = nil
		}
	}
	if len(stored) == 0 {
		return nil
	}
	err := in.data.View(ctx, in.team, in.user.ID, func(v View) error {
		for id := range stored {
			records, err := v.Records(ctx, RecordQuery{Resource: in.resource.Slug, ID: id})
			if err != nil {
				return err
			}
			if stored[id] = nil; len(records) > 0 {
				stored[id] = &records[0]
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, item := range items {
		if item.head().Partial {
			if err := mergeWithRecord(item, stored[item.head().ID]); err != nil {
				return err
			}
		}
	}
	return nil
}

// mergeWithRecord merges a Partial item with its stored version, which is nil if there is none.
func mergeWithRecord(item Summary, stored *Record) error {
	replaces := []byte{}
	if stored != nil {
		was, err := stored.Decode()
		if err != nil {
			return err
		}
		replaces = stored.Doc
		switch v := item.(type) {
		case *Sleep:
			fillNulls(v, was.(*Sleep))
		case *Activity:
			v.mergeTotals(was.(*Activity))
		}
	}
	item.head().replaces = replaces
	if s, ok := item.(*Sleep); ok {
		s.derive()
	}
	return nil
}

// fillNulls sets the fields of to that are nil pointers to those of from.
func fillNulls[T Sleep | Activity | ActivityHeartRate](to, from *T) {
	v, other := reflect.ValueOf(to).Elem(), reflect.ValueOf(from).Elem()
	for i := range v.NumField() {
		if f := v.Field(i); f.Kind() == reflect.Pointer && f.IsNil() {
			f.Set(other.Field(i))
		}
	}
}

// mergeTotals merges a day with its stored version. If none of its totals exceeds the stored one, it is the earlier
// version, and gives only what the stored version lacks.
func (a *Activity) mergeTotals(was *Activity) {
	head, exceeds := a.Head, false
	for _, v := range [...]struct{ total, was **int64 }{
		{&a.Steps, &was.Steps}, {&a.FloorsClimbed, &was.FloorsClimbed}, {&a.WheelchairPush, &was.WheelchairPush},
	} {
		exceeds = takeGreater(v.total, *v.was) || exceeds
	}
	for _, v := range [...]struct{ total, was **float64 }{
		{&a.CaloriesTotal, &was.CaloriesTotal}, {&a.CaloriesActive, &was.CaloriesActive}, {&a.DailyMovement, &was.DailyMovement},
		{&a.Distance, &was.Distance}, {&a.Low, &was.Low}, {&a.Medium, &was.Medium}, {&a.High, &was.High},
	} {
		exceeds = takeGreater(v.total, *v.was) || exceeds
	}
	later, earlier := *a, *was
	if !exceeds {
		later, earlier = *was, *a
	}
	if h, before := later.HeartRate, earlier.HeartRate; h != nil && before != nil {
		later.HeartRate = h.mergedWith(before)
	}
	fillNulls(&later, &earlier)
	*a = later
	a.Head = head
}

// takeGreater sets total to the stored total if that is not less. It reports whether total is greater.
func takeGreater[T cmp.Ordered](total **T, was *T) bool {
	if *total == nil || was != nil && *was >= **total {
		*total = was
		return false
	}
	return true
}

// mergedWith returns the heart rates of two parts of a day. The mean of both is not known if both have one.
func (h *ActivityHeartRate) mergedWith(earlier *ActivityHeartRate) *ActivityHeartRate {
	out := *h
	fillNulls(&out, earlier)
	if earlier.MinBPM != nil {
		out.MinBPM = new(min(*out.MinBPM, *earlier.MinBPM))
	}
	if earlier.MaxBPM != nil {
		out.MaxBPM = new(max(*out.MaxBPM, *earlier.MaxBPM))
	}
	if measured := h.MinBPM != nil && earlier.MinBPM != nil; measured && (h.AvgBPM == nil || earlier.AvgBPM == nil || *h.AvgBPM != *earlier.AvgBPM) {
		out.AvgBPM = nil
	}
	return &out
}
