package receiver_test

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
)

// The published catalogue of events, by its rules: three names for each resource of
// health data, and the names of the other domains one by one.
var (
	summaries = []string{
		"activity", "sleep", "sleep_cycle", "workouts", "workout_stream", "body", "profile", "meal",
		"menstrual_cycle", "electrocardiogram",
	}
	timeseries = []string{
		"afib_burden", "basal_body_temperature", "blood_oxygen", "blood_pressure", "body_mass_index",
		"body_temperature", "body_temperature_delta", "caffeine", "calories_active", "calories_basal",
		"carbohydrates", "cholesterol", "daylight_exposure", "distance", "electrocardiogram_voltage",
		"fall", "fat", "floors_climbed", "forced_expiratory_volume_1", "forced_vital_capacity",
		"glucose", "handwashing", "heart_rate_alert", "heart_rate_recovery_one_minute", "heartrate",
		"hrv", "hrv_sdnn", "ige", "igg", "inhaler_usage", "insulin_injection",
		"lean_body_mass", "mindfulness_minutes", "note", "peak_expiratory_flow_rate", "respiratory_rate",
		"sleep_apnea_alert", "sleep_breathing_disturbance", "stand_duration", "stand_hour", "steps",
		"stress_level", "uv_exposure", "vo2_max", "waist_circumference", "water",
		"weight", "wheelchair_push", "workout_distance", "workout_duration", "workout_swimming_stroke",
	}
	others = []string{
		"provider.connection.created", "provider.connection.error", "provider.connection.deleted",
		"provider.consent.withdrawn",
		"provider.device.created", "provider.device.updated",
		"labtest.order.created", "labtest.order.updated",
		"labtest.appointment.created", "labtest.appointment.updated",
		"labtest.result.critical", "labtest.result.critical.acknowledged", "labtest.result.critical.unacknowledged",
		"labtest.match_review.created", "labtest.match_review.updated",
		"lab_report.parsing_job.created", "lab_report.parsing_job.updated",
		"continuous_query.result_table.changed",
		"message.attempt.exhausted", "endpoint.disabled",
	}
)

func published() []string {
	var names []string
	for _, r := range slices.Concat(summaries, timeseries) {
		names = append(names, "daily.data."+r+".created", "daily.data."+r+".updated", "daily.data."+r+".deleted", "historical.data."+r+".created")
	}
	return append(names, others...)
}

func TestEventTypes_areThePublishedOnesWithDataAndDoc(t *testing.T) {
	want := published()
	require.Len(t, want, 264)
	var got []string
	for _, e := range receiver.EventTypes() {
		got = append(got, e.Name)
		require.NotNil(t, e.Data, e.Name)
		require.NotEmpty(t, e.Doc, e.Name)
	}
	require.ElementsMatch(t, want, got)
	_, err := webhook.NewCatalogue(receiver.EventTypes())
	require.NoError(t, err)
}

// The mode of each event type: summaries and stream events replace each other, one-time
// events are independent of order, and all others are applied in order.
func TestEventTypes_haveTheModeOfTheirFamily(t *testing.T) {
	want := map[string]healthlab.Mode{
		"message.attempt.exhausted": healthlab.Independent, "endpoint.disabled": healthlab.Independent,
	}
	for _, r := range slices.Concat(summaries, timeseries) {
		mode := healthlab.Ordered
		if slices.Contains(summaries, r) {
			mode = healthlab.Latest
		}
		want["daily.data."+r+".created"], want["daily.data."+r+".updated"], want["daily.data."+r+".deleted"] = mode, mode, mode
		want["historical.data."+r+".created"] = healthlab.Independent
	}
	for _, name := range others {
		if _, ok := want[name]; !ok {
			want[name] = healthlab.Ordered
		}
	}
	types, err := webhook.NewCatalogue(receiver.EventTypes())
	require.NoError(t, err)
	require.Equal(t, want, types.Modes())
}

func TestParseName_acceptsEveryPublishedName(t *testing.T) {
	for _, name := range published() {
		require.True(t, webhook.ValidType(name), name)
		n, ok := receiver.ParseName(name)
		require.True(t, ok, name)
		require.NotEmpty(t, n.Family, name)
		require.NotEmpty(t, n.Verb, name)
	}
}

func TestParseName_splitsFamilyResourceAndVerb(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want receiver.Name
		ok   bool
	}{
		{"daily.data.sleep.created", receiver.Name{Family: "daily", Resource: "sleep", Verb: "created"}, true},
		{"daily.data.blood_oxygen.updated", receiver.Name{Family: "daily", Resource: "blood_oxygen", Verb: "updated"}, true},
		{"historical.data.vo2_max.created", receiver.Name{Family: "historical", Resource: "vo2_max", Verb: "created"}, true},
		{"daily.timeseries.hypnogram.created", receiver.Name{Family: "daily", Resource: "hypnogram", Verb: "created"}, true},
		{"labtest.order.updated", receiver.Name{Family: "labtest", Resource: "order", Verb: "updated"}, true},
		{"endpoint.disabled", receiver.Name{Family: "endpoint", Verb: "disabled"}, true},
		{"daily.timeseries.steps.created", receiver.Name{}, false},
		{"daily.data.sleep.deleted", receiver.Name{Family: "daily", Resource: "sleep", Verb: "deleted"}, true},
		{"historical.data.sleep.deleted", receiver.Name{}, false},
		{"sleep", receiver.Name{}, false},
		{"a.b", receiver.Name{}, false},
		{"", receiver.Name{}, false},
		{"A.b.c", receiver.Name{}, false},
	} {
		t.Run(tt.in, func(t *testing.T) {
			got, ok := receiver.ParseName(tt.in)
			require.Equal(t, tt.ok, ok)
			require.Equal(t, tt.want, got)
		})
	}
}
