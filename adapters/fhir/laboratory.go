package fhir

import (
	"context"
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab/internal/ucum"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

type diagnosticReport struct {
	head
	Identifier      []identifier `json:"identifier"`
	BasedOn         []reference  `json:"basedOn"`
	Status          string       `json:"status"`
	Category        []concept    `json:"category"`
	Code            concept      `json:"code"`
	Subject         reference    `json:"subject"`
	Effective       string       `json:"effectiveDateTime,omitempty"`
	EffectiveAbsent *element     `json:"_effectiveDateTime,omitempty"`
	Issued          string       `json:"issued,omitempty"`
	Performer       []reference  `json:"performer,omitempty"`
	Specimen        []reference  `json:"specimen,omitempty"`
	Result          []reference  `json:"result,omitempty"`
}

type serviceRequest struct {
	head
	Identifier []identifier `json:"identifier"`
	Status     string       `json:"status"`
	Intent     string       `json:"intent"`
	Category   []concept    `json:"category"`
	Priority   string       `json:"priority,omitempty"`
	Code       concept      `json:"code"`
	Subject    reference    `json:"subject"`
	AuthoredOn string       `json:"authoredOn"`
	Requester  *reference   `json:"requester,omitempty"`
	ReasonCode []concept    `json:"reasonCode,omitempty"`
	Note       []annotation `json:"note,omitempty"`
}

func parseOrderID(id string) (orders.OrderID, bool) {
	u, err := uuid.Parse(id)
	return orders.OrderID{UUID: u}, err == nil && u.String() == id
}

func requestReference(r *orders.Record) []reference {
	return []reference{{Reference: "ServiceRequest/" + r.ID.String()}}
}

// testOf returns the name and codes of a lab test of the catalogue.
func (s *server) testOf(t *catalogue.LabTest) concept {
	c := concept{Text: t.Name}
	if t.Slug != "" {
		c.Coding = []coding{{s.URL + "/CodeSystem/lab-test", t.Slug, t.Name}}
	}
	return c
}

func orderIdentifier(r *orders.Record) []identifier {
	return []identifier{{System: uriSystem, Value: "urn:uuid:" + r.ID.String()}}
}

// requestStatus maps the stages of orders to the statuses of a ServiceRequest.
var requestStatus = map[orders.Stage]string{
	orders.StageReceived: "active", orders.StageCollectingSample: "active", orders.StageSampleWithLab: "active",
	orders.StageCompleted: "completed", orders.StageCancelled: "revoked", orders.StageFailed: "revoked",
}

func (s *server) request(_ context.Context, r *orders.Record) ([]match, error) {
	out := &serviceRequest{
		head: head{ResourceType: "ServiceRequest", ID: r.ID.String(), Meta: meta{
			LastUpdated: instant(r.UpdatedAt.Time), Profile: []string{usCore + "servicerequest"},
		}},
		Identifier: orderIdentifier(r), Status: requestStatus[r.Status], Intent: "order",
		Category: []concept{conceptOf(snomed, "108252007", "Laboratory procedure")},
		Code:     s.testOf(&r.LabTest), Subject: personReference(r.UserID), AuthoredOn: instant(r.CreatedAt.Time),
	}
	if out.Status == "" {
		out.Status = "unknown"
	}
	if r.Priority {
		out.Priority = "urgent"
	}
	if p := r.Physician; p != nil {
		out.Requester = &reference{Display: strings.TrimSpace(p.FirstName + " " + p.LastName)}
		if isPractitioner(p) {
			out.Requester.Reference = "Practitioner/" + r.ID.String()
		}
	}
	for _, code := range r.ICDCodes {
		out.ReasonCode = append(out.ReasonCode, concept{Coding: []coding{{System: icd10, Code: code}}})
	}
	if r.ClinicalNotes != nil && *r.ClinicalNotes != "" {
		out.Note = []annotation{{*r.ClinicalNotes}}
	}
	at := r.CreatedAt.Truncate(time.Millisecond)
	return []match{{
		resource: out, codes: out.Code.Coding, categories: out.Category[0].Coding, status: out.Status,
		when: span{at, at.Add(time.Millisecond)}, updated: r.UpdatedAt.Time,
	}}, nil
}

// reportStatus maps the statuses of lab reports to those of a DiagnosticReport.
var reportStatus = map[labresult.Status]string{labresult.Partial: "partial", labresult.Final: "final", labresult.Corrected: "corrected"}

// report returns the DiagnosticReport of an order; nothing if the laboratory has reported nothing yet.
func (s *server) report(ctx context.Context, r *orders.Record) ([]match, error) {
	if !r.HasResults() {
		return nil, nil
	}
	out := &diagnosticReport{
		head: head{ResourceType: "DiagnosticReport", ID: r.ID.String(), Meta: meta{
			LastUpdated: instant(r.LatestReportAt), Profile: []string{usCore + "diagnosticreport-lab"},
		}},
		Identifier: orderIdentifier(r), BasedOn: requestReference(r), Status: reportStatus[r.Results.Metadata.Status],
		Category: []concept{conceptOf(diagnosticService, "LAB", "Laboratory")}, Code: s.testOf(&r.LabTest), Subject: personReference(r.UserID),
		Issued: instant(r.LatestReportAt),
	}
	if out.Status == "" {
		out.Status = "unknown"
	}
	var when span
	if at := collected(r.Results, nil); at != nil {
		out.Effective, when = dateTime(*at)
	} else {
		out.EffectiveAbsent = absent("unknown")
	}
	if lab := r.LabTest.Lab; lab != nil {
		out.Performer = []reference{labReference(lab)}
	}
	for _, key := range samplesOf(r) {
		out.Specimen = append(out.Specimen, specimenReference(r, key))
	}
	results, err := s.results(ctx, r)
	if err != nil {
		return nil, err
	}
	for _, m := range results {
		out.Result = append(out.Result, reference{Reference: "Observation/" + m.start().ID})
	}
	return []match{{
		resource: out, codes: out.Code.Coding, categories: out.Category[0].Coding, status: out.Status, when: when, updated: r.LatestReportAt,
	}}, nil
}

// collected returns when the sample of a result was collected or, without a sample, the earliest collection of the
// report. It returns nil if the laboratory did not report a time.
func collected(r *labresult.Report, sample *string) *labresult.TimestampWithOffset {
	if sample != nil {
		if s, ok := r.SampleInformation[*sample]; ok {
			return s.DateCollected
		}
	}
	var first *labresult.TimestampWithOffset
	for _, s := range r.SampleInformation {
		if at := s.DateCollected; at != nil && (first == nil || at.Timestamp.Before(first.Timestamp.Time)) {
			first = at
		}
	}
	return first
}

// results returns the Observations of an order, including those for tests that the laboratory could not perform.
func (s *server) results(_ context.Context, r *orders.Record) ([]match, error) {
	if !r.HasResults() {
		return nil, nil
	}
	seen := map[string]int{}
	begin := func(key, name string, code *string, sample *string) (*observation, span) {
		id := ofOrderID(r.ID, key)
		seen[id]++
		o := &observation{
			head: head{ResourceType: "Observation", ID: fmt.Sprintf("%s.%d", id, seen[id]), Meta: meta{
				LastUpdated: instant(r.LatestReportAt), Profile: []string{usCore + "observation-lab"},
			}},
			BasedOn: requestReference(r), Category: category(laboratory), Code: concept{Text: name}, Subject: personReference(r.UserID),
		}
		if code != nil && *code != "" {
			o.Code.Coding = []coding{{System: loinc, Code: *code}}
		}
		var when span
		if at := collected(r.Results, sample); at != nil {
			o.Effective, when = dateTime(*at)
		}
		if lab := r.LabTest.Lab; lab != nil {
			o.Performer = []reference{labReference(lab)}
		}
		return o, when
	}
	var out []match
	add := func(o *observation, when span) {
		m := o.match(when)
		m.updated = r.LatestReportAt
		out = append(out, m)
	}
	for i := range r.Results.Results {
		res := &r.Results.Results[i]
		o, when := begin(res.Finding(), res.Name, res.LOINC, res.SourceSampleID)
		o.fill(res, r.Results.Metadata.Status)
		if at := res.SourceSampleID; at != nil {
			if sample, ok := r.Results.SampleInformation[*at]; ok {
				ref := specimenReference(r, *at)
				o.Specimen = &ref
				if key := res.PerformingLaboratory; key != nil {
					if lab, ok := sample.PerformingLaboratories[*key]; ok && lab.Name != "" {
						o.Performer = []reference{{Reference: "Organization/" + ofOrderID(r.ID, *at, *key), Display: lab.Name}}
					}
				}
			}
		}
		add(o, when)
	}
	for i := range r.Results.MissingResults {
		m := &r.Results.MissingResults[i]
		o, when := begin("missing "+m.Group+" "+m.Key(), m.Name, m.LOINC, nil)
		o.Status, o.DataAbsentReason = "cancelled", absence("not-performed", "Not Performed")
		if m.InferredFailureType != "" {
			o.DataAbsentReason.Text = string(m.InferredFailureType)
		}
		add(o, when)
	}
	return out, nil
}

// fill sets the value, reference range and interpretation of a laboratory result.
func (o *observation) fill(r *labresult.Result, status labresult.Status) {
	switch {
	case r.CorrectedAt != nil:
		o.Status = "corrected"
	case status == labresult.Partial:
		o.Status = "preliminary"
	default:
		o.Status = "final"
	}
	if r.Timestamp != nil && r.TimestampPrecision == "" {
		o.Issued = instant(r.Timestamp.Time)
	}
	o.setValue(r)
	o.Interpretation = interpretation(r)
	if rr, ok := rangeOf(r); ok {
		o.ReferenceRange = []referenceRange{rr}
	}
	if r.Notes != nil && *r.Notes != "" {
		o.Note = []annotation{{*r.Notes}}
	}
	if len(r.Methods) > 0 {
		o.Method = &concept{Coding: codings(r.Methods[0].Codes), Text: r.Methods[0].Text}
	}
}

var (
	plainNumber = regexp.MustCompile(`^[-+]?[0-9]+(\.[0-9]+)?$`)
	bound       = regexp.MustCompile(`^(<=|>=|<|>) ?([0-9]+(?:\.[0-9]+)?)$`)
)

// setValue writes a number as a Quantity, a value such as <5 as a Quantity with a comparator, a code as a
// CodeableConcept, and every other result as text.
func (o *observation) setValue(r *labresult.Result) {
	text := strings.TrimSpace(r.Result)
	switch {
	case text == "":
		o.DataAbsentReason = absence("unknown", "Unknown")
	case r.Type == labresult.Numeric && plainNumber.MatchString(text):
		o.ValueQuantity = quantityOf(decimal(text), r.Unit)
	case r.Type != labresult.Comment && bound.MatchString(text):
		parts := bound.FindStringSubmatch(text)
		o.ValueQuantity = quantityOf(decimal(parts[2]), r.Unit)
		o.ValueQuantity.Comparator = parts[1]
	case r.Type == labresult.CodedValue || len(r.Codes) > 0:
		o.ValueConcept = &concept{Coding: codings(r.Codes), Text: text}
	default:
		o.ValueString = text
	}
}

// decimal returns a laboratory's number in JSON syntax, with all digits after the point, zeros included.
func decimal(text string) json.Number {
	text = strings.TrimPrefix(text, "+")
	sign := ""
	if strings.HasPrefix(text, "-") {
		sign, text = "-", text[1:]
	}
	if text = strings.TrimLeft(text, "0"); text == "" || text[0] == '.' {
		text = "0" + text
	}
	return json.Number(sign + text)
}

// quantityOf returns a number with its unit. The unit has a UCUM code if the laboratory's text for it is known.
func quantityOf(value json.Number, unit *string) *quantity {
	q := &quantity{Value: value}
	if unit == nil || *unit == "" {
		return q
	}
	q.Unit = *unit
	if u, ok := ucum.Parse(*unit); ok && u.UCUM != "" {
		q.System, q.Code = ucumSystem, u.UCUM
	}
	return q
}

// codeSystems maps the names of code systems in HL7 table 0396, which laboratories use, to their URIs in FHIR. A
// laboratory that speaks FHIR names them by these URIs.
var codeSystems = map[string]string{
	"SCT": snomed, "SNM": snomed, "LN": loinc, "I10": icd10, "I10C": icd10,
	strings.ToUpper(snomed): snomed, strings.ToUpper(loinc): loinc, strings.ToUpper(icd10): icd10,
}

// snomedID matches identifiers of SNOMED CT. Codes of older editions, which SNM names, have another form.
var snomedID = regexp.MustCompile(`^[1-9][0-9]{5,17}$`)

// codings returns the codes whose system has a URI in FHIR. Older editions of SNOMED have none.
func codings(all []labresult.Code) (out []coding) {
	for _, c := range all {
		system := codeSystems[strings.ToUpper(c.System)]
		if system == "" || c.Code == "" || system == snomed && !snomedID.MatchString(c.Code) {
			continue
		}
		out = append(out, coding{system, c.Code, c.Text})
	}
	return out
}

func interpretation(r *labresult.Result) []concept {
	above, below := r.IsAboveMaxRange != nil && *r.IsAboveMaxRange, r.IsBelowMinRange != nil && *r.IsBelowMinRange
	var c concept
	switch {
	case r.Interpretation == labresult.Normal:
		c = conceptOf(interpretations, "N", "Normal")
	case r.Interpretation == labresult.Abnormal && above:
		c = conceptOf(interpretations, "H", "High")
	case r.Interpretation == labresult.Abnormal && below:
		c = conceptOf(interpretations, "L", "Low")
	case r.Interpretation == labresult.Abnormal:
		c = conceptOf(interpretations, "A", "Abnormal")
	case r.Interpretation == labresult.Critical && above:
		c = conceptOf(interpretations, "HH", "Critical high")
	case r.Interpretation == labresult.Critical && below:
		c = conceptOf(interpretations, "LL", "Critical low")
	case r.Interpretation == labresult.Critical:
		c = conceptOf(interpretations, "AA", "Critical abnormal")
	default:
		return nil
	}
	return []concept{c}
}

func rangeOf(r *labresult.Result) (out referenceRange, ok bool) {
	if r.ReferenceRange != nil {
		out.Text = *r.ReferenceRange
	}
	if n := r.MinRangeValue; n != nil {
		out.Low = quantityOf(json.Number(n.String()), r.Unit)
	}
	if n := r.MaxRangeValue; n != nil {
		out.High = quantityOf(json.Number(n.String()), r.Unit)
	}
	return out, out.Text != "" || out.Low != nil || out.High != nil
}
