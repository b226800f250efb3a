package fhir

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// Code systems and extensions.
const (
	loinc             = "http://loinc.org"
	ucumSystem        = "http://unitsofmeasure.org"
	snomed            = "http://snomed.info/sct"
	observationKinds  = "http://terminology.hl7.org/CodeSystem/observation-category"
	statistics        = "http://terminology.hl7.org/CodeSystem/observation-statistics"
	interpretations   = "http://terminology.hl7.org/CodeSystem/v3-ObservationInterpretation"
	absentReasons     = "http://terminology.hl7.org/CodeSystem/data-absent-reason"
	diagnosticService = "http://terminology.hl7.org/CodeSystem/v2-0074"
	icd10             = "http://hl7.org/fhir/sid/icd-10-cm"
	npiSystem         = "http://hl7.org/fhir/sid/us-npi"
	uriSystem         = "urn:ietf:rfc:3986"
	absentExtension   = "http://hl7.org/fhir/StructureDefinition/data-absent-reason"
	usCore            = "http://hl7.org/fhir/us/core/StructureDefinition/us-core-"
)

// head holds the elements with which every resource begins.
type head struct {
	ResourceType string `json:"resourceType"`
	ID           string `json:"id"`
	Meta         meta   `json:"meta"`
}

func (h *head) start() *head { return h }

// resource is a pointer to one of the FHIR resources that this package defines.
type resource interface{ start() *head }

type meta struct {
	VersionID   string   `json:"versionId,omitempty"`
	LastUpdated string   `json:"lastUpdated,omitempty"`
	Profile     []string `json:"profile,omitempty"`
}

// seal sets the version of a resource to a digest of its content, and returns its JSON.
func seal(r resource) ([]byte, error) {
	h := r.start()
	h.Meta.VersionID = ""
	b, err := json.Marshal(r)
	if err != nil {
		return nil, fmt.Errorf("encode %s: %w", h.ResourceType, err)
	}
	sum := sha256.Sum256(b)
	h.Meta.VersionID = hex.EncodeToString(sum[:8])
	// Before the metadata there are only the type and the id, and the version is the first element of the metadata.
	const begin = `"meta":{`
	at := bytes.Index(b, []byte(begin)) + len(begin)
	version := `"versionId":"` + h.Meta.VersionID + `"`
	if b[at] != '}' {
		version += ","
	}
	return slices.Insert(b, at, []byte(version)...), nil
}

type extension struct {
	URL       string `json:"url"`
	ValueCode string `json:"valueCode,omitempty"`
}

// element holds the extensions of a primitive element, such as the reason why its value is absent.
type element struct {
	Extension []extension `json:"extension,omitempty"`
}

func absent(reason string) *element {
	return &element{Extension: []extension{{URL: absentExtension, ValueCode: reason}}}
}

type coding struct {
	System  string `json:"system,omitempty"`
	Code    string `json:"code,omitempty"`
	Display string `json:"display,omitempty"`
}

type concept struct {
	Coding []coding `json:"coding,omitempty"`
	Text   string   `json:"text,omitempty"`
}

func conceptOf(system, code, display string) concept {
	return concept{Coding: []coding{{system, code, display}}}
}

type identifier struct {
	System string `json:"system,omitempty"`
	Value  string `json:"value,omitempty"`
}

type reference struct {
	Reference  string      `json:"reference,omitempty"`
	Identifier *identifier `json:"identifier,omitempty"`
	Display    string      `json:"display,omitempty"`
}

type quantity struct {
	Value      json.Number `json:"value,omitempty"`
	Comparator string      `json:"comparator,omitempty"`
	Unit       string      `json:"unit,omitempty"`
	System     string      `json:"system,omitempty"`
	Code       string      `json:"code,omitempty"`
}

type referenceRange struct {
	Low  *quantity `json:"low,omitempty"`
	High *quantity `json:"high,omitempty"`
	Text string    `json:"text,omitempty"`
}

type period struct {
	Start string `json:"start,omitempty"`
	End   string `json:"end,omitempty"`
}

type attachment struct {
	ContentType string `json:"contentType"`
	URL         string `json:"url,omitempty"`
	Title       string `json:"title,omitempty"`
}

type annotation struct {
	Text string `json:"text"`
}

// span is a period of time whose end is exclusive; the zero value means no time.
type span struct{ from, to time.Time }

func daySpan(d healthlab.Date) span {
	from := d.At(time.UTC)
	return span{from, from.AddDate(0, 0, 1)}
}

func instant(at time.Time) string { return at.UTC().Format("2006-01-02T15:04:05.999Z07:00") }

// dateTime writes a time with the precision that a laboratory reported, and returns the period that it covers. FHIR
// has no time without minutes, so a time that is known to the hour is written as its day.
func dateTime(t labresult.TimestampWithOffset) (string, span) {
	at := t.Timestamp.In(time.FixedZone("", t.TimezoneOffset))
	y, m, d := at.Date()
	switch t.Precision {
	case labresult.YearPrecision:
		from := time.Date(y, 1, 1, 0, 0, 0, 0, time.UTC)
		return at.Format("2006"), span{from, from.AddDate(1, 0, 0)}
	case labresult.MonthPrecision:
		from := time.Date(y, m, 1, 0, 0, 0, 0, time.UTC)
		return at.Format("2006-01"), span{from, from.AddDate(0, 1, 0)}
	case labresult.DayPrecision, labresult.HourPrecision:
		from := time.Date(y, m, d, 0, 0, 0, 0, time.UTC)
		return at.Format(time.DateOnly), span{from, from.AddDate(0, 0, 1)}
	}
	from := at.UTC().Truncate(time.Second)
	return at.Format("2006-01-02T15:04:05Z07:00"), span{from, from.Add(time.Second)}
}

func number(v float64) json.Number {
	rounded, _ := strconv.ParseFloat(strconv.FormatFloat(v, 'f', 3, 64), 64)
	return json.Number(strconv.FormatFloat(rounded, 'f', -1, 64))
}
