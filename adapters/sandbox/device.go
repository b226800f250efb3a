package sandbox

import (
	"encoding/hex"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// instruments are what people of the sandbox measure with, by the source type of what it
// records. What people type in themselves, and what laboratories measure, has none.
var instruments = map[healthdata.SourceType]struct{ model, version string }{
	healthdata.SourceWatch:       {"Sandbox Watch 2", "2.4.1"},
	healthdata.SourceAutomatic:   {"Sandbox Sensor", "1.9"},
	healthdata.SourceCuff:        {"Sandbox Cuff", "1.2"},
	healthdata.SourceScale:       {"Sandbox Scale", "3.0"},
	healthdata.SourceInsulinPump: {"Sandbox Pump", "5.1"},
}

// Device returns the user's device of a source type; nil if the source type is no device. Each
// user has one device of a type, which never changes.
func (Provider) Device(user healthlab.UserID, source healthdata.SourceType) *healthdata.DeviceInfo {
	made, ok := instruments[source]
	if !ok {
		return nil
	}
	seed := seedOf(user, "device "+string(source), healthlab.Date{})
	return &healthdata.DeviceInfo{
		Manufacturer: ptr("Sandbox Instruments"), Model: ptr(made.model), Version: ptr(made.version), ID: ptr("SB-" + hex.EncodeToString(seed[:4])),
	}
}
