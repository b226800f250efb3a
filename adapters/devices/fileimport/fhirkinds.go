package fileimport

import (
	"regexp"
	"strings"

	"github.com/healthlab-dev/healthlab/healthdata"
)

// fhirKind maps the codes of Observations to a resource.
type fhirKind struct {
	// resource is the timeseries in which values are stored. If it is nil, name is the measured quantity, and only values
	// of whole days are stored.
	resource *healthdata.Resource
	name     string
	unit     string
	codes    []string // LOINC codes
	// from is the source type; empty if the code does not imply one.
	from   healthdata.SourceType
	sensor string
	body   bodyPart
	part   pressurePart
	// slow means that the quantity changes slowly, so that a mean of an hour or day is accepted as a value.
	slow bool
	// device means that the quantity is measured by devices of the person, even in the category laboratory.
	device bool
	// day stores the value of a whole day in the activity of the day. It may be nil.
	day func(a *healthdata.Activity, v float64)
}

// pressurePart is a part of a blood pressure.
type pressurePart uint8

const (
	pressureNone pressurePart = iota
	pressureSystolic
	pressureDiastolic
	pressurePanel
)

// fhirKinds includes the codes that adapters/fhir writes. Adapters do not import each other, so
// TestFHIRImport_acceptsWhatTheServerExports of examples/server checks that the two tables agree.
var fhirKinds = []fhirKind{
	{name: "heartrate", codes: []string{"8867-4", "8889-8"}},
	{name: "respiratory_rate", codes: []string{"9279-1"}},
	{name: "blood_oxygen", codes: []string{"59408-5", "2708-6"}},
	{name: "body_temperature", codes: []string{"8310-5"}},
	{name: "body_temperature", codes: []string{"8331-1"}, sensor: "mouth"},
	{name: "body_temperature", codes: []string{"8328-7"}, sensor: "armpit"},
	{name: "body_temperature", codes: []string{"8332-9"}, sensor: "rectum"},
	{name: "body_temperature", codes: []string{"8333-7"}, sensor: "eardrum"},
	{name: "weight", codes: []string{"29463-7", "3141-9"}, slow: true, body: bodyWeight},
	{name: "fat", codes: []string{"41982-0"}, slow: true, body: bodyFat},
	{name: "body_mass_index", codes: []string{"39156-5"}, slow: true, body: bodyBMI},
	{name: "waist_circumference", codes: []string{"8280-0"}, slow: true, body: bodyWaist},
	{name: "blood_pressure", codes: []string{"85354-9", "55284-4"}, part: pressurePanel},
	{name: "blood_pressure", codes: []string{"8480-6"}, part: pressureSystolic},
	{name: "blood_pressure", codes: []string{"8462-4"}, part: pressureDiastolic},
	{name: "glucose", codes: []string{"15074-8", "2339-0"}},
	{name: "glucose", codes: []string{"105272-9", "99504-3"}, from: healthdata.SourceAutomatic, device: true},
	{name: "glucose", codes: []string{"14743-9", "41653-7"}, from: healthdata.SourceFingerprick, device: true},
	{name: "hrv_sdnn", codes: []string{"80404-7"}},
	{name: "steps", codes: []string{"55423-8", "41950-7"}, day: func(a *healthdata.Activity, v float64) { a.Steps = roundedNumber(v) }},
	{name: "distance", codes: []string{"55430-3"}, day: func(a *healthdata.Activity, v float64) { a.Distance = &v }},
	{name: "calories_active", day: func(a *healthdata.Activity, v float64) { a.CaloriesActive = &v }},
	{name: "calories_total", unit: "kcal", codes: []string{"41979-6"}, day: func(a *healthdata.Activity, v float64) { a.CaloriesTotal = &v }},
	{name: "resting_heart_rate", unit: "bpm", codes: []string{"40443-4"}, day: func(a *healthdata.Activity, v float64) {
		a.HeartRate = &healthdata.ActivityHeartRate{RestingBPM: &v}
	}},
}

// fhirByCode maps LOINC codes to kinds. fhirByName maps the codes of the code system of adapters/fhir to kinds. An
// Observation with a kind of the latter is imported even in the category laboratory.
var fhirByCode, fhirByName = indexFHIR(fhirKinds)

func indexFHIR(kinds []fhirKind) (byCode, byName map[string]*fhirKind) {
	byCode, byName = map[string]*fhirKind{}, map[string]*fhirKind{}
	for i := range kinds {
		k := &kinds[i]
		if k.resource = healthdata.ResourceBySlug(k.name); k.resource != nil {
			k.unit = k.resource.Unit
		}
		for _, code := range k.codes {
			byCode[code] = k
		}
		if byName[k.name] == nil {
			own := *k
			own.device = true
			byName[k.name] = &own
		}
	}
	return byCode, byName
}

// ownCodes is the suffix of the code system that adapters/fhir uses for device data.
const ownCodes = "/CodeSystem/measurement"

var loincCode = regexp.MustCompile(`^[0-9]{1,7}-[0-9]$`)

func isLOINC(system string) bool {
	return system == "http://loinc.org" || system == "urn:oid:2.16.840.1.113883.6.1"
}

// kind returns what the first known code measures, and its name for the report of the import. If no code is known, it
// returns nil and a text that says so.
func (c *fhirConcept) kind() (*fhirKind, string) {
	name := "observation with a code of another system than LOINC"
	for _, code := range c.Coding {
		if isLOINC(code.System) {
			if k := fhirByCode[code.Code]; k != nil {
				return k, k.name
			}
			if loincCode.MatchString(code.Code) {
				name = "LOINC " + code.Code
			}
		}
		if strings.HasSuffix(code.System, ownCodes) && fhirByName[code.Code] != nil {
			return fhirByName[code.Code], code.Code
		}
	}
	return nil, name
}

// hasCode reports whether the concept has a code in any system.
func (c *fhirConcept) hasCode(code string) bool {
	for _, one := range c.Coding {
		if one.Code == code {
			return true
		}
	}
	return false
}
