package hl7_test

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
	"github.com/healthlab-dev/healthlab/orders/people"
)

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// labSystem is a laboratory's system on the other side: it takes orders and answers.
type labSystem struct {
	mu     sync.Mutex
	sent   []*er7.Message // what it got
	answer func(m *er7.Message) (string, error)
}

func (l *labSystem) Send(ctx context.Context, message []byte, accept func([]byte) bool) ([]byte, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	m, err := er7.Parse(message, nil)
	if err != nil {
		return nil, err
	}
	l.sent = append(l.sent, m)
	text := "MSA|AA|" + m.ControlID()
	if l.answer != nil {
		if text, err = l.answer(m); err != nil {
			return nil, err
		}
	}
	if text == "" {
		return nil, nil
	}
	answer := []byte("MSH|^~\\&|LIS|NORTH|||20260302120000||ACK|A1|P|2.5.1\r" + strings.ReplaceAll(text, "$ID", m.ControlID()))
	if !accept(answer) {
		return nil, healthlab.Unavailable
	}
	return answer, nil
}

// bench is a backend and the laboratory on its other side.
type bench struct {
	t    testing.TB
	lab  *labSystem
	back *hl7.Backend
	now  time.Time
	n    int
	mu   sync.Mutex
}

func newBench(t testing.TB, edit func(*hl7.Options)) *bench {
	return newBenchOn(t, memory.New(&memory.Options{UsersElsewhere: true}).LabJournal(), edit)
}

func newBenchOn(t testing.TB, j labjournal.Store, edit func(*hl7.Options)) *bench {
	b := &bench{t: t, lab: &labSystem{}, now: noon}
	o := &hl7.Options{
		Us: hl7.Party{Application: "ORDERS", Facility: "CLINIC"}, Lab: hl7.Party{Application: "LIS", Facility: "NORTH"},
		Now: func() time.Time {
			b.mu.Lock()
			defer b.mu.Unlock()
			b.now = b.now.Add(time.Second)
			return b.now
		},
	}
	if edit != nil {
		edit(o)
	}
	b.back = hl7.New(b.lab, j, o)
	return b
}

func ptr[T any](v T) *T { return &v }

// ferritin and iron, for Ana.
func submission() exchange.Submission {
	return exchange.Submission{
		Stage: exchange.SubmitRequisition, AccountNumber: "ACC 7", Comment: "call first\nthen write | or ^",
		Physician: &people.PhysicianInput{FirstName: "Jo", LastName: "Doe", NPI: "1234567893"},
		Order: orders.Order{
			ID: orders.OrderID{UUID: uuid.New()}, TeamID: healthlab.TeamID{UUID: uuid.New()}, UserID: healthlab.UserID{UUID: uuid.New()},
			CreatedAt: healthlab.At(noon), ICDCodes: []string{"D50.9", "R53.83"}, Details: orders.Details{Type: catalogue.WalkInTest},
			PatientDetails: &people.PatientDetails{FirstName: ptr("Ana"), LastName: ptr("Roe & Söhne"), DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9},
				Gender: people.Female, PhoneNumber: ptr("+14805550100"), Email: ptr("ana@example.com"), Race: ptr(people.Race("asian")), Ethnicity: ptr(people.Ethnicity("other"))},
			PatientAddress: &people.PatientAddress{FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201", Country: "US"},
			LabTest: catalogue.LabTest{Name: "Iron", Slug: "iron", Fasting: true, Markers: []catalogue.Marker{
				{ID: 11, Name: "Ferritin", Slug: "ferritin", ProviderID: ptr("4598"), AOE: &catalogue.AOE{Questions: []catalogue.Question{
					{ID: 1, Code: "FAST", Value: "Fasting?", Type: catalogue.ChoiceQuestion, Answers: []catalogue.Answer{{Code: "Y", Value: "Yes"}}},
					{ID: 2, Code: "WT", Value: "Weight", Type: catalogue.NumericQuestion}}}},
				{ID: 12, Name: "Iron", Slug: "iron"},
				{ID: 13, Name: "Ratio", Slug: "ratio", IsOrderable: ptr(false)},
			}},
		},
		AOEAnswers: []catalogue.AOEAnswer{{MarkerID: 11, QuestionID: 1, Answer: "Y"}, {MarkerID: 11, QuestionID: 2, Answer: "61.5"}, {MarkerID: 11, QuestionID: 9, Answer: "free"}},
	}
}

func (b *bench) submit(s exchange.Submission) string {
	b.t.Helper()
	_, err := b.back.Submit(b.t.Context(), s)
	require.NoError(b.t, err)
	return b.lab.sent[len(b.lab.sent)-1].Segment("ORC").Field(2).Text()
}

func (b *bench) report(number string, segments ...string) []byte {
	b.n++
	lines := append([]string{fmt.Sprintf("MSH|^~\\&|LIS|NORTH|ORDERS|CLINIC|202603031%03d||ORU^R01^ORU_R01|R%d|P|2.5.1", b.n, b.n)}, segments...)
	return []byte(strings.ReplaceAll(strings.Join(lines, "\r"), "$", number))
}

// send has the laboratory send a message, and returns the code that it is answered with.
func (b *bench) send(raw []byte) string {
	b.t.Helper()
	answer := b.back.Handle(b.t.Context(), raw, nil)
	m, err := er7.Parse(answer, nil)
	require.NoError(b.t, err)
	require.Equal(b.t, "ACK", m.Header().Field(9).Text())
	return m.Segment("MSA").Field(1).Text()
}

func (b *bench) told() []exchange.Message {
	b.t.Helper()
	batch, err := b.back.Updates(b.t.Context(), "", 1000)
	require.NoError(b.t, err)
	return batch.Messages
}

func triggers(ms []exchange.Message) []orders.Trigger {
	var out []orders.Trigger
	for _, m := range ms {
		out = append(out, m.On)
	}
	return out
}

func values(m exchange.Message) map[string]string {
	out := map[string]string{}
	for _, r := range m.Results.Results {
		out[r.Name] = r.Result
	}
	return out
}

const (
	ana   = `PID|1||77^^^LIS||ROE \T\ SOHNE^ANA||19840509|F`
	ferrP = "OBR|1|$^ORDERS|F1^LIS|4598^Ferritin^L|||202603021200-0700|||||||||1234567893^Doe^Jo||||||202603030900-0700|||P"
	ferrF = "OBR|1|$^ORDERS|F1^LIS|4598^Ferritin^L|||202603021200-0700|||||||||1234567893^Doe^Jo||||||202603031000-0700|||F"
	ferrC = "OBR|1|$^ORDERS|F1^LIS|4598^Ferritin^L|||202603021200-0700|||||||||1234567893^Doe^Jo||||||202603041000-0700|||C"
	ironF = "OBR|2|$^ORDERS|F1^LIS|iron^Iron^L|||202603021200-0700|||||||||1234567893^Doe^Jo||||||202603031000-0700|||F"
	iron  = "OBX|1|NM|2498-4^Iron^LN||90|ug/dL|60-170|N|||F"
)

func ferritin(value, flag, status string) string {
	return "OBX|1|NM|2276-4^Ferritin^LN^ferr^Ferritin^L||" + value + "|ug/L^ug/L^UCUM|13-150|" + flag + "|||" + status + "|||202603021230-0700|||||||||North Lab"
}

func TestBackend_passesTheLabBackendSuite(t *testing.T) {
	orderstest.RunLabBackend(t, func(t testing.TB) orderstest.LabHarness {
		b := newBench(t, func(o *hl7.Options) {
			o.Statuses = map[string]orders.Trigger{"KS": orders.KitShipped, "KD": orders.KitDelivered}
		})
		type job struct {
			order *er7.Message
			step  int
		}
		jobs := map[string]*job{}
		var line []string
		return orderstest.LabHarness{Lab: b.back, Pass: func() {
			for _, m := range b.lab.sent {
				number := m.Segment("ORC").Field(2).Text()
				switch {
				case m.Segment("ORC").Field(1).Text() == "CA":
					jobs[number].step = 99
				case jobs[number] == nil:
					jobs[number] = &job{order: m}
					line = append(line, number)
				}
			}
			for _, number := range line {
				j := jobs[number]
				status := func(code string) string {
					return strings.Replace(string(b.report(number, j.order.Segment("PID").Raw(), "ORC|SC|$|F1||"+code)), "ORU^R01^ORU_R01", "ORM^O01", 1)
				}
				pid, obr := j.order.Segment("PID").Raw(), "OBR|1|$|F1|"+j.order.Segment("OBR").Field(4).Raw()+"|||20260302|||||||||||||||20260303|||"
				switch j.step++; j.step {
				case 1:
					require.Equal(t, "AA", b.send([]byte(status("KS"))))
				case 2:
					require.Equal(t, "AA", b.send([]byte(status("KD"))))
				case 3:
					require.Equal(t, "AA", b.send(b.report(number, pid, obr+"P", ferritin("9", "L", "P"))))
				case 4:
					require.Equal(t, "AA", b.send(b.report(number, pid, obr+"F", ferritin("9", "L", "F"))))
				}
			}
		}}
	})
}
