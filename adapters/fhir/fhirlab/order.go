package fhirlab

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

type object = map[string]any

const (
	loincSystem = "http://loinc.org"
	npiSystem   = "http://hl7.org/fhir/sid/us-npi"
	icd10System = "http://hl7.org/fhir/sid/icd-10-cm"
)

// request holds everything that the bundle of an order is made from.
type request struct {
	exchange.Submission
	number   string
	coverage *people.Coverage
	opts     *Options
}

// tests returns the orderable markers of the order, or the lab test itself if it has none.
func (r *request) tests() []catalogue.Marker {
	var out []catalogue.Marker
	for _, m := range r.Order.LabTest.Markers {
		if m.IsOrderable == nil || *m.IsOrderable {
			out = append(out, m)
		}
	}
	if len(out) == 0 {
		out = append(out, catalogue.Marker{Name: r.Order.LabTest.Name, Slug: r.Order.LabTest.Slug})
	}
	return out
}

func (r *request) dossier(bundle []byte) *dossier {
	d := &dossier{
		Number: r.number, Team: r.Order.TeamID, User: r.Order.UserID, Order: r.Order.ID, Method: r.Order.Method(),
		Patient: r.Order.PatientDetails, Request: bundle,
	}
	for _, m := range r.tests() {
		d.Tests = append(d.Tests, orderedTest{Code: testCode(&m), Marker: labresult.SourceMarker{MarkerID: m.ID, Name: m.Name, Slug: m.Slug, ProviderID: m.ProviderID}})
	}
	return d
}

// bundle returns the transaction that places the order. It creates resources that do not exist. It updates patient and
// coverage, so that the laboratory has the current data.
func (r *request) bundle() ([]byte, error) {
	var entries []any
	at := func(name string) string { return "urn:uuid:" + uuidOf(r.number, name) }
	add := func(name, kind, system, value string, resource object) {
		resource["resourceType"] = kind
		once := "identifier=" + system + "|" + value
		request := object{"method": "POST", "url": kind, "ifNoneExist": once}
		if kind == "Patient" || kind == "Coverage" {
			request = object{"method": "PUT", "url": kind + "?" + once}
		}
		entries = append(entries, object{"fullUrl": at(name), "resource": resource, "request": request})
	}
	o := &r.Order
	add("patient", "Patient", r.opts.PatientSystem, o.UserID.String(), r.patient())
	if c := r.coverage; c != nil {
		add("payor", "Organization", r.opts.OrderSystem+"/payor", c.Record.PayorCode, object{
			"active": true, "name": c.Record.Company.Name, "identifier": identifiers(r.opts.OrderSystem+"/payor", c.Record.PayorCode),
		})
		add("coverage", "Coverage", r.opts.OrderSystem+"/coverage", c.ID.String(), r.insurance(at))
	}
	requester := object{"display": "on behalf of the patient"}
	if p := o.Physician; p != nil {
		requester = object{"display": strings.TrimSpace(p.FirstName + " " + p.LastName)}
		if p.NPI != "" {
			add("physician", "Practitioner", npiSystem, p.NPI, object{
				"identifier": identifiers(npiSystem, p.NPI), "name": []any{object{"family": p.LastName, "given": []string{p.FirstName}}},
			})
			requester["reference"] = at("physician")
		}
	}
	for i, m := range r.tests() {
		number := fmt.Sprintf("%s-%d", r.number, i+1)
		coding := []any{object{"system": r.opts.CodeSystem, "code": testCode(&m), "display": m.Name}}
		x := object{
			"identifier": identifiers(r.opts.OrderSystem, number), "requisition": object{"system": r.opts.OrderSystem, "value": r.number},
			"status": "active", "intent": "order", "code": object{"coding": coding, "text": m.Name}, "subject": object{"reference": at("patient")},
			"authoredOn": o.CreatedAt.UTC().Format("2006-01-02T15:04:05Z"), "requester": requester,
		}
		if o.Priority {
			x["priority"] = "urgent"
		}
		if r.coverage != nil {
			x["insurance"] = []any{object{"reference": at("coverage")}}
		}
		var reasons []any
		for _, code := range o.ICDCodes {
			reasons = append(reasons, object{"coding": []any{object{"system": icd10System, "code": code}}})
		}
		if reasons != nil {
			x["reasonCode"] = reasons
		}
		var notes []any
		if r.Comment != "" {
			notes = append(notes, object{"text": r.Comment})
		}
		for _, a := range r.AOEAnswers {
			if a.MarkerID == m.ID {
				notes = append(notes, object{"text": fmt.Sprintf("Question %d: %s", a.QuestionID, a.Answer)})
			}
		}
		if notes != nil {
			x["note"] = notes
		}
		add("request"+fmt.Sprint(i+1), "ServiceRequest", r.opts.OrderSystem, number, x)
	}
	b, err := json.Marshal(object{"resourceType": "Bundle", "type": "transaction", "entry": entries})
	if err != nil {
		return nil, fmt.Errorf("encode order: %w", err)
	}
	return b, nil
}

func identifiers(system, value string) []any { return []any{object{"system": system, "value": value}} }

func (r *request) patient() object {
	o := &r.Order
	x := object{"identifier": identifiers(r.opts.PatientSystem, o.UserID.String())}
	p := o.PatientDetails
	if p == nil {
		return x
	}
	name := object{"use": "official"}
	if p.LastName != nil {
		name["family"] = *p.LastName
	}
	if p.FirstName != nil {
		name["given"] = []string{*p.FirstName}
	}
	x["name"] = []any{name}
	if !p.DOB.IsZero() {
		x["birthDate"] = p.DOB.String()
	}
	switch p.Gender {
	case people.Female, people.Male, people.OtherGender:
		x["gender"] = string(p.Gender)
	}
	var telecom []any
	if p.PhoneNumber != nil && *p.PhoneNumber != "" {
		telecom = append(telecom, object{"system": "phone", "value": *p.PhoneNumber})
	}
	if p.Email != nil && *p.Email != "" {
		telecom = append(telecom, object{"system": "email", "value": *p.Email})
	}
	if telecom != nil {
		x["telecom"] = telecom
	}
	if a := o.PatientAddress; a != nil {
		lines := []string{a.FirstLine}
		if a.SecondLine != nil && *a.SecondLine != "" {
			lines = append(lines, *a.SecondLine)
		}
		x["address"] = []any{object{"line": lines, "city": a.City, "state": a.State, "postalCode": a.Zip, "country": a.Country}}
	}
	return x
}

func (r *request) insurance(at func(string) string) object {
	c := &r.coverage.Record
	x := object{
		"identifier": identifiers(r.opts.OrderSystem+"/coverage", r.coverage.ID.String()), "status": "active", "subscriberId": c.MemberID,
		"beneficiary": object{"reference": at("patient")}, "payor": []any{object{"reference": at("payor")}},
		"relationship": object{"coding": []any{object{"system": "http://terminology.hl7.org/CodeSystem/subscriber-relationship", "code": strings.ToLower(string(c.Relationship))}}},
	}
	if c.GroupID != nil && *c.GroupID != "" {
		x["class"] = []any{object{"type": object{"coding": []any{object{"system": "http://terminology.hl7.org/CodeSystem/coverage-class", "code": "group"}}}, "value": *c.GroupID}}
	}
	if c.Relationship == people.RelationSelf {
		x["subscriber"] = object{"reference": at("patient")}
	}
	return x
}
