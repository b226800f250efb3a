package fhir

import (
	"context"
	"encoding/json"

	"github.com/healthlab-dev/healthlab"
)

type observation struct {
	head
	BasedOn          []reference      `json:"basedOn,omitempty"`
	Status           string           `json:"status"`
	Category         []concept        `json:"category"`
	Code             concept          `json:"code"`
	Subject          reference        `json:"subject"`
	Effective        string           `json:"effectiveDateTime,omitempty"`
	EffectivePeriod  *period          `json:"effectivePeriod,omitempty"`
	Issued           string           `json:"issued,omitempty"`
	ValueQuantity    *quantity        `json:"valueQuantity,omitempty"`
	ValueConcept     *concept         `json:"valueCodeableConcept,omitempty"`
	ValueString      string           `json:"valueString,omitempty"`
	DataAbsentReason *concept         `json:"dataAbsentReason,omitempty"`
	Interpretation   []concept        `json:"interpretation,omitempty"`
	Performer        []reference      `json:"performer,omitempty"`
	Note             []annotation     `json:"note,omitempty"`
	Specimen         *reference       `json:"specimen,omitempty"`
	Method           *concept         `json:"method,omitempty"`
	ReferenceRange   []referenceRange `json:"referenceRange,omitempty"`
	Component        []component      `json:"component,omitempty"`
}

type component struct {
	Code             concept      `json:"code"`
	ValueQuantity    *quantity    `json:"valueQuantity,omitempty"`
	ValueSampledData *sampledData `json:"valueSampledData,omitempty"`
	DataAbsentReason *concept     `json:"dataAbsentReason,omitempty"`
}

type sampledData struct {
	Origin     quantity    `json:"origin"`
	Period     json.Number `json:"period"` // milliseconds
	Dimensions int         `json:"dimensions"`
	Data       string      `json:"data"`
}

// Categories of observations.
const (
	vitalSigns   = "vital-signs"
	laboratory   = "laboratory"
	activityKind = "activity"
)

func category(code string) []concept {
	display := map[string]string{vitalSigns: "Vital Signs", laboratory: "Laboratory", activityKind: "Activity"}[code]
	return []concept{conceptOf(observationKinds, code, display)}
}

func personReference(user healthlab.UserID) reference {
	return reference{Reference: "Patient/" + user.String()}
}

func (o *observation) match(when span) match {
	return match{resource: o, codes: o.Code.Coding, categories: o.Category[0].Coding, status: o.Status, when: when}
}

// readObservation reads an Observation by id. The id tells whether it is made from data of devices or from a lab
// report.
func (s *server) readObservation(ctx context.Context, by caller, id string) (resource, error) {
	if v, ok := parseMeasurementID(id); ok {
		return s.readMeasurement(ctx, by, v)
	}
	if s.Orders == nil {
		return nil, healthlab.NotFound
	}
	return s.readOfOrder(ctx, by, id, s.results)
}
