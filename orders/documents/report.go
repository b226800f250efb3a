package documents

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// reportDocument returns the report of results of the order r, or of its transaction. Times of the order and of results
// are in the given time zone. Times of samples and of the laboratory's report keep the offset that was reported.
func reportDocument(r *orders.Record, results labresult.Report, zone *time.Location) Document {
	d := Document{Kind: ResultsReport, Title: "Laboratory report", Number: documentNumber(r), Subject: subjectOf(&r.Order), At: r.UpdatedAt.Time}
	switch {
	case results.Metadata.Status == labresult.Partial:
		d.Remarks = append(d.Remarks, "PARTIAL REPORT: more results are to come")
	case results.Metadata.Status == labresult.Corrected:
		d.Remarks = append(d.Remarks, "CORRECTED REPORT: it takes the place of earlier ones")
	default:
		d.Remarks = append(d.Remarks, "FINAL REPORT")
	}
	if results.Metadata.Interpretation != nil && *results.Metadata.Interpretation == labresult.Critical {
		d.Remarks = append(d.Remarks, "CRITICAL RESULT")
	}
	d.Sections = append(d.Sections, identitySection(&r.Order), reportHead(r, &results, zone))
	for _, id := range slices.Sorted(maps.Keys(results.SampleInformation)) {
		d.Sections = append(d.Sections, sampleSection(id, results.SampleInformation[id]))
	}
	d.Sections = append(d.Sections, resultTable(results, zone))
	if len(results.MissingResults) > 0 {
		t := &Table{Columns: []string{"Test", "Reason"}, Widths: []int{5, 9}}
		for _, m := range results.MissingResults {
			t.Rows = append(t.Rows, Row{Cells: []string{joined(" ", m.Name, bracket("LOINC", m.LOINC)), joined(": ", inWords(string(m.InferredFailureType)), rules.TextOf(m.Note))}})
		}
		d.Sections = append(d.Sections, Section{Heading: "Not reported", Table: t})
	}
	if labs := performedBy(results.SampleInformation); len(labs) > 0 {
		d.Sections = append(d.Sections, Section{Heading: "Performed by", Paragraphs: labs})
	}
	return d
}

// reportHead returns the section with the data of the order and of the laboratory's report. It leaves out what the page
// header or another section prints.
func reportHead(r *orders.Record, results *labresult.Report, zone *time.Location) Section {
	m := &results.Metadata
	var f sheet
	f.add("Order", r.ID.String())
	f.add("Ordered", formatTime(r.CreatedAt.Time, zone))
	f.add("Test", r.LabTest.Name)
	if m.SpecimenNumber != documentNumber(r) {
		f.add("Specimen", m.SpecimenNumber)
	}
	if p := r.PatientDetails; p == nil || !sameName(m.Patient, rules.TextOf(p.FirstName)+" "+rules.TextOf(p.LastName)) {
		f.add("Name at the laboratory", m.Patient)
	}
	if p := r.PatientDetails; p == nil || m.DOB != p.DOB.String() {
		f.add("Birth date there", m.DOB)
	}
	f.add("Age", m.Age)
	f.add("Patient id there", rules.TextOf(m.PatientID))
	f.add("Account there", rules.TextOf(m.AccountID))
	f.add("Physician", rules.TextOf(m.Provider))
	f.add("Laboratory", rules.TextOf(m.Laboratory))
	lab := cmp.Or(r.LabTest.Lab, &catalogue.Lab{})
	if lab.Name != rules.TextOf(m.Laboratory) {
		f.add("Ordered from", lab.Name)
	}
	f.add("CLIA number", cmp.Or(rules.TextOf(m.CLIANumber), rules.TextOf(lab.CLIANumber)))
	f.add("Medical director", rules.TextOf(lab.MedicalDirector))
	sample := func(has func(labresult.SampleData) *labresult.TimestampWithOffset) bool {
		for _, s := range results.SampleInformation {
			if has(s) != nil {
				return true
			}
		}
		return false
	}
	if !sample(func(s labresult.SampleData) *labresult.TimestampWithOffset { return s.DateCollected }) {
		f.add("Collected", stampText(m.DateCollected))
	}
	if !sample(func(s labresult.SampleData) *labresult.TimestampWithOffset { return s.DateReceived }) {
		f.add("Received", stampText(m.DateReceived))
	}
	if !sample(func(s labresult.SampleData) *labresult.TimestampWithOffset { return s.DateReported }) {
		f.add("Reported", stampText(&m.DateReported))
	}
	if i := rules.TextOf(m.Interpretation); i != string(labresult.Critical) {
		f.word("Interpretation", i)
	}
	f.add("Notes", rules.TextOf(m.Notes))
	return Section{Heading: "Report", Fields: f}
}

func sameName(a, b string) bool {
	words := func(s string) []string {
		return slices.Sorted(slices.Values(strings.FieldsFunc(healthlab.FoldText(s), func(r rune) bool { return r == ' ' || r == ',' || r == '^' })))
	}
	return slices.Equal(words(a), words(b))
}

func sampleSection(id string, s labresult.SampleData) Section {
	var f sheet
	f.add("Sample", id)
	if rules.TextOf(s.SampleID) != id {
		f.add("Sample id", rules.TextOf(s.SampleID))
	}
	f.add("Control number", rules.TextOf(s.ControlNumber))
	f.add("Specimen", codedText(append(coded(s.SpecimenType), s.TypeModifiers...)))
	f.add("Site", codedText(slices.Concat(coded(s.SpecimenSite), s.SiteModifiers, coded(s.CollectionSite))))
	f.add("Method", codedText(coded(s.CollectionMethod)))
	f.add("Container", codedText(coded(s.ContainerType)))
	f.add("Additives", codedText(s.Additives))
	f.add("Description", s.Description)
	f.add("Condition", codedText(s.Conditions))
	f.add("Rejected", codedText(s.RejectReasons))
	f.add("Collected", reportedTime(s.DateCollected))
	f.add("Received", reportedTime(s.DateReceived))
	f.add("Reported", reportedTime(s.DateReported))
	if c := s.ClinicalInformation; c != nil {
		if c.Fasting {
			f.add("Fasting", "Yes")
		}
		f.add("Notes", rules.TextOf(c.Notes))
		f.add("Information", rules.TextOf(c.Information))
		f.add("Total volume", rules.TextOf(c.TotalVolume))
	}
	return Section{Heading: "Sample", Fields: f}
}

func coded(c *labresult.Coded) []labresult.Coded {
	if c == nil {
		return nil
	}
	return []labresult.Coded{*c}
}

// codedText returns the texts of coded terms, separated by commas.
func codedText(list []labresult.Coded) string {
	var out []string
	for _, c := range list {
		out = append(out, c.Text)
	}
	return joined(", ", out...)
}

// reportedTime formats a time with its original offset from UTC, as precise as the laboratory reported it; empty for
// nil.
func reportedTime(t *labresult.TimestampWithOffset) string {
	switch {
	case t == nil:
		return ""
	case t.Precision == labresult.HourPrecision:
		return t.Local().Format("2006-01-02 15h")
	case t.Precision == "", t.Precision == labresult.MinutePrecision:
		return formatTime(t.Timestamp.Time, time.FixedZone("", t.TimezoneOffset))
	}
	return t.Text()
}

// resultTime returns the remark with the time of a result: in the given time zone, or, if only the day or the hour is
// known, as the laboratory reported it. Empty without a time.
func resultTime(r *labresult.Result, zone *time.Location) string {
	switch {
	case r.Timestamp == nil:
		return ""
	case r.TimestampPrecision != "" && r.TimestampPrecision != labresult.MinutePrecision && r.TimestampOffset != nil:
		return "At " + reportedTime(&labresult.TimestampWithOffset{Timestamp: *r.Timestamp, TimezoneOffset: *r.TimestampOffset, Precision: r.TimestampPrecision})
	}
	return "At " + formatTime(r.Timestamp.Time, zone)
}

// resultTable returns the section with the table of results, grouped by ordered marker.
func resultTable(results labresult.Report, zone *time.Location) Section {
	t := &Table{Columns: []string{"Test", "Result", "Flag", "Unit", "Reference range"}, Widths: []int{10, 7, 5, 4, 6}}
	groups := map[string][]labresult.Result{}
	var order []string
	first, several := map[string]string{}, map[string]bool{} // by code: its first group; several groups
	for _, one := range results.Results {
		if group, ok := first[one.Key()]; ok && group != one.Group {
			several[one.Key()] = true
		} else {
			first[one.Key()] = one.Group
		}
		var names []string
		for _, m := range one.SourceMarkers {
			names = append(names, m.Name)
		}
		group := strings.Join(names, ", ")
		if _, ok := groups[group]; !ok {
			order = append(order, group)
		}
		groups[group] = append(groups[group], one)
	}
	for _, group := range order {
		if group != "" && (len(groups[group]) > 1 || groups[group][0].Name != group) {
			t.Rows = append(t.Rows, Row{Cells: []string{group, "", "", "", ""}, Group: true})
		}
		for _, one := range groups[group] {
			t.Rows = append(t.Rows, resultRow(one, several[one.Key()], zone))
		}
	}
	return Section{Heading: "Results", Table: t}
}

// resultRow returns the table row of a result. several is true if results of several groups have the code of this one;
// the row then names the group.
func resultRow(one labresult.Result, several bool, zone *time.Location) Row {
	row := Row{Strong: one.Interpretation == labresult.Abnormal || one.Interpretation == labresult.Critical}
	// A longer result is printed below the cells, over the whole width.
	const words = 60
	result, long := one.Result, ""
	if len([]rune(result)) > words {
		result, long = "See below", result
	}
	row.Cells = []string{joined(" ", one.Name, bracket("LOINC", one.LOINC)), result, flagOf(one), rules.TextOf(one.Unit), rangeOf(one)}
	var lab string
	if one.PerformingLaboratory != nil {
		lab = "Laboratory: " + *one.PerformingLaboratory
	}
	row.Remark = joined("\n", correction(one, zone), parentRemark(&one, several), long, rules.TextOf(one.Notes), joined(". ", resultTime(&one, zone), lab, named("Method", one.Methods), named("Equipment", one.Equipment)))
	return row
}

// parentRemark returns a remark with the value of the result's parent, such as the name of an isolated organism. If
// several is true, the remark also names the result's group. Empty if there is neither.
func parentRemark(r *labresult.Result, several bool) string {
	var of, group string
	if p := r.Parent; p != nil {
		if of = p.Value; of == "" && p.Result != nil {
			of = p.Result.Text
		}
	}
	if of != "" {
		of = "Of " + of
	}
	if several && r.Group != "" {
		group = "Group " + r.Group
	}
	return joined(", ", of, group)
}

func named(name string, list []labresult.Coded) string {
	if text := codedText(list); text != "" {
		return name + ": " + text
	}
	return ""
}

// correction returns the remark that a result was corrected; empty if it was not. The time is in the given time zone.
func correction(one labresult.Result, zone *time.Location) string {
	if one.CorrectedAt == nil {
		return ""
	}
	mark := "CORRECTED " + formatTime(one.CorrectedAt.Time, zone)
	if one.PreviousResult == nil {
		return mark + ": not reported before"
	}
	return mark + ": reported before as " + *one.PreviousResult
}

// rangeOf returns the reference range in the lab's words, else from its limits.
func rangeOf(one labresult.Result) string {
	low, high := one.MinRangeValue, one.MaxRangeValue
	switch {
	case rules.TextOf(one.ReferenceRange) != "":
		return *one.ReferenceRange
	case low != nil && high != nil:
		return low.String() + "-" + high.String()
	case low != nil:
		return ">= " + low.String()
	case high != nil:
		return "<= " + high.String()
	}
	return ""
}

func bracket(name string, v *string) string {
	if rules.TextOf(v) == "" {
		return ""
	}
	return "(" + name + " " + *v + ")"
}

// flagOf returns the lab's flag of a result and its meaning; empty for a normal result.
func flagOf(one labresult.Result) string {
	var words []string
	switch {
	case one.IsAboveMaxRange != nil && *one.IsAboveMaxRange:
		words = append(words, "High")
	case one.IsBelowMinRange != nil && *one.IsBelowMinRange:
		words = append(words, "Low")
	}
	if one.Interpretation == labresult.Critical || one.Interpretation != labresult.Normal && len(words) == 0 {
		words = append(words, inWords(string(one.Interpretation)))
	}
	text := strings.Join(words, ", ")
	if own := one.SourceInterpretation; own != "" && healthlab.FoldText(own) != healthlab.FoldText(text) {
		text = joined(" ", text, "("+own+")")
	}
	return text
}

// performedBy returns a line for each laboratory that performed tests: first the key by which results refer to it, then
// its name, address, phone number and director.
func performedBy(samples map[string]labresult.SampleData) []string {
	labs := map[string]labresult.PerformingLaboratory{}
	for _, s := range samples {
		maps.Copy(labs, s.PerformingLaboratories)
	}
	var out []string
	for _, key := range slices.Sorted(maps.Keys(labs)) {
		l := labs[key]
		address := ""
		if l.Address != nil {
			address = addressLine(*l.Address)
		}
		director := ""
		if rules.TextOf(l.MedicalDirector) != "" {
			director = "medical director " + *l.MedicalDirector
		}
		out = append(out, joined(": ", key, joined(", ", l.Name, address, rules.TextOf(l.PhoneNumber), director)))
	}
	return out
}
