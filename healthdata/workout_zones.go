package healthdata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// longestBeat is the longest time, in seconds, that one heart rate of a stream is assumed to last. A longer gap is a
// pause or a lost sensor.
const longestBeat = 60

// fillZones sets the heart rate zones of workouts without zones from their stored streams, or to an empty array,
// because the JSON has no null here.
func (in *intake) fillZones(ctx context.Context, items []Summary) error {
	for _, item := range items {
		w, ok := item.(*Workout)
		if !ok || w.HRZones != nil {
			continue
		}
		w.HRZones = []int64{}
		owner, rec, err := in.data.Find(ctx, in.team, streamSlug, w.ID)
		if errors.Is(err, healthlab.NotFound) || err == nil && owner != in.user.ID {
			continue
		}
		if err != nil {
			return fmt.Errorf("stream of the workout: %w", err)
		}
		var stream WorkoutStream
		if err := json.Unmarshal(rec.Doc, &stream); err != nil {
			return fmt.Errorf("decode workout stream: %w", err)
		}
		if err := in.setZones(ctx, w, &stream); err != nil {
			return err
		}
	}
	return nil
}

// setZones computes the heart rate zones of a workout from its stream. The maximum heart rate follows from the
// birth date in the source's profile, or from the user's fallback birth date. A stream without heart rates
// changes nothing.
func (in *intake) setZones(ctx context.Context, w *Workout, stream *WorkoutStream) error {
	var bpm, seconds []float64
	for i, v := range stream.Heartrate {
		if v == nil || i+1 == len(stream.Time) {
			continue // it is not known how long the last value lasted
		}
		bpm = append(bpm, float64(*v))
		seconds = append(seconds, float64(min(stream.Time[i+1]-stream.Time[i], longestBeat)))
	}
	if len(bpm) == 0 {
		return nil
	}
	birth, err := in.profileBirthDate(ctx)
	if err != nil {
		return fmt.Errorf("profile of the user: %w", err)
	}
	start := w.TimeStart
	if w.TimezoneOffset != nil {
		start.Time = start.In(time.FixedZone("", *w.TimezoneOffset))
	}
	w.zonesOfStream = true
	w.HRZones = HeartRateZones(bpm, seconds, in.user.MaxHeartRate(nil, birth, start))
	return nil
}

// putZones sets the heart rate zones of a stored workout without zones from its stream, and writes the workout with the
// event about the change.
func (in *intake) putZones(ctx context.Context, stored Record, stream *WorkoutStream) error {
	item, err := stored.Decode()
	if err != nil {
		return err
	}
	w, ok := item.(*Workout)
	if !ok || len(w.HRZones) > 0 && !w.zonesOfStream {
		return nil
	}
	if err := in.setZones(ctx, w, stream); err != nil || !w.zonesOfStream {
		return err
	}
	w.CreatedAt, w.UpdatedAt = healthlab.Time{}, healthlab.Time{} // the times are fields of the record
	stored.Replaces = stored.Doc
	if stored.Doc, err = encodeRecord(w); err != nil {
		return err
	}
	stored.UpdatedAt = in.now.Time
	of := *in
	of.resource = ResourceBySlug(stored.Resource)
	err = in.data.PutRecords(ctx, in.team, in.user.ID, []Record{stored}, func(results []PutResult) ([]healthlab.Event, error) {
		if results[0].Outcome == PutSame || !of.emitsEvents() {
			return nil, nil
		}
		data, err := in.summaryData(w, results[0], in.now)
		if err != nil {
			return nil, err
		}
		return []healthlab.Event{of.event(results[0].Outcome, stored.ID.String(), data)}, nil
	})
	if errors.Is(err, healthlab.Precondition) {
		return nil // the workout was sent again meanwhile and has its zones
	}
	return err
}

// profileBirthDate returns the birth date in the profile of an upload's provider; nil if
// there is none.
func (in *intake) profileBirthDate(ctx context.Context) (birth *healthlab.Date, err error) {
	err = in.data.View(ctx, in.team, in.user.ID, func(v View) error {
		birth = nil
		records, err := v.Records(ctx, RecordQuery{Resource: "profile", Provider: in.Provider})
		if err != nil {
			return err
		}
		for i := range records {
			item, err := records[i].Decode()
			if err != nil {
				return err
			}
			if p, ok := item.(*Profile); ok && p.BirthDate != nil {
				birth = p.BirthDate
			}
		}
		return nil
	})
	return birth, err
}

// assumedAge is the age that is used if the age of a person is not known.
const assumedAge = 30

// MaxHeartRate returns 220 minus the age in full years at the start of a workout (Fox, Naughton and Haskell,
// 1971). If the birth date is not known, the age is 30. The day of the workout is that of at's location.
func MaxHeartRate(birth *healthlab.Date, at healthlab.Time) int {
	age := assumedAge
	if birth != nil {
		age = AgeOn(*birth, healthlab.DateOf(at.Time))
	}
	return 220 - age
}

// MaxHeartRate returns the maximum heart rate for a workout of this user. It uses the age that the workout's
// source states, then the birth date that the source states, then the fallback birth date. Nil means that the
// source states nothing.
func (u *User) MaxHeartRate(age *int, birth *healthlab.Date, at healthlab.Time) int {
	if age != nil {
		return 220 - *age
	}
	if birth == nil && u.FallbackBirthDate != nil {
		birth = &u.FallbackBirthDate.Value
	}
	return MaxHeartRate(birth, at)
}

// AgeOn returns the age in full years on a day. A person born on 29 February is a year older on 1 March in a
// year without that day. Before birth the age is 0.
func AgeOn(birth, day healthlab.Date) int {
	age := day.Year - birth.Year
	if day.Month < birth.Month || day.Month == birth.Month && day.Day < birth.Day {
		age--
	}
	return max(age, 0)
}

// HeartRateZones returns the seconds in each of the six zones of [Workout], given heart rates in beats per
// minute and the seconds that each of them lasted. A rate on the border of two zones belongs to the higher one.
func HeartRateZones(bpm []float64, seconds []float64, maximum int) []int64 {
	var zones [6]float64
	for i, v := range bpm {
		z := 0
		// Compared in tenths of the maximum, so that a border is an exact number.
		for z < 5 && v*10 >= float64(maximum*(5+z)) {
			z++
		}
		zones[z] += seconds[i]
	}
	out := make([]int64, len(zones))
	for i, s := range zones {
		out[i] = int64(s + 0.5)
	}
	return out
}
