package httpapi_test

import (
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// healthPairs are the types of health data and their schemas.
func healthPairs() []contract.Pair {
	sourceTypes := make([]string, 0, 16)
	for _, t := range healthdata.SourceTypes() {
		sourceTypes = append(sourceTypes, string(t))
	}
	return append(httpapi.HealthBodies(),
		contract.Pair{Schema: "Source", Value: healthdata.Source{}, Enums: map[string][]string{"type": sourceTypes}},
		contract.Pair{Schema: "Activity", Value: healthdata.Activity{}},
		contract.Pair{Schema: "Sleep", Value: healthdata.Sleep{}, Enums: map[string][]string{"type": {
			string(healthdata.SleepLong), string(healthdata.SleepShort), string(healthdata.SleepNap), string(healthdata.SleepUnknown),
		}}},
		contract.Pair{Schema: "SleepCycle", Value: healthdata.SleepCycle{}},
		contract.Pair{Schema: "Body", Value: healthdata.Body{}},
		contract.Pair{Schema: "Workout", Value: healthdata.Workout{}},
		contract.Pair{Schema: "Profile", Value: healthdata.Profile{}},
		contract.Pair{Schema: "Meal", Value: healthdata.Meal{}},
		contract.Pair{Schema: "MenstrualCycle", Value: healthdata.MenstrualCycle{}},
		contract.Pair{Schema: "Electrocardiogram", Value: healthdata.Electrocardiogram{}},
		contract.Pair{Schema: "Sample", Value: healthdata.Sample{}},
		contract.Pair{Schema: "Group", Value: healthdata.Group{}},
		contract.Pair{Schema: "WorkoutStream", Value: healthdata.WorkoutStream{}},
		contract.Pair{Schema: "SleepStream", Value: healthdata.SleepStream{}},
		contract.Pair{Schema: "Counts", Value: healthdata.Counts{}},
		contract.Pair{Schema: "ProviderName", Value: healthdata.ProviderName{}},
	)
}
