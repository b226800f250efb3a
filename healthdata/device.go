package healthdata

import (
	"encoding/json"
	"reflect"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
)

// Names of the event types of devices.
const (
	EventDeviceCreated = "provider.device.created"
	EventDeviceUpdated = "provider.device.updated"
)

// deviceSlug is the resource under which devices are kept.
const deviceSlug = "device"

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

// mergedWith adds to a device what was known of it: who told of it first stays, and so does
// what is not told now.
func (d Device) mergedWith(was *Device) Device {
	if was.SourceType != "" && was.SourceType != SourceUnknown {
		d.SourceType = was.SourceType
	}
	d.AppID = firstNonEmpty(was.AppID, d.AppID)
	d.Manufacturer = firstNonEmpty(d.Manufacturer, was.Manufacturer)
	d.Model = firstNonEmpty(d.Model, was.Model)
	d.Version = firstNonEmpty(d.Version, was.Version)
	return d
}

func firstNonEmpty(a, b *string) *string {
	if deref(a) == "" {
		return b
	}
	return a
}

// knownDevice is a device as it is stored.
type knownDevice struct {
	Device
	// ReportedAt is the instant of the data that first told what is known. Older data may come
	// later, as a history does, and does not bring back what was true before.
	ReportedAt healthlab.Time `json:"told_at,omitzero"`
}

// update merges d, which data of the instant told describes, into what is known of the device.
func (k *knownDevice) update(d Device, told healthlab.Time) knownDevice {
	next := d.mergedWith(&k.Device)
	older := told.Before(k.ReportedAt.Time)
	if older {
		next.Manufacturer = firstNonEmpty(k.Manufacturer, next.Manufacturer)
		next.Model = firstNonEmpty(k.Model, next.Model)
		next.Version = firstNonEmpty(k.Version, next.Version)
	}
	if older || reflect.DeepEqual(next, k.Device) {
		told = k.ReportedAt
	}
	return knownDevice{next, told}
}

// DeviceInfo is what a source says of the device that recorded some data.
type DeviceInfo struct {
	// Manufacturer, Model and Version are null where the source does not say: what is known
	// of the device then stays.
	Manufacturer *string
	Model        *string
	Version      *string
	// ID is the source's own id of the device. Without one, a device is known by its
	// source type, app, manufacturer and model.
	ID *string
	// Raw is the payload as it came, a JSON document; nil where the source has none of the
	// device alone. It is kept for teams that keep payloads, the last one of a device.
	Raw json.RawMessage
}

// check notes what is wrong with it.
func (d *DeviceInfo) check(p *healthlab.Problems) {
	for _, f := range [...]struct {
		name string
		v    *string
	}{{"manufacturer", d.Manufacturer}, {"model", d.Model}, {"version", d.Version}, {"id", d.ID}} {
		check.Optional(p, f.v, "source", "device", f.name)
	}
	if deref(d.ID) == "" && deref(d.Model) == "" {
		p.Add("missing", "must be set: a device is known by its id or its model", "source", "device")
	}
}

// kept leaves out what of it cannot be kept, for what a provider says of a device is no
// reason to refuse what was measured with it. Nil if nothing tells the device apart then.
func (d *DeviceInfo) kept() *DeviceInfo {
	if d == nil {
		return nil
	}
	out := *d
	for _, f := range []**string{&out.Manufacturer, &out.Model, &out.Version, &out.ID} {
		var p healthlab.Problems
		if check.Optional(&p, *f); len(p) > 0 {
			*f = nil
		}
	}
	if deref(out.ID) == "" && deref(out.Model) == "" {
		return nil
	}
	if !json.Valid(out.Raw) {
		out.Raw = nil
	}
	return &out
}
