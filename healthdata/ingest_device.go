package healthdata

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// ReceiveDevice stores the device up.Device from a provider's list of devices, and sends an event if it is new or
// changed. up.Source.Type is the type of the device. A device with neither an id nor a model is not stored, and is
// reported in Received.Refusals. Fields that cannot be stored are left out.
//
// The errors are those of [Service.ReceiveSamples].
func (s *Service) ReceiveDevice(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, up Upload) (Received, error) {
	var got Received
	up.Device = up.Device.normalized()
	if up.Device == nil {
		var p healthlab.Problems
		p.Add("missing", "must be set: a device is known by its id or its model", "device")
		got.refuseAll(1, p)
		return got, nil
	}
	in, err := s.admit(ctx, team, user, up, ResourceBySlug(deviceSlug))
	if invalid := (*healthlab.InvalidError)(nil); errors.As(err, &invalid) {
		got.refuseAll(1, invalid.Problems)
		return got, nil
	}
	if err == nil {
		err = in.putDevice(ctx, in.now.Time)
	}
	if err != nil {
		return Received{}, fmt.Errorf("receive device: %w", err)
	}
	return got, nil
}

// putDevice stores the device of a checked upload, and sends an event if the device is new or changed. told is the
// instant of the upload's latest data. putDevice runs before the data is stored.
func (in *intake) putDevice(ctx context.Context, told time.Time) error {
	if in.Upload.Device == nil {
		return nil
	}
	for attempt := 1; ; attempt++ {
		err := in.mergeDevice(ctx, healthlab.At(told))
		if errors.Is(err, healthlab.Precondition) && attempt < mergeAttempts {
			continue // another upload changed the device first
		}
		if err != nil {
			return fmt.Errorf("keep device: %w", err)
		}
		return nil
	}
}

// mergeDevice merges the device of a checked upload with the stored one, as putDevice does. It returns
// healthlab.Precondition if the stored device has changed meanwhile.
func (in *intake) mergeDevice(ctx context.Context, told healthlab.Time) error {
	d := in.Upload.device(in.team, in.user.ID)
	known, err := readDevices(ctx, in.data, in.team, in.user.ID, d.ID)
	if err != nil {
		return err
	}
	next := knownDevice{Device: d, ReportedAt: told, doc: []byte{}}
	for i := range known {
		next = known[i].update(d, told)
	}
	d = next.Device
	payload, err := json.Marshal(d)
	if err != nil {
		return fmt.Errorf("encode device: %w", err)
	}
	news := len(known) == 0 || !reflect.DeepEqual(d, known[0].Device) // a new raw document with the same description sends no event
	raw, err := in.devicePayload(ctx, d.ID)
	if err != nil {
		return err
	}
	doc, err := json.Marshal(next)
	if err != nil {
		return fmt.Errorf("encode device: %w", err)
	}
	r := Record{
		Resource: deviceSlug, ID: d.ID, Provider: in.Provider, SourceType: d.SourceType, Doc: doc, Raw: raw,
		CreatedAt: in.now.Time, UpdatedAt: in.now.Time, Replaces: next.doc,
	}
	return in.data.PutRecords(ctx, in.team, in.user.ID, []Record{r}, func(results []PutResult) ([]healthlab.Event, error) {
		if !news {
			return nil, nil
		}
		e := healthlab.Event{ID: in.opts.NewID(), Team: in.team, User: in.user.ID, Key: d.ID.String(), At: in.now.Time, Data: payload}
		switch results[0].Outcome {
		case PutNew:
			e.Type = EventDeviceCreated
		case PutChanged:
			e.Type = EventDeviceUpdated
		default:
			return nil, nil
		}
		return []healthlab.Event{e}, nil
	})
}

// devicePayload returns the raw document to store for the device id: that of the upload, otherwise the stored one. It
// returns nil if the team does not store payloads.
func (in *intake) devicePayload(ctx context.Context, id uuid.UUID) (raw []byte, err error) {
	switch {
	case !in.settings.ProviderRawData:
		return nil, nil
	case in.Upload.Device.Raw != nil:
		return in.Upload.Device.Raw, nil
	}
	err = in.data.View(ctx, in.team, in.user.ID, func(v View) (err error) {
		raw, err = payload(ctx, v, deviceSlug, id)
		return err
	})
	return raw, err
}
