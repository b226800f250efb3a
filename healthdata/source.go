package healthdata

import (
	"slices"

	"github.com/google/uuid"
)

// Source is the source that recorded a summary or a group of samples. All nine fields are always written. A
// reader accepts any subset and takes the provider from Provider, otherwise from Slug.
type Source struct {
	// Name is the provider's name for people.
	Name string `json:"name" wire:"out"`
	// Slug is the same as Provider.
	Slug string `json:"slug" wire:"out"`
	// Logo is the URL of the provider's icon; empty if it has none.
	Logo string `json:"logo" wire:"out"`
	// Provider is the slug of the provider or lab.
	Provider string `json:"provider" wire:"out"`
	// Type says how the data was recorded. The list is open.
	Type SourceType `json:"type" wire:"opt"`
	// AppID names the app that recorded the data. It is null except for stores that many apps write to.
	AppID *string `json:"app_id"`
	// DeviceID is the service's id of the device; null if the device is not certain.
	DeviceID *uuid.UUID `json:"device_id"`
	// Sport is the sport's slug for samples of workouts, or wheelchair_pushing for the distance of wheelchair
	// users.
	Sport *string `json:"sport"`
	// WorkoutID is the service's id of the workout of the samples.
	WorkoutID *uuid.UUID `json:"workout_id"`
}

// SourceType says how data was recorded. Unknown values are stored unchanged.
type SourceType string

// The known source types, from the most to the least trusted. [SourceType.Rank] is
// the place in this list.
const (
	SourceLab             SourceType = "lab"
	SourceAutomatic       SourceType = "automatic"
	SourceInsulinPump     SourceType = "insulin_pump"
	SourceWatch           SourceType = "watch"
	SourceRing            SourceType = "ring"
	SourceChestStrap      SourceType = "chest_strap"
	SourceExerciseMachine SourceType = "exercise_machine"
	SourceEarphone        SourceType = "earphone"
	SourceScale           SourceType = "scale"
	SourceCuff            SourceType = "cuff"
	SourceFingerprick     SourceType = "fingerprick"
	SourceManualScan      SourceType = "manual_scan"
	SourcePhone           SourceType = "phone"
	SourceApp             SourceType = "app"
	SourceMultiple        SourceType = "multiple_sources"
	SourceUnknown         SourceType = "unknown"
)

var sourceTypes = []SourceType{
	SourceLab, SourceAutomatic, SourceInsulinPump, SourceWatch, SourceRing, SourceChestStrap,
	SourceExerciseMachine, SourceEarphone, SourceScale, SourceCuff, SourceFingerprick,
	SourceManualScan, SourcePhone, SourceApp, SourceMultiple, SourceUnknown,
}

// SourceTypes returns the known source types, the most trusted first.
func SourceTypes() []SourceType { return slices.Clone(sourceTypes) }

// Rank returns the rank of a source type for choosing between sources; the smallest is preferred. An unlisted type
// ranks just before unknown; the empty type is unknown.
func (t SourceType) Rank() int {
	if t == "" {
		t = SourceUnknown
	}
	if i := slices.Index(sourceTypes, t); i >= 0 {
		return 2 * i
	}
	return 2*slices.Index(sourceTypes, SourceUnknown) - 1
}

// SourceNumber returns a small number for a provider, the same in every process. Receivers must not interpret
// it.
func SourceNumber(provider string) int {
	// FNV-1a of 32 bits, folded to 24 bits, is a small positive integer.
	h := uint32(2166136261)
	for i := range len(provider) {
		h = (h ^ uint32(provider[i])) * 16777619
	}
	return int(h>>24 ^ h&0xffffff)
}
