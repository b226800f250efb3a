package healthconnect

import "github.com/healthlab-dev/healthlab/healthdata"

// reading is a column of a table whose values become samples of a resource.
type reading struct {
	resource string
	column   string
	// unit is the unit of the column; empty means the unit of the resource.
	unit string
}

// table is a table whose records become samples.
type table struct {
	name string
	// interval means that a record has a start and an end.
	interval bool
	readings []reading
	// detail is a column that says where or from what a value was measured; empty if there is none.
	detail string
}

// tables are the tables whose records become samples. Length is in metres, temperature in degrees
// Celsius.
var tables = []table{
	{name: "heart_rate_variability_rmssd_record_table", readings: []reading{{"hrv", "heart_rate_variability_millis", ""}}},
	{name: "respiratory_rate_record_table", readings: []reading{{"respiratory_rate", "rate", ""}}},
	{name: "oxygen_saturation_record_table", readings: []reading{{"blood_oxygen", "percentage", ""}}},
	{name: "blood_glucose_record_table", readings: []reading{{"glucose", "level", ""}}, detail: "specimen_source"},
	{name: "body_temperature_record_table", readings: []reading{{"body_temperature", "temperature", ""}}, detail: "measurement_location"},
	{name: "basal_body_temperature_record_table", readings: []reading{{"basal_body_temperature", "temperature", ""}}, detail: "measurement_location"},
	{name: "weight_record_table", readings: []reading{{"weight", "weight", "g"}}},
	{name: "body_fat_record_table", readings: []reading{{"fat", "percentage", ""}}},
	{name: "lean_body_mass_record_table", readings: []reading{{"lean_body_mass", "mass", "g"}}},
	{name: "vo2_max_record_table", readings: []reading{{"vo2_max", "vo2_milliliters_per_minute_kilogram", ""}}},
	{name: "steps_record_table", interval: true, readings: []reading{{"steps", "count", ""}}},
	{name: "distance_record_table", interval: true, readings: []reading{{"distance", "distance", ""}}},
	{name: "active_calories_burned_record_table", interval: true, readings: []reading{{"calories_active", "energy", "cal"}}},
	{name: "floors_climbed_record_table", interval: true, readings: []reading{{"floors_climbed", "floors", ""}}},
	{name: "wheelchair_pushes_record_table", interval: true, readings: []reading{{"wheelchair_push", "count", ""}}},
	{name: "hydration_record_table", interval: true, readings: []reading{{"water", "volume", "L"}}},
	{name: "nutrition_record_table", interval: true, readings: []reading{{"carbohydrates", "total_carbohydrate", ""}, {"caffeine", "caffeine", ""}}},
}

// Tables whose records need a function of their own.
const (
	appTable         = "application_info_table"
	deviceTable      = "device_info_table"
	heartRateTable   = "heart_rate_record_table"
	heartSeriesTable = "heart_rate_record_series_table"
	pressureTable    = "blood_pressure_record_table"
	mindfulTable     = "mindfulness_session_record_table"
	sleepTable       = "sleep_session_record_table"
	stagesTable      = "sleep_stages_table"
	exerciseTable    = "exercise_session_record_table"
	heightTable      = "height_record_table"
)

// deviceTypes maps the numbers of Health Connect's Device.TYPE to source types.
var deviceTypes = map[int64]healthdata.SourceType{1: healthdata.SourceWatch, 2: healthdata.SourcePhone, 3: healthdata.SourceScale, 4: healthdata.SourceRing,
	6: healthdata.SourceWatch, 7: healthdata.SourceChestStrap}

// typedByHand is the value of the column recording_method for values that a person typed.
const typedByHand = 3

// specimenSources maps the numbers of BloodGlucoseRecord.SpecimenSource to source types: interstitial fluid is
// measured by a sensor, capillary blood by a meter.
var specimenSources = map[int64]healthdata.SourceType{1: healthdata.SourceAutomatic, 2: healthdata.SourceFingerprick}

// locations maps the numbers of BodyTemperatureMeasurementLocation to places on the body.
var locations = map[int64]string{1: "armpit", 2: "finger", 3: "forehead", 4: "mouth", 5: "rectum", 6: "temporal_artery", 7: "toe", 8: "ear", 9: "wrist"}

// stageTypes maps the numbers of SleepSessionRecord.StageType to stages: awake, asleep, out of bed, light, deep,
// REM, awake in bed.
var stageTypes = map[int64]healthdata.SleepStage{1: healthdata.SleepStageAwake, 2: healthdata.SleepStageMissing, 3: healthdata.SleepStageAwake,
	4: healthdata.SleepStageLight, 5: healthdata.SleepStageDeep, 6: healthdata.SleepStageREM, 7: healthdata.SleepStageAwake}

// sports lists sports by their number in ExerciseSessionType, as slugs of the healthlab catalogue.
var sports = []string{"other", "badminton", "baseball", "basketball", "cycling", "indoor_cycling", "boot_camp", "boxing", "calisthenics", "cricket", "dancing", "exercise_class",
	"fencing", "american_football", "australian_football", "frisbee_disc", "golf", "guided_breathing", "gymnastics", "handball", "hiit", "hiking", "ice_hockey", "ice_skating",
	"martial_arts", "paddling", "paragliding", "pilates", "racquetball", "rock_climbing", "roller_hockey", "rowing", "rugby", "running", "treadmill_running", "sailing",
	"scuba_diving", "skating", "skiing", "snowboarding", "snowshoeing", "soccer", "softball", "squash", "stair_climbing", "strength_training", "stretching", "surfing",
	"open_water_swimming", "pool_swimming", "table_tennis", "tennis", "volleyball", "walking", "water_polo", "strength_training", "wheelchair_pushing", "yoga", "other",
	"stair_climbing", "elliptical", "indoor_rowing"}
