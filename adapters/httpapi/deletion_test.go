package httpapi_test

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
)

// markers are planted in what is kept of a person: names, a street, a member id.
var markers = []string{"Quillon", "Brackwater", "Wexmere", "MEMBER-7731"}

// deletable is a fixture with a user who has something of every kind.
type deletable struct {
	*fixture
	done, open orders.Order
	// paths answer with something of the user, by operation.
	paths map[string]string
}

func newDeletable(t *testing.T) *deletable {
	t.Helper()
	d := &deletable{}
	d.fixture = newFixture(t, &healthdata.Options{BeforeDelete: []func(context.Context, healthlab.TeamID, healthlab.UserID) error{
		func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) error {
			return d.config.Orders.CancelForDeletion(ctx, team, user)
		},
	}})
	person := object{"first_name": "Quillon", "last_name": "Brackwater"}
	patient, address := aPatient(), anAddress()
	patient["first_name"], patient["last_name"], address["first_line"] = "Quillon", "Brackwater", "1 Wexmere Road"
	edits := object{"patient_details": patient, "patient_address": address}
	d.done = d.order("POST", "/v3/order", d.request(walkInTest, edits))
	d.post("/v3/order/"+d.done.ID.String()+"/test", object{}, 200)
	d.open = d.orderOnce("k-1", edits)
	d.unmatched(d.open, "held")
	var held struct{ Data []exchange.UnmatchedResult }
	d.get("/v3/unmatched_result", 200).JSON(t, &held)
	require.Len(t, held.Data, 1)
	d.Send(t, "PATCH", d.about("info"), anInfo(person)).Want(t, 200)
	d.post(d.about("insurance"), anInsurance(object{"member_id": "MEMBER-7731"}), 200)
	d.post(d.timeseries("heartrate"), object{"stage": "daily", "provider": "manual", "data": []object{
		{"timestamp": "2026-03-03T10:00:00Z", "value": 61, "unit": "bpm", "type": "manual_scan"}}}, 200)
	done, open, journey := "/v3/order/"+d.done.ID.String(), "/v3/order/"+d.open.ID.String(), "/v3/order_transaction/"+d.done.OrderTransaction.ID.String()
	user := d.user.String()
	d.paths = map[string]string{
		"read_user": "/v2/user/" + user, "resolve_user": "/v2/user/resolve/patient-77", "list_user_providers": "/v2/user/providers/" + user,
		"read_user_info": d.about("info/latest"), "read_latest_insurance": d.about("insurance/latest"), "list_devices": d.about("device"),
		"read_samples": d.timeseries("heartrate?start_date=2026-03-01"), "read_samples_grouped": d.timeseries("heartrate/grouped?start_date=2026-03-01"),
		"read_body":  "/v2/summary/body/" + user + "?start_date=2026-03-01",
		"read_order": done, "read_order of an open one": open, "read_order_result": done + "/result", "read_order_result_metadata": done + "/result/metadata",
		"read_order_transaction": journey, "read_order_transaction_result": journey + "/result",
		"read_order_result_pdf": done + "/result/pdf", "read_order_transaction_result_pdf": journey + "/result/pdf",
		"read_requisition_pdf": done + "/requisition/pdf", "read_labels_pdf": done + "/labels/pdf?collection_date=2026-03-04T08:30:00-07:00",
		"read_order_collection_instruction_pdf": done + "/collection_instruction_pdf",
		"read_communication_settings":           done + "/communication_settings",
		"read_unmatched_result":                 "/v3/unmatched_result/" + held.Data[0].ID.String(),
	}
	return d
}

func (d *deletable) orderOnce(key string, edits object) orders.Order {
	d.t.Helper()
	var out orderAnswer
	d.With("x-idempotency-key", key).Send(d.t, "POST", "/v3/order", d.request(walkInTest, edits)).Want(d.t, 200).JSON(d.t, &out)
	return out.Order
}

// lists are answers about all users of the team, which must not have the user.
func (d *deletable) lists() map[string]string {
	return map[string]string{
		"list_users": "/v2/user/", "search_users": "/v2/team/users/search?query_id=patient", "list_orders": "/v3/orders",
		"list_orders by name": "/v3/orders?patient_name=Quillon", "list_orders by search": "/v3/orders?search_input=Brackwater",
		"list_orders by user": "/v3/orders?user_id=" + d.user.String(), "list_unmatched_results": "/v3/unmatched_result",
		"read_team_metrics": "/v2/user/metrics",
	}
}

func (d *deletable) hasNothing(name string, body string) {
	d.t.Helper()
	for _, m := range append([]string{d.done.ID.String(), d.open.ID.String()}, markers...) {
		require.NotContains(d.t, body, m, name)
	}
}

// gone requires that no operation knows the user any more.
func (d *deletable) gone() {
	d.t.Helper()
	for name, path := range d.paths {
		r := d.Send(d.t, "GET", path, nil)
		require.Equal(d.t, 404, r.Status, name)
		for _, m := range markers {
			require.NotContains(d.t, string(r.Body), m, name)
		}
	}
	for name, path := range d.lists() {
		d.hasNothing(name, string(d.get(path, 200).Body))
	}
	open := "/v3/order/" + d.open.ID.String()
	for _, try := range []struct {
		method, path string
		body         any
	}{
		{"POST", open + "/cancel", nil}, {"POST", open + "/test", object{}}, {"PATCH", open, object{"activate_by": nil}},
		{"PATCH", open + "/draw_completed", nil}, {"PATCH", open + "/communication_settings", object{"sms_enabled": true}},
		{"POST", open + "/psc/appointment/book", object{"booking_key": d.keys("psc")[0]}},
		{"POST", "/v3/order", d.request(walkInTest, nil)}, {"PATCH", d.about("info"), anInfo(nil)}, {"POST", d.about("insurance"), anInsurance(nil)},
		{"POST", d.about("create_portal_url"), object{"context": "launch", "order_id": d.open.ID.String()}},
		{"POST", d.paths["read_unmatched_result"] + "/resolve", object{"order_id": d.open.ID.String(), "decision": "accept"}},
		{"DELETE", "/v2/user/" + d.user.String(), nil},
	} {
		r := d.Send(d.t, try.method, try.path, try.body)
		require.Contains(d.t, []int{404, 422}, r.Status, "%s %s", try.method, strings.ReplaceAll(try.path, d.user.String(), "USER"))
		d.hasNothing(try.path, strings.ReplaceAll(string(r.Body), d.open.ID.String(), "ORDER"))
	}
	r := d.With("x-idempotency-key", "k-1").Send(d.t, "POST", "/v3/order", d.request(walkInTest, nil))
	require.GreaterOrEqual(d.t, r.Status, 400, "a stored answer is not repeated")
}

// Nothing of a deleted user is in any answer, and undoing the deletion brings all of it back.
func TestDeletedUser_isInNoResponseUntilTheDeletionIsUndone(t *testing.T) {
	d := newDeletable(t)
	before := map[string]string{}
	for name, path := range d.paths {
		before[name] = string(d.get(path, 200).Body)
	}
	d.Send(t, "DELETE", "/v2/user/"+d.user.String(), nil).Want(t, 200)
	d.gone()

	// The laboratory reports meanwhile.
	d.hears(d.open, orders.SampleRejected)
	d.gone()

	d.post("/v2/user/undo_delete?user_id="+d.user.String(), nil, 200)
	d.refused("POST", "/v3/order/"+d.open.ID.String()+"/cancel", nil, 400, orders.CancelNotAllowed) // the deletion cancelled it
	for name, path := range d.paths {
		if name != "read_order of an open one" && name != "read_unmatched_result" && name != "list_user_providers" && name != "read_user" && name != "resolve_user" {
			require.Equal(t, before[name], string(d.get(path, 200).Body), name)
		}
	}
	require.Equal(t, 2, d.count())
}

// grace=0 erases at once, a user that was deleted before too.
func TestDeleteUser_withGraceZeroErasesAtOnce(t *testing.T) {
	for _, deletedBefore := range []bool{false, true} {
		d := newDeletable(t)
		path := "/v2/user/" + d.user.String()
		if deletedBefore {
			d.Send(t, "DELETE", path, nil).Want(t, 200)
		}
		d.Send(t, "DELETE", path+"?grace=1", nil).Want(t, 422)
		d.Send(t, "DELETE", path+"?grace=0", nil).Want(t, 200)
		d.gone()
		d.post("/v2/user/undo_delete?user_id="+d.user.String(), nil, 404)
		d.Send(t, "DELETE", path+"?grace=0", nil).Want(t, 404)
	}
}
