package pdfdoc_test

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// What result and range do not decide is unknown in the API, in lists, in events and on paper.
func TestUndecidedResult_isUnknownInAPIEventAndPrint(t *testing.T) {
	const n, a, u = labresult.Normal, labresult.Abnormal, labresult.UnknownInterpretation
	result := func(text, bounds string) labresult.Result {
		r := labresult.Result{Name: "Ferritin", Slug: "ferritin", Result: text}
		if bounds != "" {
			r.ReferenceRange = &bounds
		}
		return r
	}
	inside := result("20", "13-150")
	reader := newReader(t)
	for name, c := range map[string]struct {
		results []labresult.Result
		each    []labresult.Interpretation
		order   labresult.Interpretation
		flag    string
	}{
		"below the range":     {[]labresult.Result{result("<5", "13-150")}, []labresult.Interpretation{a}, a, "Ferritin <5 Low 13-150"},
		"over a bound":        {[]labresult.Result{result(">5", "13-150")}, []labresult.Interpretation{u}, u, "Ferritin >5 Unknown 13-150"},
		"without a range":     {[]labresult.Result{result("3", "")}, []labresult.Interpretation{u}, u, "Ferritin 3 Unknown"},
		"a note":              {[]labresult.Result{result("see note", "13-150")}, []labresult.Interpretation{u}, u, "Ferritin see note Unknown 13-150"},
		"normal":              {[]labresult.Result{inside}, []labresult.Interpretation{n}, n, "Ferritin 20 13-150"},
		"normal and a note":   {[]labresult.Result{inside, result("see note", "")}, []labresult.Interpretation{n, u}, u, "Ferritin see note Unknown"},
		"abnormal and a note": {[]labresult.Result{result("<5", "13-150"), result("see note", "")}, []labresult.Interpretation{a, u}, a, "Ferritin see note Unknown"},
	} {
		t.Run(name, func(t *testing.T) {
			d := newFixture(t, printer(t), orders.Letter)
			o, _ := record(t)
			o.Results, o.Interpretation = nil, nil
			id := d.keep(t, o, orders.LabAccepted)
			before := len(*d.ids)
			require.NoError(t, d.labs.Receive(t.Context(), exchange.Message{ID: "1", Team: team, Order: id, SampleID: *o.SampleID, On: orders.FinalResult,
				At: noon, Patient: orders.ReportedAs(o.PatientDetails), Results: &labresult.Report{Results: c.results}}))

			handler := httpapi.Handler(httpapi.Config{
				Authenticate: func(*http.Request) (httpapi.Caller, error) { return httpapi.Caller{Team: team}, nil },
				Parts:        (&httpapi.Services{Laboratory: httpapi.Laboratory{Orders: d.orders, Documents: d.Service}}).Parts(),
			})
			get := func(path string) []byte {
				w := httptest.NewRecorder()
				handler.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, nil))
				require.Equal(t, http.StatusOK, w.Code, path)
				return w.Body.Bytes()
			}
			var results struct {
				Metadata, Results json.RawMessage
			}
			require.NoError(t, json.Unmarshal(get("/v3/order/"+id.String()+"/result"), &results))
			var head interpreted
			require.NoError(t, json.Unmarshal(results.Metadata, &head))
			require.Equal(t, c.order, head.Interpretation)
			var each []interpreted
			require.NoError(t, json.Unmarshal(results.Results, &each))
			for i, want := range c.each {
				require.Equal(t, want, each[i].Interpretation)
			}
			var one interpreted
			require.NoError(t, json.Unmarshal(get("/v3/order/"+id.String()), &one))
			require.Equal(t, c.order, one.Interpretation)
			for _, filter := range labresult.Interpretations() {
				var page struct{ Orders []interpreted }
				require.NoError(t, json.Unmarshal(get("/v3/orders?interpretation="+string(filter)), &page))
				if filter != c.order {
					require.Empty(t, page.Orders, filter)
					continue
				}
				require.Equal(t, []interpreted{{c.order}}, page.Orders)
			}

			events := 0
			for _, event := range (*d.ids)[before:] {
				m, err := d.store.WebhookLog().Message(t.Context(), team, event)
				if err != nil {
					continue
				}
				var body struct{ Data interpreted }
				require.NoError(t, json.Unmarshal(m.Body, &body))
				require.Equal(t, c.order, body.Data.Interpretation)
				events++
			}
			require.Equal(t, 1, events)

			reader.says(t, get("/v3/order/"+id.String()+"/result/pdf"), c.flag)
		})
	}
}

// interpreted is anything that has an interpretation.
type interpreted struct {
	Interpretation labresult.Interpretation
}

func (d *fixture) newID() uuid.UUID {
	*d.ids = append(*d.ids, uuid.New())
	return (*d.ids)[len(*d.ids)-1]
}
