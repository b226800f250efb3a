package registry_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/registry"
)

// What a resource needs from another collection is among its scopes.
func TestRecord_scopesIncludeThoseOfJoinedCollections(t *testing.T) {
	const google = "https://www.googleapis.com/auth/googlehealth."
	for name, want := range map[string]struct {
		slug, resource string
		scopes         []string
	}{
		"oxygen at the end of a sleep":   {"oura", "blood_oxygen", []string{"spo2", "daily"}},
		"temperature of a night":         {"google_health", "body_temperature_delta", []string{google + "health_metrics_and_measurements.readonly", google + "sleep.readonly"}},
		"recovery of a sleep":            {"whoop", "hrv", []string{"read:recovery", "read:sleep"}},
		"track of an exercise":           {"google_health", "workout_stream", []string{google + "activity_and_fitness.readonly", google + "location.readonly"}},
		"series of a session, if there":  {"oura", "hrv", []string{"daily"}},
		"resting heart rate is optional": {"google_health", "activity", []string{google + "activity_and_fitness.readonly"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := registry.Find(want.slug).Record()
			require.ElementsMatch(t, want.scopes, p.Scopes[want.resource].Required)
		})
	}
}
