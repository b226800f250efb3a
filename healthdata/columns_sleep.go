package healthdata

func sleepOf(name string, t ColumnType, unit, doc string, get func(*Sleep, *Row) Cell) Column {
	return of(name, t, unit, doc, get)
}

func sleepInt(name, unit string, get func(*Sleep) *int64) Column {
	return sleepOf(name, TypeInt64, unit, "", func(s *Sleep, _ *Row) Cell { return intPtr(get(s)) })
}

func sleepFloat(name, unit string, get func(*Sleep) *float64) Column {
	return sleepOf(name, TypeFloat64, unit, "", func(s *Sleep, _ *Row) Cell { return floatPtr(get(s)) })
}

func sleepSeconds(name string, get func(*Sleep) int64) Column {
	return sleepOf(name, TypeInt64, "s", "", func(s *Sleep, _ *Row) Cell { return intCell(get(s)) })
}

var sleepColumns = append(append([]Column{
	sleepOf("id", TypeString, "uuid", "", func(_ *Sleep, r *Row) Cell { return textCell(r.Record.ID.String()) }),
	sleepOf("session_start", TypeTimestamp, "local", "", func(s *Sleep, r *Row) Cell { return localCell(r, s.BedtimeStart) }),
	sleepOf("session_end", TypeTimestamp, "local", "also the index", func(s *Sleep, r *Row) Cell { return localCell(r, s.BedtimeStop) }),
	sleepOf("state", TypeString, "", "tentative or confirmed", func(s *Sleep, _ *Row) Cell { return textPtr(s.State) }),
	sleepOf("type", TypeString, "", "long_sleep, short_sleep, acknowledged_nap or unknown", func(s *Sleep, _ *Row) Cell { return textCell(string(s.Type)) }),
	sleepSeconds("duration_second", func(s *Sleep) int64 { return s.Duration }),
	sleepSeconds("stage_asleep_second", func(s *Sleep) int64 { return s.Total }),
	sleepSeconds("stage_awake_second", func(s *Sleep) int64 { return s.Awake }),
	sleepSeconds("stage_light_second", func(s *Sleep) int64 { return s.Light }),
	sleepSeconds("stage_rem_second", func(s *Sleep) int64 { return s.REM }),
	sleepSeconds("stage_deep_second", func(s *Sleep) int64 { return s.Deep }),
	sleepOf("stage_unknown_second", TypeInt64, "s", "time in the sleep cycle without a known stage; null without a sleep cycle", unknownStage),
	sleepInt("latency_second", "s", func(s *Sleep) *int64 { return s.Latency }),
	sleepInt("heart_rate_minimum", "bpm", func(s *Sleep) *int64 { return s.HRLowest }),
	sleepInt("heart_rate_mean", "bpm", func(s *Sleep) *int64 { return s.HRAverage }),
	never("heart_rate_maximum", TypeInt64, "bpm"),
	sleepFloat("heart_rate_dip", "%", func(s *Sleep) *float64 { return s.HRDip }),
	sleepInt("heart_rate_resting", "bpm", func(s *Sleep) *int64 { return s.HRResting }),
	sleepFloat("efficiency", "%", func(s *Sleep) *float64 { return s.Efficiency }),
	sleepFloat("hrv_mean_rmssd", "ms", func(s *Sleep) *float64 { return s.AverageHRV }),
	never("hrv_mean_sdnn", TypeFloat64, "ms"),
	sleepFloat("skin_temperature", "°C", func(s *Sleep) *float64 { return s.SkinTemperature }),
	sleepFloat("skin_temperature_delta", "°C", func(s *Sleep) *float64 { return s.TemperatureDelta }),
	sleepFloat("respiratory_rate", "breaths/min", func(s *Sleep) *float64 { return s.RespiratoryRate }),
	sleepInt("score", "1-100", func(s *Sleep) *int64 { return s.Score }),
	sleepInt("recovery_readiness_score", "0-100", func(s *Sleep) *int64 { return s.RecoveryReadinessScore }),
}, sourceColumns()...),
	sleepOf("time_zone", TypeString, "", "identifier of the zone, else UTC±HH:MM", func(_ *Sleep, r *Row) Cell {
		if r.Cycle != nil {
			return zoneCell(r.Cycle.TimeZone, r.Record.Offset)
		}
		return zoneCell(nil, r.Record.Offset)
	}),
)

// unknownStage adds up the segments whose stage is not known.
func unknownStage(_ *Sleep, r *Row) Cell {
	c := r.Cycle
	if c == nil {
		return Cell{}
	}
	var sum int64
	for i, t := range c.StageType {
		if t == SleepStageMissing {
			sum += c.StageEndOffsetSecond[i] - c.StageStartOffsetSecond[i]
		}
	}
	return intCell(sum)
}
