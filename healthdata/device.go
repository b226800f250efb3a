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

// deviceSlug is the resource slug under which devices are stored.
const deviceSlug = "device"

func deviceEventTypes() []healthlab.EventType {
	return []healthlab.EventType{
		{Name: EventDeviceCreated, Mode: healthlab.Ordered, Data: Device{}, Doc: "A device is first seen on a user's connection."},
		{Name: EventDeviceUpdated, Mode: healthlab.Ordered, Data: Device{}, Doc: "What is known of a device has changed."},
	}
}

// Device is a device that recorded data, as its source describes it.
type Device struct {
	// ID is the service's id of the device. The field source.device_id of data has the same id.
	ID     uuid.UUID        `json:"id"`
	UserID healthlab.UserID `json:"user_id"`
	// Provider is the slug of the source that reported the device.
	Provider string `json:"provider"`
	// SourceType is the source type of the first data from this device that stated one.
	SourceType SourceType `json:"source_type"`
	// AppID names the first app that recorded with the device. It is null except for stores that many apps write
	// to.
	AppID        *string `json:"app_id"`
	Manufacturer *string `json:"device_manufacturer"`
	Model        *string `json:"device_model"`
	// Version is the version of the device's software.
	Version *string `json:"device_version"`
	// DeviceID is the source's own id of the device, which is not a UUID.
	DeviceID *string `json:"device_id"`
}

// mergedWith returns d with its empty manufacturer, model and version filled from was, the earlier version of the
// device. The app and the source type of was are kept, unless they are empty or unknown.
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

// knownDevice is a device as it is stored, with the time of its newest description.
type knownDevice struct {
	Device
	// ReportedAt is the instant of the newest data that described the device. Older data that arrives later does
	// not overwrite the description.
	ReportedAt healthlab.Time `json:"told_at,omitzero"`

	doc []byte // the stored document; empty if the device is not stored
}

// update returns the stored device merged with the description d. told is the time of the data that came with d. If
// told is before k.ReportedAt, d only fills empty fields.
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
	return knownDevice{next, told, k.doc}
}

// DeviceInfo is a source's description of the device that recorded some data.
type DeviceInfo struct {
	// Manufacturer, Model and Version are null if the source does not state them. The stored values then stay.
	Manufacturer *string
	Model        *string
	Version      *string
	// ID is the source's own id of the device. A device without an id is identified by its source type, app,
	// manufacturer and model.
	ID *string
	// Raw is the provider's JSON document about the device alone; nil if there is none. If the team stores payloads,
	// the newest document of a device is stored.
	Raw json.RawMessage
}

// check reports the invalid fields of the description.
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

// normalized returns the description without the fields that cannot be stored, because measurements must not be refused
// for a bad description of their device. It returns nil if the remaining fields do not identify the device.
func (d *DeviceInfo) normalized() *DeviceInfo {
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
