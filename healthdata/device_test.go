package healthdata_test

import (
	"encoding/json"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

func TestDevices(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	text := func(v string) *string { return &v }
	up := healthdata.Upload{
		Provider: "acme_band", Source: healthdata.Source{Type: healthdata.SourceWatch},
		Device: &healthdata.DeviceInfo{ID: text("serial-1"), Manufacturer: text("Acme"), Model: text("Band 4"), Version: text("1.0")},
	}
	send := func(up healthdata.Upload) error {
		_, err := s.IngestSamples(t.Context(), s.team, s.user, "heartrate", up, []healthdata.Sample{{Timestamp: ago(0), Unit: "bpm", Value: healthdata.Number(60)}})
		return err
	}
	told := func() (out []string) {
		for _, e := range s.events() {
			if e.EventType == healthdata.EventDeviceCreated || e.EventType == healthdata.EventDeviceUpdated {
				out = append(out, e.EventType)
			}
		}
		return out
	}
	require.NoError(t, send(up))
	require.NoError(t, send(up))
	list, err := s.Devices(t.Context(), s.team, s.user)
	require.NoError(t, err)
	require.Len(t, list, 1)
	want := healthdata.Device{
		ID: list[0].ID, UserID: s.user, Provider: "acme_band", SourceType: healthdata.SourceWatch,
		Manufacturer: text("Acme"), Model: text("Band 4"), Version: text("1.0"), DeviceID: text("serial-1"),
	}
	require.Equal(t, want, list[0])
	require.Equal(t, []string{healthdata.EventDeviceCreated}, told())

	// The data names it, and a new version is news.
	page, err := s.Samples(t.Context(), s.team, s.user, healthdata.SampleQuery{Resource: "heartrate"})
	require.NoError(t, err)
	require.Equal(t, &want.ID, page.Groups[0].Source.DeviceID)
	newer := up
	newer.Device = &healthdata.DeviceInfo{ID: up.Device.ID, Manufacturer: up.Device.Manufacturer, Model: up.Device.Model, Version: text("2.0")}
	require.NoError(t, send(newer))
	one, err := s.Device(t.Context(), s.team, s.user, want.ID)
	require.NoError(t, err)
	require.Equal(t, "2.0", *one.Version)
	require.Equal(t, []string{healthdata.EventDeviceUpdated}, told())

	// Without an id it is known by its model; another model is another device.
	for _, model := range []string{"Band 4", "Band 5", "Band 5"} {
		other := up
		other.Device = &healthdata.DeviceInfo{Model: text(model)}
		require.NoError(t, send(other))
	}
	list, err = s.Devices(t.Context(), s.team, s.user)
	require.NoError(t, err)
	require.Len(t, list, 3)

	// Of a refused upload nothing is kept, its device neither.
	bad := up
	bad.Device = &healthdata.DeviceInfo{ID: text("serial-9")}
	_, err = s.IngestSamples(t.Context(), s.team, s.user, "heartrate", bad, []healthdata.Sample{{Timestamp: ago(0), Unit: "stones", Value: healthdata.Number(60)}})
	require.ErrorIs(t, err, healthlab.Invalid)
	bad.Device = &healthdata.DeviceInfo{Version: text("1")}
	require.ErrorIs(t, send(bad), healthlab.Invalid)
	list, err = s.Devices(t.Context(), s.team, s.user)
	require.NoError(t, err)
	require.Len(t, list, 3)

	_, err = s.Device(t.Context(), s.team, s.user, uuid.New())
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = s.Device(t.Context(), s.team, s.user, uuid.Nil)
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = s.Devices(t.Context(), healthlab.TeamID{UUID: uuid.New()}, s.user)
	require.ErrorIs(t, err, healthlab.NotFound)
	doc, err := json.Marshal(want)
	require.NoError(t, err)
	require.Contains(t, string(doc), `"app_id":null`)
}

func TestADeviceThatTwoAppsTellOfIsOne(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	told := func() (n int) {
		for _, e := range s.events() {
			if e.EventType == healthdata.EventDeviceCreated || e.EventType == healthdata.EventDeviceUpdated {
				n++
			}
		}
		return n
	}
	send := func(app string, kind healthdata.SourceType, info healthdata.DeviceInfo) healthdata.Device {
		info.ID = ptr("serial-1")
		up := healthdata.Upload{Provider: "acme_band", Source: healthdata.Source{Type: kind, AppID: ptr(app)}, Device: &info}
		s.samples("heartrate", up, healthdata.Sample{Timestamp: ago(0), Unit: "bpm", Value: healthdata.Number(60)})
		list, err := s.Devices(t.Context(), s.team, s.user)
		require.NoError(t, err)
		require.Len(t, list, 1)
		return list[0]
	}
	first := send("com.acme.a", healthdata.SourceWatch, healthdata.DeviceInfo{Manufacturer: ptr("Acme"), Version: ptr("1.0")})
	require.Equal(t, 1, told())
	for range 2 {
		require.Equal(t, first, send("com.acme.b", healthdata.SourcePhone, healthdata.DeviceInfo{}), "what an upload does not say stays known")
		require.Equal(t, first, send("com.acme.a", healthdata.SourceWatch, healthdata.DeviceInfo{Manufacturer: ptr("Acme")}))
		require.Equal(t, first, send("com.acme.a", healthdata.SourceUnknown, healthdata.DeviceInfo{Version: ptr("1.0")}))
	}
	require.Zero(t, told(), "nothing has changed")

	first.Model = ptr("Band 4")
	require.Equal(t, first, send("com.acme.b", healthdata.SourcePhone, healthdata.DeviceInfo{Model: ptr("Band 4")}))
	first.Version = ptr("2.0")
	require.Equal(t, first, send("com.acme.b", healthdata.SourcePhone, healthdata.DeviceInfo{Version: ptr("2.0")}))
	require.Equal(t, 2, told())
}
