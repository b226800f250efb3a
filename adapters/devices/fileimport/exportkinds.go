package fileimport

import (
	"strings"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// recordKind says how the records of one type of an export are imported.
type recordKind struct {
	// resource is the resource of the samples; nil if the type gives none.
	resource *healthdata.Resource
	// from selects the source of a sample's value.
	from valueFrom
	// types maps a category value to the type of a sample. An unknown value is skipped. Nil means that samples have no
	// type.
	types map[string]string
	// always is the type of every sample of this kind of record; empty: types gives the type.
	always string
	// sport is the sport of every sample's source.
	sport string
	// sensor is the default sensor location.
	sensor string
	// body is the field of a body measurement that is set besides the sample.
	body bodyPart
	// use is set for records that do not become samples.
	use recordUse
}

// valueFrom selects the source of a sample's value.
type valueFrom uint8

const (
	fromQuantity valueFrom = iota // the record's value, in its unit
	fromDuration                  // minutes from start to end
	fromEvent                     // always 1
)

type recordUse uint8

const (
	useSample recordUse = iota
	useSleep
	useHeight
	useSystolic
	useDiastolic
)

type bodyPart uint8

const (
	bodyNone bodyPart = iota
	bodyWeight
	bodyFat
	bodyBMI
	bodyLean
	bodyWaist
)

// recordKinds maps the types of records, without the prefix for quantities or categories. Types that are missing
// have no resource in the catalogue, or lack what a resource requires: an insulin delivery does not say which
// insulin, swimming strokes do not say of which workout.
var recordKinds = kinds(map[string]recordKind{
	"heartrate:HeartRate":                                            {},
	"hrv_sdnn:HeartRateVariabilitySDNN":                              {},
	"respiratory_rate:RespiratoryRate":                               {},
	"blood_oxygen:OxygenSaturation":                                  {},
	"glucose:BloodGlucose":                                           {},
	"steps:StepCount":                                                {},
	"distance:DistanceWalkingRunning":                                {},
	"distance:DistanceWheelchair":                                    {sport: "wheelchair_pushing"},
	"calories_active:ActiveEnergyBurned":                             {},
	"calories_basal:BasalEnergyBurned":                               {},
	"floors_climbed:FlightsClimbed":                                  {},
	"wheelchair_push:PushCount":                                      {},
	"stand_duration:AppleStandTime":                                  {},
	"workout_duration:AppleExerciseTime":                             {},
	"fall:NumberOfTimesFallen":                                       {},
	"vo2_max:VO2Max":                                                 {},
	"heart_rate_recovery_one_minute:HeartRateRecoveryOneMinute":      {},
	"afib_burden:AtrialFibrillationBurden":                           {},
	"forced_expiratory_volume_1:ForcedExpiratoryVolume1":             {},
	"forced_vital_capacity:ForcedVitalCapacity":                      {},
	"peak_expiratory_flow_rate:PeakExpiratoryFlowRate":               {},
	"inhaler_usage:InhalerUsage":                                     {},
	"body_temperature:BodyTemperature":                               {},
	"body_temperature:AppleSleepingWristTemperature":                 {sensor: "wrist"},
	"basal_body_temperature:BasalBodyTemperature":                    {},
	"carbohydrates:DietaryCarbohydrates":                             {},
	"caffeine:DietaryCaffeine":                                       {},
	"water:DietaryWater":                                             {},
	"sleep_breathing_disturbance:AppleSleepingBreathingDisturbances": {},
	"uv_exposure:UVExposure":                                         {},
	"daylight_exposure:TimeInDaylight":                               {},
	"weight:BodyMass":                                                {body: bodyWeight},
	"fat:BodyFatPercentage":                                          {body: bodyFat},
	"body_mass_index:BodyMassIndex":                                  {body: bodyBMI},
	"lean_body_mass:LeanBodyMass":                                    {body: bodyLean},
	"waist_circumference:WaistCircumference":                         {body: bodyWaist},
	"stand_hour:AppleStandHour":                                      {from: fromEvent, types: standTypes},
	"heart_rate_alert:HighHeartRateEvent":                            {from: fromEvent, always: "high_heart_rate"},
	"heart_rate_alert:LowHeartRateEvent":                             {from: fromEvent, always: "low_heart_rate"},
	"heart_rate_alert:IrregularHeartRhythmEvent":                     {from: fromEvent, always: "irregular_rhythm"},
	"sleep_apnea_alert:SleepApneaEvent":                              {from: fromEvent},
	"handwashing:HandwashingEvent":                                   {from: fromEvent},
	"mindfulness_minutes:MindfulSession":                             {from: fromDuration},
	":SleepAnalysis":                                                 {use: useSleep},
	":Height":                                                        {use: useHeight},
	":BloodPressureSystolic":                                         {use: useSystolic},
	":BloodPressureDiastolic":                                        {use: useDiastolic},
})

var standTypes = map[string]string{
	"HKCategoryValueAppleStandHourStood": "stood", "0": "stood",
	"HKCategoryValueAppleStandHourIdle": "idle", "1": "idle",
}

func kinds(rows map[string]recordKind) map[string]*recordKind {
	out := make(map[string]*recordKind, len(rows))
	for name, k := range rows {
		resource, record, _ := strings.Cut(name, ":")
		k.resource = healthdata.ResourceBySlug(resource)
		out[record] = &k
	}
	return out
}

// kindOf returns the recordKind of a record type, or nil.
func kindOf(name []byte) *recordKind {
	for _, prefix := range [...]string{"HKQuantityTypeIdentifier", "HKCategoryTypeIdentifier", "HKDataType"} {
		if len(name) > len(prefix) && string(name[:len(prefix)]) == prefix {
			return recordKinds[string(name[len(prefix):])]
		}
	}
	return nil
}

// sensorLocations maps the codes of temperature sensor locations to their names.
var sensorLocations = map[string]string{
	"1": "armpit", "2": "body", "3": "ear", "4": "finger", "5": "gastrointestinal", "6": "mouth",
	"7": "rectum", "8": "toe", "9": "eardrum", "10": "temporal_artery", "11": "forehead",
}

// sleepStages maps the values of sleep records.
var sleepStages = map[string]sleepStage{
	"HKCategoryValueSleepAnalysisInBed":             stageInBed,
	"HKCategoryValueSleepAnalysisAsleep":            sleepStage(healthdata.SleepStageMissing),
	"HKCategoryValueSleepAnalysisAsleepUnspecified": sleepStage(healthdata.SleepStageMissing),
	"HKCategoryValueSleepAnalysisAsleepCore":        sleepStage(healthdata.SleepStageLight),
	"HKCategoryValueSleepAnalysisAsleepDeep":        sleepStage(healthdata.SleepStageDeep),
	"HKCategoryValueSleepAnalysisAsleepREM":         sleepStage(healthdata.SleepStageREM),
	"HKCategoryValueSleepAnalysisAwake":             sleepStage(healthdata.SleepStageAwake),
	"0":                                             stageInBed, "1": sleepStage(healthdata.SleepStageMissing), "2": sleepStage(healthdata.SleepStageAwake),
	"3": sleepStage(healthdata.SleepStageLight), "4": sleepStage(healthdata.SleepStageDeep), "5": sleepStage(healthdata.SleepStageREM),
}
