package fhirlab

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// Report holds what a laboratory reports about one order and one patient. Observations of a DiagnosticReport that
// name another patient or order form separate reports.
type Report struct {
	healthlab.Private

	// Key is equal for all versions of a report.
	Key string
	// Status is the status of the DiagnosticReport, such as final.
	Status string
	// Numbers are order numbers of this service: identifiers with [Options].OrderSystem. References point to
	// ServiceRequests that are not in the bundle. LabNumbers are the laboratory's own numbers.
	Numbers, References, LabNumbers []string
	// Patients has an element for each name of the patient; most patients have one. PatientNumbers are identifiers
	// with [Options].PatientSystem.
	Patients       []orders.ReportedPatient
	PatientNumbers []string
	// Codes are the codes of the reported test.
	Codes []string
	// At is when the laboratory issued the report; zero if it does not say.
	At time.Time
	// Results holds the results in the order of the report.
	Results []ReportedResult
	// Samples maps the ids of samples to their data.
	Samples map[string]labresult.SampleData
	Head    labresult.Metadata
	// Documents are PDF files. They are left out if observations of the report name several patients or orders.
	Documents [][]byte
}

// ReportedResult is one observation.
type ReportedResult struct {
	healthlab.Private

	// Key is equal for all versions of a result of a report.
	Key string
	// Status is the status of the Observation, such as preliminary.
	Status string
	// Missing is true if the observation has no value.
	Missing bool
	Result  labresult.Result
}

// stored is a resource of the bundle, or one contained in it, to which references can point.
type stored struct {
	kind, id, url string
	raw           json.RawMessage
	parent        *stored // the resource that contains it; nil if none does
}

// reader reads one bundle.
type reader struct {
	opts *Options
	all  []*stored
	used map[*stored]bool
	err  error
}

// Read reads a bundle of reports, or a single DiagnosticReport or Observation with its contained resources. It
// returns Invalid if a part cannot be read without loss. It stores nothing; nil options mean the defaults.
func Read(raw []byte, o *Options) ([]Report, error) {
	opts := o.withDefaults()
	r := &reader{opts: &opts, used: map[*stored]bool{}}
	var head headIn
	if err := json.Unmarshal(raw, &head); err != nil {
		return nil, fmt.Errorf("%w: the body must be JSON of a FHIR resource", healthlab.Invalid)
	}
	if head.ResourceType != "Bundle" {
		r.add("", raw)
	} else {
		var b bundleIn
		if err := json.Unmarshal(raw, &b); err != nil {
			return nil, fmt.Errorf("%w: Bundle: must have the form of FHIR R4", healthlab.Invalid)
		}
		if !slices.Contains([]string{"transaction", "batch", "message", "collection"}, b.Type) {
			return nil, fmt.Errorf("%w: Bundle.type: must be transaction, batch, message or collection", healthlab.Invalid)
		}
		for i, e := range b.Entry {
			if q := e.Request; q != nil && q.Method != "POST" && q.Method != "PUT" {
				return nil, fmt.Errorf("%w: Bundle.entry[%d].request.method: must be POST or PUT", healthlab.Invalid, i)
			}
			r.add(e.FullURL, e.Resource)
		}
	}
	out := r.reports()
	if r.err != nil {
		return nil, r.err
	}
	if len(out) == 0 {
		return nil, fmt.Errorf("%w: the body must contain a DiagnosticReport or an Observation", healthlab.Invalid)
	}
	return out, nil
}

func (r *reader) fail(format string, args ...any) {
	if r.err == nil {
		r.err = fmt.Errorf("%w: "+format, append([]any{healthlab.Invalid}, args...)...)
	}
}

func (r *reader) add(url string, raw json.RawMessage) {
	var h headIn
	if json.Unmarshal(raw, &h) != nil || h.ResourceType == "" {
		r.fail("a resource must have a resourceType")
		return
	}
	s := &stored{kind: h.ResourceType, id: h.ID, url: url, raw: raw}
	r.all = append(r.all, s)
	for _, c := range h.Contained {
		var inner headIn
		if json.Unmarshal(c, &inner) != nil || inner.ID == "" {
			r.fail("%s.contained: must have resources with ids", h.ResourceType)
			return
		}
		r.all = append(r.all, &stored{kind: inner.ResourceType, id: inner.ID, raw: c, parent: s})
	}
}

// find returns the only resource to which a reference in from points; nil if there is none, or more than one.
func (r *reader) find(from *stored, ref string) *stored {
	if ref == "" {
		return nil
	}
	var found []*stored
	owner := from
	if owner.parent != nil {
		owner = owner.parent
	}
	for _, s := range r.all {
		var is bool
		switch inner, contained := strings.CutPrefix(ref, "#"); {
		case contained:
			is = s.parent == owner && s.id == inner
		case s.parent != nil:
		case s.url == ref:
			is = true
		case strings.Contains(ref, ":"): // an absolute one leads to its full URL alone
		default:
			ref, _, _ := strings.Cut(ref, "/_history")
			is = s.kind+"/"+s.id == ref || s.url != "" && strings.HasSuffix(s.url, "/"+ref)
		}
		if is {
			found = append(found, s)
		}
	}
	if len(found) != 1 {
		return nil
	}
	return found[0]
}

// decode decodes the JSON of s. ok is false if s is nil, or if the JSON is malformed, which makes the read fail.
func decode[T any](r *reader, s *stored) (out T, ok bool) {
	if s == nil {
		return out, false
	}
	if err := json.Unmarshal(s.raw, &out); err != nil {
		r.fail("%s: must have the form of FHIR R4", s.kind)
		return out, false
	}
	return out, true
}

// reports reads every DiagnosticReport, and every Observation that belongs to none.
func (r *reader) reports() []Report {
	var out []Report
	for _, s := range r.all {
		if s.kind == "DiagnosticReport" {
			out = append(out, r.report(s)...)
		}
		if s.kind == "ServiceRequest" { // it refers to answers to questions, not to results
			request, _ := decode[requestIn](r, s)
			for _, ref := range request.SupportingInfo {
				if at := r.find(s, ref.Reference); at != nil {
					r.used[at] = true
				}
			}
		}
	}
	for _, s := range r.all {
		if s.kind != "Observation" || r.used[s] || s.parent != nil {
			continue
		}
		if o, ok := decode[observationIn](r, s); ok && len(o.HasMember) > 0 {
			out = append(out, r.standaloneReports(s, &o)...) // panels before their members
		}
	}
	for _, s := range r.all {
		if s.kind != "Observation" || r.used[s] || s.parent != nil {
			continue
		}
		if o, ok := decode[observationIn](r, s); ok {
			out = append(out, r.standaloneReports(s, &o)...)
		}
	}
	return out
}

// standaloneReports returns the reports of an Observation that belongs to no DiagnosticReport.
func (r *reader) standaloneReports(s *stored, o *observationIn) []Report {
	base := Report{
		Key: key(s, o.Identifier, o.Code), Status: o.Status, Samples: map[string]labresult.SampleData{}, At: moment(o.Issued),
	}
	base.Codes = codes(o.Code)
	r.numbers(&base, s, o.BasedOn)
	r.subject(&base, s, o.Subject)
	b := &builder{reader: r, reports: []Report{base}}
	b.observation(s, "", collection{})
	return b.reports
}

func (r *reader) report(s *stored) []Report {
	in, ok := decode[reportIn](r, s)
	if !ok {
		return nil
	}
	if !slices.Contains([]string{"registered", "partial", "preliminary", "final", "amended", "corrected", "appended", "cancelled", "entered-in-error", "unknown"}, in.Status) {
		r.fail("DiagnosticReport.status: must be a status of FHIR R4")
		return nil
	}
	base := Report{
		Key: key(s, in.Identifier, in.Code), Status: in.Status, Codes: codes(in.Code), At: moment(in.Issued), Samples: map[string]labresult.SampleData{},
	}
	for _, id := range in.Identifier {
		r.identifier(&base, id)
	}
	r.numbers(&base, s, in.BasedOn)
	r.subject(&base, s, in.Subject)
	base.Head.DateReported = in.Issued
	base.Head.Notes = optional(in.Conclusion)
	for _, p := range in.Performer {
		if name := r.name(s, p); name != "" && base.Head.Laboratory == nil {
			base.Head.Laboratory = &name
		}
	}
	for i, p := range in.Presented {
		switch {
		case len(p.Data) == 0 && p.URL != "":
			r.fail("DiagnosticReport.presentedForm[%d]: must have data: addresses are not read", i)
		case strings.HasPrefix(string(p.Data), "%PDF-"):
			base.Documents = append(base.Documents, p.Data)
		}
	}
	taken := collection{at: effective(in.Effective, in.Period), reported: timestamp(in.Issued)}
	for _, ref := range in.Specimen {
		if at := r.find(s, ref.Reference); at != nil && taken.sample == "" {
			taken.sample, taken.data = r.sample(at)
		}
	}
	b := &builder{reader: r, reports: []Report{base}}
	if taken.sample != "" {
		b.reports[0].Samples[taken.sample] = taken.sampleData()
	}
	for i, ref := range in.Result {
		at := r.find(s, ref.Reference)
		if at == nil || at.kind != "Observation" {
			r.fail("DiagnosticReport.result[%d]: must be an Observation in the bundle", i)
			return nil
		}
		b.observation(at, "", taken)
	}
	if len(b.reports) > 1 {
		b.reports[0].Documents = nil // the files may concern any of the patients
		if len(b.reports[0].Results) == 0 {
			return b.reports[1:]
		}
	}
	return b.reports
}

// key returns a key for a report or observation, made from its identifier, or else its id, and its codes. An id
// alone is not enough, because laboratories number the resources of each bundle anew.
func key(s *stored, ids []identifierIn, code conceptIn) string {
	out := ""
	if s.id != "" && s.parent == nil {
		out = s.kind + "/" + s.id
	}
	for _, id := range ids {
		if id.Value != "" {
			out = id.System + "|" + id.Value
			break
		}
	}
	return strings.Join(append([]string{out}, append(codes(code), title(code))...), "|")
}

func codes(c conceptIn) (out []string) {
	for _, k := range c.Coding {
		if k.Code != "" {
			out = append(out, k.Code)
		}
	}
	return out
}

// identifier adds an identifier of a report to Numbers or LabNumbers.
func (r *reader) identifier(to *Report, id identifierIn) {
	switch {
	case id.Value == "":
	case id.System == r.opts.OrderSystem:
		to.Numbers = add(to.Numbers, id.Value)
	default:
		to.LabNumbers = add(to.LabNumbers, id.Value)
	}
}

// numbers adds the order numbers of the ServiceRequests on which a report is based.
func (r *reader) numbers(to *Report, s *stored, based []referenceIn) {
	for _, ref := range based {
		if ref.Identifier != nil {
			r.identifier(to, *ref.Identifier)
		}
		if ref.Reference == "" {
			continue
		}
		request, ok := decode[requestIn](r, r.find(s, ref.Reference))
		if !ok {
			to.References = add(to.References, relative(ref.Reference))
			continue
		}
		ids := request.Identifier
		if request.Requisition != nil {
			ids = append(slices.Clone(ids), *request.Requisition)
		}
		for _, id := range ids {
			r.identifier(to, id)
		}
	}
}

func add(list []string, s string) []string {
	if s == "" || slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// subject adds the patient of a report.
func (r *reader) subject(to *Report, s *stored, ref referenceIn) {
	number := func(id identifierIn) {
		if id.System == r.opts.PatientSystem {
			to.PatientNumbers = add(to.PatientNumbers, id.Value)
		}
	}
	if ref.Identifier != nil {
		number(*ref.Identifier)
	}
	p, ok := decode[patientIn](r, r.find(s, ref.Reference))
	if !ok {
		to.Patients = []orders.ReportedPatient{{FullName: strings.TrimSpace(ref.Display)}}
		return
	}
	for _, id := range p.Identifier {
		number(id)
	}
	to.Patients = p.reported()
	first := to.Patients[0]
	to.Head.Patient = strings.TrimSpace(first.FirstName + " " + first.LastName + first.FullName)
	to.Head.DOB = p.BirthDate
}

// nameUses lists the uses of a name in FHIR, the preferred first.
var nameUses = []string{"official", "", "usual", "temp", "anonymous", "nickname", "old", "maiden"}

// reported returns the patient once for each name of the most preferred use in nameUses. Without a name it returns the
// patient once.
func (p *patientIn) reported() []orders.ReportedPatient {
	var same orders.ReportedPatient
	switch p.Gender {
	case "female":
		same.Gender = people.Female
	case "male":
		same.Gender = people.Male
	}
	if day, err := healthlab.ParseDate(p.BirthDate); err == nil {
		same.DOB = day
	} else {
		same.DOBText = strings.ReplaceAll(p.BirthDate, "-", "")
	}
	for _, use := range nameUses {
		var out []orders.ReportedPatient
		for _, n := range p.Name {
			if n.Use != use || n.Text == "" && n.Family == "" && len(n.Given) == 0 {
				continue
			}
			one := same
			one.LastName, one.Suffix = n.Family, strings.Join(n.Suffix, " ")
			if len(n.Given) > 0 {
				one.FirstName, one.SecondName = n.Given[0], strings.Join(n.Given[1:], " ")
			}
			if n.Family == "" && len(n.Given) == 0 {
				one.FullName, one.Suffix = n.Text, ""
			}
			out = append(out, one)
		}
		if len(out) > 0 {
			return out
		}
	}
	return []orders.ReportedPatient{same}
}

// name returns the name of an organization.
func (r *reader) name(s *stored, ref referenceIn) string {
	at := r.find(s, ref.Reference)
	if at != nil && at.kind == "Organization" {
		o, _ := decode[organizationIn](r, at)
		return o.Name
	}
	if at == nil {
		return ref.Display
	}
	return ""
}

// moment parses an instant; zero if it is malformed.
func moment(text string) time.Time {
	at, err := time.Parse(time.RFC3339, text)
	if err != nil {
		return time.Time{}
	}
	return at
}

// timestamp parses a dateTime and keeps its precision and offset; nil if it is malformed.
func timestamp(text string) *labresult.TimestampWithOffset {
	for _, form := range []struct {
		layout    string
		precision labresult.Precision
	}{
		{time.RFC3339, ""}, {"2006-01-02T15:04Z07:00", labresult.MinutePrecision}, {time.DateOnly, labresult.DayPrecision},
		{"2006-01", labresult.MonthPrecision}, {"2006", labresult.YearPrecision},
	} {
		if at, err := time.Parse(form.layout, text); err == nil {
			_, offset := at.Zone()
			return &labresult.TimestampWithOffset{Timestamp: healthlab.At(at), TimezoneOffset: offset, Precision: form.precision}
		}
	}
	return nil
}

func effective(at string, p *periodIn) *labresult.TimestampWithOffset {
	if at == "" && p != nil {
		at = p.Start
	}
	return timestamp(at)
}

func optional(s string) *string {
	if s == "" {
		return nil
	}
	return &s
}

func number(n json.Number) string {
	text := n.String()
	if strings.ContainsAny(text, "eE") {
		if f, err := strconv.ParseFloat(text, 64); err == nil {
			return strconv.FormatFloat(f, 'f', -1, 64)
		}
	}
	return text
}
