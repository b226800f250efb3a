package httpapi_test

import (
	"context"
	"encoding/json"
	"os"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/critical"
	"github.com/healthlab-dev/healthlab/orders/documents"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/visits"
)

// planted are the markers of the fields of docs/disclosure.md. A marker is found in any
// letter case; blanks are underscores.
var planted = map[string]string{
	"patient's first name": "Xanthippe", "patient's last name": "Quillfeather", "patient's date of birth": "1971-11-23",
	"patient's phone number": "4155550137", "patient's e-mail address": "mail-marker@example.com",
	"race": "pacific_islander_or_hawaiian", "ethnicity": "ashkenazi_jewish", "sexual orientation": "lesbian_gay_or_homosexual", "gender identity": "genderqueer",
	"patient's street": "31_Marmalade_Row", "access notes of the patient's address": "keypad_code_9931", "street of the visit": "77_Persimmon_Ct",
	"notes of the appointment": "beware_of_the_heron", "comment for the laboratory": "comment-marker", "physician's last name": "Vanterpool", "physician's e-mail address": "physician-marker@example.com",
	"answer at order entry": "answer-marker", "result": "finding-marker",
}

// recipients records what leaves the service, by the column of docs/disclosure.md.
type recipients struct {
	mu   sync.Mutex
	text map[string]string
}

func (r *recipients) add(column string, v any) {
	b, err := json.Marshal(v)
	if err != nil {
		panic(err)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.text[column] += strings.ToLower(strings.ReplaceAll(string(b), " ", "_"))
}

// Print records all of a document.
func (r *recipients) Print(_ context.Context, d documents.Document) ([]byte, error) {
	r.add(map[documents.DocumentKind]string{documents.RequisitionForm: "requisition", documents.SpecimenLabels: "labels", documents.ResultsReport: "report"}[d.Kind], d)
	return []byte("%PDF-1.7 " + string(d.Kind) + " "), nil
}

// Send records a message to a patient.
func (r *recipients) Send(_ context.Context, m orders.PatientMessage) error {
	r.add("message", m)
	return nil
}

// recordedLab records what the laboratory and its appointment providers receive.
type recordedLab struct {
	*busyLab
	to *recipients
}

func (l recordedLab) Submit(_ context.Context, s exchange.Submission) (exchange.Accepted, error) {
	l.to.add("lab order", s)
	return exchange.Accepted{SampleID: "S-" + s.Order.ID.String()}, nil
}

func (l recordedLab) BookVisit(ctx context.Context, b visits.Booking) (visits.Booked, error) {
	l.to.add(map[appointment.Type]string{appointment.Phlebotomy: "home visit", appointment.PatientServiceCenter: "center visit"}[b.Type], b)
	return l.busyLab.BookVisit(ctx, b)
}

// recordedStore records the events of orders.
type recordedStore struct {
	orders.Store
	orders.VisitStore
	to *recipients
}

func (s recordedStore) Update(ctx context.Context, team healthlab.TeamID, id orders.OrderID, change orders.Change) (orders.Record, error) {
	return s.Store.Update(ctx, team, id, func(r *orders.Record) ([]healthlab.Event, error) {
		events, err := change(r)
		for _, e := range events {
			column := "order"
			switch {
			case strings.HasPrefix(e.Type, "labtest.appointment."):
				column = "appointment"
			}
			s.to.add(column, e.Data)
		}
		return events, err
	})
}

// Every document, message, event and log line has the fields that docs/disclosure.md
// marks, and no other of them.
func TestDisclosure_messagesContainExactlyTheDocumentedFields(t *testing.T) {
	to := &recipients{text: map[string]string{}}
	store := memory.New(&memory.Options{UsersElsewhere: true})
	c := remade(t, func(x *shop) {
		x.lab = recordedLab{newBusyLab(), to}
		x.store = recordedStore{store.Orders(), store.Orders().(orders.VisitStore), to}
		x.options.Messenger, x.printer = to, to
		questions := x.book.Markers[0].AOE
		questions.Questions = append(questions.Questions, catalogue.Question{ID: 5000000090, Code: "MEDS", Value: "Which medicines?", Type: catalogue.TextQuestion, Sequence: 2})
	})
	p := planted
	words := func(field string) string { return strings.ReplaceAll(p[field], "_", " ") }
	place := func(test string) orders.Order {
		request := c.request(test, object{
			"patient_details": object{"first_name": p["patient's first name"], "last_name": p["patient's last name"], "dob": p["patient's date of birth"], "gender": "female",
				"phone_number": "+1" + p["patient's phone number"], "email": p["patient's e-mail address"], "race": p["race"], "ethnicity": p["ethnicity"],
				"sexual_orientation": p["sexual orientation"], "gender_identity": p["gender identity"]},
			"patient_address": object{"first_line": words("patient's street"), "city": "Mesa", "state": "AZ", "zip": "85201", "country": "US", "access_notes": words("access notes of the patient's address")},
			"clinical_notes":  p["comment for the laboratory"],
			"physician":       object{"first_name": "Cy", "last_name": p["physician's last name"], "npi": "1234567893", "email": p["physician's e-mail address"], "licensed_states": []string{"AZ"}},
		})
		if answers, ok := request["aoe_answers"].([]object); ok {
			request["aoe_answers"] = append(answers, object{"marker_id": 1001, "question_id": 5000000090, "answer": p["answer at order entry"]})
		}
		return c.order("POST", "/v3/order", request)
	}
	book := map[string]object{
		"psc":        {"booking_key": c.keys("psc")[0], "appointment_notes": words("notes of the appointment")},
		"phlebotomy": {"booking_key": slotKeys(t, c.post("/v3/order/phlebotomy/appointment/availability", homeAddress(object{"first_line": words("street of the visit")}), 200))[0], "appointment_notes": words("notes of the appointment")},
	}
	for kind, test := range map[string]string{"psc": walkInTest, "phlebotomy": atHomeTest} {
		o := place(test)
		path := "/v3/order/" + o.ID.String()
		_, err := c.config.Exchange.SubmitDue(t.Context())
		require.NoError(t, err)
		reply := c.post(path+"/"+kind+"/appointment/book", book[kind], 200)
		to.add("appointment", json.RawMessage(reply.Body))
		c.report(o, orders.FinalResult, "1"+kind, labresult.Result{Name: "Glucose", Result: p["result"], Type: labresult.Comment, Interpretation: labresult.Critical, ProviderID: ptr("N001-1")})
		for _, document := range []string{"/requisition/pdf", "/labels/pdf?collection_date=2026-03-04T08:30:00Z", "/result/pdf"} {
			c.get(path+document, 200)
		}
		to.add("order", json.RawMessage(c.get(path, 200).Body))
		_, err = c.config.Orders.PatientMessages().SendDue(t.Context())
		require.NoError(t, err)
	}
	loops, err := store.CriticalResults().List(t.Context(), critical.Query{Team: team, Limit: 10})
	require.NoError(t, err)
	for _, l := range loops.Loops {
		m, err := store.WebhookLog().Message(t.Context(), team, uuid.NewSHA1(l.ID.UUID, []byte("event 1")))
		require.NoError(t, err)
		require.Equal(t, critical.EventCritical, m.Type)
		to.add("notice", json.RawMessage(m.Body))
	}
	to.add("logs", c.logs.Take())

	text, err := os.ReadFile("../../docs/disclosure.md")
	require.NoError(t, err)
	var columns []string
	rows := 0
	for line := range strings.Lines(string(text)) {
		cells := strings.Split(strings.Trim(strings.TrimSpace(line), "|"), "|")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		switch {
		case cells[0] == "field":
			columns = cells
		case columns != nil && p[cells[0]] != "":
			rows++
			for i, column := range columns[1:] {
				if column != "logs" {
					require.NotEmpty(t, to.text[column], "nothing was recorded of %s", column)
				}
				require.Equal(t, cells[i+1] == "x", strings.Contains(to.text[column], strings.ToLower(p[cells[0]])), "%s on %s", cells[0], column)
			}
		}
	}
	require.Len(t, p, rows, "every marker has a row")
}
