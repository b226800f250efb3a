package healthdata

import "slices"

// dropUnmeasured replaces impossible zeros by null: rates of a living person, the height and parts of a body,
// and speed and power of a workout. A device without the sensor, or one that was not worn, writes them. A weight of 0 is
// refused by its bounds.
func dropUnmeasured(item Summary) {
	switch v := item.(type) {
	case *Sleep:
		for _, n := range [...]**int64{&v.HRLowest, &v.HRAverage, &v.HRResting, &v.Score} {
			unmeasured(n)
		}
		for _, n := range [...]**float64{&v.AverageHRV, &v.RespiratoryRate, &v.SkinTemperature} {
			unmeasured(n)
		}
	case *Workout:
		unmeasured(&v.AverageHR)
		unmeasured(&v.MaxHR)
		for _, n := range [...]**float64{&v.AverageSpeed, &v.MaxSpeed, &v.AverageWatts, &v.MaxWatts, &v.DeviceWatts, &v.WeightedAverageWatts} {
			unmeasured(n)
		}
		if !slices.ContainsFunc(v.HRZones, func(seconds int64) bool { return seconds != 0 }) {
			v.HRZones = nil
		}
	case *Activity:
		if h := v.HeartRate; h != nil {
			for _, n := range [...]**float64{&h.AvgBPM, &h.MinBPM, &h.MaxBPM, &h.RestingBPM, &h.AvgWalkingBPM} {
				unmeasured(n)
			}
			if *h == (ActivityHeartRate{}) {
				v.HeartRate = nil
			}
		}
	case *Electrocardiogram:
		unmeasured(&v.HeartRateMean)
	case *Profile:
		unmeasured(&v.Height)
	case *Body:
		for _, n := range [...]**float64{
			&v.Fat, &v.WaterPercentage, &v.MuscleMassPercentage, &v.BoneMassPercentage,
			&v.BodyMassIndex, &v.LeanBodyMassKilogram, &v.WaistCircumferenceCentimeter,
		} {
			unmeasured(n)
		}
	}
}

func unmeasured[T int64 | float64](v **T) {
	if *v != nil && **v == 0 {
		*v = nil
	}
}

// dropUnmeasured replaces zero heart rates by null. A column of only zeros was not measured and becomes empty,
// except for temperatures and resistances.
func (w *WorkoutStream) dropUnmeasured() {
	measured := false
	for i := range w.Heartrate {
		unmeasured(&w.Heartrate[i])
		measured = measured || w.Heartrate[i] != nil
	}
	if !measured {
		w.Heartrate = nil
	}
	for _, column := range [...]*[]*float64{&w.Cadence, &w.Altitude, &w.VelocitySmooth, &w.Distance, &w.Power} {
		if !measuredColumn(*column) {
			*column = nil
		}
	}
	if !measuredColumn(w.Lat) && !measuredColumn(w.Lng) {
		w.Lat, w.Lng = nil, nil
	}
}

// measuredColumn reports whether a column has a value other than zero.
func measuredColumn(column []*float64) bool {
	for _, v := range column {
		if v != nil && *v != 0 {
			return true
		}
	}
	return false
}
