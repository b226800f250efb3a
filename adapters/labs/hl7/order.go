package hl7

import (
	"strconv"
	"strings"
	"time"

	"github.com/mozillazg/go-unidecode"

	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// control is the order control code (ORC-1).
type control string

const (
	newOrder    control = "NW"
	cancelOrder control = "CA"
)

// request holds the content of an order message.
type request struct {
	exchange.Submission
	control   control
	number    string
	messageID string
	at        time.Time
	insurance *Insurance
	opts      *Options
}

// message returns the order message. It depends only on the fields of the request.
func (r request) message() (*er7.Message, error) {
	b := er7.NewBuilder(er7.Standard(), r.opts.Charset)
	code, event, _ := strings.Cut(string(r.opts.Message), "^")
	b.Header().Set(3, r.opts.Us.Application).Set(4, r.opts.Us.Facility).
		Set(5, r.opts.Lab.Application).Set(6, r.opts.Lab.Facility).
		Set(7, er7.FormatStamp(r.at.In(r.opts.Zone))).Set(9, code, event, code+"_"+event).
		Set(10, r.messageID).Set(11, r.opts.Processing).Set(12, r.opts.Version)
	r.patient(b)
	for i, m := range r.tests() {
		r.test(b, i+1, m)
	}
	return b.Build()
}

// tests returns the ordered markers.
func (r request) tests() []catalogue.Marker {
	out := make([]catalogue.Marker, 0, len(r.Order.LabTest.Markers))
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

func (r request) carried(s string) string {
	if r.opts.Charset.Carries(s) {
		return s
	}
	return strings.TrimSpace(unidecode.Unidecode(s))
}

func (r request) patient(b *er7.Builder) {
	o := r.Order
	pid := b.Add("PID").SetNumber(1, 1).Set(3, o.UserID.String(), "", "", r.opts.Us.Application, "PI")
	if p := o.PatientDetails; p != nil {
		pid.Set(5, r.carried(text(p.LastName)), r.carried(text(p.FirstName)), "", "", "", "", "L").Set(7, er7.FormatDay(p.DOB)).Set(8, sex(p.Gender))
		if p.Race != nil {
			pid.Set(10, string(*p.Race), words(string(*p.Race)), r.opts.CodeSystem)
		}
		if phone := text(p.PhoneNumber); phone != "" {
			pid.Repeat(13, phone, "PRN", "PH")
		}
		if mail := text(p.Email); mail != "" {
			pid.Repeat(13, "", "NET", "Internet", mail)
		}
		if p.Ethnicity != nil {
			pid.Set(22, string(*p.Ethnicity), words(string(*p.Ethnicity)), r.opts.CodeSystem)
		}
	}
	if a := o.PatientAddress; a != nil {
		pid.Set(11, r.carried(a.FirstLine), r.carried(text(a.SecondLine)), r.carried(a.City), a.State, a.Zip, a.Country, "H")
	}
	pid.Set(18, r.AccountNumber)
	if p := o.PatientDetails; p != nil && p.MedicalProxy != nil {
		g := p.MedicalProxy
		b.Add("NK1").SetNumber(1, 1).Set(2, r.carried(g.LastName), r.carried(g.FirstName)).Set(3, "GRD", "Guardian", "HL70063").
			Set(4, r.carried(g.Address.FirstLine), r.carried(text(g.Address.SecondLine)), r.carried(g.Address.City), g.Address.State, g.Address.Zip, g.Address.Country).
			Set(5, g.PhoneNumber, "PRN", "PH")
	}
	b.Add("PV1").SetNumber(1, 1).Set(2, "O")
	if in := r.insurance; in != nil {
		a := in.CompanyAddress
		b.Add("IN1").SetNumber(1, 1).Set(2, in.PlanID).Set(3, in.CompanyID).Set(4, in.CompanyName).
			Set(5, a.Street, a.Other, a.City, a.State, a.Zip, a.Country).Set(8, in.GroupNumber).
			Set(16, r.carried(in.Insured.Family), r.carried(in.Insured.Given), r.carried(in.Insured.Middle)).Set(17, in.Relationship).
			Set(18, er7.FormatDay(in.InsuredDOB)).Set(36, in.PolicyNumber)
	}
}

// test writes the segments of one ordered marker, the n-th from 1. The segments about the whole order follow those of
// the first marker.
func (r request) test(b *er7.Builder, n int, m catalogue.Marker) {
	o := r.Order
	placed := er7.FormatStamp(o.CreatedAt.In(r.opts.Zone))
	orc := b.Add("ORC").Set(1, string(r.control)).Set(2, r.number, r.opts.Us.Application).Set(9, placed)
	code := r.opts.TestCode(m)
	obr := b.Add("OBR").SetNumber(1, n).Set(2, r.number, r.opts.Us.Application).Set(4, code.Code, code.Text, code.System)
	priority := "R"
	if o.Priority {
		priority = "S"
	}
	if r.opts.Message == ORM {
		obr.Set(27, "", "", "", "", "", priority)
	} else {
		obr.Set(5, priority)
	}
	if p := r.physician(); p != nil {
		orc.Set(12, p.NPI, r.carried(p.LastName), r.carried(p.FirstName), "", "", "", "", "", "NPI", "L")
		obr.Set(16, p.NPI, r.carried(p.LastName), r.carried(p.FirstName), "", "", "", "", "", "NPI", "L")
	}
	if r.control == cancelOrder {
		return
	}
	notes := []string{}
	if n == 1 && r.Comment != "" {
		notes = append(notes, r.Comment)
	}
	if o.LabTest.Fasting {
		notes = append(notes, "PATIENT MUST FAST")
	}
	for i, note := range notes {
		b.Add("NTE").SetNumber(1, i+1).Set(2, "P").Set(3, note)
	}
	for i, icd := range o.ICDCodes {
		b.Add("DG1").SetNumber(1, i+1).Set(3, icd, "", "I10").Set(6, "W")
	}
	r.answers(b, m)
	if n == 1 && o.SampleID != nil {
		b.Add("SPM").SetNumber(1, 1).Set(2, *o.SampleID)
	}
}

func (r request) physician() *people.Physician {
	if p := r.Submission.Physician; p != nil {
		return &people.Physician{FirstName: p.FirstName, LastName: p.LastName, NPI: p.NPI}
	}
	return r.Order.Physician
}

// answers writes the answers to a marker's questions.
func (r request) answers(b *er7.Builder, m catalogue.Marker) {
	n := 0
	for _, a := range r.AOEAnswers {
		if a.MarkerID != m.ID {
			continue
		}
		n++
		q := question(m, a.QuestionID)
		obx := b.Add("OBX").SetNumber(1, n).Set(3, q.Code, q.Value, r.opts.CodeSystem).SetNumber(4, n).Set(11, "O").Set(29, "QST")
		switch q.Type {
		case catalogue.NumericQuestion:
			obx.Set(2, "NM").Set(5, a.Answer)
		case catalogue.ChoiceQuestion, catalogue.MultiChoiceQuestion:
			obx.Set(2, "CWE").Set(5, a.Answer, choice(q, a.Answer), r.opts.CodeSystem)
		default:
			obx.Set(2, "ST").Set(5, a.Answer)
		}
	}
}

// question returns a question from the catalogue; if the catalogue lacks it, a question whose text is its id.
func question(m catalogue.Marker, id int64) catalogue.Question {
	if m.AOE != nil {
		for _, q := range m.AOE.Questions {
			if q.ID == id {
				return q
			}
		}
	}
	return catalogue.Question{ID: id, Code: strconv.FormatInt(id, 10)}
}

func choice(q catalogue.Question, code string) string {
	for _, a := range q.Answers {
		if a.Code == code {
			return a.Value
		}
	}
	return ""
}

func sex(g people.Gender) string {
	switch g {
	case people.Female:
		return "F"
	case people.Male:
		return "M"
	case people.OtherGender:
		return "O"
	}
	return "U"
}

func text(s *string) string {
	if s == nil {
		return ""
	}
	return *s
}

func words(s string) string { return strings.ReplaceAll(s, "_", " ") }

// dossier returns the initial state of an order.
func (r request) dossier(m *er7.Message) dossier {
	d := dossier{Number: r.number, Team: r.Order.TeamID, User: r.Order.UserID, Order: r.Order.ID, Method: r.Order.LabTest.Method, Request: m.Bytes()}
	if r.Order.Details.Type != "" {
		d.Method = r.Order.Details.Type
	}
	if p := r.Order.PatientDetails; p != nil {
		d.Patient = &people.PatientDetails{FirstName: p.FirstName, LastName: p.LastName, DOB: p.DOB, Gender: p.Gender}
	}
	for _, t := range r.tests() {
		code := r.opts.TestCode(t).Code
		d.Tests = append(d.Tests, orderedTest{Code: code, Marker: labresult.SourceMarker{MarkerID: t.ID, Name: t.Name, Slug: t.Slug, ProviderID: t.ProviderID}})
	}
	return d
}
