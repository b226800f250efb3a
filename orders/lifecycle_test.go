package orders_test

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/people"
)

var update = flag.Bool("update", false, "rewrite golden files and diagrams")

// golden compares got with a file, or writes the file under -update.
func golden(t *testing.T, path, got string) {
	t.Helper()
	if *update {
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(got), 0o644))
	}
	want, err := os.ReadFile(path)
	require.NoError(t, err, "run go test ./orders -update")
	require.Equal(t, string(want), got)
}

// Every kind of order that the guards tell apart.
var kinds = []struct {
	name   string
	method catalogue.CollectionMethod
	facts  orders.Facts
}{
	{"testkit bound to its patient", catalogue.Testkit, orders.Facts{Initial: true}},
	{"testkit not yet registered", catalogue.Testkit, orders.Facts{Registrable: true, Initial: true}},
	{"testkit registered", catalogue.Testkit, orders.Facts{Registrable: true, Registered: true, Initial: true}},
	{"walk_in_test", catalogue.WalkInTest, orders.Facts{Initial: true}},
	{"walk_in_test after a redraw", catalogue.WalkInTest, orders.Facts{}},
	{"at_home_phlebotomy", catalogue.AtHomePhlebotomy, orders.Facts{Initial: true}},
	{"on_site_collection", catalogue.OnSiteCollection, orders.Facts{Initial: true}},
}

func TestLifecycle_everyStateAndTriggerMatchesTheGoldenFile(t *testing.T) {
	var b strings.Builder
	for _, k := range kinds {
		fmt.Fprintf(&b, "%s\n", k.name)
		for _, from := range orders.LowLevels(k.method) {
			fmt.Fprintf(&b, "  %s\n", orders.StatusOf(k.method, from))
			refused := 0
			for _, on := range orders.Triggers() {
				if to, ok := orders.Next(k.method, from, on, k.facts); ok {
					fmt.Fprintf(&b, "    %-22s -> %s\n", on, orders.StatusOf(k.method, to))
				} else {
					refused++
				}
			}
			fmt.Fprintf(&b, "    %d others refused\n", refused)
		}
	}
	golden(t, "testdata/lifecycle.golden", b.String())
}

func TestLifecycle_diagramsMatchTheDocumentedOnes(t *testing.T) {
	for _, m := range catalogue.CollectionMethods() {
		golden(t, "../docs/orders-lifecycle-"+string(m)+".mmd", orders.Diagram(m))
	}
}

func TestStatuses_matchTheGoldenFile(t *testing.T) {
	all := orders.Statuses()
	require.Len(t, all, 54)
	require.Len(t, slices.Compact(slices.Sorted(slices.Values(all))), 54, "each once")
	var b strings.Builder
	for _, s := range all {
		fmt.Fprintf(&b, "%s final=%t\n", s, s.LowLevel().Final())
	}
	golden(t, "testdata/statuses.golden", b.String())
}

// TestLifecycle_transitionsEqualAnIndependentDescription compares the table with a second description of the same automaton: for
// each state, the states that can follow.
func TestLifecycle_transitionsEqualAnIndependentDescription(t *testing.T) {
	const (
		pre  = "requisition_created requisition_bypassed"
		last = "completed>corrected corrected>corrected"
	)
	told := map[string][]string{
		"testkit bound to its patient": {
			"ordered>requisition_created ordered>requisition_bypassed ordered>cancelled ordered>do_not_process",
			"pre>cancelled pre>transit_customer pre>do_not_process",
			"transit_customer>out_for_delivery transit_customer>with_customer",
			"transit_customer>failure_to_deliver_to_customer transit_customer>problem_in_transit_customer transit_customer>lost",
			"out_for_delivery>with_customer out_for_delivery>failure_to_deliver_to_customer",
			"out_for_delivery>problem_in_transit_customer out_for_delivery>lost",
			"problem_in_transit_customer>transit_customer problem_in_transit_customer>out_for_delivery",
			"problem_in_transit_customer>with_customer problem_in_transit_customer>failure_to_deliver_to_customer problem_in_transit_customer>lost",
			"with_customer>transit_lab with_customer>delivered_to_lab",
			"transit_lab>delivered_to_lab transit_lab>failure_to_deliver_to_lab transit_lab>problem_in_transit_lab transit_lab>lost",
			"problem_in_transit_lab>transit_lab problem_in_transit_lab>delivered_to_lab",
			"problem_in_transit_lab>failure_to_deliver_to_lab problem_in_transit_lab>lost",
			"delivered_to_lab>lab_processing_blocked delivered_to_lab>sample_error delivered_to_lab>completed delivered_to_lab>lost",
			"lab_processing_blocked>delivered_to_lab lab_processing_blocked>completed lab_processing_blocked>sample_error lab_processing_blocked>lost",
			last,
		},
		"walk_in_test": {
			"ordered>requisition_created ordered>requisition_bypassed ordered>cancelled",
			"pre>cancelled pre>appointment_pending pre>partial_results pre>completed pre>redraw_available pre>sample_error",
			"appointment_pending>appointment_scheduled appointment_pending>appointment_cancelled appointment_pending>cancelled",
			"appointment_pending>partial_results appointment_pending>completed appointment_pending>redraw_available appointment_pending>sample_error",
			"appointment_scheduled>appointment_pending appointment_scheduled>appointment_cancelled appointment_scheduled>cancelled",
			"appointment_scheduled>partial_results appointment_scheduled>completed appointment_scheduled>redraw_available appointment_scheduled>sample_error",
			"appointment_cancelled>appointment_pending appointment_cancelled>cancelled appointment_cancelled>partial_results",
			"appointment_cancelled>completed appointment_cancelled>redraw_available appointment_cancelled>sample_error",
			"partial_results>partial_results partial_results>completed partial_results>redraw_available partial_results>sample_error",
			last,
		},
		"at_home_phlebotomy": {
			"ordered>requisition_created ordered>requisition_bypassed ordered>cancelled pre>cancelled pre>appointment_pending",
			"appointment_pending>appointment_scheduled appointment_pending>appointment_cancelled appointment_pending>cancelled",
			"appointment_pending>partial_results appointment_pending>completed",
			"appointment_scheduled>appointment_scheduled appointment_scheduled>appointment_cancelled appointment_scheduled>cancelled",
			"appointment_scheduled>draw_completed appointment_scheduled>partial_results appointment_scheduled>completed appointment_scheduled>sample_error",
			"appointment_cancelled>appointment_pending appointment_cancelled>appointment_scheduled appointment_cancelled>cancelled",
			"draw_completed>cancelled draw_completed>partial_results draw_completed>completed draw_completed>sample_error",
			"partial_results>partial_results partial_results>completed partial_results>sample_error",
			last,
		},
		"on_site_collection": {
			"ordered>requisition_created ordered>requisition_bypassed ordered>cancelled",
			"pre>cancelled pre>draw_completed pre>partial_results pre>completed pre>sample_error",
			"draw_completed>cancelled draw_completed>partial_results draw_completed>completed draw_completed>sample_error",
			"partial_results>partial_results partial_results>completed partial_results>sample_error",
			last,
		},
	}
	// A kit that waits for its patient: what is more, and what is missing.
	waiting := append(slices.Clone(told["testkit bound to its patient"]),
		"ordered>awaiting_registration awaiting_registration>cancelled awaiting_registration>transit_customer awaiting_registration>do_not_process",
		"awaiting_registration>registered transit_customer>registered out_for_delivery>registered",
		"problem_in_transit_customer>registered with_customer>registered",
		"registered>requisition_created registered>cancelled registered>do_not_process",
		"pre>transit_lab pre>out_for_delivery pre>with_customer")
	told["testkit registered"] = waiting
	told["testkit not yet registered"] = waiting
	withoutPatient := []string{"ordered>requisition_created", "delivered_to_lab>completed", "lab_processing_blocked>completed"}

	for _, k := range kinds {
		if k.name == "walk_in_test after a redraw" {
			continue // the next test
		}
		t.Run(k.name, func(t *testing.T) {
			var want []string
			for _, line := range told[k.name] {
				for _, edge := range strings.Fields(line) {
					from, to, _ := strings.Cut(edge, ">")
					for _, f := range strings.Fields(strings.Replace(from, "pre", pre, 1)) {
						want = append(want, f+">"+to)
					}
				}
			}
			if k.name == "testkit not yet registered" {
				want = slices.DeleteFunc(want, func(e string) bool { return slices.Contains(withoutPatient, e) })
			}
			require.ElementsMatch(t, want, edges(k.method, k.facts))
		})
	}
}

// edges lists the pairs of states that a trigger leads from and to.
func edges(m catalogue.CollectionMethod, f orders.Facts) []string {
	var out []string
	for _, from := range orders.LowLevels(m) {
		for _, on := range orders.Triggers() {
			if to, ok := orders.Next(m, from, on, f); ok {
				out = append(out, string(from)+">"+string(to))
			}
		}
	}
	slices.Sort(out)
	return slices.Compact(out)
}

func TestLifecycle_redrawIsOfferedOnlyForTheInitialOrder(t *testing.T) {
	first := edges(catalogue.WalkInTest, orders.Facts{Initial: true})
	second := edges(catalogue.WalkInTest, orders.Facts{})
	for _, e := range first {
		require.Equal(t, !strings.HasSuffix(e, ">redraw_available"), slices.Contains(second, e), e)
	}
}

func TestCancellable_listsTheStatesOfEachMethod(t *testing.T) {
	for _, tc := range []struct {
		kind string
		want string
	}{
		{"testkit bound to its patient", "ordered requisition_created requisition_bypassed"},
		{"testkit not yet registered", "ordered awaiting_registration requisition_created requisition_bypassed registered"},
		{"testkit registered", "ordered awaiting_registration requisition_created requisition_bypassed registered"},
		{"walk_in_test", "ordered requisition_created requisition_bypassed appointment_pending appointment_scheduled appointment_cancelled"},
		{"at_home_phlebotomy", "ordered requisition_created requisition_bypassed appointment_pending appointment_scheduled appointment_cancelled draw_completed"},
		{"on_site_collection", "ordered requisition_created requisition_bypassed draw_completed"},
	} {
		t.Run(tc.kind, func(t *testing.T) {
			k := kinds[slices.IndexFunc(kinds, func(k struct {
				name   string
				method catalogue.CollectionMethod
				facts  orders.Facts
			}) bool {
				return k.name == tc.kind
			})]
			var got []string
			for _, l := range orders.LowLevels(k.method) {
				if orders.Cancellable(k.method, l, k.facts) {
					got = append(got, string(l))
				}
			}
			require.ElementsMatch(t, strings.Fields(tc.want), got)
		})
	}
}

func TestParseStatus_acceptsCurrentAndOldNames(t *testing.T) {
	for _, s := range orders.Statuses() {
		got, ok := orders.ParseStatus(string(s))
		require.True(t, ok)
		require.Equal(t, s, got)
		require.Equal(t, s, orders.StatusOf(s.Method(), s.LowLevel()))
	}
	for old, now := range map[string]orders.Status{
		"received.testkit.testkit_registered":                 "received.testkit.registered",
		"collecting_sample.on_site_collection.draw_completed": "sample_with_lab.on_site_collection.draw_completed",
	} {
		got, ok := orders.ParseStatus(old)
		require.True(t, ok)
		require.Equal(t, now, got)
		require.NotContains(t, orders.Statuses(), orders.Status(old), "read, never written")
		require.Equal(t, now.Stage(), orders.Status(old).Stage())
	}
	for _, s := range []string{"", "ordered", "received.walk_in_test.registered", "completed.testkit.ordered"} {
		_, ok := orders.ParseStatus(s)
		require.False(t, ok, s)
	}
}

func id(name string) uuid.UUID { return uuid.NewSHA1(uuid.Nil, []byte(name)) }

var noon = time.Date(2026, 3, 2, 12, 0, 0, 0, time.UTC)

// newOrder is an order before its first event.
func newOrder(m catalogue.CollectionMethod, registrable bool) orders.Order {
	o := orders.Order{
		ID: orders.OrderID{UUID: id("order")}, TeamID: healthlab.TeamID{UUID: id("team")},
		UserID: healthlab.UserID{UUID: id("user")}, Origin: orders.OriginInitial, BillingType: catalogue.ClientBill,
		LabTest:          catalogue.LabTest{ID: catalogue.LabTestID{UUID: id("test")}, Slug: "basics", Name: "Basics", Method: m},
		Details:          orders.NewDetails(m, id("details"), id("shipment"), healthlab.At(noon)),
		OrderTransaction: orders.OrderTransaction{ID: orders.TransactionID{UUID: id("transaction")}},
	}
	if registrable {
		o.ShippingDetails = &people.ShippingDetails{ReceiverName: "Front desk"}
	}
	return o
}

func TestLifecycle_runsTheSequencesOfTheSpecification(t *testing.T) {
	const out = "kit_shipped kit_out_for_delivery kit_delivered"
	for _, tc := range []struct {
		name        string
		method      catalogue.CollectionMethod
		registrable bool
		triggers    string
		want        string
		transaction orders.TransactionStatus
	}{
		{
			"registered kit", catalogue.Testkit, false,
			"lab_accepted " + out + " sample_sent sample_received final_result",
			"ordered requisition_created transit_customer out_for_delivery with_customer transit_lab delivered_to_lab completed",
			orders.TransactionCompleted,
		},
		{
			"registrable kit", catalogue.Testkit, true,
			"patient_awaited " + out + " kit_registered lab_accepted sample_sent sample_received final_result",
			"ordered awaiting_registration transit_customer out_for_delivery with_customer registered requisition_created transit_lab delivered_to_lab completed",
			orders.TransactionCompleted,
		},
		{
			"walk-in without appointment", catalogue.WalkInTest, false,
			"lab_accepted partial_result final_result",
			"ordered requisition_created partial_results completed",
			orders.TransactionCompleted,
		},
		{
			"walk-in with appointment and reschedule", catalogue.WalkInTest, false,
			"lab_accepted appointment_made appointment_confirmed appointment_moved appointment_confirmed final_result",
			"ordered requisition_created appointment_pending appointment_scheduled appointment_pending appointment_scheduled completed",
			orders.TransactionCompleted,
		},
		{
			"walk-in redraw", catalogue.WalkInTest, false,
			"lab_accepted redraw_offered",
			"ordered requisition_created redraw_available",
			orders.TransactionCompleted, // alone; with its redraw it is active
		},
		{
			"phlebotomy", catalogue.AtHomePhlebotomy, false,
			"lab_accepted appointment_made appointment_confirmed sample_drawn partial_result final_result",
			"ordered requisition_created appointment_pending appointment_scheduled draw_completed partial_results completed",
			orders.TransactionCompleted,
		},
		{
			"phlebotomy booked before the requisition", catalogue.AtHomePhlebotomy, false,
			"lab_accepted appointment_made appointment_confirmed",
			"ordered requisition_created appointment_pending appointment_scheduled",
			orders.TransactionActive,
		},
		{
			"on-site", catalogue.OnSiteCollection, false,
			"lab_accepted sample_drawn final_result",
			"ordered requisition_created draw_completed completed",
			orders.TransactionCompleted,
		},
		{
			"import", catalogue.WalkInTest, false,
			"imported final_result result_corrected result_corrected",
			"ordered requisition_bypassed completed corrected corrected",
			orders.TransactionCompleted,
		},
		{
			"cancelled", catalogue.Testkit, false,
			"cancel_asked", "ordered cancelled", orders.TransactionCancelled,
		},
		{
			"sample lost", catalogue.Testkit, false,
			"lab_accepted " + out + " sample_sent parcel_lost",
			"ordered requisition_created transit_customer out_for_delivery with_customer transit_lab lost",
			orders.TransactionCancelled,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			o := newOrder(tc.method, tc.registrable)
			events, err := orders.Begin(&o, noon, id("first"))
			require.NoError(t, err)
			require.Equal(t, orders.EventOrderCreated, events[0].Type)
			for i, on := range strings.Fields(tc.triggers) {
				events, err = orders.Apply(&o, orders.Step{
					On: orders.Trigger(on), At: noon.Add(time.Duration(i+1) * time.Hour), EventID: id(on), NotifyPartial: true,
				})
				require.NoError(t, err)
				require.Len(t, events, 1)
				require.Equal(t, orders.EventOrderUpdated, events[0].Type)
			}
			var got []string
			for _, e := range o.Events {
				got = append(got, string(e.Status.LowLevel()))
			}
			require.Equal(t, tc.want, strings.Join(got, " "))
			require.Equal(t, tc.transaction, o.OrderTransaction.Status)
			checkOrder(t, o)
		})
	}
}

// checkOrder states what holds of every order.
func checkOrder(t require.TestingT, o orders.Order) {
	require.NotEmpty(t, o.Events)
	require.Equal(t, o.Events[len(o.Events)-1], o.LastEvent)
	require.Equal(t, o.LastEvent.Status.Stage(), o.Status)
	require.Equal(t, o.Method(), o.LastEvent.Status.Method())
	for i := 1; i < len(o.Events); i++ {
		require.Greater(t, o.Events[i].ID, o.Events[i-1].ID)
	}
	for _, e := range o.Events {
		require.Contains(t, orders.Statuses(), e.Status)
	}
	mine := slices.IndexFunc(o.OrderTransaction.Orders, func(m orders.TransactionMember) bool { return m.ID == o.ID })
	require.Equal(t, o.Member(), o.OrderTransaction.Orders[mine])
	require.Equal(t, orders.NewTransaction(o.OrderTransaction.ID, slices.Clone(o.OrderTransaction.Orders)), o.OrderTransaction)
}

// TestApply_randomTriggersFollowTheTable applies every trigger to orders of every kind: triggers of the table move
// the order, all others change nothing.
func TestApply_randomTriggersFollowTheTable(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		o := newOrder(rapid.SampledFrom(catalogue.CollectionMethods()).Draw(t, "method"), rapid.Bool().Draw(t, "registrable"))
		_, err := orders.Begin(&o, noon, id("first"))
		require.NoError(t, err)
		notify := rapid.Bool().Draw(t, "notify partial")
		for range rapid.IntRange(1, 30).Draw(t, "steps") {
			before := o
			on := rapid.SampledFrom(orders.Triggers()).Draw(t, "trigger")
			to, ok := orders.Next(o.Method(), o.LowLevel(), on, o.Facts())
			events, err := orders.Apply(&o, orders.Step{On: on, At: noon, EventID: id("event"), NotifyPartial: notify})
			if !ok {
				require.ErrorIs(t, err, healthlab.Precondition)
				require.Equal(t, before, o)
				require.Empty(t, events)
				continue
			}
			require.NoError(t, err)
			require.Equal(t, to, o.LowLevel())
			require.Len(t, o.Events, len(before.Events)+1)
			require.Equal(t, to != orders.PartialResults || notify, len(events) == 1)
			checkOrder(t, o)
		}
	})
}

func TestApply_refusalNamesStateAndTrigger(t *testing.T) {
	o := newOrder(catalogue.Testkit, false)
	_, err := orders.Begin(&o, noon, id("first"))
	require.NoError(t, err)
	_, err = orders.Apply(&o, orders.Step{On: orders.SampleReceived, At: noon})
	var transition *orders.TransitionError
	require.ErrorAs(t, err, &transition)
	require.Equal(t, orders.Status("received.testkit.ordered"), transition.From)
	var rule *healthlab.RuleError
	require.ErrorAs(t, err, &rule)
	require.Equal(t, orders.TransitionNotAllowed, rule.Type)
	require.Contains(t, rule.Msg, "received.testkit.ordered")
	require.Contains(t, rule.Msg, "delivered_to_lab")
}

func TestApply_doesNotWriteIntoASharedHistory(t *testing.T) {
	o := newOrder(catalogue.WalkInTest, false)
	_, err := orders.Begin(&o, noon, id("first"))
	require.NoError(t, err)
	other := o
	_, err = orders.Apply(&o, orders.Step{On: orders.LabAccepted, At: noon})
	require.NoError(t, err)
	_, err = orders.Apply(&other, orders.Step{On: orders.CancelRequested, At: noon})
	require.NoError(t, err)
	require.Equal(t, orders.RequisitionCreated, o.LowLevel())
	require.Equal(t, orders.RequisitionCreated, o.Events[1].Status.LowLevel())
	require.Equal(t, orders.Cancelled, other.Events[1].Status.LowLevel())
}

func TestApply_eventIDsAlwaysIncrease(t *testing.T) {
	o := newOrder(catalogue.WalkInTest, false)
	o.NextEventID = 901
	_, err := orders.Begin(&o, noon, id("first"))
	require.NoError(t, err)
	_, err = orders.Apply(&o, orders.Step{On: orders.LabAccepted, At: noon})
	require.NoError(t, err)
	o.NextEventID = 7 // a store that lost count cannot make ids go back
	_, err = orders.Apply(&o, orders.Step{On: orders.FinalResult, At: noon})
	require.NoError(t, err)
	require.Equal(t, []int64{901, 902, 903}, []int64{o.Events[0].ID, o.Events[1].ID, o.Events[2].ID})
}

func TestTransaction_statusFollowsFromItsOrders(t *testing.T) {
	member := func(l orders.LowLevel) orders.TransactionMember {
		return orders.TransactionMember{LowLevelStatus: &l}
	}
	for _, tc := range []struct {
		name    string
		members []orders.TransactionMember
		want    orders.TransactionStatus
	}{
		{"no member", nil, orders.TransactionCancelled},
		{"no event yet", []orders.TransactionMember{{}}, orders.TransactionActive},
		{"in progress", []orders.TransactionMember{member(orders.PartialResults)}, orders.TransactionActive},
		{"failed alone", []orders.TransactionMember{member(orders.SampleError)}, orders.TransactionCancelled},
		{"failed after a cancelled one", []orders.TransactionMember{member(orders.Cancelled), member(orders.Lost)}, orders.TransactionCancelled},
		{"failed, then completed", []orders.TransactionMember{member(orders.SampleError), member(orders.Completed)}, orders.TransactionCompleted},
		{"all cancelled", []orders.TransactionMember{member(orders.Cancelled), member(orders.DoNotProcess)}, orders.TransactionCancelled},
		{"redraw cancelled", []orders.TransactionMember{member(orders.RedrawAvailable), member(orders.Cancelled)}, orders.TransactionCompleted},
		{"redraw under way", []orders.TransactionMember{member(orders.RedrawAvailable), member(orders.Ordered)}, orders.TransactionActive},
		{"recreated", []orders.TransactionMember{member(orders.Cancelled), member(orders.Completed)}, orders.TransactionCompleted},
	} {
		t.Run(tc.name, func(t *testing.T) {
			require.Equal(t, tc.want, orders.NewTransaction(orders.TransactionID{}, tc.members).Status)
		})
	}
}

func TestLifecycles_listTheStatesAndTransitionsOfTheDiagram(t *testing.T) {
	list := orders.Lifecycles()
	require.Len(t, list, len(catalogue.CollectionMethods()))
	for _, l := range list {
		var statuses []orders.LowLevel
		for _, s := range l.Statuses {
			statuses = append(statuses, s.Status)
			require.Equal(t, orders.StageOf(l.Method, s.Status), s.Stage)
		}
		require.Equal(t, orders.LowLevels(l.Method), statuses)
		diagram := orders.Diagram(l.Method)
		for _, x := range l.Transitions {
			require.Contains(t, statuses, x.From)
			require.Contains(t, statuses, x.To)
			require.Contains(t, diagram, fmt.Sprintf("%s --> %s: %s", x.From, x.To, x.On))
		}
	}
}
