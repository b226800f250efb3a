package healthdata

func activityOf(name string, t ColumnType, unit, doc string, get func(*Activity, *Row) Cell) Column {
	return of(name, t, unit, doc, get)
}

func activityInt(name, unit string, get func(*Activity) *int64) Column {
	return activityOf(name, TypeInt64, unit, "", func(a *Activity, _ *Row) Cell { return intPtr(get(a)) })
}

func activityFloat(name, unit string, get func(*Activity) *float64) Column {
	return activityOf(name, TypeFloat64, unit, "", func(a *Activity, _ *Row) Cell { return floatPtr(get(a)) })
}

func activityHeart(name string, get func(*ActivityHeartRate) *float64) Column {
	return activityFloat(name, "bpm", func(a *Activity) *float64 {
		if a.HeartRate == nil {
			return nil
		}
		return get(a.HeartRate)
	})
}

func activityIntensity(name string, get func(*Activity) *float64) Column {
	return activityOf(name, TypeInt64, "s", "", func(a *Activity, _ *Row) Cell { return minutes(get(a)) })
}

var activityColumns = append(append([]Column{
	activityOf("date", TypeDate, "", "also the index", func(a *Activity, _ *Row) Cell { return dateCell(a.CalendarDate) }),
	activityFloat("calories_total", "kcal", func(a *Activity) *float64 { return a.CaloriesTotal }),
	activityFloat("calories_active", "kcal", func(a *Activity) *float64 { return a.CaloriesActive }),
	activityInt("steps", "count", func(a *Activity) *int64 { return a.Steps }),
	activityFloat("distance_meter", "m", func(a *Activity) *float64 { return a.Distance }),
	activityInt("floors_climbed", "count", func(a *Activity) *int64 { return a.FloorsClimbed }),
	activityOf("duration_active_second", TypeInt64, "s", "the time at any intensity; null where none is known", activeTime),
	never("intensity_sedentary_second", TypeInt64, "s"),
	activityIntensity("intensity_low_second", func(a *Activity) *float64 { return a.Low }),
	activityIntensity("intensity_medium_second", func(a *Activity) *float64 { return a.Medium }),
	activityIntensity("intensity_high_second", func(a *Activity) *float64 { return a.High }),
	activityHeart("heart_rate_mean", func(h *ActivityHeartRate) *float64 { return h.AvgBPM }),
	activityHeart("heart_rate_minimum", func(h *ActivityHeartRate) *float64 { return h.MinBPM }),
	activityHeart("heart_rate_maximum", func(h *ActivityHeartRate) *float64 { return h.MaxBPM }),
	activityHeart("heart_rate_resting", func(h *ActivityHeartRate) *float64 { return h.RestingBPM }),
	activityHeart("heart_rate_mean_walking", func(h *ActivityHeartRate) *float64 { return h.AvgWalkingBPM }),
	activityOf("wheelchair_use", TypeBool, "", "", func(a *Activity, _ *Row) Cell { return boolPtr(a.WheelchairUse) }),
	activityInt("wheelchair_push", "count", func(a *Activity) *int64 { return a.WheelchairPush }),
}, sourceColumns()...),
	activityOf("time_zone", TypeString, "", "identifier of the zone", func(a *Activity, _ *Row) Cell { return textPtr(a.TimeZone) }),
	activityOf("time_zone_offset", TypeInt64, "s", "seconds east of UTC", func(_ *Activity, r *Row) Cell { return intCell(int64(r.Record.Offset)) }),
)

// activeTime is the time at low, medium and high intensity, of those that are known.
func activeTime(a *Activity, _ *Row) Cell {
	var out Cell
	for _, v := range [...]*float64{a.Low, a.Medium, a.High} {
		if s := minutes(v); s.Valid {
			out.Valid = true
			out.Int += s.Int
		}
	}
	return out
}
