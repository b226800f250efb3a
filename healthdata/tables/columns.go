package tables

import (
	"strconv"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

func activityOf(name string, t ColumnType, unit, doc string, get func(*healthdata.Activity, *Row) Cell) Column {
	return of(name, t, unit, doc, get)
}

func activityInt(name, unit string, get func(*healthdata.Activity) *int64) Column {
	return activityOf(name, TypeInt64, unit, "", func(a *healthdata.Activity, _ *Row) Cell { return intPtr(get(a)) })
}

func activityFloat(name, unit string, get func(*healthdata.Activity) *float64) Column {
	return activityOf(name, TypeFloat64, unit, "", func(a *healthdata.Activity, _ *Row) Cell { return floatPtr(get(a)) })
}

func activityHeart(name string, get func(*healthdata.ActivityHeartRate) *float64) Column {
	return activityFloat(name, "bpm", func(a *healthdata.Activity) *float64 {
		if a.HeartRate == nil {
			return nil
		}
		return get(a.HeartRate)
	})
}

func activityIntensity(name string, get func(*healthdata.Activity) *float64) Column {
	return activityOf(name, TypeInt64, "s", "", func(a *healthdata.Activity, _ *Row) Cell { return minutes(get(a)) })
}

var activityColumns = append(append([]Column{
	activityOf("date", TypeDate, "", "also the index", func(a *healthdata.Activity, _ *Row) Cell { return dateCell(a.CalendarDate) }),
	activityFloat("calories_total", "kcal", func(a *healthdata.Activity) *float64 { return a.CaloriesTotal }),
	activityFloat("calories_active", "kcal", func(a *healthdata.Activity) *float64 { return a.CaloriesActive }),
	activityInt("steps", "count", func(a *healthdata.Activity) *int64 { return a.Steps }),
	activityFloat("distance_meter", "m", func(a *healthdata.Activity) *float64 { return a.Distance }),
	activityInt("floors_climbed", "count", func(a *healthdata.Activity) *int64 { return a.FloorsClimbed }),
	activityOf("duration_active_second", TypeInt64, "s", "the time at any intensity; null where none is known", activeTime),
	nullColumn("intensity_sedentary_second", TypeInt64, "s"),
	activityIntensity("intensity_low_second", func(a *healthdata.Activity) *float64 { return a.Low }),
	activityIntensity("intensity_medium_second", func(a *healthdata.Activity) *float64 { return a.Medium }),
	activityIntensity("intensity_high_second", func(a *healthdata.Activity) *float64 { return a.High }),
	activityHeart("heart_rate_mean", func(h *healthdata.ActivityHeartRate) *float64 { return h.AvgBPM }),
	activityHeart("heart_rate_minimum", func(h *healthdata.ActivityHeartRate) *float64 { return h.MinBPM }),
	activityHeart("heart_rate_maximum", func(h *healthdata.ActivityHeartRate) *float64 { return h.MaxBPM }),
	activityHeart("heart_rate_resting", func(h *healthdata.ActivityHeartRate) *float64 { return h.RestingBPM }),
	activityHeart("heart_rate_mean_walking", func(h *healthdata.ActivityHeartRate) *float64 { return h.AvgWalkingBPM }),
	activityOf("wheelchair_use", TypeBool, "", "", func(a *healthdata.Activity, _ *Row) Cell { return boolPtr(a.WheelchairUse) }),
	activityInt("wheelchair_push", "count", func(a *healthdata.Activity) *int64 { return a.WheelchairPush }),
}, sourceColumns()...),
	activityOf("time_zone", TypeString, "", "identifier of the zone", func(a *healthdata.Activity, _ *Row) Cell { return textPtr(a.TimeZone) }),
	activityOf("time_zone_offset", TypeInt64, "s", "seconds east of UTC", func(_ *healthdata.Activity, r *Row) Cell { return intCell(int64(r.Record.Offset)) }),
)

// activeTime returns the sum of the known times at low, medium and high intensity.
func activeTime(a *healthdata.Activity, _ *Row) Cell {
	var out Cell
	for _, v := range [...]*float64{a.Low, a.Medium, a.High} {
		if s := minutes(v); s.Valid {
			out.Valid = true
			out.Int += s.Int
		}
	}
	return out
}

func bodyFloat(name, unit string, get func(*healthdata.Body) *float64) Column {
	return of(name, TypeFloat64, unit, "", func(b *healthdata.Body, _ *Row) Cell { return floatPtr(get(b)) })
}

var bodyColumns = append(append([]Column{
	of("measured_at", TypeTimestamp, "local", "instant of the measurement; also the index", func(_ *healthdata.Body, r *Row) Cell {
		return intCell(localIndex(r))
	}),
	bodyFloat("weight_kilogram", "kg", func(b *healthdata.Body) *float64 { return b.Weight }),
	bodyFloat("fat_mass_percentage", "%", func(b *healthdata.Body) *float64 { return b.Fat }),
	bodyFloat("water_percentage", "%", func(b *healthdata.Body) *float64 { return b.WaterPercentage }),
	bodyFloat("muscle_mass_percentage", "%", func(b *healthdata.Body) *float64 { return b.MuscleMassPercentage }),
	bodyFloat("visceral_fat_index", "index", func(b *healthdata.Body) *float64 { return b.VisceralFatIndex }),
	bodyFloat("bone_mass_percentage", "%", func(b *healthdata.Body) *float64 { return b.BoneMassPercentage }),
	bodyFloat("body_mass_index", "kg/m²", func(b *healthdata.Body) *float64 { return b.BodyMassIndex }),
	bodyFloat("lean_body_mass_kilogram", "kg", func(b *healthdata.Body) *float64 { return b.LeanBodyMassKilogram }),
	bodyFloat("waist_circumference_centimeter", "cm", func(b *healthdata.Body) *float64 { return b.WaistCircumferenceCentimeter }),
}, sourceColumns()...),
	of("time_zone", TypeString, "", "UTC±HH:MM", func(_ *healthdata.Body, r *Row) Cell { return zoneCell(nil, r.Record.Offset) }),
)

func cycleOf(name string, t ColumnType, doc string, get func(*healthdata.MenstrualCycle) Cell) Column {
	return of(name, t, "", doc, func(c *healthdata.MenstrualCycle, _ *Row) Cell { return get(c) })
}

// cycleList returns a column with a list of days and at most one further field.
func cycleList(name, field string, t ColumnType, get func(*healthdata.MenstrualCycle) Cell) Column {
	c := cycleOf(name, TypeList, "", get)
	c.Fields = []ListField{{Name: "date", Type: TypeDate}}
	if field != "" {
		c.Fields = append(c.Fields, ListField{Name: field, Type: t})
	}
	return c
}

func dayText(d healthlab.Date, s string) []Cell { return []Cell{dateCell(d), textCell(s)} }

func testDays(list []healthdata.TestDay) Cell {
	return listCell(list, func(d *healthdata.TestDay) []Cell { return dayText(d.Date, d.TestResult) })
}

var cycleColumns = append([]Column{
	cycleOf("period_start", TypeDate, "also the index", func(c *healthdata.MenstrualCycle) Cell { return dateCell(c.PeriodStart) }),
	cycleOf("period_end", TypeDate, "last day of bleeding", func(c *healthdata.MenstrualCycle) Cell { return datePtr(c.PeriodEnd) }),
	cycleOf("cycle_end", TypeDate, "the day before the next period", func(c *healthdata.MenstrualCycle) Cell { return datePtr(c.CycleEnd) }),
	cycleOf("is_predicted", TypeBool, "foreseen and not recorded", func(c *healthdata.MenstrualCycle) Cell { return boolCell(c.IsPredicted) }),
	cycleList("menstrual_flow", "flow", TypeString, func(c *healthdata.MenstrualCycle) Cell {
		return listCell(c.MenstrualFlow, func(d *healthdata.FlowDay) []Cell { return dayText(d.Date, d.Flow) })
	}),
	cycleList("cervical_mucus", "quality", TypeString, func(c *healthdata.MenstrualCycle) Cell {
		return listCell(c.CervicalMucus, func(d *healthdata.MucusDay) []Cell { return dayText(d.Date, d.Quality) })
	}),
	cycleList("intermenstrual_bleeding", "", "", func(c *healthdata.MenstrualCycle) Cell {
		return listCell(c.IntermenstrualBleed, func(d *healthdata.Day) []Cell { return []Cell{dateCell(d.Date)} })
	}),
	cycleList("contraceptive", "type", TypeString, func(c *healthdata.MenstrualCycle) Cell {
		return listCell(c.Contraceptive, func(d *healthdata.ContraceptiveIn) []Cell { return dayText(d.Date, d.Type) })
	}),
	cycleList("detected_deviations", "deviation", TypeString, func(c *healthdata.MenstrualCycle) Cell {
		return listCell(c.DetectedDeviations, func(d *healthdata.DeviationDay) []Cell { return dayText(d.Date, d.Deviation) })
	}),
	cycleList("ovulation_test", "test_result", TypeString, func(c *healthdata.MenstrualCycle) Cell { return testDays(c.OvulationTest) }),
	cycleList("home_pregnancy_test", "test_result", TypeString, func(c *healthdata.MenstrualCycle) Cell { return testDays(c.HomePregnancyTest) }),
	cycleList("home_progesterone_test", "test_result", TypeString, func(c *healthdata.MenstrualCycle) Cell { return testDays(c.HomeProgesteroneTest) }),
	cycleList("sexual_activity", "protection_used", TypeBool, func(c *healthdata.MenstrualCycle) Cell {
		return listCell(c.SexualActivity, func(d *healthdata.SexualActivity) []Cell { return []Cell{dateCell(d.Date), boolPtr(d.ProtectionUsed)} })
	}),
	cycleList("basal_body_temperature", "value", TypeFloat64, func(c *healthdata.MenstrualCycle) Cell {
		return listCell(c.BasalBodyTemperatures, func(d *healthdata.TemperatureDay) []Cell { return []Cell{dateCell(d.Date), floatCell(d.Value)} })
	}),
}, sourceColumns()...)

func mealOf(name string, get func(*healthdata.Meal) *float64) Column {
	return of(name, TypeFloat64, "g", "", func(m *healthdata.Meal, _ *Row) Cell { return floatPtr(get(m)) })
}

func mealMacro(name string, get func(*healthdata.Macros) *float64) Column {
	return mealOf(name, func(m *healthdata.Meal) *float64 {
		if m.Macros == nil {
			return nil
		}
		return get(m.Macros)
	})
}

func mealFat(name string, get func(*healthdata.Fats) *float64) Column {
	return mealMacro(name, func(m *healthdata.Macros) *float64 {
		if m.Fats == nil {
			return nil
		}
		return get(m.Fats)
	})
}

// mealMicro returns a column with the nutrient of [Micros] of that name, converted to the unit in the name of
// the column.
func mealMicro(name, unit string, group func(*healthdata.Micros) map[string]float64, nutrient string) Column {
	scale := 1.0
	if unit == "mg" && healthdata.MicroUnit(nutrient) == "µg" {
		scale = 1000
	}
	return of(name, TypeFloat64, unit, "", func(m *healthdata.Meal, _ *Row) Cell {
		if m.Micros == nil {
			return Cell{}
		}
		v, ok := group(m.Micros)[nutrient]
		if !ok {
			return Cell{}
		}
		return floatCell(v / scale)
	})
}

func minerals(m *healthdata.Micros) map[string]float64      { return m.Minerals }
func traceElements(m *healthdata.Micros) map[string]float64 { return m.TraceElements }
func vitamins(m *healthdata.Micros) map[string]float64      { return m.Vitamins }

var mealColumns = append([]Column{
	of("calories", TypeFloat64, "kcal", "", func(m *healthdata.Meal, _ *Row) Cell {
		if m.Energy == nil {
			return Cell{}
		}
		return floatCell(m.Energy.Value)
	}),
	mealMacro("carbohydrate_gram", func(m *healthdata.Macros) *float64 { return m.Carbs }),
	mealMacro("protein_gram", func(m *healthdata.Macros) *float64 { return m.Protein }),
	mealMacro("alcohol_gram", func(m *healthdata.Macros) *float64 { return m.Alcohol }),
	mealMacro("water_gram", func(m *healthdata.Macros) *float64 { return m.Water }),
	mealMacro("fibre_gram", func(m *healthdata.Macros) *float64 { return m.Fibre }),
	mealMacro("sugar_gram", func(m *healthdata.Macros) *float64 { return m.Sugar }),
	mealMacro("cholesterol_gram", func(m *healthdata.Macros) *float64 { return m.Cholesterol }),
	mealFat("saturated_fat_gram", func(f *healthdata.Fats) *float64 { return f.Saturated }),
	mealFat("monounsaturated_fat_gram", func(f *healthdata.Fats) *float64 { return f.Monounsaturated }),
	mealFat("polyunsaturated_fat_gram", func(f *healthdata.Fats) *float64 { return f.Polyunsaturated }),
	mealFat("omega3_fat_gram", func(f *healthdata.Fats) *float64 { return f.Omega3 }),
	mealFat("omega6_fat_gram", func(f *healthdata.Fats) *float64 { return f.Omega6 }),
	mealFat("total_fat_gram", func(f *healthdata.Fats) *float64 { return f.Total }),
	mealMicro("sodium_milligram", "mg", minerals, "sodium"),
	mealMicro("potassium_milligram", "mg", minerals, "potassium"),
	mealMicro("calcium_milligram", "mg", minerals, "calcium"),
	mealMicro("phosphorus_milligram", "mg", minerals, "phosphorus"),
	mealMicro("magnesium_milligram", "mg", minerals, "magnesium"),
	mealMicro("iron_milligram", "mg", minerals, "iron"),
	mealMicro("zinc_milligram", "mg", minerals, "zinc"),
	mealMicro("fluoride_milligram", "mg", minerals, "fluoride"),
	mealMicro("chloride_milligram", "mg", minerals, "chloride"),
	mealMicro("vitamin_a_milligram", "mg", vitamins, "vitamin_a"),
	mealMicro("vitamin_b1_milligram", "mg", vitamins, "vitamin_b1"),
	mealMicro("riboflavin_milligram", "mg", vitamins, "riboflavin"),
	mealMicro("niacin_milligram", "mg", vitamins, "niacin"),
	mealMicro("pantothenic_acid_milligram", "mg", vitamins, "pantothenic_acid"),
	mealMicro("vitamin_b6_milligram", "mg", vitamins, "vitamin_b6"),
	mealMicro("biotin_microgram", "µg", vitamins, "biotin"),
	mealMicro("vitamin_b12_microgram", "µg", vitamins, "vitamin_b12"),
	mealMicro("vitamin_c_milligram", "mg", vitamins, "vitamin_c"),
	mealMicro("vitamin_d_microgram", "µg", vitamins, "vitamin_d"),
	mealMicro("vitamin_e_milligram", "mg", vitamins, "vitamin_e"),
	mealMicro("vitamin_k_microgram", "µg", vitamins, "vitamin_k"),
	mealMicro("folic_acid_microgram", "µg", vitamins, "folic_acid"),
	mealMicro("chromium_microgram", "µg", traceElements, "chromium"),
	mealMicro("copper_milligram", "mg", traceElements, "copper"),
	mealMicro("iodine_microgram", "µg", traceElements, "iodine"),
	mealMicro("manganese_milligram", "mg", traceElements, "manganese"),
	mealMicro("molybdenum_microgram", "µg", traceElements, "molybdenum"),
	mealMicro("selenium_microgram", "µg", traceElements, "selenium"),
	of("date", TypeDate, "", "the day as the person recorded it", func(m *healthdata.Meal, _ *Row) Cell { return dateCell(m.CalendarDate) }),
	of("name", TypeString, "", "name of the meal", func(m *healthdata.Meal, _ *Row) Cell { return textCell(m.Name) }),
}, sourceColumns()...)

var profileColumns = append(append([]Column{
	of("height_centimeter", TypeInt64, "cm", "", func(f *healthdata.Profile, _ *Row) Cell { return intPtr(f.Height) }),
	of("birth_date", TypeDate, "", "", func(f *healthdata.Profile, _ *Row) Cell { return datePtr(f.BirthDate) }),
	of("wheelchair_use", TypeBool, "", "", func(f *healthdata.Profile, _ *Row) Cell { return boolPtr(f.WheelchairUse) }),
	of("gender", TypeString, "", "", func(f *healthdata.Profile, _ *Row) Cell { return textPtr(f.Gender) }),
	of("sex", TypeString, "", "", func(f *healthdata.Profile, _ *Row) Cell { return textPtr(f.Sex) }),
}, sourceColumns()...),
	of("created_at", TypeInstant, "UTC", "", func(_ *healthdata.Profile, r *Row) Cell { return intCell(r.Record.CreatedAt.UnixMicro()) }),
	of("updated_at", TypeInstant, "UTC", "also the index", func(_ *healthdata.Profile, r *Row) Cell { return intCell(r.Record.UpdatedAt.UnixMicro()) }),
)

func sleepOf(name string, t ColumnType, unit, doc string, get func(*healthdata.Sleep, *Row) Cell) Column {
	return of(name, t, unit, doc, get)
}

func sleepInt(name, unit string, get func(*healthdata.Sleep) *int64) Column {
	return sleepOf(name, TypeInt64, unit, "", func(s *healthdata.Sleep, _ *Row) Cell { return intPtr(get(s)) })
}

func sleepFloat(name, unit string, get func(*healthdata.Sleep) *float64) Column {
	return sleepOf(name, TypeFloat64, unit, "", func(s *healthdata.Sleep, _ *Row) Cell { return floatPtr(get(s)) })
}

var sleepColumns = append(append([]Column{
	sleepOf("id", TypeString, "uuid", "", func(_ *healthdata.Sleep, r *Row) Cell { return textCell(r.Record.ID.String()) }),
	sleepOf("session_start", TypeTimestamp, "local", "", func(s *healthdata.Sleep, r *Row) Cell { return localCell(r, s.BedtimeStart, s.StartTimezoneOffset) }),
	sleepOf("session_end", TypeTimestamp, "local", "also the index", func(s *healthdata.Sleep, r *Row) Cell { return localCell(r, s.BedtimeStop, s.EndTimezoneOffset) }),
	sleepOf("state", TypeString, "", "tentative or confirmed", func(s *healthdata.Sleep, _ *Row) Cell { return textPtr(s.State) }),
	sleepOf("type", TypeString, "", "long_sleep, short_sleep, acknowledged_nap or unknown", func(s *healthdata.Sleep, _ *Row) Cell { return textCell(string(s.Type)) }),
	sleepInt("duration_second", "s", func(s *healthdata.Sleep) *int64 { return &s.Duration }),
	sleepInt("stage_asleep_second", "s", func(s *healthdata.Sleep) *int64 { return s.Total }),
	sleepInt("stage_awake_second", "s", func(s *healthdata.Sleep) *int64 { return s.Awake }),
	sleepInt("stage_light_second", "s", func(s *healthdata.Sleep) *int64 { return s.Light }),
	sleepInt("stage_rem_second", "s", func(s *healthdata.Sleep) *int64 { return s.REM }),
	sleepInt("stage_deep_second", "s", func(s *healthdata.Sleep) *int64 { return s.Deep }),
	sleepOf("stage_unknown_second", TypeInt64, "s", "time in the sleep cycle without a known stage; null without a sleep cycle", unknownStage),
	sleepInt("latency_second", "s", func(s *healthdata.Sleep) *int64 { return s.Latency }),
	sleepInt("heart_rate_minimum", "bpm", func(s *healthdata.Sleep) *int64 { return s.HRLowest }),
	sleepInt("heart_rate_mean", "bpm", func(s *healthdata.Sleep) *int64 { return s.HRAverage }),
	nullColumn("heart_rate_maximum", TypeInt64, "bpm"),
	sleepFloat("heart_rate_dip", "%", func(s *healthdata.Sleep) *float64 { return s.HRDip }),
	sleepInt("heart_rate_resting", "bpm", func(s *healthdata.Sleep) *int64 { return s.HRResting }),
	sleepFloat("efficiency", "%", func(s *healthdata.Sleep) *float64 { return s.Efficiency }),
	sleepFloat("hrv_mean_rmssd", "ms", func(s *healthdata.Sleep) *float64 { return s.AverageHRV }),
	nullColumn("hrv_mean_sdnn", TypeFloat64, "ms"),
	sleepFloat("skin_temperature", "°C", func(s *healthdata.Sleep) *float64 { return s.SkinTemperature }),
	sleepFloat("skin_temperature_delta", "°C", func(s *healthdata.Sleep) *float64 { return s.TemperatureDelta }),
	sleepFloat("respiratory_rate", "breaths/min", func(s *healthdata.Sleep) *float64 { return s.RespiratoryRate }),
	sleepInt("score", "1-100", func(s *healthdata.Sleep) *int64 { return s.Score }),
	sleepInt("recovery_readiness_score", "0-100", func(s *healthdata.Sleep) *int64 { return s.RecoveryReadinessScore }),
}, sourceColumns()...),
	sleepOf("time_zone", TypeString, "", "identifier of the zone, else UTC±HH:MM", func(_ *healthdata.Sleep, r *Row) Cell {
		if r.Cycle != nil {
			return zoneCell(r.Cycle.TimeZone, r.Record.Offset)
		}
		return zoneCell(nil, r.Record.Offset)
	}),
)

// unknownStage returns the total length of segments of unknown stage.
func unknownStage(_ *healthdata.Sleep, r *Row) Cell {
	c := r.Cycle
	if c == nil {
		return Cell{}
	}
	var sum int64
	for i, t := range c.StageType {
		if t == healthdata.SleepStageMissing {
			sum += c.StageEndOffsetSecond[i] - c.StageStartOffsetSecond[i]
		}
	}
	return intCell(sum)
}

func workoutOf(name string, t ColumnType, unit, doc string, get func(*healthdata.Workout, *Row) Cell) Column {
	return of(name, t, unit, doc, get)
}

func workoutInt(name, unit string, get func(*healthdata.Workout) *int64) Column {
	return workoutOf(name, TypeInt64, unit, "", func(w *healthdata.Workout, _ *Row) Cell { return intPtr(get(w)) })
}

func workoutFloat(name, unit string, get func(*healthdata.Workout) *float64) Column {
	return workoutOf(name, TypeFloat64, unit, "", func(w *healthdata.Workout, _ *Row) Cell { return floatPtr(get(w)) })
}

// workoutZone returns a column with the time in heart rate zone n, counted from 1.
func workoutZone(n int, doc string) Column {
	return workoutOf("heart_rate_zone_"+strconv.Itoa(n), TypeInt64, "s", doc, func(w *healthdata.Workout, _ *Row) Cell {
		if n > len(w.HRZones) {
			return Cell{}
		}
		return intCell(w.HRZones[n-1])
	})
}

func workoutMap(name string, get func(*healthdata.Map) *string) Column {
	return workoutOf(name, TypeString, "", "encoded polyline", func(w *healthdata.Workout, _ *Row) Cell {
		if w.Map == nil {
			return Cell{}
		}
		return textPtr(get(w.Map))
	})
}

var workoutColumns = append(append([]Column{
	workoutOf("session_start", TypeTimestamp, "local", "also the index", func(w *healthdata.Workout, r *Row) Cell { return localCell(r, w.TimeStart, w.StartTimezoneOffset) }),
	workoutOf("session_end", TypeTimestamp, "local", "", func(w *healthdata.Workout, r *Row) Cell { return localCell(r, w.TimeEnd, w.EndTimezoneOffset) }),
	workoutOf("title", TypeString, "", "", func(w *healthdata.Workout, _ *Row) Cell { return textPtr(w.Title) }),
	workoutOf("sport_name", TypeString, "", "", func(w *healthdata.Workout, _ *Row) Cell { return textCell(w.Sport.Name) }),
	workoutOf("sport_slug", TypeString, "", "", func(w *healthdata.Workout, _ *Row) Cell { return textCell(w.Sport.Slug) }),
	workoutInt("duration_active_second", "s", func(w *healthdata.Workout) *int64 { return w.MovingTime }),
	workoutInt("heart_rate_mean", "bpm", func(w *healthdata.Workout) *int64 { return w.AverageHR }),
	nullColumn("heart_rate_minimum", TypeInt64, "bpm"),
	workoutInt("heart_rate_maximum", "bpm", func(w *healthdata.Workout) *int64 { return w.MaxHR }),
	workoutZone(1, "below 50 % of the maximum heart rate"),
	workoutZone(2, "50 to 60 % of the maximum heart rate"),
	workoutZone(3, "60 to 70 % of the maximum heart rate"),
	workoutZone(4, "70 to 80 % of the maximum heart rate"),
	workoutZone(5, "80 to 90 % of the maximum heart rate"),
	workoutZone(6, "90 % of the maximum heart rate and above"),
	workoutFloat("distance_meter", "m", func(w *healthdata.Workout) *float64 { return w.Distance }),
	workoutFloat("calories", "kcal", func(w *healthdata.Workout) *float64 { return w.Calories }),
	workoutFloat("elevation_gain_meter", "m", func(w *healthdata.Workout) *float64 { return w.TotalElevationGain }),
	workoutFloat("elevation_maximum_meter", "m", func(w *healthdata.Workout) *float64 { return w.ElevHigh }),
	workoutFloat("elevation_minimum_meter", "m", func(w *healthdata.Workout) *float64 { return w.ElevLow }),
	workoutFloat("speed_mean", "m/s", func(w *healthdata.Workout) *float64 { return w.AverageSpeed }),
	workoutFloat("speed_maximum", "m/s", func(w *healthdata.Workout) *float64 { return w.MaxSpeed }),
	workoutFloat("power_source", "W", func(w *healthdata.Workout) *float64 { return w.DeviceWatts }),
	workoutFloat("power_mean", "W", func(w *healthdata.Workout) *float64 { return w.AverageWatts }),
	workoutFloat("power_maximum", "W", func(w *healthdata.Workout) *float64 { return w.MaxWatts }),
	workoutFloat("power_weighted_mean", "W", func(w *healthdata.Workout) *float64 { return w.WeightedAverageWatts }),
	workoutInt("steps", "count", func(w *healthdata.Workout) *int64 { return w.Steps }),
	workoutMap("map_polyline", func(m *healthdata.Map) *string { return m.Polyline }),
	workoutMap("map_summary_polyline", func(m *healthdata.Map) *string { return m.SummaryPolyline }),
}, sourceColumns()...),
	workoutOf("external_id", TypeString, "", "the source's own id", func(w *healthdata.Workout, _ *Row) Cell { return textCell(w.ProviderID) }),
	workoutOf("time_zone", TypeString, "", "UTC±HH:MM", func(_ *healthdata.Workout, r *Row) Cell { return zoneCell(nil, r.Record.Offset) }),
)
