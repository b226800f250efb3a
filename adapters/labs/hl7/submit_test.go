package hl7_test

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/people"
)

func TestSubmit_sendsAnOMLOrderMessage(t *testing.T) {
	b := newBench(t, func(o *hl7.Options) {
		o.Insurance = func(context.Context, healthlab.TeamID, uuid.UUID) (hl7.Insurance, error) {
			return hl7.Insurance{PlanID: "P1", CompanyID: "C9", CompanyName: "Payor", GroupNumber: "G", PolicyNumber: "77", Relationship: "SEL",
				CompanyAddress: er7.Address{Street: "1 Main", City: "Mesa"}, Insured: er7.Name{Family: "Roe", Given: "Ana"}, InsuredDOB: healthlab.Date{Year: 1984, Month: 5, Day: 9}}, nil
		}
	})
	s := submission()
	s.Order.HealthInsuranceID = ptr(uuid.New())
	s.Order.SampleID = ptr("KIT7")
	s.Order.Priority = true
	s.Order.PatientDetails.MedicalProxy = &people.GuarantorDetails{FirstName: "Eva", LastName: "Roe", PhoneNumber: "5", Address: people.Address{City: "Mesa"}}
	number := b.submit(s)
	m := b.lab.sent[0]
	require.Len(t, number, 16)
	require.Equal(t, "ORDERS CLINIC LIS NORTH", m.Header().Field(3).Text()+" "+m.Header().Field(4).Text()+" "+m.Header().Field(5).Text()+" "+m.Header().Field(6).Text())
	require.Equal(t, "OML^O21^OML_O21", m.Header().Field(9).Raw())
	require.LessOrEqual(t, len(m.ControlID()), 20)
	require.Equal(t, er7.UTF8, m.Charset())
	var got []string
	for seg := range m.Segments() {
		if seg.Name() != "MSH" {
			got = append(got, strings.NewReplacer(number, "$", s.Order.UserID.String(), "USER").Replace(seg.Raw()))
		}
	}
	require.Equal(t, []string{
		`PID|1||USER^^^ORDERS^PI||Roe \T\ Söhne^Ana^^^^^L||19840509|F||asian^asian^L|7 Elm Rd^^Mesa^AZ^85201^US^H||+14805550100^PRN^PH~^NET^Internet^ana@example.com|||||ACC 7||||other^other^L`,
		`NK1|1|Roe^Eva|GRD^Guardian^HL70063|^^Mesa|5^PRN^PH`,
		`PV1|1|O`,
		`IN1|1|P1|C9|Payor|1 Main^^Mesa|||G||||||||Roe^Ana|SEL|19840509||||||||||||||||||77`,
		`ORC|NW|$^ORDERS|||||||20260302120000+0000|||1234567893^Doe^Jo^^^^^^NPI^L`,
		`OBR|1|$^ORDERS||4598^Ferritin^L|S|||||||||||1234567893^Doe^Jo^^^^^^NPI^L`,
		`NTE|1|P|call first\.br\then write \F\ or \S\`,
		`NTE|2|P|PATIENT MUST FAST`,
		`DG1|1||D50.9^^I10|||W`,
		`DG1|2||R53.83^^I10|||W`,
		`OBX|1|CWE|FAST^Fasting?^L|1|Y^Yes^L||||||O||||||||||||||||||QST`,
		`OBX|2|NM|WT^Weight^L|2|61.5||||||O||||||||||||||||||QST`,
		`OBX|3|ST|9^^L|3|free||||||O||||||||||||||||||QST`,
		`SPM|1|KIT7`,
		`ORC|NW|$^ORDERS|||||||20260302120000+0000|||1234567893^Doe^Jo^^^^^^NPI^L`,
		`OBR|2|$^ORDERS||iron^Iron^L|S|||||||||||1234567893^Doe^Jo^^^^^^NPI^L`,
		`NTE|1|P|PATIENT MUST FAST`,
		`DG1|1||D50.9^^I10|||W`,
		`DG1|2||R53.83^^I10|||W`,
	}, got)
}

func TestSubmit_sendsAnORMMessageOfVersion231(t *testing.T) {
	b := newBench(t, func(o *hl7.Options) {
		o.Message, o.Version, o.Charset = hl7.ORM, "2.3.1", er7.Latin1
		o.Number = func(o orders.Order) string { return "N" + o.ID.String()[:8] }
		o.TestCode = func(m catalogue.Marker) er7.Code { return er7.Code{Code: "X" + m.Slug, System: "99N"} }
	})
	s := submission()
	s.Order.LabTest.Markers = nil
	s.Physician, s.Order.Physician = nil, &people.Physician{LastName: "Poe", NPI: "9"}
	b.submit(s)
	m := b.lab.sent[0]
	require.Equal(t, "ORM^O01^ORM_O01", m.Header().Field(9).Raw())
	require.Equal(t, "2.3.1", m.Header().Field(12).Text())
	require.Equal(t, "Roe & Söhne", m.Segment("PID").Field(5).Text())
	require.Contains(t, m.Segment("PID").Raw(), "S\xf6hne")
	require.Equal(t, "Xiron^^99N", m.Segment("OBR").Field(4).Raw())
	require.Equal(t, "R", m.Segment("OBR").Field(27).Component(6).Text())
	require.Equal(t, "Poe", m.Segment("OBR").Field(16).Person().Family)

	// Letters that the character set lacks are transliterated.
	for name, want := range map[string]string{"Łódź": "Lodz", "Nguyễn": "Nguyen", "O’Brien": "O'Brien", "李": "Li", "Søren": "Søren"} {
		b := newBench(t, func(o *hl7.Options) { o.Charset = er7.Latin1 })
		s := submission()
		s.Order.PatientDetails.LastName = &name
		b.submit(s)
		require.Equal(t, want, b.lab.sent[0].Segment("PID").Field(5).Component(1).Text())
	}
}

func TestSubmit_eachAnswerHasItsOutcome(t *testing.T) {
	for name, tt := range map[string]struct {
		answer string
		fault  error  // of the laboratory's connection
		sample string // NUMBER is ours
		kind   error
	}{
		"taken":                    {"MSA|AA|$ID", nil, "NUMBER", nil},
		"taken with its number":    {"MSA|AA|$ID\rORC|OK|x|LAB77\rOBR|1|x|LAB77", nil, "LAB77", nil},
		"received, no more":        {"MSA|CA|$ID", nil, "", nil},
		"no answer is foreseen":    {"", nil, "", nil},
		"refused":                  {"MSA|AE|$ID\rERR||PID^1^5|101^Required field missing|E", nil, "", healthlab.Invalid},
		"refused, as of old":       {"MSA|AE|$ID\rERR|PID^1^5^101", nil, "", healthlab.Invalid},
		"unable":                   {"MSA|AA|$ID\rORC|UA|x", nil, "", healthlab.Invalid},
		"unable, each test":        {"MSA|AA|$ID\rORC|UA|x\rORC|UA|x", nil, "", healthlab.Invalid},
		"unable, each test named":  {"MSA|AA|$ID\rORC|UA|x\rOBR|1|x||4598\rORC|UA|x\rOBR|2|x||iron", nil, "", healthlab.Invalid},
		"unable, one test":         {"MSA|AA|$ID\rORC|UA|x|LAB1\rORC|OK|x|LAB2", nil, "LAB2", nil},
		"unable, the test named":   {"MSA|AA|$ID\rORC|UA|x|LAB1\rOBR|1|x|LAB1|iron", nil, "LAB1", nil},
		"unable, one of its many":  {"MSA|AA|$ID\rORC|OK|x\rORC|OK|x\rORC|UA|x", nil, "NUMBER", nil},
		"unable and refused":       {"MSA|AE|$ID\rORC|UA|x\rORC|OK|x", nil, "", healthlab.Invalid},
		"its own fault":            {"MSA|AE|$ID\rERR|||207|E", nil, "", healthlab.Unavailable},
		"its own fault, as of old": {"MSA|AE|$ID\rERR|^^^207", nil, "", healthlab.Unavailable},
		"not now":                  {"MSA|AR|$ID", nil, "", healthlab.Unavailable},
		"neither":                  {"MSA|ZZ|$ID", nil, "", healthlab.Unavailable},
		"of another message":       {"MSA|AA|other", nil, "", healthlab.Unavailable},
		"away":                     {"", healthlab.Unavailable, "", healthlab.Unavailable},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			b.lab.answer = func(*er7.Message) (string, error) { return tt.answer, tt.fault }
			s := submission()
			for range 2 {
				got, err := b.back.Submit(t.Context(), s)
				if tt.kind != nil {
					require.ErrorIs(t, err, tt.kind)
					continue
				}
				require.NoError(t, err)
				if want := strings.Replace(tt.sample, "NUMBER", b.lab.sent[0].Segment("ORC").Field(2).Text(), 1); want != got.SampleID {
					require.Equal(t, want, got.SampleID)
				}
			}
			if errors.Is(tt.kind, healthlab.Unavailable) {
				require.Len(t, b.lab.sent, 2)
				require.Equal(t, b.lab.sent[0].Bytes(), b.lab.sent[1].Bytes(), "the same message again")
			} else {
				require.Len(t, b.lab.sent, 1, "never twice")
			}
		})
	}
	b := newBench(t, nil)
	s := submission()
	s.Stage = exchange.SubmitKit
	_, err := b.back.Submit(t.Context(), s)
	require.ErrorIs(t, err, healthlab.Invalid)

	b = newBench(t, func(o *hl7.Options) { o.Number = func(orders.Order) string { return "SAME" } })
	b.submit(submission())
	_, err = b.back.Submit(t.Context(), submission())
	require.ErrorIs(t, err, healthlab.Conflict)
}

func TestSubmit_refusedTestDoesNotHoldTheOrderOpen(t *testing.T) {
	for name, answer := range map[string]string{
		"by its place":  "MSA|AA|$ID\rORC|OK|x|LAB7\rORC|UA|x",
		"by its code":   "MSA|AA|$ID\rORC|UA|x|LAB7\rOBR|1|x|LAB7|iron^Iron^L",
		"not certainly": "MSA|AA|$ID\rORC|OK|x|LAB7\rORC|OK|x|LAB7\rORC|UA|x",
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			b.lab.answer = func(*er7.Message) (string, error) { return answer, nil }
			number := b.submit(submission())
			require.Equal(t, "AA", b.send(b.report(number, ana, ferrF, ferritin("9", "L", "F"))))
			want := []orders.Trigger{orders.FinalResult}
			if name == "not certainly" {
				want = []orders.Trigger{orders.PartialResult}
			}
			require.Equal(t, want, triggers(b.told()))
			require.Equal(t, "AA", b.send(b.report(number, ana, ferrF, ferritin("9", "L", "F"), ironF, iron)))
			require.Len(t, b.told()[len(b.told())-1].Results.Results, 2, "a result of the refused test is taken all the same")
		})
	}
}

// One number of the laboratory for several orders identifies none of them; the placer's number does.
func TestSubmit_accessionOfTwoOrdersIdentifiesNeither(t *testing.T) {
	team := healthlab.TeamID{UUID: uuid.New()}
	b := newBench(t, func(o *hl7.Options) { o.ReviewTeam = team })
	b.lab.answer = func(*er7.Message) (string, error) { return "MSA|AA|$ID\rORC|OK|x|ACC77", nil }
	var numbers []string
	for i := range 3 {
		s := submission()
		for range 2 {
			got, err := b.back.Submit(t.Context(), s)
			require.NoError(t, err)
			number := b.lab.sent[len(b.lab.sent)-1].Segment("ORC").Field(2).Component(1).Text()
			want := number
			if i == 0 {
				want = "ACC77"
			}
			require.Equal(t, want, got.SampleID)
		}
		require.Len(t, b.lab.sent, i+1, "each order is sent once")
		numbers = append(numbers, b.lab.sent[i].Segment("ORC").Field(2).Component(1).Text())
	}
	at := func(number string) []byte {
		return b.report(number, ana, strings.Replace(ferrF, "F1^LIS", "ACC77", 1), ferritin("9", "L", "F"))
	}
	for i, number := range numbers {
		require.Equal(t, "AA", b.send(at(number)))
		told := b.told()
		require.Len(t, told, i+1)
		require.False(t, told[i].Order.IsZero())
		require.Empty(t, told[i].ForeignNumbers)
	}
	require.Equal(t, "AA", b.send(at("")))
	told := b.told()
	require.Len(t, told, len(numbers)+1)
	alone := told[len(numbers)]
	require.True(t, alone.Order.IsZero())
	require.Equal(t, []string{"ACC77"}, alone.ForeignNumbers)
}

// A laboratory that does not say which character set it writes in writes in the one that
// the options name, answers included.
func TestAnswer_usesTheLabsCharacterSet(t *testing.T) {
	b := newBench(t, func(o *hl7.Options) { o.Charset = er7.Latin1 })
	b.lab.answer = func(*er7.Message) (string, error) { return "MSA|AA|$ID\rPID|1||||S\xf6hne\rORC|OK|x|LAB77", nil }
	s := submission()
	got, err := b.back.Submit(t.Context(), s)
	require.NoError(t, err)
	require.Equal(t, "LAB77", got.SampleID)
	require.NoError(t, b.back.Cancel(t.Context(), s.Order.TeamID, s.Order.ID))
	require.Len(t, b.lab.sent, 2)

	// One that is malformed is told which message it was.
	answer, err := er7.Parse(b.back.Handle(t.Context(), []byte("MSH|^~\\&|LIS|S\xf6hne|||202603031000||ORU^R01|R1|P|2.5.1\rx"), nil), nil)
	require.NoError(t, err)
	require.Equal(t, "AE R1", answer.Segment("MSA").Field(1).Text()+" "+answer.Segment("MSA").Field(2).Text())
}

func TestCancel_eachAnswerHasItsOutcome(t *testing.T) {
	b := newBench(t, nil)
	s := submission()
	number := b.submit(s)
	id, team := s.Order.ID, s.Order.TeamID
	for answer, want := range map[string]error{"MSA|AE|$ID": healthlab.Precondition, "MSA|AR|$ID": healthlab.Unavailable, "MSA|AE|$ID\rERR|||204": nil} {
		b := newBench(t, nil)
		b.submit(s)
		b.lab.answer = func(*er7.Message) (string, error) { return answer, nil }
		if err := b.back.Cancel(t.Context(), team, id); want == nil {
			require.NoError(t, err)
		} else {
			require.ErrorIs(t, err, want)
		}
	}
	require.NoError(t, b.back.Cancel(t.Context(), healthlab.TeamID{UUID: uuid.New()}, id), "another team's order is none of its")
	require.Len(t, b.lab.sent, 1)
	require.NoError(t, b.back.Cancel(t.Context(), team, id))
	require.NoError(t, b.back.Cancel(t.Context(), team, id))
	require.Len(t, b.lab.sent, 2)
	m := b.lab.sent[1]
	require.NotEqual(t, b.lab.sent[0].ControlID(), m.ControlID())
	require.Equal(t, "Roe & Söhne", m.Segment("PID").Field(5).Text())
	require.Equal(t, "ORC|CA|"+number+"^ORDERS|"+number, m.Segment("ORC").Raw())
	require.Equal(t, "4598^Ferritin^L", m.Segment("OBR").Field(4).Raw())
	_, err := b.back.Submit(t.Context(), s)
	require.ErrorIs(t, err, healthlab.Invalid, "it is not placed again")
}

func TestInsuranceOf_mapsCoverageToInsurance(t *testing.T) {
	in := hl7.InsuranceOf(people.Coverage{Record: people.InsuranceRecord{
		MemberID: "77", PayorCode: "P1", Relationship: people.RelationSpouse, GroupID: ptr("G"),
		Insured: people.PersonDetails{FirstName: "Bo", LastName: "Roe", DOB: healthlab.Date{Year: 1980, Month: 1, Day: 2}},
		Company: people.CompanyDetails{Name: "Payor", Address: people.Address{FirstLine: "1 Pay Rd", City: "Reno", State: "NV", Zip: "89501", Country: "US"}},
	}})
	require.Equal(t, hl7.Insurance{
		PlanID: "P1", CompanyID: "P1", CompanyName: "Payor", GroupNumber: "G", PolicyNumber: "77", Relationship: "SPO",
		CompanyAddress: er7.Address{Street: "1 Pay Rd", City: "Reno", State: "NV", Zip: "89501", Country: "US"},
		Insured:        er7.Name{Family: "Roe", Given: "Bo"}, InsuredDOB: healthlab.Date{Year: 1980, Month: 1, Day: 2},
	}, in)
	require.Equal(t, "OTH", hl7.InsuranceOf(people.Coverage{}).Relationship)
}
