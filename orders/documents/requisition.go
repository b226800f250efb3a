package documents

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// sheet collects the fields of a section. Its methods leave out fields without a value.
type sheet []Field

func (s *sheet) add(name string, parts ...string) {
	if v := joined(" ", parts...); v != "" {
		*s = append(*s, Field{Name: name, Value: v})
	}
}

func (s *sheet) word(name, v string) { s.add(name, inWords(v)) }

// joined joins the texts that are not blank, separated by with.
func joined(with string, parts ...string) string {
	var out []string
	for _, p := range parts {
		if p = strings.TrimSpace(p); p != "" {
			out = append(out, p)
		}
	}
	return strings.Join(out, with)
}

// inWords returns an enumeration value as readable text, such as "At home" for at_home.
func inWords(v string) string {
	v = strings.ReplaceAll(v, "_", " ")
	if v == "" {
		return ""
	}
	return strings.ToUpper(v[:1]) + v[1:]
}

// formatTime formats an instant in a time zone, such as 2026-03-02 05:00 MST, or with the offset if the zone has no
// name. Empty for a zero time.
func formatTime(t time.Time, zone *time.Location) string {
	if t.IsZero() {
		return ""
	}
	t = t.In(zone)
	name, offset := t.Zone()
	switch {
	case offset == 0 && name == "":
		name = "UTC"
	case name == "":
		name = t.Format("-07:00")
	}
	return t.Format("2006-01-02 15:04 ") + name
}

// stampText formats a time that a laboratory wrote as text. A text that is not in ISO 8601 stays unchanged,
// because the order of day and month is uncertain.
func stampText(s *string) string {
	text := rules.TextOf(s)
	if t, err := time.Parse(time.RFC3339, text); err == nil {
		return formatTime(t, t.Location())
	}
	return text
}

func yes(b bool) string {
	if b {
		return "Yes"
	}
	return "No"
}

func postal(first string, second *string, city, state, zip, country string) string {
	return joined(", ", first, rules.TextOf(second), city, joined(" ", state, zip), country)
}

func addressLine(a people.Address) string {
	return postal(a.FirstLine, a.SecondLine, a.City, a.State, a.Zip, a.Country)
}

func documentNumber(r *orders.Record) string {
	if r.SampleID != nil && *r.SampleID != "" {
		return *r.SampleID
	}
	return r.ID.String()
}

// subjectOf returns the patient's name and birth date in one line.
func subjectOf(o *orders.Order) string {
	p := o.PatientDetails
	if p == nil {
		return ""
	}
	return joined(", ", joined(" ", rules.TextOf(p.FirstName), rules.TextOf(p.LastName)), "born "+p.DOB.String())
}

func identitySection(o *orders.Order) Section {
	return Section{Heading: "Patient", Fields: append(identityOf(o), Field{Name: "Patient id", Value: o.UserID.String()})}
}

// identityOf returns the patient's name, birth date and gender.
func identityOf(o *orders.Order) sheet {
	var f sheet
	if p := o.PatientDetails; p != nil {
		f.add("Name", rules.TextOf(p.FirstName), rules.TextOf(p.LastName))
		f.add("Date of birth", p.DOB.String())
		f.word("Gender", string(p.Gender))
	}
	return f
}

// patientSection returns the patient data for the laboratory.
func patientSection(o *orders.Order) Section {
	f := identityOf(o)
	if p := o.PatientDetails; p != nil {
		f.add("Phone", rules.TextOf(p.PhoneNumber))
		f.add("E-mail", rules.TextOf(p.Email))
		f.word("Race", rules.TextOf(p.Race))
		f.word("Ethnicity", rules.TextOf(p.Ethnicity))
		f.word("Sexual orientation", rules.TextOf(p.SexualOrientation))
		f.word("Gender identity", rules.TextOf(p.GenderIdentity))
	}
	if a := o.PatientAddress; a != nil {
		f.add("Address", postal(a.FirstLine, a.SecondLine, a.City, a.State, a.Zip, a.Country))
	}
	f.add("Patient id", o.UserID.String())
	return Section{Heading: "Patient", Fields: f}
}

func guarantorSection(heading string, g *people.GuarantorDetails) []Section {
	if g == nil {
		return nil
	}
	var f sheet
	f.add("Name", g.FirstName, g.LastName)
	f.add("Address", addressLine(g.Address))
	f.add("Phone", g.PhoneNumber)
	f.add("E-mail", rules.TextOf(g.Email))
	if g.HouseholdIncome != nil {
		f.add("Household income", strconv.Itoa(*g.HouseholdIncome), "USD a year")
	}
	if g.HouseholdSize != nil {
		f.add("Household size", strconv.Itoa(*g.HouseholdSize))
	}
	return []Section{{Heading: heading, Fields: f}}
}

// orderSection returns the order data: what was ordered, and from which lab.
func orderSection(r *orders.Record, zone *time.Location) Section {
	var f sheet
	f.add("Order", r.ID.String())
	f.add("Specimen", rules.TextOf(r.SampleID))
	f.add("Ordered", formatTime(r.CreatedAt.Time, zone))
	f.add("Priority", yes(r.Priority))
	f.add("Test", r.LabTest.Name)
	f.add("Description", rules.TextOf(r.LabTest.Description))
	f.word("Sample", string(r.LabTest.SampleType))
	f.word("Collection", string(r.Method()))
	f.add("Patient must fast", yes(r.LabTest.Fasting))
	if l := r.LabTest.Lab; l != nil {
		f.add("Laboratory", joined(", ", l.Name, l.FirstLineAddress, joined(" ", l.City, l.Zipcode)))
	}
	f.add("Account", r.LabAccountNumber)
	if r.ActivateBy != nil {
		f.add("Scheduled for", r.ActivateBy.String())
	}
	if r.Origin != orders.OriginInitial {
		f.word("Origin", string(r.Origin))
	}
	return Section{Heading: "Order", Fields: f}
}

// markerTable lists the ordered markers.
func markerTable(markers []catalogue.Marker) Section {
	t := &Table{Columns: []string{"Code", "Test", "Kind"}, Widths: []int{4, 9, 3}}
	for _, m := range markers {
		t.Rows = append(t.Rows, Row{Cells: []string{rules.TextOf(m.ProviderID), m.Name, inWords(rules.TextOf(m.Type))}})
	}
	return Section{Heading: "Tests", Table: t}
}

// answerSection lists the answers at order entry, with the text of a chosen answer, not only its code.
func answerSection(r *orders.Record) []Section {
	t := &Table{Columns: []string{"Test", "Question", "Answer"}, Widths: []int{4, 6, 4}}
	for _, m := range r.LabTest.Markers {
		if m.AOE == nil {
			continue
		}
		for _, q := range slices.SortedFunc(slices.Values(m.AOE.Questions), func(a, b catalogue.Question) int { return cmp.Compare(a.Sequence, b.Sequence) }) {
			for _, a := range r.AOEAnswers {
				if a.MarkerID != m.ID || a.QuestionID != q.ID {
					continue
				}
				text := a.Answer
				for _, known := range q.Answers {
					if known.Code == a.Answer {
						text = joined(" ", known.Value, "("+known.Code+")")
					}
				}
				t.Rows = append(t.Rows, Row{Cells: []string{m.Name, joined(" ", q.Value, "("+q.Code+")"), text}})
			}
		}
	}
	if len(t.Rows) == 0 {
		return nil
	}
	return []Section{{Heading: "Answers at order entry", Table: t}}
}

// physicianSection returns the ordering physician. Without a signature it has a line to sign on, and without a
// physician also lines for the name and the NPI.
func physicianSection(r *orders.Record) Section {
	var f sheet
	s := Section{Heading: "Ordering physician"}
	switch p := r.PhysicianInput; {
	case p != nil:
		f.add("Name", p.FirstName, p.LastName)
		f.add("NPI", p.NPI)
		f.add("E-mail", rules.TextOf(p.Email))
		f.add("Licensed in", strings.Join(p.LicensedStates, ", "))
		s.Picture = p.SignatureImage
	case r.Physician != nil:
		f.add("Name", r.Physician.FirstName, r.Physician.LastName)
		f.add("NPI", r.Physician.NPI)
	default:
		s.Signs = []string{"Name of the physician", "NPI"}
	}
	if s.Picture == nil {
		s.Signs = append(s.Signs, "Signature of the physician, and date")
	}
	s.Fields = f
	return s
}

// billingSections returns the sections with the billing data, the insurance and the guarantor. c is the order's
// insurance record; nil for none.
func billingSections(r *orders.Record, c *people.Coverage) []Section {
	var f sheet
	f.word("Billing", string(r.BillingType))
	f.add("Diagnosis codes", strings.Join(r.ICDCodes, ", "))
	if in := r.HealthInsurance; in != nil {
		f.add("Payor code", rules.TextOf(in.PayorCode))
		f.add("Member number", rules.TextOf(in.InsuranceID))
		f.add("Card's diagnoses", strings.Join(in.DiagnosisCodes, ", "))
		f.add("Symptoms", rules.TextOf(in.Subjective))
		f.add("Assessment, plan", rules.TextOf(in.AssessmentPlan))
		if p := in.ResponsibleDetails; p != nil {
			f.add("Policy holder", p.FirstName, p.LastName)
			f.add("Holder's address", addressLine(p.Address.Address()))
			f.add("Holder's phone", p.PhoneNumber, "("+cmp.Or(p.PhoneType, people.DefaultPhoneType)+")")
		}
		f.add("Patient is holder's", rules.TextOf(in.ResponsibleRelationship))
	}
	out := []Section{{Heading: "Billing", Fields: f}}
	if c == nil {
		return out
	}
	var g sheet
	record := c.Record
	g.add("Payor", record.Company.Name)
	g.add("Payor code", record.PayorCode)
	g.add("Payor's address", addressLine(record.Company.Address))
	g.add("Member number", record.MemberID)
	g.add("Group", rules.TextOf(record.GroupID))
	g.add("Insured", record.Insured.FirstName, record.Insured.LastName)
	g.add("Date of birth", record.Insured.DOB.String())
	g.word("Gender", string(record.Insured.Gender))
	g.add("Phone", record.Insured.PhoneNumber)
	g.add("E-mail", record.Insured.Email)
	g.add("Address", addressLine(record.Insured.Address))
	g.add("Patient is insured's", string(record.Relationship))
	out = append(out, Section{Heading: "Insurance", Fields: g})
	return append(out, guarantorSection("Guarantor", record.Guarantor)...)
}

// requisitionDocument returns the requisition form for the lab. c is the order's insurance record, comment a
// text for the lab; nil and empty mean none.
func requisitionDocument(r *orders.Record, c *people.Coverage, comment string, zone *time.Location) Document {
	d := Document{Kind: RequisitionForm, Title: "Laboratory requisition", Number: documentNumber(r), Subject: subjectOf(&r.Order), At: r.ReachedAt(orders.RequisitionCreated)}
	if r.Priority {
		d.Remarks = append(d.Remarks, "PRIORITY")
	}
	if r.LabTest.Fasting {
		d.Remarks = append(d.Remarks, "PATIENT MUST FAST")
	}
	d.Sections = append(d.Sections, orderSection(r, zone), patientSection(&r.Order))
	if p := r.PatientDetails; p != nil {
		d.Sections = append(d.Sections, guarantorSection("Medical proxy", p.MedicalProxy)...)
	}
	d.Sections = append(d.Sections, physicianSection(r))
	d.Sections = append(d.Sections, billingSections(r, c)...)
	d.Sections = append(d.Sections, markerTable(r.LabTest.Markers))
	d.Sections = append(d.Sections, answerSection(r)...)
	if text := joined("\n", rules.TextOf(r.Notes), comment); text != "" {
		d.Sections = append(d.Sections, Section{Heading: "Comments", Paragraphs: strings.Split(text, "\n")})
	}
	return d.with(Section{Heading: "Specimen collection", Signs: []string{"Collected on (date and time)", "Collected by", "Signature of the patient"}})
}

func (d Document) with(s Section) Document {
	d.Sections = append(d.Sections, s)
	return d
}

// LabelsRequest asks for specimen labels.
type LabelsRequest struct {
	// CollectedAt is the time of the collection. The label shows it with its offset.
	CollectedAt time.Time
	// Count is the number of labels, from 1 to [MaxLabels].
	Count int
	// Stock is the paper of the labels. Empty: [LabelSheet] for teams whose paper is A4, else [LabelRoll].
	Stock LabelStock
}

// MaxLabels is the highest number of labels in one request.
const MaxLabels = 100

// labelDocument returns the labels for the tubes of an order.
func labelDocument(r *orders.Record, req LabelsRequest) Document {
	d := Document{Kind: SpecimenLabels, Title: "Specimen labels", Number: documentNumber(r), At: req.CollectedAt, Stock: req.Stock}
	var l Label
	if p := r.PatientDetails; p != nil {
		l.Lines = append(l.Lines, joined(" ", rules.TextOf(p.FirstName), rules.TextOf(p.LastName)))
		l.Lines = append(l.Lines, joined("  ", "Born "+p.DOB.String(), inWords(string(p.Gender))))
	}
	l.Lines = append(l.Lines, "Collected "+formatTime(req.CollectedAt, req.CollectedAt.Location()))
	test := r.LabTest.Name
	if n := len(r.LabTest.Markers); r.LabTest.AutoGenerated && n > 1 {
		test = fmt.Sprintf("%d tests", n) // the name of a built test lists all of its tests
	}
	l.Lines = append(l.Lines, test)
	if r.LabAccountNumber != "" {
		l.Lines = append(l.Lines, "Account "+r.LabAccountNumber)
	}
	l.Number = documentNumber(r)
	for range req.Count {
		d.Labels = append(d.Labels, l)
	}
	return d
}

// instructions returns the document that tells the patient how to prepare for the test t and how to take the sample. at
// is the time of its content.
func instructions(t catalogue.LabTest, sheets []catalogue.InstructionSheet, at time.Time) Document {
	d := Document{Kind: CollectionInstructions, Title: "Collection instructions", At: at}
	var f sheet
	f.add("Test", t.Name)
	f.word("Sample", string(t.SampleType))
	f.word("Collection", string(t.Method))
	if t.Lab != nil {
		f.add("Laboratory", joined(", ", t.Lab.Name, t.Lab.FirstLineAddress, joined(" ", t.Lab.City, t.Lab.Zipcode)))
	}
	if t.Fasting {
		f.add("Fasting", "Eat and drink nothing but water before the sample is taken, for as long as your physician says.")
	} else {
		f.add("Fasting", "You need not fast.")
	}
	d.Sections = append(d.Sections, Section{Heading: "Your test", Fields: f})
	for _, s := range sheets {
		d.Sections = append(d.Sections, Section{Heading: s.Title, Steps: s.Steps})
	}
	return d
}

// noticeDocument returns the notice about tests that the patient's insurance will probably not pay.
func noticeDocument(r *orders.Record) Document {
	d := Document{Kind: BeneficiaryNotice, Title: "Advance beneficiary notice of non-coverage", Number: documentNumber(r), Subject: subjectOf(&r.Order), At: r.ReachedAt(orders.RequisitionCreated)}
	var f sheet
	if l := r.LabTest.Lab; l != nil {
		f.add("Notice from", joined(", ", l.Name, l.FirstLineAddress, joined(" ", l.City, l.Zipcode)))
	}
	if p := r.PatientDetails; p != nil {
		f.add("Patient", rules.TextOf(p.FirstName), rules.TextOf(p.LastName))
		f.add("Date of birth", p.DOB.String())
	}
	f.add("Number", documentNumber(r))
	f.add("Order", r.ID.String())
	t := &Table{Columns: []string{"Laboratory test", "Why it may not be paid", "Estimated cost"}, Widths: []int{5, 7, 3}}
	for _, i := range r.Notice.Items {
		t.Rows = append(t.Rows, Row{Cells: []string{i.Name, i.Reason, fmt.Sprintf("$%d.%02d", i.CostMinor/100, i.CostMinor%100)}})
	}
	d.Sections = append(d.Sections,
		Section{Heading: "Who this is for", Fields: f},
		Section{Heading: "What you may have to pay", Paragraphs: []string{
			"Your insurance does not pay for everything, even where a physician has good reasons to order it. We expect that it will not pay for the tests below. If it does not, you may have to.",
		}, Table: t},
		Section{Heading: "What you can do now", Steps: []string{
			"Read this notice, so that you can decide about your care.",
			"Ask us whatever you want to know before you decide.",
			"Choose one of the options below.",
		}},
		Section{Heading: "Your choice: tick one box. We cannot choose for you.", Choices: []string{
			"Option 1. I want the tests above. You may ask me to pay now, and I also want my insurance to be billed for an official decision. If it does not pay, I am responsible for the cost, and I can appeal. If it does pay, you refund what I paid, less what I owe.",
			"Option 2. I want the tests above, and do not want my insurance to be billed. You may ask me to pay now. I am responsible for the cost, and I cannot appeal.",
			"Option 3. I do not want the tests above. I am not responsible for their cost, and I cannot appeal.",
		}},
	)
	if r.Notice.Note != "" {
		d.Sections = append(d.Sections, Section{Heading: "Further information", Paragraphs: []string{r.Notice.Note}})
	}
	return d.with(Section{Heading: "Your signature says that you have received and understood this notice.", Signs: []string{"Signature", "Date"}})
}
