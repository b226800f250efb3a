package fhir

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab/healthdata"
)

type device struct {
	head
	Identifier   []identifier    `json:"identifier"`
	Status       string          `json:"status"`
	Manufacturer string          `json:"manufacturer,omitempty"`
	DeviceName   []deviceName    `json:"deviceName,omitempty"`
	ModelNumber  string          `json:"modelNumber,omitempty"`
	Type         *concept        `json:"type,omitempty"`
	Version      []deviceVersion `json:"version,omitempty"`
	Patient      reference       `json:"patient"`
}

type deviceName struct {
	Name string `json:"name"`
	Type string `json:"type"`
}

type deviceVersion struct {
	Value string `json:"value"`
}

// devices calls use with the Devices that recorded data of a user.
func (s *server) devices(ctx context.Context, u *healthdata.User, _ *query, use func([]match) error) error {
	list, err := s.Health.Devices(ctx, u.Team, u.ID)
	if err != nil {
		return fmt.Errorf("read devices: %w", err)
	}
	out := make([]match, len(list))
	for i := range list {
		d := &list[i]
		x := &device{
			head:       head{ResourceType: "Device", ID: ofUserID(u.ID, "device", d.ID.String())},
			Identifier: []identifier{{System: uriSystem, Value: "urn:uuid:" + d.ID.String()}}, Status: "active", Patient: personReference(u.ID),
		}
		if id := d.DeviceID; id != nil && *id != "" {
			x.Identifier = append(x.Identifier, identifier{System: s.URL + "/NamingSystem/device/" + d.Provider, Value: *id})
		}
		if d.Manufacturer != nil {
			x.Manufacturer = *d.Manufacturer
		}
		if m := d.Model; m != nil && *m != "" {
			x.DeviceName, x.ModelNumber = []deviceName{{*m, "model-name"}}, *m
		}
		if t := d.SourceType; t != "" && t != healthdata.SourceUnknown {
			x.Type = &concept{Coding: []coding{{s.URL + "/CodeSystem/source-type", string(t), ""}}, Text: string(t)}
		}
		if v := d.Version; v != nil && *v != "" {
			x.Version = []deviceVersion{{*v}}
		}
		out[i] = match{resource: x, status: x.Status}
	}
	return use(out)
}
