package page

// kinds groups the slugs of health data resources in the way people speak of them, in the order of display. The text of
// a kind has the key kind.<name>.
var kinds = []struct {
	name      string
	resources []string
}{
	{"activity", []string{"activity", "steps", "distance", "calories_active", "calories_basal", "floors_climbed",
		"wheelchair_push", "stand_hour", "stand_duration", "fall"}},
	{"workouts", []string{"workouts", "workout_stream", "workout_duration", "workout_distance", "workout_swimming_stroke", "vo2_max"}},
	{"sleep", []string{"sleep", "sleep_cycle", "sleep_stream", "hypnogram", "sleep_apnea_alert", "sleep_breathing_disturbance"}},
	{"heart", []string{"heartrate", "hrv", "hrv_sdnn", "heart_rate_alert", "heart_rate_recovery_one_minute", "afib_burden",
		"electrocardiogram", "electrocardiogram_voltage", "blood_pressure"}},
	{"breathing", []string{"respiratory_rate", "blood_oxygen", "forced_expiratory_volume_1", "forced_vital_capacity",
		"peak_expiratory_flow_rate", "inhaler_usage"}},
	{"glucose", []string{"glucose", "insulin_injection"}},
	{"body", []string{"body", "weight", "fat", "body_mass_index", "lean_body_mass", "waist_circumference"}},
	{"temperature", []string{"body_temperature", "body_temperature_delta", "basal_body_temperature"}},
	{"nutrition", []string{"meal", "carbohydrates", "caffeine", "water"}},
	{"cycle", []string{"menstrual_cycle"}},
	{"mind", []string{"stress_level", "mindfulness_minutes"}},
	{"lab", []string{"cholesterol", "ige", "igg"}},
	{"habits", []string{"uv_exposure", "daylight_exposure", "handwashing"}},
	{"profile", []string{"profile", "device", "device_legacy", "note"}},
}

var kindOf = func() map[string]string {
	out := map[string]string{}
	for _, k := range kinds {
		for _, r := range k.resources {
			out[r] = k.name
		}
	}
	return out
}()

// KindsOf returns the names of the kinds to which resources belong, each once, in the order of display.
func KindsOf(resources []string) []string {
	has := map[string]bool{}
	for _, r := range resources {
		has[kindOf[r]] = true
	}
	var out []string
	for _, k := range kinds {
		if has[k.name] {
			out = append(out, k.name)
		}
	}
	return out
}

// AllKinds returns all kinds in the order of display.
func AllKinds() []string {
	out := make([]string, len(kinds))
	for i, k := range kinds {
		out[i] = k.name
	}
	return out
}
