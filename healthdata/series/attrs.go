package series

import (
	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Attrs are the attributes of a sample besides its time and its value. Most samples of a series share one Attrs,
// so a [Block] keeps it once per [Run]. It is comparable. An empty field means that the source stated nothing
// (null); an empty text is the same as null.
type Attrs struct {
	healthlab.Private

	// Offset is the local time minus UTC where the sample was recorded, in seconds, less than a day.
	Offset int32
	// Type is the kind of sample inside its resource: "cholesterol/ldl", "stood".
	Type string
	// Unit is set if the source sent the sample in another unit than that of the resource.
	Unit string
	// App is the app that wrote the sample into a store of many apps.
	App string
	// Device is the caller's id of the device that recorded the sample.
	Device uuid.UUID
	// Workout is the workout that the sample belongs to.
	Workout uuid.UUID
	// Sport is the sport of that workout.
	Sport string
	// Location is where the sensor was worn: "wrist", "armpit".
	Location string
	// Intensity is the intensity of an interval of a workout: "low".
	Intensity string
	// DeliveryMode is how insulin was given: "basal" or "bolus".
	DeliveryMode string
	// DeliveryForm is the form of a bolus: "standard", "extended".
	DeliveryForm string
	// BolusPurpose is the purpose of a bolus: "meal", "correction".
	BolusPurpose string
	// Text is the content of a note, whose numeric value is 0.
	Text string
	// Tags are the tags of a note, joined by the caller.
	Tags string
	// Rank orders samples that compete: overlapping intervals, and samples of several origins on one local day. The
	// sample that was received last has a greater rank than the others, or no smaller rank and a later start. 0 is the
	// lowest rank.
	Rank uint32
}

// textFields is the number of text fields of Attrs.
const textFields = 11

func (a *Attrs) texts() [textFields]*string {
	// Add new fields at the end: the position of a field is part of the stored format.
	return [textFields]*string{
		&a.Type, &a.Unit, &a.App, &a.Sport, &a.Location, &a.Intensity,
		&a.DeliveryMode, &a.DeliveryForm, &a.BolusPurpose, &a.Text, &a.Tags,
	}
}
