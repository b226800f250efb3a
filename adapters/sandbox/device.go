package sandbox

import (
	"encoding/hex"
	"math"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// models maps a source type to the device model of the sandbox. Manual and laboratory sources have none.
var models = map[healthdata.SourceType]struct{ model, version string }{
	healthdata.SourceWatch:       {"Sandbox Watch 2", "2.4.1"},
	healthdata.SourceAutomatic:   {"Sandbox Sensor", "1.9"},
	healthdata.SourceCuff:        {"Sandbox Cuff", "1.2"},
	healthdata.SourceScale:       {"Sandbox Scale", "3.0"},
	healthdata.SourceInsulinPump: {"Sandbox Pump", "5.1"},
}

// Device returns the user's device of a source type; nil if the source type is not a device. Each user has one
// device of a type at a provider, which never changes.
func (p Provider) Device(user healthlab.UserID, source healthdata.SourceType) *healthdata.DeviceInfo {
	made, ok := models[source]
	if !ok {
		return nil
	}
	seed := seedOf(user, "device "+p.Slug+string(source), healthlab.Date{})
	return &healthdata.DeviceInfo{
		Manufacturer: ptr("Sandbox Instruments"), Model: ptr(made.model), Version: ptr(made.version), ID: ptr("SB-" + hex.EncodeToString(seed[:4])),
	}
}

// instrument describes the measurement errors of a person's devices at a provider. They are the same every day. The
// zero value has no errors.
type instrument struct {
	provider string
	// clock is how far the device's clock is ahead; negative if it is behind.
	clock time.Duration
	// steps is the factor by which the device counts too many or too few steps, and bpm what it adds to the heart rate.
	steps, bpm float64
}

// instrumentOf returns the instrument of a user at a provider.
func instrumentOf(user healthlab.UserID, provider string) instrument {
	if provider == "" {
		return instrument{}
	}
	r := dice(user, "instrument "+provider, healthlab.Date{})
	i := instrument{provider: provider, clock: time.Duration(5+r.IntN(56)) * time.Second}
	if r.IntN(2) == 0 {
		i.clock = -i.clock
	}
	i.steps, i.bpm = 0.9+0.2*r.Float64(), 4*r.Float64()-2
	return i
}

func (i instrument) reads(source healthdata.SourceType, at time.Time) time.Time {
	// Manual entries and laboratory values have the true time.
	if source == healthdata.SourceApp || source == healthdata.SourceLab {
		return at
	}
	return at.Add(i.clock)
}

// applyErrors applies the errors of the devices to the day's values. Once or twice a day, for 20 to 90 minutes, the
// device is not worn, except while the person sleeps or trains.
func (d *day) applyErrors() {
	d.off = make([]bool, d.minutes())
	if d.by.provider == "" {
		return
	}
	r := dice(d.user, "gaps "+d.by.provider, d.date)
	for range 1 + r.IntN(2) {
		from, minutes := 420+r.IntN(840), 20+r.IntN(71)
		for m := from; m < min(d.minutes(), from+minutes); m++ {
			d.off[m] = d.doing[m] == resting || d.doing[m] == walking
		}
	}
	for m := range d.minutes() {
		d.steps[m] = math.Round(d.steps[m] * d.by.steps * (1 + 0.04*r.NormFloat64()))
		d.heartRate[m] = math.Round(clamp(d.heartRate[m]+d.by.bpm+0.8*r.NormFloat64(), 36, 220-float64(d.age)))
		if d.off[m] {
			d.steps[m], d.doing[m] = 0, resting
		}
	}
}
