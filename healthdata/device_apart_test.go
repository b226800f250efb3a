package healthdata_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// By default readers see one sample of two devices that recorded the same minute. A team may keep
// them apart, for activity from on-device stores; a deletion by the person then covers all
// devices.
func TestDevicesApart_readsOneSamplePerDeviceAndMinute(t *testing.T) {
	var settings healthdata.TeamSettings
	s := newStation(t, healthdata.Options{
		Settings: func(context.Context, healthlab.TeamID) (healthdata.TeamSettings, error) { return settings, nil },
	})
	_, err := s.Connections().ConnectLinked(t.Context(), s.team, s.user, healthdata.NewConnection{Provider: "acme_store"})
	require.NoError(t, err)
	at, end := ago(2*time.Hour), ago(119*time.Minute)
	from := func(provider, device string) healthdata.Upload {
		up := band
		up.Provider = provider
		if device != "" {
			up.Device = &healthdata.DeviceInfo{ID: &device}
		}
		return up
	}
	count := func(n float64, unit string) healthdata.Sample {
		return healthdata.Sample{Timestamp: at, Start: &at, End: &end, Value: healthdata.Number(n), Unit: unit}
	}
	values := func(resource string) (out []float64) {
		all, err := s.AllSamples(t.Context(), s.team, s.user, healthdata.SampleQuery{Resource: resource, From: at.Time, To: at.Time})
		require.NoError(t, err)
		for _, v := range all {
			out = append(out, v.Value.Number)
		}
		return out
	}
	remove := func(up healthdata.Upload) int {
		n, err := s.RemoveSamples(t.Context(), s.team, s.user, "steps", up, "", []healthlab.Time{at})
		require.NoError(t, err)
		return n
	}
	watch, phone := from("acme_store", "watch"), from("acme_store", "phone")

	s.samples("steps", watch, count(10, "count"))
	s.samples("steps", phone, count(20, "count"))
	require.Equal(t, []float64{20}, values("steps"))
	require.Equal(t, 2, remove(from("acme_store", "")), "those of both devices")

	settings.DevicesApart = true
	s.samples("steps", watch, count(10, "count"))
	s.samples("steps", phone, count(20, "count"))
	s.samples("steps", watch, count(11, "count"))
	require.ElementsMatch(t, []float64{11, 20}, values("steps"))
	s.samples("steps", from("acme_store", ""), count(30, "count"))
	require.Len(t, values("steps"), 3, "one that names no device is beside them")
	require.Equal(t, 1, remove(phone))
	require.ElementsMatch(t, []float64{11, 30}, values("steps"))
	settings.DevicesApart = false
	require.Equal(t, 2, remove(from("acme_store", "")), "what was kept apart before goes, too")
	require.Empty(t, values("steps"))

	settings.DevicesApart = true
	for _, device := range []string{"watch", "phone"} {
		s.samples("steps", from("acme_band", device), count(10, "count"))
		s.samples("stand_duration", from("acme_store", device), count(1, "min"))
	}
	require.Len(t, values("steps"), 1, "a cloud merges its devices itself")
	require.Len(t, values("stand_duration"), 1, "not activity that is counted")
}
