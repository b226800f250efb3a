package healthdata

import "strconv"

func workoutOf(name string, t ColumnType, unit, doc string, get func(*Workout, *Row) Cell) Column {
	return of(name, t, unit, doc, get)
}

func workoutInt(name, unit string, get func(*Workout) *int64) Column {
	return workoutOf(name, TypeInt64, unit, "", func(w *Workout, _ *Row) Cell { return intPtr(get(w)) })
}

func workoutFloat(name, unit string, get func(*Workout) *float64) Column {
	return workoutOf(name, TypeFloat64, unit, "", func(w *Workout, _ *Row) Cell { return floatPtr(get(w)) })
}

// workoutZone is the time in heart rate zone n, counted from 1.
func workoutZone(n int, doc string) Column {
	return workoutOf("heart_rate_zone_"+strconv.Itoa(n), TypeInt64, "s", doc, func(w *Workout, _ *Row) Cell {
		if n > len(w.HRZones) {
			return Cell{}
		}
		return intCell(w.HRZones[n-1])
	})
}

func workoutMap(name string, get func(*Map) *string) Column {
	return workoutOf(name, TypeString, "", "encoded polyline", func(w *Workout, _ *Row) Cell {
		if w.Map == nil {
			return Cell{}
		}
		return textPtr(get(w.Map))
	})
}

var workoutColumns = append(append([]Column{
	workoutOf("session_start", TypeTimestamp, "local", "also the index", func(w *Workout, r *Row) Cell { return localCell(r, w.TimeStart) }),
	workoutOf("session_end", TypeTimestamp, "local", "", func(w *Workout, r *Row) Cell { return localCell(r, w.TimeEnd) }),
	workoutOf("title", TypeString, "", "", func(w *Workout, _ *Row) Cell { return textPtr(w.Title) }),
	workoutOf("sport_name", TypeString, "", "", func(w *Workout, _ *Row) Cell { return textCell(w.Sport.Name) }),
	workoutOf("sport_slug", TypeString, "", "", func(w *Workout, _ *Row) Cell { return textCell(w.Sport.Slug) }),
	workoutInt("duration_active_second", "s", func(w *Workout) *int64 { return w.MovingTime }),
	workoutInt("heart_rate_mean", "bpm", func(w *Workout) *int64 { return w.AverageHR }),
	never("heart_rate_minimum", TypeInt64, "bpm"),
	workoutInt("heart_rate_maximum", "bpm", func(w *Workout) *int64 { return w.MaxHR }),
	workoutZone(1, "below 50 % of the maximum heart rate"),
	workoutZone(2, "50 to 60 % of the maximum heart rate"),
	workoutZone(3, "60 to 70 % of the maximum heart rate"),
	workoutZone(4, "70 to 80 % of the maximum heart rate"),
	workoutZone(5, "80 to 90 % of the maximum heart rate"),
	workoutZone(6, "90 % of the maximum heart rate and above"),
	workoutFloat("distance_meter", "m", func(w *Workout) *float64 { return w.Distance }),
	workoutFloat("calories", "kcal", func(w *Workout) *float64 { return w.Calories }),
	workoutFloat("elevation_gain_meter", "m", func(w *Workout) *float64 { return w.TotalElevationGain }),
	workoutFloat("elevation_maximum_meter", "m", func(w *Workout) *float64 { return w.ElevHigh }),
	workoutFloat("elevation_minimum_meter", "m", func(w *Workout) *float64 { return w.ElevLow }),
	workoutFloat("speed_mean", "m/s", func(w *Workout) *float64 { return w.AverageSpeed }),
	workoutFloat("speed_maximum", "m/s", func(w *Workout) *float64 { return w.MaxSpeed }),
	workoutFloat("power_source", "W", func(w *Workout) *float64 { return w.DeviceWatts }),
	workoutFloat("power_mean", "W", func(w *Workout) *float64 { return w.AverageWatts }),
	workoutFloat("power_maximum", "W", func(w *Workout) *float64 { return w.MaxWatts }),
	workoutFloat("power_weighted_mean", "W", func(w *Workout) *float64 { return w.WeightedAverageWatts }),
	workoutInt("steps", "count", func(w *Workout) *int64 { return w.Steps }),
	workoutMap("map_polyline", func(m *Map) *string { return m.Polyline }),
	workoutMap("map_summary_polyline", func(m *Map) *string { return m.SummaryPolyline }),
}, sourceColumns()...),
	workoutOf("external_id", TypeString, "", "the source's own id", func(w *Workout, _ *Row) Cell { return textCell(w.ProviderID) }),
	workoutOf("time_zone", TypeString, "", "UTC±HH:MM", func(_ *Workout, r *Row) Cell { return zoneCell(nil, r.Record.Offset) }),
)
