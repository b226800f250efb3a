package orderstest

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// asJSON returns a record as indented JSON, without NextEventID.
func asJSON(t testing.TB, r orders.Record) string {
	t.Helper()
	r.NextEventID = 0
	b, err := json.MarshalIndent(r, "", " ")
	require.NoError(t, err)
	return string(b)
}

// storeVariedOrders stores a small set of different orders for lists. The id of each order is derived from its
// name.
func storeVariedOrders(t *testing.T, s *ordersT) {
	t.Helper()
	hour := func(n int) healthlab.Time { return healthlab.At(noon.Add(time.Duration(n) * time.Hour)) }
	patient := func(first, last, dob string) *people.PatientDetails {
		day, err := healthlab.ParseDate(dob)
		require.NoError(t, err)
		p := &people.PatientDetails{DOB: day, Gender: people.Female}
		if first != "" {
			p.FirstName = &first
		}
		if last != "" {
			p.LastName = &last
		}
		return p
	}
	for i, o := range []struct {
		name, team string
		patient    *people.PatientDetails
		receiver   string
		shipping   bool
		method     catalogue.CollectionMethod
		then       []orders.Trigger
		read       labresult.Interpretation
		activate   string
	}{
		{"ana", "a", patient("Ana", "Roe", "1984-05-09"), "Ana Roe", false, catalogue.WalkInTest, nil, "", ""},
		{"bo", "a", patient("Bo", "adams", "1990-01-02"), "Bo A", false, catalogue.WalkInTest, []orders.Trigger{orders.LabAccepted}, labresult.Normal, "2026-03-02"},
		{"cy", "a", patient("Cy", "Roe", "1984-11-30"), "", false, catalogue.AtHomePhlebotomy, []orders.Trigger{orders.CancelRequested}, labresult.Critical, "2026-03-03"},
		{"kit", "a", nil, "Front Desk", true, catalogue.Testkit, []orders.Trigger{orders.PatientAwaited}, "", "2026-03-01"},
		{"anonymous", "a", patient("", "", "1984-05-10"), "100% _Desk", false, catalogue.OnSiteCollection, []orders.Trigger{orders.LabAccepted, orders.SampleDrawn}, labresult.UnknownInterpretation, ""},
		{"ana", "b", patient("Ana", "Roe", "1984-05-09"), "Ana Roe", false, catalogue.WalkInTest, nil, labresult.Critical, ""},
	} {
		r := newRecord(o.team, o.name)
		if o.team != "a" {
			r.ID = orderID(o.team + o.name)
			r.OrderTransaction.ID = journey(o.team + o.name)
		}
		r.CreatedAt, r.PatientDetails, r.UserID = hour(i), o.patient, conformance.User(o.name)
		r.Details = orders.NewDetails(o.method, conformance.Named("details"), conformance.Named("shipment"), hour(i))
		switch {
		case o.shipping:
			r.ShippingDetails = &people.ShippingDetails{ReceiverName: o.receiver}
		case o.receiver != "":
			r.PatientAddress = &people.PatientAddress{ReceiverName: o.receiver}
		}
		if o.read != "" {
			r.Interpretation = &o.read
		}
		if o.activate != "" {
			day, err := healthlab.ParseDate(o.activate)
			require.NoError(t, err)
			r.ActivateBy = &day
		}
		s.place(t, r)
		if len(o.then) > 0 {
			_, err := s.Update(t.Context(), r.TeamID, r.ID, applies(o.then...))
			require.NoError(t, err)
		}
	}
}

// orderNames returns the names of a page's orders, separated by spaces. It knows the orders of storeVariedOrders.
func orderNames(p orders.Page) string {
	var names []string
	for _, o := range p.Orders {
		for _, name := range []string{"ana", "bo", "cy", "kit", "anonymous"} {
			if o.ID == orderID(name) {
				names = append(names, name)
			}
		}
	}
	return strings.Join(names, " ")
}

var orderListCases = map[string]func(*testing.T, *ordersT){
	"Filters": func(t *testing.T, s *ordersT) {
		storeVariedOrders(t, s)
		at := func(n int) time.Time { return noon.Add(time.Duration(n) * time.Hour) }
		for _, tc := range []struct {
			name string
			q    orders.Query
			want string
		}{
			{"all, newest first", orders.Query{}, "anonymous kit cy bo ana"},
			{"status", orders.Query{Status: []orders.LowLevel{orders.Ordered, orders.Cancelled}}, "cy ana"},
			{"status is the latest only", orders.Query{Status: []orders.LowLevel{orders.RequisitionCreated}}, "bo"},
			{"method", orders.Query{Methods: []catalogue.CollectionMethod{catalogue.Testkit, catalogue.OnSiteCollection}}, "anonymous kit"},
			{"created from is inclusive", orders.Query{CreatedFrom: at(3)}, "anonymous kit"},
			{"created before is exclusive", orders.Query{CreatedBefore: at(1)}, "ana"},
			{"created between", orders.Query{CreatedFrom: at(1), CreatedBefore: at(3)}, "cy bo"},
			{"start after end", orders.Query{CreatedFrom: at(3), CreatedBefore: at(1)}, ""},
			{"updated from", orders.Query{UpdatedFrom: noon.Add(time.Minute)}, "anonymous kit cy bo"},
			{"updated before", orders.Query{UpdatedBefore: noon.Add(time.Minute)}, "ana"},
			{"latest event from", orders.Query{EventFrom: noon.Add(time.Minute)}, "anonymous kit cy bo"},
			{"latest event before", orders.Query{EventBefore: noon.Add(time.Minute)}, "ana"},
			{"critical", orders.Query{Critical: new(true)}, "cy"},
			{"not critical, none included", orders.Query{Critical: new(false)}, "anonymous kit bo ana"},
			{"interpretation", orders.Query{Interpretation: labresult.UnknownInterpretation}, "anonymous"},
			{"scheduled", orders.Query{Activations: []orders.ActivationType{orders.ActivationScheduled}}, "cy"},
			{"current, today included", orders.Query{Activations: []orders.ActivationType{orders.ActivationCurrent}}, "anonymous kit bo ana"},
			{"both activations", orders.Query{Activations: []orders.ActivationType{orders.ActivationCurrent, orders.ActivationScheduled}}, "anonymous kit cy bo ana"},
			{"user", orders.Query{User: conformance.User("bo")}, "bo"},
			{"patient name", orders.Query{PatientName: "ana ROE"}, "ana"},
			{"words in another order", orders.Query{PatientName: "roe, ana"}, "ana"},
			{"a letter of the patient name", orders.Query{PatientName: "O"}, ""},
			{"the end of a word", orders.Query{PatientName: "esk", Recipient: "esk"}, ""},
			{"two letters of a word", orders.Query{PatientName: "ro"}, ""},
			{"both names", orders.Query{PatientName: "roe", Recipient: "ana"}, "ana"},
			{"letters in another order", orders.Query{PatientName: "eor"}, ""},
			{"one word of two", orders.Query{PatientName: "ana bo"}, ""},
			{"recipient is shipping, else address", orders.Query{Recipient: "desk"}, "anonymous kit"},
			{"a text without words", orders.Query{Recipient: "% _"}, ""},
			{"a percent sign is text", orders.Query{PatientName: "%"}, ""},
			{"ids", orders.Query{IDs: []orders.OrderID{orderID("bo"), orderID("kit"), orderID("nobody")}}, "kit bo"},
			{"ids of another team", orders.Query{IDs: []orders.OrderID{orderID("bana")}}, ""},
			{"transaction", orders.Query{Transaction: journey("cy")}, "cy"},
			{"search order id", orders.Query{Search: orderID("cy").String()}, "cy"},
			{"search order id in capitals", orders.Query{Search: strings.ToUpper(orderID("cy").String())}, "cy"},
			{"search user id", orders.Query{Search: conformance.User("kit").String()}, "kit"},
			{"search part of an id", orders.Query{Search: orderID("cy").String()[:18]}, ""},
			{"search name", orders.Query{Search: " roe "}, "cy ana"},
			{"search recipient", orders.Query{Search: "fron desk"}, "kit"},
			{"search birth year", orders.Query{Search: "1984"}, "anonymous cy ana"},
			{"search birth month", orders.Query{Search: "1984-05"}, "anonymous ana"},
			{"search birth day", orders.Query{Search: "1984-05-09"}, "ana"},
			{"search inside a birth date", orders.Query{Search: "05-09"}, ""},
			{"search nothing", orders.Query{Search: "  "}, "anonymous kit cy bo ana"},
			{"filters combine", orders.Query{Search: "roe", Critical: new(true)}, "cy"},
			{"oldest first", orders.Query{Direction: catalogue.Ascending}, "ana bo cy kit anonymous"},
			{"by name, nobody last", orders.Query{Sort: orders.SortPatientName}, "bo ana cy " + byID("kit", "anonymous")},
			{"by name backwards, nobody last", orders.Query{Sort: orders.SortPatientName, Direction: catalogue.Descending}, "cy ana bo " + byID("kit", "anonymous")},
			{"by status", orders.Query{Sort: orders.SortLastStatus}, "cy kit ana bo anonymous"},
			{"by status backwards", orders.Query{Sort: orders.SortLastStatus, Direction: catalogue.Descending}, "anonymous bo ana kit cy"},
		} {
			t.Run(tc.name, func(t *testing.T) {
				tc.q.Team, tc.q.Today = conformance.Team("a"), healthlab.Date{Year: 2026, Month: 3, Day: 2}
				page, err := s.List(t.Context(), tc.q)
				require.NoError(t, err)
				require.Equal(t, tc.want, orderNames(page))
				require.Equal(t, len(strings.Fields(tc.want)), page.Total)
			})
		}
	},
	"Renamed": func(t *testing.T, s *ordersT) {
		r := newRecord("a", "1")
		r.PatientDetails = &people.PatientDetails{FirstName: new("Zoë"), LastName: new("Ångström"), DOB: birthday}
		s.place(t, r)
		found := func(q orders.Query) int {
			q.Team = r.TeamID
			page, err := s.List(t.Context(), q)
			require.NoError(t, err)
			require.Len(t, page.Orders, page.Total)
			return page.Total
		}
		require.Equal(t, []int{1, 1, 1}, []int{found(orders.Query{PatientName: "ZOË Ångs"}), found(orders.Query{Search: "ångs"}), found(orders.Query{Search: "1984-05"})})
		_, err := s.Update(t.Context(), r.TeamID, r.ID, edits(func(r *orders.Record) {
			r.PatientDetails.FirstName, r.PatientDetails.DOB = new("Bo"), healthlab.Date{Year: 1990, Month: 1, Day: 2}
			r.PatientAddress = &people.PatientAddress{ReceiverName: "Front Desk"}
		}))
		require.NoError(t, err)
		require.Equal(t, []int{0, 1, 0, 1, 1, 1}, []int{found(orders.Query{PatientName: "zoë"}), found(orders.Query{PatientName: "bo ång"}),
			found(orders.Query{Search: "1984"}), found(orders.Query{Search: "1990-01"}), found(orders.Query{Recipient: "des fro"}), found(orders.Query{Search: "desk"})})
	},
	"WholeOrders": func(t *testing.T, s *ordersT) {
		r := s.place(t, fullRecord("a", "1"))
		page, err := s.List(t.Context(), orders.Query{Team: r.TeamID})
		require.NoError(t, err)
		require.Len(t, page.Orders, 1)
		r2 := r
		r2.Order = page.Orders[0]
		requireRecord(t, r, r2)
	},
	"TeamOnly": func(t *testing.T, s *ordersT) {
		storeVariedOrders(t, s)
		page, err := s.List(t.Context(), orders.Query{Team: conformance.Team("b")})
		require.NoError(t, err)
		require.Equal(t, 1, page.Total)
		page, err = s.List(t.Context(), orders.Query{Team: conformance.Team("c")})
		require.NoError(t, err)
		require.Zero(t, page.Total)
		require.NotNil(t, page.Orders)
		require.Empty(t, page.Orders)
	},
	"CountByStatus": func(t *testing.T, s *ordersT) {
		storeVariedOrders(t, s)
		counts, err := s.CountByStatus(t.Context(), conformance.Team("a"))
		require.NoError(t, err)
		require.Equal(t, map[orders.LowLevel]int{
			orders.Ordered: 1, orders.RequisitionCreated: 1, orders.Cancelled: 1, orders.AwaitingRegistration: 1, orders.DrawCompleted: 1,
		}, counts)
		counts, err = s.CountByStatus(t.Context(), conformance.Team("b"))
		require.NoError(t, err)
		require.Equal(t, map[orders.LowLevel]int{orders.Ordered: 1}, counts)
		counts, err = s.CountByStatus(t.Context(), conformance.Team("c"))
		require.NoError(t, err)
		require.Empty(t, counts)
	},
	"Pages": func(t *testing.T, s *ordersT) {
		const all = 7
		var want []orders.OrderID
		for i := range all {
			want = append(want, s.place(t, newRecord("a", fmt.Sprint(i))).ID) // all created at one instant
		}
		slices.SortFunc(want, func(a, b orders.OrderID) int { return strings.Compare(a.String(), b.String()) })
		for size := 1; size <= all+1; size++ {
			var got []orders.OrderID
			for page := 1; page <= all/size+2; page++ {
				p, err := s.List(t.Context(), orders.Query{Team: conformance.Team("a"), Page: page, Size: size})
				require.NoError(t, err)
				require.Equal(t, all, p.Total, "the true total on every page")
				require.LessOrEqual(t, len(p.Orders), size)
				for _, o := range p.Orders {
					got = append(got, o.ID)
				}
			}
			require.Equal(t, want, got, "ties by id, ascending")
		}
	},
}

func byID(a, b string) string {
	if orderID(a).String() < orderID(b).String() {
		return a + " " + b
	}
	return b + " " + a
}
