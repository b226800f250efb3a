package orders_test

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

func reads[T any](t testing.TB, text string) T {
	t.Helper()
	var v T
	require.NoError(t, json.Unmarshal([]byte(text), &v), text)
	return v
}

func afresh[T any](t testing.TB, v T) T {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return reads[T](t, string(b))
}

// A member's status is read under either of its names, and has both afterwards.
func TestTransactionMember_statusIsReadUnderEitherName(t *testing.T) {
	const at = "2026-03-02T15:00:00+00:00"
	for _, text := range []string{
		`{"low_level_status": "completed", "low_level_status_created_at": "` + at + `", "origin": "initial"}`,
		`{"last_status": "completed", "last_status_created_at": "` + at + `", "origin": "initial"}`,
		`{"low_level_status": "completed", "last_status": null, "last_status_created_at": "` + at + `", "origin": "initial"}`,
		`{"low_level_status": "completed", "last_status": "ordered", "low_level_status_created_at": "` + at + `", "origin": "initial"}`,
	} {
		d := reads[orders.TransactionDetail](t, `{"orders": [`+text+`]}`)
		m := d.Orders[0]
		require.Equal(t, orders.OriginInitial, m.Origin)
		require.Equal(t, orders.Completed, *m.LowLevelStatus)
		require.Equal(t, time.Date(2026, 3, 2, 15, 0, 0, 0, time.UTC), m.LowLevelStatusCreatedAt.UTC())
		require.Equal(t, m.LowLevelStatusCreatedAt, m.LastStatusCreatedAt)
		if m.LastStatus == nil || *m.LastStatus != orders.Ordered {
			require.Equal(t, m.LowLevelStatus, m.LastStatus)
		}
		require.Equal(t, d, afresh(t, d))
	}
	require.Nil(t, reads[orders.TransactionDetailMember](t, `{"origin": "initial"}`).LowLevelStatus)
}

func TestAppointment_addressZipIsReadUnderEitherName(t *testing.T) {
	for _, text := range []string{`{"city": "Mesa", "zip_code": "85201"}`, `{"city": "Mesa", "zip": "85201", "country": "US"}`,
		`{"city": "Mesa", "zip_code": "85201", "zip": "85202"}`} {
		require.Equal(t, appointment.Address{City: "Mesa", ZipCode: "85201"}, reads[orders.Appointment](t, `{"address": `+text+`}`).Address)
	}
}

func TestResultMetadata_oldFieldNamesAreRead(t *testing.T) {
	for _, text := range []string{`{"age": "41", "clia_#": "05D", "patient": "Ana Roe"}`, `{"age": 41, "clia_number": "05D", "patient": "Ana Roe"}`,
		`{"age": "41", "clia_#": "05D", "clia_number": "06D", "patient": "Ana Roe"}`} {
		h := reads[labresult.Metadata](t, text)
		require.Equal(t, labresult.Metadata{Age: "41", CLIANumber: ptr("05D"), Patient: "Ana Roe"}, h)
		require.Equal(t, h, afresh(t, h))
	}
	require.Equal(t, labresult.Metadata{Patient: "Ana Roe"}, reads[labresult.Metadata](t, `{"age": null, "patient": "Ana Roe"}`))
	require.Error(t, json.Unmarshal([]byte(`{"age": true}`), new(labresult.Metadata)))
}

func TestSampleData_datesAreReadWithAndWithoutOffset(t *testing.T) {
	at := healthlab.At(time.Date(2026, 3, 2, 15, 0, 0, 0, time.UTC))
	for text, want := range map[string]*labresult.TimestampWithOffset{
		`{"timestamp": "2026-03-02T15:00:00Z", "timezone_offset": -25200}`: {Timestamp: at, TimezoneOffset: -25200},
		`"2026-03-02T08:00:00-07:00"`:                                      {Timestamp: at, TimezoneOffset: -25200},
		`"2026-03-02T15:00:00"`:                                            {Timestamp: at},
		`"2026-03-02"`:                                                     {Timestamp: healthlab.At(at.Add(-15 * time.Hour)), Precision: labresult.DayPrecision},
		`null`:                                                             nil,
	} {
		s := reads[labresult.SampleData](t, `{"sample_id": "A", "date_collected": `+text+`, "date_received": `+text+`, "date_reported": `+text+`}`)
		require.Equal(t, labresult.SampleData{SampleID: ptr("A"), DateCollected: want, DateReceived: want, DateReported: want}, s, text)
		require.Equal(t, s, afresh(t, s))
	}
	for _, bad := range []string{`"yesterday"`, `12`, `{"timestamp": "x"}`} {
		err := json.Unmarshal([]byte(`{"date_collected": `+bad+`}`), new(labresult.SampleData))
		require.Error(t, err)
		require.NotContains(t, err.Error(), "yesterday")
	}
}

func TestAreaInfo_oldFieldNamesAreRead(t *testing.T) {
	for _, text := range []string{`{"name": "phleb", "service_types": ["appointment-ready"]}`, `{"name": "phleb", "tier": ["appointment-ready"]}`,
		`{"name": "phleb", "service_types": ["appointment-ready"], "tier": []}`} {
		require.Equal(t, appointment.PhlebotomyProvider{Name: "phleb", ServiceTypes: []appointment.ServiceTier{appointment.ReadyTier}},
			reads[appointment.PhlebotomyProvider](t, text))
	}
	for _, text := range []string{`{"distance": "7", "site_code": "A"}`, `{"distance": 7, "site_code": "A"}`} {
		require.Equal(t, appointment.PSCLocation{Distance: "7", SiteCode: "A"}, reads[appointment.PSCLocation](t, text))
	}
	for text, want := range map[string]bool{
		`{"radius": "25", "appointment_with_service": true}`:                                true,
		`{"radius": "25", "appointment_with_somebody": true}`:                               true,
		`{"radius": "25", "appointment_with_a": false, "appointment_with_b": true}`:         true,
		`{"radius": "25", "appointment_with_service": false, "appointment_with_old": true}`: false,
		`{"radius": "25", "appointment_with_somebody": null}`:                               false,
		`{"radius": "25"}`: false,
	} {
		require.Equal(t, appointment.PSCAreaDetails{Radius: "25", AppointmentWithService: want}, reads[appointment.PSCAreaDetails](t, text), text)
	}
	require.Error(t, json.Unmarshal([]byte(`{"appointment_with_somebody": "yes"}`), new(appointment.PSCAreaDetails)))
}

func TestRegistryPayor_codeIsReadUnderEitherName(t *testing.T) {
	for _, text := range []string{`{"payor_code": "P1", "name": "One", "ids": {"a": ["7"]}}`, `{"code": "P1", "name": "One", "ids": {"a": ["7"]}}`,
		`{"payor_code": "P1", "code": "P2", "name": "One", "ids": {"a": ["7"]}}`} {
		require.Equal(t, people.RegistryPayor{Payor: people.Payor{PayorCode: "P1", Name: "One"}, IDs: map[string][]string{"a": {"7"}}},
			reads[people.RegistryPayor](t, text), text)
	}
	registry, err := people.ReadRegistry(strings.NewReader(`{"clearing_houses": ["a"], "payors": [{"code": "P1", "name": "One", "ids": {"a": ["7"]}}],
		"state_plans": {"PLAN": {"AZ": "P1"}}}`))
	require.NoError(t, err, "the code of the plan is known")
	require.NotNil(t, registry)
	_, err = people.ReadRegistry(strings.NewReader(`{"clearing_houses": ["a"], "payors": [{"code": "P1", "ids": {"b": ["7"]}}]}`))
	require.ErrorContains(t, err, "payors[0].ids")
	_, err = people.ReadRegistry(strings.NewReader(`{"payors": [{"code": "P1", "colour": "red"}]}`))
	require.ErrorIs(t, err, healthlab.Invalid)
}

// Results in the old form, an object, are kept as they are; those in the list are read as ever.
func TestDecodeResults_keepsResultsInTheOldObjectForm(t *testing.T) {
	const rest = `"metadata": {"age": 41}, "missing_results": [{"slug": "iron"}]}`
	out, keyed, err := orders.DecodeResults([]byte(`{"results": {"glucose": {"value": 1.50}}, ` + rest))
	require.NoError(t, err)
	require.Equal(t, `{"glucose": {"value": 1.50}}`, string(keyed))
	require.Nil(t, out.Results)
	require.Equal(t, "41", out.Metadata.Age)
	require.Equal(t, "iron", out.MissingResults[0].Slug)

	for _, text := range []string{`{"results": [{"slug": "glucose", "result_type": "numeric"}], ` + rest, `{"results": [], ` + rest, `{"results": null, ` + rest, `{` + rest} {
		out, keyed, err := orders.DecodeResults([]byte(text))
		require.NoError(t, err)
		require.Nil(t, keyed)
		require.Equal(t, reads[orders.OrderResults](t, text), out)
	}
	for _, bad := range []string{``, `[]`, `{"results": 1}`, `{"results": {`, `{"results": [1]}`} {
		_, _, err := orders.DecodeResults([]byte(bad))
		require.Error(t, err, bad)
	}
}
