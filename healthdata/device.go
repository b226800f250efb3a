package healthdata

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Names of the event types of devices.
const (
	EventDeviceCreated = "provider.device.created"
	EventDeviceUpdated = "provider.device.updated"
)

// deviceSlug is the resource under which devices are kept.
const deviceSlug = "device"

// deviceEventTypes lists the events about devices.
func deviceEventTypes() []healthlab.EventType {
	return []healthlab.EventType{
		{Name: EventDeviceCreated, Mode: healthlab.Ordered, Data: Device{}, Doc: "A device is first seen on a user's connection."},
		{Name: EventDeviceUpdated, Mode: healthlab.Ordered, Data: Device{}, Doc: "What is known of a device has changed."},
	}
}

// Device is what recorded data, as far as its source tells.
type Device struct {
	// ID is ours; source.device_id of data names it.
	ID     uuid.UUID        `json:"id"`
	UserID healthlab.UserID `json:"user_id"`
	// Provider is the slug of the source that told of it.
	Provider string `json:"provider"`
	// SourceType is that of the first data that said one.
	SourceType SourceType `json:"source_type"`
	// AppID names the app that recorded with it, of several the first; null but for stores
	// that many apps write to.
	AppID        *string `json:"app_id"`
	Manufacturer *string `json:"device_manufacturer"`
	Model        *string `json:"device_model"`
	// Version is that of its software.
	Version *string `json:"device_version"`
	// DeviceID is the source's own id of it, which is no UUID.
	DeviceID *string `json:"device_id"`
}

// device is the device of an upload; its id is the same whenever it is seen.
func (in *intake) device() Device {
	d, src := in.Upload.Device, &in.Source
	key := "id\x00" + deref(d.ID)
	if deref(d.ID) == "" {
		key = "model\x00" + deref(src.AppID) + "\x00" + deref(d.Manufacturer) + "\x00" + deref(d.Model)
	}
	out := Device{
		UserID: in.user.ID, Provider: in.Provider, SourceType: src.Type, AppID: src.AppID,
		Manufacturer: d.Manufacturer, Model: d.Model, Version: d.Version, DeviceID: d.ID,
	}
	kind := src.Type
	if deref(d.ID) != "" {
		kind = ""
	}
	out.ID = SummaryID(in.team, in.user.ID, in.Provider, kind, deviceSlug, key)
	return out
}

// keeping adds to a device what was known of it: who told of it first stays, and so does
// what is not told now.
func (d Device) keeping(was *Device) Device {
	if was.SourceType != "" && was.SourceType != SourceUnknown {
		d.SourceType = was.SourceType
	}
	d.AppID = orTold(was.AppID, d.AppID)
	d.Manufacturer = orTold(d.Manufacturer, was.Manufacturer)
	d.Model = orTold(d.Model, was.Model)
	d.Version = orTold(d.Version, was.Version)
	return d
}

// orTold is a, or b where a says nothing.
func orTold(a, b *string) *string {
	if deref(a) == "" {
		return b
	}
	return a
}

// knownDevice is a device as it is stored.
type knownDevice struct {
	Device
	// ToldAt is the instant of the data that first told what is known. Older data may come
	// later, as a history does, and does not bring back what was true before.
	ToldAt healthlab.Time `json:"told_at,omitzero"`
}

// learn adds to what is known of a device what data that is from told says of it.
func (k *knownDevice) learn(d Device, told healthlab.Time) knownDevice {
	next := d.keeping(&k.Device)
	older := told.Before(k.ToldAt.Time)
	if older {
		next.Manufacturer = orTold(k.Manufacturer, next.Manufacturer)
		next.Model = orTold(k.Model, next.Model)
		next.Version = orTold(k.Version, next.Version)
	}
	if older || reflect.DeepEqual(next, k.Device) {
		told = k.ToldAt
	}
	return knownDevice{next, told}
}

// meet keeps the device of an upload that was found good and whose last data is from told,
// and announces one that is new or has changed. It comes before its data.
func (s *Service) meet(ctx context.Context, in *intake, told time.Time) error {
	if in.Upload.Device == nil {
		return nil
	}
	d := in.device()
	known, err := s.devices(ctx, in.team, in.user.ID, d.ID)
	if err != nil {
		return fmt.Errorf("keep device: %w", err)
	}
	next := knownDevice{d, healthlab.At(told)}
	for i := range known {
		next = known[i].learn(d, healthlab.At(told))
	}
	d = next.Device
	payload, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode device: %w", err)
	}
	news := len(known) == 0 || !reflect.DeepEqual(d, known[0].Device) // a payload alone is none
	raw, err := s.devicePayload(ctx, in, d.ID)
	if err != nil {
		return fmt.Errorf("keep device: %w", err)
	}
	doc, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode device: %w", err)
	}
	r := Record{
		Resource: deviceSlug, ID: d.ID, Provider: in.Provider, SourceType: d.SourceType, Doc: doc, Raw: raw,
		CreatedAt: in.now.Time, UpdatedAt: in.now.Time,
	}
	err = s.data.PutRecords(ctx, in.team, in.user.ID, []Record{r}, func(results []PutResult) ([]healthlab.Event, error) {
		if !news {
			return nil, nil
		}
		e := healthlab.Event{ID: s.opts.NewID(), Team: in.team, User: in.user.ID, Key: d.ID.String(), At: in.now.Time, Data: payload}
		switch results[0].Fate {
		case FateNew:
			e.Type = EventDeviceCreated
		case FateChanged:
			e.Type = EventDeviceUpdated
		default:
			return nil, nil
		}
		return []healthlab.Event{e}, nil
	})
	if err != nil {
		return fmt.Errorf("keep device: %w", err)
	}
	return nil
}

// devicePayload is what is kept of what the source said of a device: what it says now, else
// what it said before.
func (s *Service) devicePayload(ctx context.Context, in *intake, id uuid.UUID) (raw []byte, err error) {
	switch {
	case !in.settings.ProviderRawData:
		return nil, nil
	case in.Upload.Device.Raw != nil:
		return in.Upload.Device.Raw, nil
	}
	err = s.data.View(ctx, in.team, in.user.ID, func(v View) (err error) {
		raw, err = payload(ctx, v, deviceSlug, id)
		return err
	})
	return raw, err
}

// RawDevices returns what sources said of devices by itself, as they said it, in no order
// that means anything; of one provider, if it is not empty. Teams that do not keep payloads
// have none. healthlab.NotFound if the team has no such user.
func (s *Service) RawDevices(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) ([]RawRecord, error) {
	out := []RawRecord{}
	err := s.data.View(ctx, team, user, func(v View) error {
		records, err := v.Records(ctx, RecordQuery{Resource: deviceSlug, Provider: provider, Raw: true})
		if err != nil {
			return err
		}
		for i := range records {
			r := &records[i]
			var d knownDevice
			if err := json.Unmarshal(r.Doc, &d); err != nil {
				return fmt.Errorf("decode device: %w", err)
			}
			one := RawRecord{
				ID: r.ID, Source: s.source(Source{Provider: d.Provider, Type: d.SourceType, AppID: d.AppID, DeviceID: &d.ID}),
				ProviderID: orID(d.DeviceID, r.ID), Data: json.RawMessage(r.Raw), CreatedAt: healthlab.At(r.CreatedAt), UpdatedAt: healthlab.At(r.UpdatedAt),
			}
			out = append(out, one)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("read raw devices: %w", err)
	}
	return out, nil
}

// orID is the source's own id, ours where it has none.
func orID(theirs *string, ours uuid.UUID) string {
	if deref(theirs) == "" {
		return ours.String()
	}
	return *theirs
}

// ReceiveDevice keeps a device that a provider listed by itself, and announces one that is
// new or has changed: up.Device, which up.Source.Type says how it records. One that nothing
// tells apart is told as refused, and what of it cannot be kept is left out.
//
// Errors: as of [Service.ReceiveSamples].
func (s *Service) ReceiveDevice(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, up Upload) (Received, error) {
	var got Received
	up.Device = up.Device.kept()
	if up.Device == nil {
		var p healthlab.Problems
		p.Add("missing", "a device has an id or a model", "device")
		got.refuseAll(1, p)
		return got, nil
	}
	in, err := s.admit(ctx, team, user, up, ResourceBySlug(deviceSlug))
	if invalid := (*healthlab.InvalidError)(nil); errors.As(err, &invalid) {
		got.refuseAll(1, invalid.Problems)
		return got, nil
	}
	if err == nil {
		err = s.meet(ctx, in, in.now.Time)
	}
	if err != nil {
		return Received{}, fmt.Errorf("receive device: %w", err)
	}
	return got, nil
}

// soleDevice returns the one device that is known of a connection, for data that does not
// say what recorded it; nil if there are several, or it is of another kind. What stores and
// apps hand over may come from anywhere.
func (s *Service) soleDevice(ctx context.Context, in *intake) (*uuid.UUID, error) {
	if in.provider.Class == classStore || in.provider.Class == classManual {
		return nil, nil //nolint:nilnil // there is none, which is no error
	}
	known, err := s.devices(ctx, in.team, in.user.ID, uuid.Nil)
	if err != nil {
		return nil, err
	}
	known = slices.DeleteFunc(known, func(d knownDevice) bool { return d.Provider != in.Provider })
	if len(known) != 1 {
		return nil, nil //nolint:nilnil // as above
	}
	if is, says := known[0].SourceType, in.Source.Type; is != says && is != SourceUnknown && says != SourceUnknown {
		return nil, nil //nolint:nilnil // as above
	}
	return &known[0].ID, nil
}

// Devices returns the devices of a user, by provider, then id. healthlab.NotFound if the
// team has no such user.
func (s *Service) Devices(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]Device, error) {
	list, err := s.devices(ctx, team, user, uuid.Nil)
	if err != nil {
		return nil, fmt.Errorf("read devices: %w", err)
	}
	out := make([]Device, len(list))
	for i := range list {
		out[i] = list[i].Device
	}
	return out, nil
}

// Device returns one device. healthlab.NotFound if the team has no such user, or the user no
// such device.
func (s *Service) Device(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id uuid.UUID) (Device, error) {
	list, err := s.devices(ctx, team, user, id)
	if err == nil && (len(list) == 0 || id == uuid.Nil) {
		err = healthlab.NotFound
	}
	if err != nil {
		return Device{}, fmt.Errorf("read device: %w", err)
	}
	return list[0].Device, nil
}

func (s *Service) devices(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id uuid.UUID) ([]knownDevice, error) {
	out := []knownDevice{}
	err := s.data.View(ctx, team, user, func(v View) error {
		records, err := v.Records(ctx, RecordQuery{Resource: deviceSlug, ID: id})
		if err != nil {
			return err
		}
		for i := range records {
			var d knownDevice
			if err := json.Unmarshal(records[i].Doc, &d); err != nil {
				return fmt.Errorf("decode device: %w", err)
			}
			out = append(out, d)
		}
		return nil
	})
	slices.SortFunc(out, func(a, b knownDevice) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	return out, err
}
