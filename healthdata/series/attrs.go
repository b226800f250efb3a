package series

import (
	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// Attrs is what a sample carries besides its time and its value. Most samples of a
// series share one Attrs, so a [Block] keeps it once per [Run]. It is comparable. An
// empty field means that the source said nothing (null); the empty text and null are
// the same thing here.
type Attrs struct {
	healthlab.Private

	// Offset is the wearer's distance from UTC at that moment, in seconds, east
	// positive, less than a day.
	Offset int32
	// Type is the kind of sample inside its resource: "cholesterol/ldl", "stood".
	Type string
	// Unit is set where a sample has another unit than its resource has.
	Unit string
	// App is the app that wrote the sample into a store of many apps.
	App string
	// Device is the source's device.
	Device uuid.UUID
	// Workout is the workout that the sample belongs to.
	Workout uuid.UUID
	// Sport is the sport of that workout.
	Sport string
	// Location is where the sensor sat: "wrist", "armpit".
	Location string
	// Intensity is that of a stretch of workout: "low".
	Intensity string
	// DeliveryMode is how insulin was given: "basal" or "bolus".
	DeliveryMode string
	// DeliveryForm is the form of a bolus: "standard", "extended".
	DeliveryForm string
	// BolusPurpose is what a bolus was for: "meal", "correction".
	BolusPurpose string
	// Text is the content of a note, whose numeric value is 0.
	Text string
	// Tags are the tags of a note, joined by the caller.
	Tags string
	// Rank orders samples that tell the same time, of one series or of several origins: of two
	// with one start, or whose intervals overlap, the one that was received last has the
	// greater rank, or the later start and no smaller rank. A sample that shares its time with
	// none has 0.
	Rank uint32
}

// textFields is the number of text fields of Attrs.
const textFields = 11

func (a *Attrs) texts() [textFields]*string {
	// A new field goes to the end, or old chunks would be read wrongly.
	return [textFields]*string{
		&a.Type, &a.Unit, &a.App, &a.Sport, &a.Location, &a.Intensity,
		&a.DeliveryMode, &a.DeliveryForm, &a.BolusPurpose, &a.Text, &a.Tags,
	}
}
