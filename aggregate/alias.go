package aggregate

// The names that the reads of the API have for tables and columns are accepted in queries
// too, where they mean the same value in the same unit. A result names its columns by the
// names of this package.

var tableAliases = map[string]string{"workouts": "workout"}

var columnAliases = map[string]map[string]string{
	"activity": {"calendar_date": "date", "distance": "distance_meter", "timezone_offset": "time_zone_offset"},
	"sleep": {
		"bedtime_start": "session_start", "bedtime_stop": "session_end", "duration": "duration_second",
		"total": "stage_asleep_second", "awake": "stage_awake_second", "light": "stage_light_second",
		"rem": "stage_rem_second", "deep": "stage_deep_second", "latency": "latency_second",
		"hr_lowest": "heart_rate_minimum", "hr_average": "heart_rate_mean", "hr_resting": "heart_rate_resting",
		"hr_dip": "heart_rate_dip", "average_hrv": "hrv_mean_rmssd", "temperature_delta": "skin_temperature_delta",
	},
	"body": {"weight": "weight_kilogram", "fat": "fat_mass_percentage"},
	"workout": {
		"time_start": "session_start", "time_end": "session_end", "average_hr": "heart_rate_mean", "max_hr": "heart_rate_maximum",
		"distance": "distance_meter", "total_elevation_gain": "elevation_gain_meter", "elev_high": "elevation_maximum_meter",
		"elev_low": "elevation_minimum_meter", "average_speed": "speed_mean", "max_speed": "speed_maximum",
		"average_watts": "power_mean", "device_watts": "power_source", "max_watts": "power_maximum",
		"weighted_average_watts": "power_weighted_mean", "sport": "sport_slug", "moving_time": "duration_active_second",
		"provider_id": "external_id",
	},
	"profile": {"height": "height_centimeter"},
	"meal":    {"calendar_date": "date"},
}

// tableName returns the name of a table by its name or alias.
func tableName(name string) string {
	if of, ok := tableAliases[name]; ok {
		return of
	}
	return name
}
