package fhirlab_test

import (
	"context"
	"encoding/json"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/fhir/fhirlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/people"
)

type object = map[string]any

// laboratory is the FHIR server of a laboratory: it takes transactions.
type laboratory struct {
	mu      sync.Mutex
	bundles []object
	refuse  error
}

func (l *laboratory) Send(ctx context.Context, bundle []byte) ([]byte, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if l.refuse != nil {
		return nil, l.refuse
	}
	var b object
	if err := json.Unmarshal(bundle, &b); err != nil {
		return nil, err
	}
	l.bundles = append(l.bundles, b)
	var entries []any
	for _, r := range resources(b, "ServiceRequest") {
		entries = append(entries, object{"response": object{"status": "201 Created", "location": "https://lab.example.com/fhir/ServiceRequest/at-" + number(r) + "/_history/1"}})
	}
	return json.Marshal(object{"resourceType": "Bundle", "type": "transaction-response", "entry": entries})
}

func (l *laboratory) last() object {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.bundles[len(l.bundles)-1]
}

func resources(bundle object, kind string) (out []object) {
	for _, e := range bundle["entry"].([]any) {
		if r := e.(object)["resource"].(object); r["resourceType"] == kind {
			out = append(out, r)
		}
	}
	return out
}

func number(request object) string {
	return request["identifier"].([]any)[0].(object)["value"].(string)
}

const labCatalogue = `{"labs": [{"id": 1, "slug": "northlab", "name": "Northlab", "collection_methods": ["walk_in_test"], "sample_types": ["serum"]}],
	"markers":      [{"id": 11, "lab_id": 1, "name": "Ferritin", "slug": "ferritin", "provider_id": "4598", "unit": "ug/L"},
	                 {"id": 12, "lab_id": 1, "name": "Iron", "slug": "iron", "provider_id": "7573", "unit": "ug/dL"}],
	"lab_tests":    [{"id": "7b0a3c1e-0000-4000-8000-000000000001", "name": "Iron status", "method": "walk_in_test",
	                  "status": "active", "lab_id": 1, "marker_ids": [11, 12], "price": 39.50}],
	"lab_accounts": [{"lab": "northlab", "status": "active", "allowed_billing": {"client_bill": ["AZ"]}}]}`

// bench is a laboratory behind an orders.Service.
type bench struct {
	t       testing.TB
	lab     *laboratory
	back    *fhirlab.Backend
	team    healthlab.TeamID
	service *orders.Service
	labs    *exchange.Service
	reviews exchange.ReviewStore
	files   map[string][]byte
}

func newBench(t testing.TB) *bench {
	store := memory.New(&memory.Options{UsersElsewhere: true})
	b := &bench{t: t, lab: &laboratory{}, team: healthlab.TeamID{UUID: uuid.New()}, reviews: store.Reviews(), files: map[string][]byte{}}
	quiet := slog.New(slog.DiscardHandler)
	b.back = fhirlab.New(b.lab, store.LabJournal(), &fhirlab.Options{LabSlug: "northlab", ReviewTeam: b.team, Log: quiet,
		Reports: func(_ context.Context, _ healthlab.TeamID, order orders.OrderID, id string, pdf []byte) error {
			b.files[order.String()+" "+id] = pdf
			return nil
		},
	})
	source, err := catalogue.ReadStaticCatalog(strings.NewReader(labCatalogue))
	require.NoError(t, err)
	anyUser := people.UsersFunc(func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil })
	b.service, err = orders.New(store.Orders(), anyUser, source, &orders.Options{Environment: healthlab.Production, Background: orders.Background{Log: quiet}})
	require.NoError(t, err)
	b.labs, err = exchange.New(b.service, store.Orders(), b.reviews, b.back, nil)
	require.NoError(t, err)
	return b
}

var anaBorn = healthlab.Date{Year: 1984, Month: time.May, Day: 9}

// place places and submits an order, and returns it with its number.
func (b *bench) place(user healthlab.UserID, p people.PatientDetailsInput) (orders.OrderID, string) {
	b.t.Helper()
	p.PhoneNumber, p.Email = "+15550100", "a@example.com"
	o, err := b.service.Place(b.t.Context(), b.team, orders.PlaceRequest{
		UserID: user, OrderSet: &catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{{UUID: uuid.MustParse("7b0a3c1e-0000-4000-8000-000000000001")}}},
		PatientDetails: p,
		PatientAddress: people.PatientAddressInput{FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201", Country: "US"},
	})
	require.NoError(b.t, err)
	_, err = b.labs.SubmitDue(b.t.Context())
	require.NoError(b.t, err)
	request := resources(b.lab.last(), "ServiceRequest")[0]
	return o.ID, request["requisition"].(object)["value"].(string)
}

func (b *bench) ana() (orders.OrderID, string) {
	b.t.Helper()
	return b.place(healthlab.UserID{UUID: uuid.New()}, people.PatientDetailsInput{FirstName: "Ana", LastName: "Roe", DOB: anaBorn, Gender: people.Female})
}

func (b *bench) send(v any) error {
	b.t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(b.t, err)
	if err := b.back.Receive(b.t.Context(), raw); err != nil {
		return err
	}
	b.pull()
	return nil
}

func (b *bench) pull() {
	b.t.Helper()
	for {
		n, err := b.labs.PullUpdates(b.t.Context())
		require.NoError(b.t, err)
		if n == 0 {
			return
		}
	}
}

// resultTexts are the results of an order, one a line; empty for none.
func (b *bench) resultTexts(id orders.OrderID) string {
	b.t.Helper()
	r, err := b.service.Results(b.t.Context(), b.team, id)
	if healthlab.KindOf(err) == healthlab.NotFound {
		return ""
	}
	require.NoError(b.t, err)
	var out strings.Builder
	for _, one := range r.Results {
		out.WriteString(one.Result + "\n")
	}
	return out.String()
}

// waiting are the results under review, in the queue and in the journal, with the codes of the decisions.
func (b *bench) waiting() string {
	b.t.Helper()
	var out strings.Builder
	q := exchange.ResultQuery{Team: b.team, Status: exchange.MatchPendingOps, Limit: 100}
	for {
		page, err := b.reviews.Results(b.t.Context(), q)
		require.NoError(b.t, err)
		for i := range page.Results {
			out.WriteString(string(page.Results[i].DecisionCode) + "\n")
			for _, one := range page.Results[i].Message.Results.Results {
				out.WriteString(one.Result + "\n")
			}
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			break
		}
	}
	list, err := b.back.Review(b.t.Context(), 0, 10_000)
	require.NoError(b.t, err)
	for _, d := range list {
		out.WriteString(d.Review + "\n" + string(d.Raw) + "\n")
	}
	return out.String()
}

func ref(at string) object { return object{"reference": at} }

func entry(r object) object {
	return object{"fullUrl": "https://lab.example.com/fhir/" + r["resourceType"].(string) + "/" + r["id"].(string), "resource": r}
}

func bundle(kind string, all ...object) object {
	var entries []any
	for _, r := range all {
		entries = append(entries, entry(r))
	}
	return object{"resourceType": "Bundle", "type": kind, "entry": entries}
}

func patient(id, family string, given ...string) object {
	return object{"resourceType": "Patient", "id": id, "name": []any{object{"family": family, "given": given}}, "birthDate": "1984-05-09", "gender": "female"}
}

func observed(id, code, value string) object {
	return object{
		"resourceType": "Observation", "id": id, "status": "final", "subject": ref("Patient/p"), "effectiveDateTime": "2026-03-02T09:30:00-07:00",
		"code": object{"coding": []any{object{"system": "urn:healthlab:test", "code": code, "display": "Test " + code}}}, "valueString": value,
	}
}

func reported(id, order string, results ...string) object {
	var list []any
	for _, r := range results {
		list = append(list, ref("Observation/"+r))
	}
	r := object{
		"resourceType": "DiagnosticReport", "id": id, "status": "final", "subject": ref("Patient/p"), "issued": "2026-03-03T10:00:00Z",
		"code": object{"text": "Iron status"}, "result": list,
	}
	if order != "" {
		r["basedOn"] = []any{object{"identifier": object{"system": "urn:healthlab:order", "value": order}}}
	}
	return r
}

func encode(t testing.TB, v any) []byte {
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	return raw
}

func jsonNumber(text string) json.Number { return json.Number(text) }
