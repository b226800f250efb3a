package pdfdoc_test

import (
	"bytes"
	"context"
	"image"
	"image/color"
	"image/png"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/pdfdoc"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/documents"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

func ptr[T any](v T) *T { return &v }

func named(name string) uuid.UUID { return uuid.NewSHA1(uuid.Nil, []byte(name)) }

var (
	team = healthlab.TeamID{UUID: named("team")}
	ana  = healthlab.UserID{UUID: named("ana")}
)

// fixture is a service that prints.
type fixture struct {
	*documents.Service
	orders *orders.Service
	labs   *exchange.Service
	store  *memory.Store
	people people.Store
	ids    *[]uuid.UUID // every id that the service made
}

func newFixture(t testing.TB, p *pdfdoc.Printer, paper orders.Paper) fixture {
	t.Helper()
	d := fixture{store: memory.New(&memory.Options{UsersElsewhere: true}), ids: new([]uuid.UUID)}
	d.people = d.store.Persons()
	book, err := sandbox.Catalogue()
	require.NoError(t, err)
	anybody := people.UsersFunc(func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil })
	d.orders, err = orders.New(d.store.Orders(), anybody, book, &orders.Options{
		Environment: healthlab.Production,
		Background:  orders.Background{NewID: d.newID, Now: func() time.Time { return noon }}, People: d.people, Files: d.store.Blobs(),
		Settings: func(context.Context, healthlab.TeamID) (orders.Settings, error) {
			return orders.Settings{Paper: paper}, nil
		},
	})
	require.NoError(t, err)
	d.labs, err = exchange.New(d.orders, d.store.Orders(), d.store.Reviews(), sandbox.NewLab(nil), nil)
	require.NoError(t, err)
	d.Service = documents.New(d.orders, p, nil)
	return d
}

// signature is an image of a handwritten signature.
func signature(t testing.TB) *people.ImageBlob {
	img := image.NewNRGBA(image.Rect(0, 0, 300, 80))
	for x := range 300 {
		for w := range 4 {
			img.Set(x, 40+w+(x*x/90)%25, color.NRGBA{0, 0, 90, 255})
		}
	}
	var b bytes.Buffer
	require.NoError(t, png.Encode(&b, img))
	return &people.ImageBlob{Content: b.Bytes(), ContentType: "image/png"}
}

// keep puts an order into the store that has gone through the triggers.
func (d fixture) keep(t testing.TB, r orders.Record, through ...orders.Trigger) orders.OrderID {
	r.TeamID, r.UserID, r.Origin = team, ana, orders.OriginInitial
	r.OrderTransaction = orders.OrderTransaction{ID: orders.TransactionID{UUID: uuid.New()}}
	_, err := d.store.Orders().Insert(context.Background(), r, func(r *orders.Record) ([]healthlab.Event, error) {
		if _, err := orders.Begin(&r.Order, noon, uuid.New()); err != nil {
			return nil, err
		}
		for _, on := range through {
			if _, err := orders.Apply(&r.Order, orders.Step{On: on, At: noon, EventID: uuid.New()}); err != nil {
				return nil, err
			}
		}
		return nil, nil
	})
	require.NoError(t, err)
	return r.ID
}

// record is an order in which everything that a form shows is told apart from the rest.
func record(t testing.TB) (orders.Record, []string) {
	at := healthlab.At(noon)
	var r orders.Record
	r.ID = orders.OrderID{UUID: named("order")}
	r.CreatedAt, r.Details = at, orders.NewDetails(catalogue.WalkInTest, named("details"), named("shipment"), at)
	r.PatientDetails = &people.PatientDetails{FirstName: ptr("Anastasia-Maria"), LastName: ptr("O'Roe Vandenberghe"), DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9},
		Gender: people.Female, PhoneNumber: ptr("+15550100"), Email: ptr("ana.o.roe@example.com"), Race: ptr(people.Race("asian")),
		Ethnicity: ptr(people.Ethnicity("hispanic")), SexualOrientation: ptr(people.SexualOrientation("dont_know")), GenderIdentity: ptr(people.GenderIdentity("female")),
		MedicalProxy: &people.GuarantorDetails{FirstName: "Boris", LastName: "Щербаков", PhoneNumber: "+15550101", HouseholdIncome: ptr(52123), HouseholdSize: ptr(7), Email: ptr("boris@example.com"),
			Address: people.Address{FirstLine: "9 Proxy Rd", SecondLine: ptr("b/2"), City: "Yuma", State: "AZ", Zip: "85364", Country: "US"}}}
	r.PatientAddress = &people.PatientAddress{ReceiverName: "Front Desk", FirstLine: "7 Calle Ñandú", SecondLine: ptr("Unit 2"), City: "Mesa", State: "AZ", Zip: "85201", Country: "US",
		PhoneNumber: ptr("+15550102"), AccessNotes: ptr("Side gate, code 4711")}
	r.LabTest = catalogue.LabTest{Name: "Metabolic basics", Description: ptr("Sugar, kidney and liver"), SampleType: catalogue.Serum, Method: catalogue.WalkInTest, Fasting: true, Status: catalogue.LabTestActive,
		Lab: &catalogue.Lab{ID: 1, Slug: "northlab", Name: "Northlab", FirstLineAddress: "1 Aurora Way", City: "Duluth", Zipcode: "55802"},
		Markers: []catalogue.Marker{
			{ID: 1, Name: "Glucose", ProviderID: ptr("N001"), Type: ptr(catalogue.Biomarker), AOE: &catalogue.AOE{Questions: []catalogue.Question{
				{ID: 5, Code: "FSTING", Value: "Is the patient fasting?", Sequence: 2, Type: catalogue.ChoiceQuestion, Answers: []catalogue.Answer{{Code: "Y", Value: "Yes, since midnight"}}},
				{ID: 6, Code: "MEDS", Value: "Which medicines?", Sequence: 1, Type: catalogue.TextQuestion}}}},
			{ID: 2, Name: strings.Repeat("Very long name of a panel ", 8), ProviderID: ptr("N002-EXTRA-LONG-CODE"), Type: ptr(catalogue.Panel)},
		}}
	r.AOEAnswers = []catalogue.AOEAnswer{{MarkerID: 1, QuestionID: 5, Answer: "Y"}, {MarkerID: 1, QuestionID: 6, Answer: "Metformin 500 mg"}}
	r.SampleID, r.Notes, r.Comment = ptr("SBX4F00A1B2C3"), ptr("A note of the order"), "Order's comment\nAccount's comment"
	r.PhysicianInput = &people.PhysicianInput{FirstName: "Cyril", LastName: "Vale", Email: ptr("vale@example.com"), NPI: "1234567893", LicensedStates: []string{"AZ", "NM"}, SignatureImage: signature(t)}
	r.BillingType, r.ICDCodes, r.Priority = catalogue.CommercialInsurance, []string{"E11.9", "I10"}, true
	r.LabAccountNumber = "ACC-778"
	r.HealthInsurance = &people.HealthInsuranceInput{Subjective: ptr("tired"), AssessmentPlan: ptr("rule out anemia"), PayorCode: ptr("P1"), InsuranceID: ptr("W77"), ResponsibleRelationship: ptr("Other"),
		ResponsibleDetails: &people.ResponsiblePerson{FirstName: "Dora", LastName: "Holder", PhoneNumber: "+15550103", Address: people.AddressInput{FirstLine: "11 Holder St", City: "Reno", State: "NV", Zip: "89501", Country: "US"}},
		DiagnosisCodes:     []string{"Z00.0"}}
	return r, []string{
		"Anastasia-Maria O'Roe Vandenberghe", "1984-05-09", "Female", "+15550100", "ana.o.roe@example.com", "Asian", "Hispanic", "Dont know",
		"Boris Щербаков", "+15550101", "52123 USD a year", "boris@example.com", "9 Proxy Rd, b/2, Yuma, AZ 85364, US",
		"7 Calle Ñandú, Unit 2, Mesa, AZ 85201, US", ana.String(),
		"SBX4F00A1B2C3", "2026-03-02 12:00 UTC", "Metabolic basics", "Sugar, kidney and liver", "Serum", "Walk in test", "Northlab, 1 Aurora Way, Duluth 55802", "ACC-778",
		"N001 Glucose Biomarker", strings.Repeat("Very long name of a panel ", 8), "N002-EXTRA-LONG-CODE", "Is the patient fasting? (FSTING)", "Yes, since midnight (Y)", "Which medicines? (MEDS)", "Metformin 500 mg",
		"Cyril Vale", "1234567893", "vale@example.com", "AZ, NM", "Commercial insurance", "E11.9, I10", "P1", "W77", "Z00.0", "tired", "rule out anemia", "Dora Holder", "11 Holder St, Reno, NV 89501, US", "+15550103", "Other",
		"A note of the order", "Order's comment", "Account's comment", "PRIORITY", "PATIENT MUST FAST",
	}
}

func TestRequisition_printsEveryFieldOfTheOrder(t *testing.T) {
	r, p := newReader(t), printer(t)
	for _, paper := range []orders.Paper{orders.Letter, orders.A4} {
		d := newFixture(t, p, paper)
		o, values := record(t)
		o.HealthInsuranceID = ptr(named("coverage"))
		c := people.Coverage{ID: named("coverage"), Team: team, User: ana, ValidFrom: noon, Record: people.InsuranceRecord{MemberID: "MEM-9", PayorCode: "PAY-3", Relationship: "Spouse", GroupID: ptr("GRP-4"), IsPrimary: true,
			Company: people.CompanyDetails{Name: "Invented Mutual", Address: people.Address{FirstLine: "1 Payor Plaza", City: "Omaha", State: "NE", Zip: "68102", Country: "US"}},
			Insured: people.PersonDetails{FirstName: "Ines", LastName: "Holder", Gender: people.Female, DOB: healthlab.Date{Year: 1980, Month: 1, Day: 2}, Email: "ines@example.com", PhoneNumber: "+15550104",
				Address: people.Address{FirstLine: "12 Insured St", City: "Elko", State: "NV", Zip: "89801", Country: "US"}},
			Guarantor: &people.GuarantorDetails{FirstName: "Gus", LastName: "Payer", PhoneNumber: "+15550105", Address: people.Address{FirstLine: "13 Guarantor St", City: "Ely", State: "NV", Zip: "89301", Country: "US"}}}}
		err := d.people.PutUserInfo(t.Context(), team, ana, people.UserInfo{FirstName: "Ana", DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9}})
		require.NoError(t, err)
		err = d.people.AddCoverage(t.Context(), c)
		require.NoError(t, err)
		values = append(values, "MEM-9", "PAY-3", "GRP-4", "Spouse", "Invented Mutual", "1 Payor Plaza, Omaha, NE 68102, US", "Ines Holder", "1980-01-02", "ines@example.com", "+15550104", "12 Insured St, Elko, NV 89801, US", "Gus Payer", "+15550105", "13 Guarantor St, Ely, NV 89301, US")
		id := d.keep(t, o, orders.LabAccepted)
		pdf, err := d.Requisition(t.Context(), team, id)
		require.NoError(t, err)
		r.golden(t, "requisition-"+string(paper), pdf)
		r.says(t, pdf, append(values, id.String())...)
		require.Equal(t, []string{"SBX4F00A1B2C3"}, scanned(t, r.picture(t, pdf, 1, 200)))
	}
}

func TestResultReport_printsEveryFieldOfTheResults(t *testing.T) {
	r, d := newReader(t), newFixture(t, printer(t), orders.Letter)
	o, _ := record(t)
	at := healthlab.At(noon)
	number := func(s string) *catalogue.Number {
		n, err := catalogue.ParseNumber(s)
		require.NoError(t, err)
		return &n
	}
	source := []labresult.SourceMarker{{MarkerID: 1, Name: "Sugar panel", Slug: "sugar"}}
	o.Results = &labresult.Report{
		Metadata: labresult.Metadata{Age: "41", DOB: "09/05/1984", CLIANumber: ptr("31D0000001"), Patient: "O'ROE VANDENBERGHE, ANASTASIA", SpecimenNumber: "SPEC-77", Provider: ptr("VALE, CYRIL"), Laboratory: ptr("Northlab Duluth"),
			DateReported: "2026-03-05", DateCollected: ptr("2026-03-02"), DateReceived: ptr("2026-03-03"), Status: labresult.Corrected, Interpretation: ptr(labresult.Critical), PatientID: ptr("PID-9"), AccountID: ptr("ACC-778")},
		Results: []labresult.Result{
			{Name: "Glucose", Result: "412.0", Type: labresult.Numeric, Unit: ptr("mg/dL"), Timestamp: &at, Notes: ptr("Checked twice.\nCalled to the physician."), ReferenceRange: ptr("70-99"), IsAboveMaxRange: ptr(true), Interpretation: labresult.Critical, SourceInterpretation: "HH", LOINC: ptr("2345-7"), SourceMarkers: source, PerformingLaboratory: ptr("LAB-A")},
			{Name: "Insulin", Result: "1.2", PreviousResult: ptr("12"), CorrectedAt: &at, Type: labresult.Numeric, Unit: ptr("µIU/mL"), MinRangeValue: number("2.6"), MaxRangeValue: number("24.9"), IsBelowMinRange: ptr(true), Interpretation: labresult.Abnormal, SourceInterpretation: "L", SourceMarkers: source},
			{Name: "HIV 1/2", Result: "Non-reactive", Type: labresult.Comment, Interpretation: labresult.Normal},
			{Name: "Culture", Result: strings.Repeat("No growth after five days of incubation. ", 30), Type: labresult.Comment, Interpretation: labresult.UnknownInterpretation},
		},
		MissingResults: []labresult.Missing{{Name: "Urea", InferredFailureType: labresult.QuantityNotSufficientFailure, Note: ptr("spilt"), LOINC: ptr("3094-0")}},
		SampleInformation: map[string]labresult.SampleData{"S-1": {SampleID: ptr("S-1"), ControlNumber: ptr("CTRL-5"), DateCollected: &labresult.TimestampWithOffset{Timestamp: at, TimezoneOffset: -7 * 3600}, DateReceived: &labresult.TimestampWithOffset{Timestamp: at},
			ClinicalInformation:    &labresult.ClinicalInformation{Fasting: true, Notes: ptr("hemolyzed"), Information: ptr("left arm"), TotalVolume: ptr("8 mL")},
			PerformingLaboratories: map[string]labresult.PerformingLaboratory{"LAB-A": {Name: "Northlab North", PhoneNumber: ptr("+15550106"), MedicalDirector: ptr("Dr. Mara Keen"), Address: &people.Address{FirstLine: "5 Frost St", City: "Bemidji", State: "MN", Zip: "56601", Country: "US"}}}}},
	}
	o.Interpretation = o.Results.Metadata.Interpretation
	id := d.keep(t, o, orders.LabAccepted, orders.FinalResult)
	pdf, err := d.Report(t.Context(), team, id)
	require.NoError(t, err)
	r.golden(t, "report", pdf)
	r.says(t, pdf, "Anastasia-Maria O'Roe Vandenberghe", "O'ROE VANDENBERGHE, ANASTASIA", "09/05/1984", "41", "31D0000001", "SPEC-77", "VALE, CYRIL", "Northlab Duluth", "2026-03-05", "PID-9", "ACC-778",
		"CORRECTED REPORT", "CORRECTED 2026-03-02 12:00 UTC: reported before as 12", "CRITICAL RESULT", "Sugar panel", "Glucose (LOINC 2345-7)", "412.0", "High, Critical (HH)", "mg/dL", "70-99", "Checked twice.", "Called to the physician.", "At 2026-03-02 12:00 UTC. Laboratory: LAB-A",
		"Insulin 1.2 Low (L) µIU/mL 2.6-24.9", "HIV 1/2 Non-reactive", strings.Repeat("No growth after five days of incubation. ", 30), "Urea (LOINC 3094-0)", "Quantity not sufficient failure: spilt",
		"S-1", "CTRL-5", "2026-03-02 05:00 -07:00", "hemolyzed", "left arm", "8 mL", "LAB-A: Northlab North, 5 Frost St, Bemidji, MN 56601, US, +15550106, medical director Dr. Mara Keen", id.String())
	require.Equal(t, []string{"SBX4F00A1B2C3"}, scanned(t, r.picture(t, pdf, 1, 200)))
}

func TestDocuments_printCoverageNoticeInstructionsAndLabels(t *testing.T) {
	r, d := newReader(t), newFixture(t, printer(t), orders.Letter)
	o, _ := record(t)
	o.HasABN = true
	o.Notice = &orders.CoverageNotice{Note: "Ask us about plans.", Items: []orders.CoverageItem{{Name: "Glucose", Reason: "Only with certain diagnoses.", CostMinor: 2905}, {Name: "Insulin", Reason: "Too often.", CostMinor: 12000}}}
	id := d.keep(t, o, orders.LabAccepted)
	pdf, err := d.CoverageNotice(t.Context(), team, id)
	require.NoError(t, err)
	r.golden(t, "abn", pdf)
	r.says(t, pdf, "Anastasia-Maria O'Roe Vandenberghe", "1984-05-09", "Northlab, 1 Aurora Way", "SBX4F00A1B2C3", "Only with certain diagnoses.", "$29.05", "Insulin", "$120.00", "Option 1.", "Option 2.", "Option 3.", "Ask us about plans.", "Signature", "Date")
	require.Equal(t, []string{"SBX4F00A1B2C3"}, scanned(t, r.picture(t, pdf, 1, 200)))

	pdf, err = d.OrderInstructions(t.Context(), team, id)
	require.NoError(t, err)
	r.golden(t, "instructions", pdf)
	r.says(t, pdf, "Metabolic basics", "Walk in test", "Bring your requisition", "nothing but water")

	for _, stock := range documents.LabelStocks {
		pdf, err = d.Labels(t.Context(), team, id, documents.LabelsRequest{CollectedAt: noon, Count: 3, Stock: stock})
		require.NoError(t, err)
		r.golden(t, "labels-"+string(stock), pdf)
		r.says(t, pdf, "Anastasia-Maria O'Roe Vandenberghe", "Born 1984-05-09", "Female", "2026-03-02 12:00 UTC", "Metabolic basics", "Account ACC-778")
		require.Equal(t, []string{"SBX4F00A1B2C3"}, scanned(t, r.picture(t, pdf, 1, 200))) // which tells a number once
	}
}

// A requisition always has a place for the physician, and a line for the signature
// that is missing; times are those of the user's zone.
func TestRequisition_hasALineForAMissingSignature(t *testing.T) {
	r := newReader(t)
	phoenix, err := time.LoadLocation("America/Phoenix")
	require.NoError(t, err)
	for name, edit := range map[string]func(*orders.Record){
		"without a physician": func(o *orders.Record) { o.PhysicianInput = nil },
		"without a signature": func(o *orders.Record) { o.PhysicianInput.SignatureImage = nil },
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t, printer(t), orders.Letter)
			d.labs, err = exchange.New(d.orders, d.store.Orders(), d.store.Reviews(), sandbox.NewLab(nil), nil)
			require.NoError(t, err)
			d.Service = documents.New(d.orders, printer(t), &documents.Options{
				TimeZone: func(context.Context, healthlab.TeamID, healthlab.UserID) (*time.Location, error) { return phoenix, nil },
			})
			o, _ := record(t)
			edit(&o)
			pdf, err := d.Requisition(t.Context(), team, d.keep(t, o, orders.LabAccepted))
			require.NoError(t, err)
			r.golden(t, "requisition-"+strings.ReplaceAll(name, " ", "-"), pdf)
			r.says(t, pdf, "Ordering physician", "Signature of the physician, and date", "Signature of the patient", "Ordered 2026-03-02 05:00 MST")
		})
	}
}

// For any name, address and order number the form is made, shows all of them, and is the
// same when it is made twice.
func TestPrint_showsAnyTextAndIsReproducible(t *testing.T) {
	r, p := newReader(t), printer(t)
	d := newFixture(t, p, orders.Letter)
	word := rapid.OneOf(
		rapid.StringMatching(`[A-Za-z0-9.,'-]{1,40}`),
		rapid.StringMatching(`[A-ZÀ-ÖØ-öø-žА-яЁёΑ-ΡΣ-ωა-ჰԱ-Ֆա-ֆ]{1,30}`),
		rapid.StringMatching(`[W]{100,300}`),
		rapid.StringMatching(`[<>&()\\/%{}\[\]#$"~^|]{1,20}`),
		rapid.SampledFrom([]string{"(", ")", "\\", "%%EOF", "endobj", "<</A 1>>", "{nb}", "\\n", "ﬁ", "e\u0301", "Å", "1e400", "-", "ß"}),
	)
	line := rapid.Custom(func(t *rapid.T) string { return strings.Join(rapid.SliceOfN(word, 1, 12).Draw(t, "words"), " ") })
	for seed := range prove.Sequential(3, 6, 100) {
		o, _ := record(t)
		o.ID = orders.OrderID{UUID: uuid.New()}
		values := []string{}
		next := 10 * seed
		draw := func() string {
			next++
			values = append(values, line.Example(next))
			return values[len(values)-1]
		}
		o.PatientDetails.FirstName, o.PatientDetails.LastName = ptr(draw()), ptr(draw())
		o.PatientAddress.FirstLine, o.PatientAddress.City = draw(), draw()
		o.Notes, o.LabTest.Name = ptr(draw()), draw()
		o.SampleID = ptr(word.Example(seed) + uuid.NewString())
		id := d.keep(t, o, orders.LabAccepted)
		pdf, err := d.Requisition(t.Context(), team, id)
		require.NoError(t, err)
		r.says(t, pdf, append(values, *o.SampleID)...)
	}
	// And whatever comes in any writing, or none, is printed, and the same the next time.
	anything := rapid.Custom(func(t *rapid.T) documents.Document {
		text := func(of string) string { return rapid.String().Draw(t, of) }
		return documents.Document{Title: text("title"), Number: text("number"), Subject: text("subject"), At: noon, Paper: orders.A4, Sections: []documents.Section{{
			Heading: text("heading"), Fields: []documents.Field{{Name: text("name"), Value: text("value")}}, Paragraphs: []string{text("text")}, Steps: []string{text("step")},
			Picture: &people.ImageBlob{Content: rapid.SliceOf(rapid.Byte()).Draw(t, "picture")},
		}}}
	})
	for seed := range prove.Sequential(8, 20, 500) {
		doc := anything.Example(seed)
		one, err := p.Print(t.Context(), doc)
		require.NoError(t, err)
		two, err := p.Print(t.Context(), doc)
		require.NoError(t, err)
		require.True(t, bytes.Equal(one, two))
	}
}

func TestPrint_refusesInvalidTables(t *testing.T) {
	p := printer(t)
	for name, table := range map[string]documents.Table{
		"no columns":   {Rows: []documents.Row{{}}},
		"no widths":    {Columns: []string{"a"}},
		"no width":     {Columns: []string{"a"}, Widths: []int{0}},
		"another cell": {Columns: []string{"a"}, Widths: []int{1}, Rows: []documents.Row{{Cells: []string{"a", "b"}}}},
	} {
		_, err := p.Print(t.Context(), documents.Document{Sections: []documents.Section{{Table: &table}}})
		require.ErrorIs(t, err, healthlab.Invalid, name)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	_, err := p.Print(ctx, long())
	require.ErrorIs(t, err, context.Canceled)
}
