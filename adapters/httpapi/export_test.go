package httpapi

import (
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// HealthBodies are the schemas of health data whose Go types nobody else sees.
func HealthBodies() []contract.Pair {
	return []contract.Pair{
		{Schema: "UploadSource", Value: sourceIn{}, Input: true},
		{Schema: "SampleUpload", Value: samplesIn{}, Input: true},
		{Schema: "ActivityUpload", Value: summariesIn[healthdata.Activity]{}, Input: true},
		{Schema: "SleepUpload", Value: summariesIn[healthdata.Sleep]{}, Input: true},
		{Schema: "SleepCycleUpload", Value: summariesIn[healthdata.SleepCycle]{}, Input: true},
		{Schema: "BodyUpload", Value: summariesIn[healthdata.Body]{}, Input: true},
		{Schema: "WorkoutUpload", Value: summariesIn[healthdata.Workout]{}, Input: true},
		{Schema: "ProfileUpload", Value: summariesIn[healthdata.Profile]{}, Input: true},
		{Schema: "MealUpload", Value: summariesIn[healthdata.Meal]{}, Input: true},
		{Schema: "MenstrualCycleUpload", Value: summariesIn[healthdata.MenstrualCycle]{}, Input: true},
		{Schema: "ElectrocardiogramUpload", Value: summariesIn[healthdata.Electrocardiogram]{}, Input: true},
		{Schema: "RawItem", Value: rawItem{}},
	}
}
