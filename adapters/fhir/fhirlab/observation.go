package fhirlab

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"github.com/healthlab-dev/healthlab/labreport/refrange"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// collection holds what a report says about the sample from which its observations were made.
type collection struct {
	sample       string
	data         labresult.SampleData
	at, reported *labresult.TimestampWithOffset
}

// sampleData returns the data of the sample. A missing time of collection is that of the Observation, or else of the
// DiagnosticReport. A missing time of report is that of the DiagnosticReport.
func (c collection) sampleData() labresult.SampleData {
	data := c.data
	if data.DateCollected == nil {
		data.DateCollected = c.at
	}
	if data.DateReported == nil {
		data.DateReported = c.reported
	}
	return data
}

// builder distributes the observations of one DiagnosticReport to reports by patient and order.
type builder struct {
	*reader
	reports []Report
}

// reportFor returns the report to which an observation is added: b.reports[0], or another one if the observation names
// another patient or order.
func (b *builder) reportFor(s *stored, o *observationIn) *Report {
	own := Report{
		Key: b.reports[0].Key, Status: b.reports[0].Status, Codes: b.reports[0].Codes, At: b.reports[0].At, Head: b.reports[0].Head,
		Samples: map[string]labresult.SampleData{},
		Numbers: slices.Clone(b.reports[0].Numbers), References: slices.Clone(b.reports[0].References), LabNumbers: b.reports[0].LabNumbers,
		Patients: b.reports[0].Patients, PatientNumbers: b.reports[0].PatientNumbers,
	}
	b.numbers(&own, s, o.BasedOn)
	if o.Subject.Reference != "" || o.Subject.Identifier != nil || o.Subject.Display != "" {
		own.PatientNumbers = nil
		b.subject(&own, s, o.Subject)
		for _, n := range b.reports[0].PatientNumbers {
			own.PatientNumbers = add(own.PatientNumbers, n)
		}
	}
	for i := range b.reports {
		r := &b.reports[i]
		if slices.Equal(r.Numbers, own.Numbers) && slices.Equal(r.References, own.References) && slices.Equal(r.Patients, own.Patients) &&
			sameNumbers(r.PatientNumbers, own.PatientNumbers) {
			return r
		}
	}
	b.reports = append(b.reports, own)
	return &b.reports[len(b.reports)-1]
}

func sameNumbers(a, b []string) bool {
	return len(a) == len(b) && !slices.ContainsFunc(a, func(n string) bool { return !slices.Contains(b, n) })
}

// observation adds an Observation and its members to the reports. An Observation that was added before is skipped.
// group is the Group of its results.
func (b *builder) observation(s *stored, group string, taken collection) {
	if b.used[s] {
		return
	}
	b.used[s] = true
	o, ok := decode[observationIn](b.reader, s)
	if !ok {
		return
	}
	if !slices.Contains([]string{"registered", "preliminary", "final", "amended", "corrected", "cancelled", "entered-in-error", "unknown"}, o.Status) {
		b.fail("Observation.status: must be a status of FHIR R4")
		return
	}
	if len(o.Sampled) > 0 {
		b.fail("Observation.valueSampledData: is not supported; send a value that has a text")
		return
	}
	if o.Specimen != nil {
		if at := b.find(s, o.Specimen.Reference); at != nil {
			taken.sample, taken.data = b.sample(at)
		}
	}
	if at := effective(o.Effective+o.Instant, o.Effected); at != nil {
		taken.at = at
	}
	r := b.reportFor(s, &o)
	base := labresult.Result{Name: title(o.Code), Group: group}
	b.code(&base, o.Code)
	if at := timestamp(o.Issued); at != nil {
		base.Timestamp, base.TimestampPrecision, base.TimestampOffset = &at.Timestamp, at.Precision, &at.TimezoneOffset
	}
	var notes []string
	for _, n := range o.Note {
		notes = append(notes, n.Text)
	}
	base.Notes = optional(strings.Join(notes, "\n"))
	if o.Method != nil {
		base.Methods = []labresult.Coded{*term(o.Method)}
	}
	b.addSample(r, s, &o, &base, taken)
	place := unique(r.Results, key(s, o.Identifier, o.Code))
	panel := len(o.HasMember) > 0 || len(o.Component) > 0
	one := base
	if filled := fillResult(one, &o.valueIn); filled.has || !panel {
		r.Results = append(r.Results, ReportedResult{Key: place, Status: o.Status, Missing: !filled.has, Result: filled.Result})
	}
	b.components(r, &o, &base, place)
	for i, ref := range o.HasMember {
		at := b.find(s, ref.Reference)
		if at == nil || at.kind != "Observation" {
			b.fail("Observation.hasMember[%d]: must be an Observation in the bundle", i)
			return
		}
		b.observation(at, group, taken)
	}
}

// components adds the components of an observation as separate results. place is the Key of the observation's result,
// with which their Keys begin.
func (b *builder) components(r *Report, o *observationIn, base *labresult.Result, place string) {
	for i := range o.Component {
		c := &o.Component[i]
		if len(c.Sampled) > 0 {
			b.fail("Observation.component.valueSampledData: is not supported; send a value that has a text")
			return
		}
		part := *base
		part.LOINC, part.ProviderID, part.Name = nil, nil, title(c.Code)
		b.code(&part, c.Code)
		filled := fillResult(part, &c.valueIn)
		at := unique(r.Results, place+"|"+strings.Join(codes(c.Code), "|")+"|"+title(c.Code))
		r.Results = append(r.Results, ReportedResult{Key: at, Status: o.Status, Missing: !filled.has, Result: filled.Result})
	}
}

// addSample adds the sample of an observation to r.Samples, and sets sample and performing laboratory of its result
// base.
func (b *builder) addSample(r *Report, s *stored, o *observationIn, base *labresult.Result, taken collection) {
	sample := taken.sample
	if sample == "" && (taken.at != nil || taken.reported != nil) {
		sample = "1"
	}
	if sample == "" {
		return
	}
	data := taken.sampleData()
	data.PerformingLaboratories = maps.Clone(r.Samples[sample].PerformingLaboratories)
	for _, p := range o.Performer {
		name := b.name(s, p)
		if name == "" {
			continue
		}
		if data.PerformingLaboratories == nil {
			data.PerformingLaboratories = map[string]labresult.PerformingLaboratory{}
		}
		data.PerformingLaboratories[name] = labresult.PerformingLaboratory{Name: name}
		base.PerformingLaboratory = &name
	}
	r.Samples[sample] = data
	base.SourceSampleID = &sample
}

func unique(all []ReportedResult, key string) string {
	for slices.ContainsFunc(all, func(r ReportedResult) bool { return r.Key == key }) {
		key += "'"
	}
	return key
}

func title(c conceptIn) string {
	if c.Text != "" {
		return c.Text
	}
	for _, k := range c.Coding {
		if k.Display != "" {
			return k.Display
		}
	}
	if len(c.Coding) > 0 {
		return c.Coding[0].Code
	}
	return ""
}

func (r *reader) code(to *labresult.Result, c conceptIn) {
	for _, k := range c.Coding {
		switch {
		case k.Code == "":
		case k.System == loincSystem:
			to.LOINC = optional(k.Code)
		case to.ProviderID == nil || k.System == r.opts.CodeSystem:
			to.ProviderID = optional(k.Code)
		}
	}
	if to.Name == "" {
		r.fail("Observation.code: must have a code or a text")
	}
	to.Slug = slug(to.Name)
}

func slug(name string) string {
	words := strings.FieldsFunc(strings.ToLower(name), func(c rune) bool { return (c < 'a' || c > 'z') && (c < '0' || c > '9') })
	return strings.Join(words, "-")
}

func term(c *conceptIn) *labresult.Coded {
	if c == nil {
		return nil
	}
	out := &labresult.Coded{Text: title(*c)}
	for _, k := range c.Coding {
		out.Codes = append(out.Codes, labresult.Code{Code: k.Code, Text: k.Display, System: k.System})
	}
	return out
}

// sample decodes a Specimen. It returns the id of the sample, and its data.
func (r *reader) sample(s *stored) (string, labresult.SampleData) {
	in, _ := decode[specimenIn](r, s)
	id := s.kind + "/" + s.id
	var data labresult.SampleData
	for _, n := range in.Identifier {
		if n.Value != "" {
			id, data.SampleID = n.Value, optional(n.Value)
			break
		}
	}
	if in.Accession != nil {
		data.ControlNumber = optional(in.Accession.Value)
	}
	data.SpecimenType, data.DateReceived = term(in.Type), timestamp(in.Received)
	if c := in.Collection; c != nil {
		data.DateCollected, data.CollectionMethod, data.SpecimenSite = effective(c.Collected, c.Period), term(c.Method), term(c.BodySite)
	}
	var notes []string
	for _, n := range in.Note {
		notes = append(notes, n.Text)
	}
	data.Description = strings.Join(notes, "\n")
	for i := range in.Condition {
		data.Conditions = append(data.Conditions, *term(&in.Condition[i]))
	}
	return id, data
}

// filled is a result, and whether it has a value.
type filled struct {
	labresult.Result
	has bool
}

// text returns a value as text, its unit, and, if it is a code, the concept. The text is empty if there is no value.
func (v *valueIn) text() (text, unit string, coded *conceptIn) {
	bound := func(q *quantityIn) string {
		if q == nil {
			return ""
		}
		return q.Comparator + number(q.Value)
	}
	switch {
	case v.Quantity != nil && v.Quantity.Value != "":
		return bound(v.Quantity), v.Quantity.unit(), nil
	case v.Concept != nil:
		return title(*v.Concept), "", v.Concept
	case v.String != nil:
		return *v.String, "", nil
	case v.Boolean != nil:
		return map[bool]string{true: "true", false: "false"}[*v.Boolean], "", nil
	case v.Integer != nil:
		return number(*v.Integer), "", nil
	case v.Range != nil:
		low, high := bound(v.Range.Low), bound(v.Range.High)
		switch {
		case low == "" && high != "":
			return "<=" + high, v.Range.High.unit(), nil
		case low != "" && high == "":
			return ">=" + low, v.Range.Low.unit(), nil
		case low != "":
			return low + "-" + high, v.Range.Low.unit(), nil
		}
	case v.Ratio != nil && (v.Ratio.Numerator != nil || v.Ratio.Denominator != nil):
		return bound(v.Ratio.Numerator) + ":" + bound(v.Ratio.Denominator), "", nil
	case v.Time != nil:
		return *v.Time, "", nil
	case v.DateTime != nil:
		return *v.DateTime, "", nil
	case v.Period != nil:
		return strings.Trim(v.Period.Start+"/"+v.Period.End, "/"), "", nil
	}
	return "", "", nil
}

func (q *quantityIn) unit() string {
	if q == nil {
		return ""
	}
	return cmp.Or(q.Unit, q.Code)
}

// limit returns the number of a quantity; nil if it has none.
func (q *quantityIn) limit() *catalogue.Number {
	if q == nil {
		return nil
	}
	n, err := catalogue.ParseNumber(number(q.Value))
	if err != nil {
		return nil
	}
	return &n
}

// isForeign reports whether a reference range has a limit in another unit than the value. Of two quantities with a code,
// the codes decide. A value or limit without a unit is in the unit of the other.
func (v *valueIn) isForeign(in rangeIn) bool {
	value := v.Quantity
	if value == nil && v.Range != nil {
		value = cmp.Or(v.Range.Low, v.Range.High)
	}
	differs := func(q *quantityIn) bool {
		if value.unit() == "" || q.unit() == "" {
			return false
		}
		if value.Code != "" && q.Code != "" {
			return !refrange.SameUnit(value.Code, q.Code)
		}
		return !refrange.SameUnit(value.unit(), q.unit())
	}
	return differs(in.Low) || differs(in.High)
}

// setRange sets the reference range of a result and its limits: those of the only range in the unit of the value, or
// else of the first range. A range in another unit sets no limits, and its text states the unit.
func (v *valueIn) setRange(r *labresult.Result) {
	if len(v.ReferenceRange) == 0 {
		return
	}
	in := v.ReferenceRange[0]
	if own := slices.DeleteFunc(slices.Clone(v.ReferenceRange), v.isForeign); len(own) == 1 {
		in = own[0]
	}
	low, high := in.Low.limit(), in.High.limit()
	foreign := v.isForeign(in)
	end, dash := func(q *quantityIn) string { return number(q.Value) }, "-"
	if foreign {
		end, dash = func(q *quantityIn) string { return strings.TrimSpace(number(q.Value) + " " + cmp.Or(q.Code, q.Unit)) }, " - "
	} else {
		r.MinRangeValue, r.MaxRangeValue = low, high
	}
	printed, _ := refrange.Parse(in.Text)
	switch {
	case in.Text != "" && !(foreign && printed.Any() && printed.Unit == ""):
		r.ReferenceRange = &in.Text
	case low != nil && high != nil:
		r.ReferenceRange = optional(end(in.Low) + dash + end(in.High))
	case low != nil:
		r.ReferenceRange = optional(">=" + end(in.Low))
	case high != nil:
		r.ReferenceRange = optional("<=" + end(in.High))
	}
}

var interpretationsOf = map[string]labresult.Interpretation{
	"N": labresult.Normal, "A": labresult.Abnormal, "H": labresult.Abnormal, "L": labresult.Abnormal, "HU": labresult.Critical, "LU": labresult.Critical,
	"HH": labresult.Critical, "LL": labresult.Critical, "AA": labresult.Critical, "H>": labresult.Critical, "L<": labresult.Critical,
}

// fillResult adds a value with its reference range and flag to a result.
func fillResult(r labresult.Result, v *valueIn) filled {
	text, unit, coded := v.text()
	r.Result, r.Unit = text, optional(unit)
	if coded != nil {
		r.Type = labresult.CodedValue
		r.Codes = term(coded).Codes
	}
	if len(v.Interpretation) > 0 {
		if list := codes(v.Interpretation[0]); len(list) > 0 {
			r.SourceInterpretation = list[0]
			if known, ok := interpretationsOf[list[0]]; ok {
				r.Interpretation = known
			}
		}
	}
	v.setRange(&r)
	if text == "" {
		return filled{r, false}
	}
	r.Classify()
	r.Compare()
	if r.Interpretation == "" {
		r.Interpretation = labresult.UnknownInterpretation
	}
	if r.Type == labresult.Range || r.Type == labresult.Comment {
		if r.Notes == nil {
			r.Notes = optional(r.Result)
		}
	}
	return filled{r, true}
}
