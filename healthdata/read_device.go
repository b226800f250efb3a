package healthdata

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Devices returns the devices of a user, by provider, then id. healthlab.NotFound if the
// team has no such user.
func (s *Service) Devices(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) ([]Device, error) {
	list, err := readDevices(ctx, s.data, team, user, uuid.Nil)
	if err != nil {
		return nil, fmt.Errorf("read devices: %w", err)
	}
	out := make([]Device, len(list))
	for i := range list {
		out[i] = list[i].Device
	}
	return out, nil
}

// Device returns one device. It returns healthlab.NotFound if the team has no such user, or the user has no such
// device.
func (s *Service) Device(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id uuid.UUID) (Device, error) {
	list, err := readDevices(ctx, s.data, team, user, id)
	if err == nil && (len(list) == 0 || id == uuid.Nil) {
		err = fmt.Errorf("%w: the user has no such device", healthlab.NotFound)
	}
	if err != nil {
		return Device{}, fmt.Errorf("read device: %w", err)
	}
	return list[0].Device, nil
}

func readDevices(ctx context.Context, data Data, team healthlab.TeamID, user healthlab.UserID, id uuid.UUID) ([]knownDevice, error) {
	out := []knownDevice{}
	err := data.View(ctx, team, user, func(v View) error {
		records, err := v.Records(ctx, RecordQuery{Resource: deviceSlug, ID: id})
		if err != nil {
			return err
		}
		out = out[:0]
		for i := range records {
			var d knownDevice
			if err := json.Unmarshal(records[i].Doc, &d); err != nil {
				return fmt.Errorf("decode device: %w", err)
			}
			d.doc = records[i].Doc
			out = append(out, d)
		}
		return nil
	})
	slices.SortFunc(out, func(a, b knownDevice) int {
		return cmp.Or(cmp.Compare(a.Provider, b.Provider), cmp.Compare(a.ID.String(), b.ID.String()))
	})
	return out, err
}

// RawDevices returns the documents of providers about devices, unchanged and in no defined order. If provider is not
// empty, it returns those of one provider. A device has a document only if [TeamSettings].ProviderRawData was set when
// the device was last written. RawDevices returns healthlab.NotFound if the team has no such user.
func (s *Service) RawDevices(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) ([]RawRecord, error) {
	out := []RawRecord{}
	err := s.data.View(ctx, team, user, func(v View) error {
		records, err := v.Records(ctx, RecordQuery{Resource: deviceSlug, Provider: provider, Raw: true})
		if err != nil {
			return err
		}
		out = out[:0]
		for i := range records {
			r := &records[i]
			var d knownDevice
			if err := json.Unmarshal(r.Doc, &d); err != nil {
				return fmt.Errorf("decode device: %w", err)
			}
			one := RawRecord{
				ID: r.ID, Source: s.providers.source(Source{Provider: d.Provider, Type: d.SourceType, AppID: d.AppID, DeviceID: &d.ID}),
				ProviderID: providerIDOf(d.DeviceID, r.ID), Data: json.RawMessage(r.Raw), CreatedAt: healthlab.At(r.CreatedAt), UpdatedAt: healthlab.At(r.UpdatedAt),
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

func providerIDOf(theirs *string, ours uuid.UUID) string {
	if deref(theirs) == "" {
		return ours.String()
	}
	return *theirs
}
