package healthdata_test

import (
	"context"
	"encoding/json"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

func TestDevices_areStoredOnceAndListedWithTheirLatestData(t *testing.T) {
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

func TestDevices_reportedByTwoAppsAreOneDevice(t *testing.T) {
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

// A history arrives after newer data. Older data does not overwrite what is known of a device;
// it fills what is unknown.
func TestDevices_olderDataOnlyFillsUnknownAttributes(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	told := func() (n int) {
		for _, e := range s.events() {
			if e.EventType == healthdata.EventDeviceCreated || e.EventType == healthdata.EventDeviceUpdated {
				n++
			}
		}
		return n
	}
	version := func(at time.Duration, info healthdata.DeviceInfo) string {
		info.ID = ptr("serial-1")
		up := healthdata.Upload{Provider: "acme_band", Source: healthdata.Source{Type: healthdata.SourceWatch}, Device: &info}
		got, err := s.ReceiveSamples(t.Context(), s.team, s.user, "heartrate", up,
			[]healthdata.Sample{{Timestamp: ago(at), Unit: "bpm", Value: healthdata.Number(60)}})
		require.NoError(t, err)
		require.Empty(t, got.Refusals)
		list, err := s.Devices(t.Context(), s.team, s.user)
		require.NoError(t, err)
		require.Len(t, list, 1)
		if list[0].Model == nil {
			return *list[0].Version
		}
		return *list[0].Version + " of " + *list[0].Model
	}
	require.Equal(t, "2.0", version(time.Hour, healthdata.DeviceInfo{Version: ptr("2.0")}))
	require.Equal(t, "2.0", version(100*time.Hour, healthdata.DeviceInfo{Version: ptr("1.0")}))
	require.Equal(t, 1, told(), "an old version is no news")
	require.Equal(t, "2.0 of Band 4", version(90*time.Hour, healthdata.DeviceInfo{Version: ptr("1.0"), Model: ptr("Band 4")}))
	require.Equal(t, "2.0 of Band 4", version(80*time.Hour, healthdata.DeviceInfo{Model: ptr("Band 3")}))
	require.Equal(t, 1, told())
	require.Equal(t, "3.0 of Band 4", version(time.Minute, healthdata.DeviceInfo{Version: ptr("3.0")}))
	for range 3 { // the same two days are looked at again and again
		require.Equal(t, "3.0 of Band 4", version(time.Hour, healthdata.DeviceInfo{Version: ptr("2.0")}))
		require.Equal(t, "3.0 of Band 4", version(time.Minute, healthdata.DeviceInfo{Version: ptr("3.0")}))
	}
	require.Equal(t, 1, told())
	doc, err := json.Marshal(s.lastDevice())
	require.NoError(t, err)
	require.NotContains(t, string(doc), "told_at")
}

func (s *station) lastDevice() healthdata.Device {
	list, err := s.Devices(s.Context(), s.team, s.user)
	require.NoError(s, err)
	return list[len(list)-1]
}

// interruptedData calls between once, after the device of an upload was read and before it is written.
type interruptedData struct {
	healthdata.Data
	between func()
}

func (d *interruptedData) PutRecords(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, records []healthdata.Record,
	events func([]healthdata.PutResult) ([]healthlab.Event, error),
) error {
	if records[0].Resource == "device" && d.between != nil {
		between := d.between
		d.between = nil
		between()
	}
	return d.Data.PutRecords(ctx, team, user, records, events)
}

// Two uploads about one device have the same result at the same time as one after the other.
func TestDevices_areTheSameAfterTwoUploadsAtTheSameTime(t *testing.T) {
	type upload struct {
		age  time.Duration
		info healthdata.DeviceInfo
	}
	one, two := healthdata.DeviceInfo{Version: ptr("1.0")}, healthdata.DeviceInfo{Version: ptr("2.0")}
	const created, updated = healthdata.EventDeviceCreated, healthdata.EventDeviceUpdated
	for _, c := range []struct {
		name           string
		stored         *upload
		outer, between upload
		version        string
		events         []string
	}{
		{"a new device, described equally", nil, upload{time.Hour, one}, upload{time.Minute, one}, "1.0", []string{created}},
		{"a new device, newer data in between", nil, upload{time.Hour, one}, upload{time.Minute, two}, "2.0", []string{created}},
		{"a new device, older data in between", nil, upload{time.Minute, two}, upload{time.Hour, one}, "2.0", []string{created, updated}},
		{"a known device, described equally", &upload{2 * time.Hour, one}, upload{time.Hour, two}, upload{time.Minute, two}, "2.0", []string{updated}},
		{"a known device, newer data in between", &upload{3 * time.Hour, healthdata.DeviceInfo{Version: ptr("0.9")}},
			upload{time.Hour, one}, upload{time.Minute, two}, "2.0", []string{updated}},
		{"a known device, unchanged in between", &upload{2 * time.Hour, one}, upload{time.Hour, two}, upload{time.Minute, one}, "2.0", []string{updated}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := newStation(t, healthdata.Options{})
			data := &interruptedData{Data: s.store.Data()}
			service, err := healthdata.New(s.store.Users(), data, s.providers, &healthdata.Options{
				Environment: healthlab.Sandbox, Now: func() time.Time { return s.now },
				NewID: func() uuid.UUID {
					s.ids = append(s.ids, uuid.New())
					return s.ids[len(s.ids)-1]
				},
			})
			require.NoError(t, err)
			receive := func(u upload) {
				u.info.ID = ptr("serial-1")
				up := healthdata.Upload{Provider: "acme_band", Source: healthdata.Source{Type: healthdata.SourceWatch}, Device: &u.info}
				_, err := service.ReceiveSamples(t.Context(), s.team, s.user, "heartrate", up,
					[]healthdata.Sample{{Timestamp: ago(u.age), Unit: "bpm", Value: healthdata.Number(60)}})
				require.NoError(t, err)
			}
			if c.stored != nil {
				receive(*c.stored)
				s.events()
			}
			data.between = func() { receive(c.between) }
			receive(c.outer)
			require.Equal(t, c.version, *s.lastDevice().Version)
			var events []string
			for _, e := range s.events() {
				if e.EventType == created || e.EventType == updated {
					events = append(events, e.EventType)
				}
			}
			require.ElementsMatch(t, c.events, events)
		})
	}
}

// Data without a device belongs to the only known device of the connection. It belongs to no
// device if the connection has several, or if the provider collects data of other sources.
func TestSamples_withoutADeviceBelongToTheOnlyDeviceOfTheConnection(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	_, err := s.Connections().ConnectLinked(t.Context(), s.team, s.user, healthdata.NewConnection{Provider: "acme_store"})
	require.NoError(t, err)
	at := time.Duration(0)
	device := func(provider string, kind healthdata.SourceType, info *healthdata.DeviceInfo) *uuid.UUID {
		at += time.Minute
		up := healthdata.Upload{Provider: provider, Source: healthdata.Source{Type: kind}, Device: info}
		s.samples("heartrate", up, healthdata.Sample{Timestamp: ago(at), Unit: "bpm", Value: healthdata.Number(60)})
		page, err := s.Samples(t.Context(), s.team, s.user, healthdata.SampleQuery{Resource: "heartrate", From: ago(at).Time, To: ago(at).Time})
		require.NoError(t, err)
		require.Len(t, page.Groups, 1)
		return page.Groups[0].Source.DeviceID
	}
	require.Nil(t, device("acme_band", healthdata.SourceWatch, nil), "there is none yet")
	watch := device("acme_band", healthdata.SourceWatch, &healthdata.DeviceInfo{ID: ptr("serial-1")})
	require.NotNil(t, watch)
	require.Equal(t, watch, device("acme_band", healthdata.SourceWatch, nil))
	require.Equal(t, watch, device("acme_band", "", nil))
	require.Nil(t, device("acme_band", healthdata.SourceScale, nil), "it is no scale")

	require.NotNil(t, device("acme_store", healthdata.SourceWatch, &healthdata.DeviceInfo{ID: ptr("serial-1")}))
	require.Nil(t, device("acme_store", healthdata.SourceWatch, nil), "many apps write to a store")

	require.NotNil(t, device("acme_band", healthdata.SourceWatch, &healthdata.DeviceInfo{ID: ptr("serial-2")}))
	require.Nil(t, device("acme_band", healthdata.SourceWatch, nil))
}

// Attributes of a device that cannot be stored are left out; the data is kept.
func TestDevices_invalidAttributesAreLeftOutAndTheDataKept(t *testing.T) {
	s := newStation(t, healthdata.Options{})
	long := strings.Repeat("x", 300)
	send := func(info healthdata.DeviceInfo) {
		up := healthdata.Upload{Provider: "acme_band", Source: healthdata.Source{Type: healthdata.SourceWatch}, Device: &info}
		got, err := s.ReceiveSamples(t.Context(), s.team, s.user, "heartrate", up,
			[]healthdata.Sample{{Timestamp: ago(time.Minute), Unit: "bpm", Value: healthdata.Number(60)}})
		require.NoError(t, err)
		require.Empty(t, got.Refusals)
		parts, err := s.ReceiveSummaries(t.Context(), s.team, s.user, "activity", []healthdata.SummaryPart{
			{Upload: up, Items: []healthdata.Summary{&healthdata.Activity{CalendarDate: healthlab.DateOf(ago(0).Time)}}},
		})
		require.NoError(t, err)
		require.Empty(t, parts[0].Refusals)
	}
	send(healthdata.DeviceInfo{Version: ptr("1"), Model: &long})
	list, err := s.Devices(t.Context(), s.team, s.user)
	require.NoError(t, err)
	require.Empty(t, list)
	send(healthdata.DeviceInfo{ID: ptr("serial-1"), Model: &long, Manufacturer: ptr("a\x00b"), Version: ptr("\xff")})
	require.Equal(t, healthdata.Device{
		ID: s.lastDevice().ID, UserID: s.user, Provider: "acme_band", SourceType: healthdata.SourceWatch, DeviceID: ptr("serial-1"),
	}, s.lastDevice())
}

// A provider's payload of a device is kept unchanged for teams that keep payloads. A changed
// payload alone makes no event.
func TestRawDevices_keepTheProvidersPayloadIfTheTeamWantsIt(t *testing.T) {
	var settings healthdata.TeamSettings
	s := newStation(t, healthdata.Options{
		Settings: func(context.Context, healthlab.TeamID) (healthdata.TeamSettings, error) { return settings, nil },
	})
	list := func(raw string) {
		t.Helper()
		got, err := s.ReceiveDevice(t.Context(), s.team, s.user, healthdata.Upload{
			Provider: "acme_band", Source: healthdata.Source{Type: healthdata.SourceWatch},
			Device: &healthdata.DeviceInfo{ID: ptr("serial-1"), Model: ptr("Band 4"), Raw: json.RawMessage(raw)},
		})
		require.NoError(t, err)
		require.Empty(t, got.Refusals)
	}
	payloads := func(provider string) (out []string) {
		t.Helper()
		all, err := s.RawDevices(t.Context(), s.team, s.user, provider)
		require.NoError(t, err)
		for _, r := range all {
			require.Equal(t, []string{"serial-1", "acme_band", "Acme Band"}, []string{r.ProviderID, r.Source.Slug, r.Source.Name})
			out = append(out, string(r.Data))
		}
		return out
	}
	list(`{"battery":90}`)
	require.Empty(t, payloads(""), "this team keeps none")
	require.Len(t, s.events(), 1)
	settings.ProviderRawData = true
	list(`{"battery":80}`)
	require.Equal(t, []string{`{"battery":80}`}, payloads("acme_band"))
	require.Empty(t, payloads("manual"))
	list(`{"battery":`)
	up := healthdata.Upload{Provider: "acme_band", Source: healthdata.Source{Type: healthdata.SourceWatch}, Device: &healthdata.DeviceInfo{ID: ptr("serial-1")}}
	s.samples("hrv", up, healthdata.Sample{Timestamp: ago(time.Minute), Unit: "rmssd", Value: healthdata.Number(60)})
	require.Equal(t, []string{`{"battery":80}`}, payloads(""), "what came last of the device alone")
	for _, e := range s.events() {
		require.NotContains(t, e.EventType, "provider.device", "nothing of what is known has changed")
	}
	settings.ProviderRawData = false
	list(`{"battery":70}`)
	require.Empty(t, payloads(""))
	_, err := s.RawDevices(t.Context(), healthlab.TeamID{UUID: uuid.New()}, s.user, "")
	require.ErrorIs(t, err, healthlab.NotFound)
}
