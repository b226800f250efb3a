package httpapi_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// own is the body of a lab test of one's own.
func own(name string, edits object) object {
	body := object{"name": name, "method": "walk_in_test", "description": "Made by the team", "provider_ids": []string{"N008", "N007"}}
	for k, v := range edits {
		body[k] = v
		if v == nil {
			delete(body, k)
		}
	}
	return body
}

func TestOwnLabTest_isCreatedAndDeactivatedByItsTeam(t *testing.T) {
	c := newFixture(t, nil)
	var made, got catalogue.LabTest
	c.post("/v3/lab_tests", own("Iron & more", nil), 200).JSON(t, &made)
	require.Equal(t, catalogue.LabTestActive, made.Status)
	require.True(t, made.IsActive)
	require.Equal(t, catalogue.Serum, made.SampleType)
	require.Equal(t, "northlab", made.Lab.Slug)
	require.Equal(t, []int{1008, 1007}, made.MarkerIDs())
	require.Contains(t, made.Slug, "iron-more-")
	path := "/v3/lab_tests/" + made.ID.String()
	c.get(path, 200).JSON(t, &got)
	require.Equal(t, made, got)
	require.Equal(t, []int{1007, 1008}, c.markers(path+"/markers").ids())
	require.Contains(t, string(c.get("/v3/lab_test?include_pricing=true&name=iron+%26", 200).Body),
		`"data":{"`+made.ID.String()+`":{"pricing":{"unspecified":"price_unavailable"},"marker_breakdown":{"1007":{"unspecified":"price_unavailable"}`, "its markers have no price")

	// It can be ordered, by its team only.
	o := c.order("POST", "/v3/order", c.request(made.ID.String(), nil))
	require.Equal(t, made.ID, o.LabTest.ID)
	other := c.With("x-service-api-key", "other")
	require.Equal(t, catalogue.LabTestNotFound, other.Send(t, "GET", path, nil).Want(t, 404).ErrorType(t))
	require.Equal(t, catalogue.LabTestNotFound, other.Send(t, "PATCH", path, object{"name": "mine"}).Want(t, 404).ErrorType(t))

	// It is taken out of use and back.
	change := func(body object) catalogue.LabTest {
		var out catalogue.LabTest
		c.Send(t, "PATCH", path, body).Want(t, 200).JSON(t, &out)
		return out
	}
	renamed := change(object{"name": "Iron", "active": nil})
	require.Equal(t, "Iron", renamed.Name)
	require.Equal(t, made.Slug, renamed.Slug)
	off := change(object{"active": false})
	require.Equal(t, catalogue.LabTestInactive, off.Status)
	require.False(t, off.IsActive)
	c.refused("POST", "/v3/order", c.request(made.ID.String(), nil), 400, catalogue.LabTestNotOrderable)
	require.Equal(t, catalogue.LabTestActive, change(object{"active": true}).Status)
	require.Equal(t, "Iron", change(object{}).Name)
	require.ElementsMatch(t, []string{"body.name"}, c.Send(t, "PATCH", path, object{"name": ""}).Want(t, 422).Locs(t))
	c.refused("PATCH", "/v3/lab_tests/"+walkInTest, object{"active": false}, 403, catalogue.LabTestNotYours)
	c.refused("PATCH", "/v3/lab_tests/"+absent, object{"active": false}, 404, catalogue.LabTestNotFound)
}

func TestOwnLabTest_invalidInputIsRefusedByRule(t *testing.T) {
	c := newFixture(t, nil)
	for _, row := range []struct {
		name  string
		edits object
		rule  string
	}{
		{"no ids", object{"provider_ids": nil}, catalogue.MarkerIDsMissing},
		{"both ids", object{"marker_ids": []int{1001}}, catalogue.MarkerIDsConflict},
		{"no such code", object{"provider_ids": []string{"N008", "Z1"}}, catalogue.MarkerNotFound},
		{"no such marker", object{"provider_ids": nil, "marker_ids": []int{7}}, catalogue.MarkerNotFound},
		{"several labs", object{"provider_ids": []string{"N001", "S001"}}, catalogue.MultipleLabs},
		{"another lab's", object{"lab_slug": "southlab"}, catalogue.MarkerNotInLab},
		{"no such lab", object{"lab_slug": "westlab"}, catalogue.MarkerNotInLab},
		{"method", object{"provider_ids": []string{"S001"}, "method": "testkit"}, catalogue.MethodNotSupported},
		{"account of another team", object{"lab_account_id": pendingAccount}, catalogue.LabAccountNotFound},
	} {
		require.Equal(t, row.rule, c.Send(t, "POST", "/v3/lab_tests", own("x", row.edits)).Want(t, 400).ErrorType(t), row.name)
	}
	require.ElementsMatch(t, []string{"body.name", "body.method", "body.description"}, c.post("/v3/lab_tests", `{}`, 422).Locs(t))
	require.ElementsMatch(t, []string{"body.name", "body.method"}, c.post("/v3/lab_tests", own("", object{"method": "by_post"}), 422).Locs(t))
	require.Len(t, c.tests(""), 4, "a refusal stored a test")
}

// tests are the slugs of a list of lab tests, page by page.
func (c *fixture) tests(query string) []string {
	c.t.Helper()
	names := []string{}
	for cursor := ""; ; {
		var p struct {
			Data       []catalogue.LabTest
			NextCursor *string `json:"next_cursor"`
		}
		c.get("/v3/lab_test?lab_test_limit=2&next_cursor="+cursor+"&"+query, 200).JSON(c.t, &p)
		for _, test := range p.Data {
			names = append(names, test.Name)
		}
		if p.NextCursor == nil {
			return names
		}
		cursor = *p.NextCursor
	}
}

func TestOwnLabTest_isListedAmongTheCatalogue(t *testing.T) {
	c := newFixture(t, nil)
	book := c.tests("")
	c.post("/v3/lab_tests", own("Own 1", nil), 200)
	c.post("/v3/lab_tests", own("Own 2", object{"method": "testkit"}), 200)
	require.Equal(t, append(book, "Own 1", "Own 2"), c.tests(""))
	require.Equal(t, []string{"Own 2", "Own 1"}, c.tests("order_direction=desc")[:2])
	require.Equal(t, []string{"Own 2", "Own 1"}, c.tests("order_key=updated_at&order_direction=desc")[:2])
	require.ElementsMatch(t, []string{"Own 1", "Own 2"}, c.tests("order_key=price")[:2], "their markers have no price")
	require.Equal(t, []string{"Heart at home", "Own 2"}, c.tests("collection_method=testkit"))
	require.Equal(t, []string{"Own 1", "Own 2"}, c.tests("name=own"))
	require.Empty(t, c.tests("generation_method=auto"))
	require.Equal(t, []string{"query.next_cursor"}, c.get("/v3/lab_test?next_cursor=AAAA", 422).Locs(t))
}
