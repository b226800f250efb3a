package httpapi_test

import (
	"net/url"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// labTestPairs are the types of the catalogue and their schemas.
func labTestPairs() []contract.Pair {
	return []contract.Pair{
		{Schema: "Lab", Value: catalogue.Lab{}},
		{Schema: "LabTest", Value: catalogue.LabTest{}},
		{Schema: "LabAccount", Value: catalogue.LabAccount{}},
		{Schema: "Marker", Value: catalogue.Marker{}},
		{Schema: "MarkerComplete", Value: catalogue.MarkerComplete{}},
		{Schema: "OrderSet", Value: catalogue.OrderSet{}, Input: true},
		{Schema: "LabTestRequest", Value: catalogue.LabTestRequest{}, Input: true},
		{Schema: "LabTestChange", Value: catalogue.LabTestChange{}, Input: true},
	}
}

// markersPage is a page of markers as it is answered.
type markersPage struct {
	Markers                  []catalogue.MarkerComplete
	Total, Page, Size, Pages int
	Pricing                  *struct {
		Currency string
		Data     map[string]map[string]any
	}
}

func (p markersPage) ids() []int {
	ids := []int{}
	for _, m := range p.Markers {
		ids = append(ids, m.ID)
	}
	return ids
}

func (c *fixture) markers(path string) markersPage {
	c.t.Helper()
	var p markersPage
	c.get(path, 200).JSON(c.t, &p)
	return p
}

func TestLabs_areListed(t *testing.T) {
	c := newFixture(t, nil)
	var labs []catalogue.Lab
	c.get("/v3/lab_tests/labs", 200).JSON(t, &labs)
	require.Len(t, labs, 2)
	require.Equal(t, "northlab", labs[0].Slug)
	require.Equal(t, []string{"query.page"}, c.get("/v3/lab_tests/labs?page=1", 422).Locs(t))
}

func TestMarkers_areFilteredPagedAndPriced(t *testing.T) {
	c := newFixture(t, nil)
	const path = "/v3/lab_tests/markers"
	p := c.markers(path + "?size=7&page=3")
	require.Equal(t, 3, p.Page)
	require.Equal(t, 7, p.Size)
	require.Equal(t, 20, p.Total)
	require.Equal(t, 3, p.Pages)
	require.Len(t, p.Markers, 6)
	require.Nil(t, p.Pricing)
	for query, want := range map[string][]int{
		"name=hemoglobin+a1":                      {1002, 2002},
		"name=A1C":                                {1002, 2002},
		"name=glucsoe":                            {1001, 2001},
		"name=s002":                               {2002},
		"name=glucose&lab_id=2":                   {2001},
		"name=glucose&lab_id=2&lab_id=1":          {1001, 2001},
		"name=glucose&lab_id=2&lab_slug=northlab": {1001},
		"lab_slug=nowhere":                        {},
		"a_la_carte_enabled=false":                {},
		"page=99":                                 {},
	} {
		require.ElementsMatch(t, want, c.markers(path+"?"+query).ids(), query)
	}
	p = c.markers(path + "?name=glucose&include_pricing=true")
	require.Equal(t, "USD", p.Pricing.Currency)
	require.Equal(t, map[string]any{"unspecified": "price_unavailable"}, p.Pricing.Data["1001"])
	require.ElementsMatch(t, []string{"query.lab_id.0", "query.page", "query.size", "query.include_pricing", "query.lab_account_id", "query.labs"},
		c.get(path+"?lab_id=x&page=0&size=101&include_pricing=x&lab_account_id=x&labs=1", 422).Locs(t))
	c.refused("GET", path+"?lab_account_id="+pendingAccount, nil, 404, catalogue.LabAccountNotFound)

	other := c.With("x-service-api-key", "other")
	var seen markersPage
	other.Send(t, "GET", path+"?name=glucose&lab_account_id="+pendingAccount, nil).Want(t, 200).JSON(t, &seen)
	require.Equal(t, []int{1001}, seen.ids())
	for query, want := range map[string]int{
		"lab_slug=southlab": 0, "lab_id=2": 0, "lab_id=9": 0, "lab_id=1": 1, "lab_id=2&lab_id=1": 1, "lab_id=2&lab_slug=northlab": 1,
	} {
		var seen markersPage
		other.Send(t, "GET", path+"?name=glucose&"+query+"&lab_account_id="+pendingAccount, nil).Want(t, 200).JSON(t, &seen)
		require.Equal(t, want, seen.Total, query)
	}
}

func TestMarkers_ofAnOrderSetAreListedOnce(t *testing.T) {
	c := newFixture(t, nil)
	const path = "/v3/lab_tests/list_order_set_markers"
	var p markersPage
	c.post(path+"?size=3", object{"lab_test_ids": []string{walkInTest}, "add_on": object{"marker_ids": []int{1001, 1010}}}, 200).JSON(t, &p)
	require.Equal(t, []int{1001, 1002, 1010}, p.ids())
	require.Equal(t, 5, p.Total)
	require.NotEmpty(t, p.Markers[0].ExpectedResults)
	for rule, body := range map[string]object{
		catalogue.NoTestsSelected:  {},
		catalogue.AddOnIDsMissing:  {"add_on": object{}},
		catalogue.AddOnIDsConflict: {"add_on": object{"marker_ids": []int{1}, "provider_ids": []string{"N001"}}},
		catalogue.MarkerNotFound:   {"add_on": object{"marker_ids": []int{7}}},
		catalogue.MultipleLabs:     {"lab_test_ids": []string{walkInTest}, "add_on": object{"marker_ids": []int{2001}}},
	} {
		c.refused("POST", path, body, 400, rule)
	}
	c.refused("POST", path, object{"lab_test_ids": []string{absent}}, 404, catalogue.LabTestNotFound)
	c.refused("POST", path, object{"lab_test_ids": []string{walkInTest}, "lab_account_id": pendingAccount}, 404, catalogue.LabAccountNotFound)
}

func TestLabTests_areFilteredSortedAndPaged(t *testing.T) {
	c := newFixture(t, nil)
	type page struct {
		Data       []catalogue.LabTest
		NextCursor *string `json:"next_cursor"`
		Pricing    *struct {
			Data map[string]struct {
				Pricing map[string]int
			}
		}
	}
	get := func(query string) page {
		var p page
		c.get("/v3/lab_test?"+query, 200).JSON(t, &p)
		return p
	}
	var slugs []string
	for cursor := ""; ; {
		p := get("lab_test_limit=3&order_key=price&next_cursor=" + url.QueryEscape(cursor))
		for _, test := range p.Data {
			slugs = append(slugs, test.Slug)
		}
		if p.NextCursor == nil {
			break
		}
		require.Len(t, p.Data, 3)
		cursor = *p.NextCursor
	}
	require.Equal(t, []string{"blood-count-on-site", "metabolic-basics", "heart-at-home", "iron-and-thyroid"}, slugs)
	require.Equal(t, 3950, get("include_pricing=true&name=metabolic").Pricing.Data[walkInTest].Pricing["base_amount_minor"])
	require.Contains(t, string(c.get("/v3/lab_test?include_pricing=true&name=metabolic", 200).Body), `"marker_breakdown":{"1001":{"unspecified":"price_unavailable"},"1002":`)
	require.Nil(t, get("").Pricing)
	require.Len(t, get("marker_ids=1013&marker_ids=1010").Data, 1)
	require.Len(t, get("provider_ids=N013").Data, 2)
	require.Len(t, get("collection_method=testkit&status=active&lab_slug=northlab").Data, 1)
	require.Empty(t, get("generation_method=auto").Data)
	require.Equal(t, []string{"query.next_cursor"}, c.get("/v3/lab_test?next_cursor=garbled", 422).Locs(t))
	require.ElementsMatch(t, []string{"query.generation_method", "query.collection_method", "query.status", "query.order_key", "query.order_direction"},
		c.get("/v3/lab_test?generation_method=x&collection_method=x&status=x&order_key=x&order_direction=x", 422).Locs(t))
	require.ElementsMatch(t, []string{"query.marker_ids.1", "query.lab_test_limit"}, c.get("/v3/lab_test?marker_ids=1&marker_ids=x&lab_test_limit=0", 422).Locs(t))

	var all []catalogue.LabTest
	c.get("/v3/lab_tests?order_direction=desc", 200).JSON(t, &all)
	require.Len(t, all, 4)
	require.Equal(t, onSiteTest, all[0].ID.String())
	require.Equal(t, []string{"query.lab_test_limit"}, c.get("/v3/lab_tests?lab_test_limit=1", 422).Locs(t))
}

func TestLabTest_isReadWithItsMarkers(t *testing.T) {
	c := newFixture(t, nil)
	var test catalogue.LabTest
	c.get("/v3/lab_tests/"+walkInTest, 200).JSON(t, &test)
	require.Equal(t, "metabolic-basics", test.Slug)
	require.Len(t, test.Markers, 4)
	require.Equal(t, []int{1001, 1002, 1011, 1012}, c.markers("/v3/lab_tests/"+walkInTest+"/markers").ids())
	require.Equal(t, []int{1012}, c.markers("/v3/lab_tests/"+walkInTest+"/markers?page=2&size=3").ids())
	c.refused("GET", "/v3/lab_tests/"+absent, nil, 404, catalogue.LabTestNotFound)
	c.refused("GET", "/v3/lab_tests/"+absent+"/markers", nil, 404, catalogue.LabTestNotFound)
	c.refused("GET", "/v3/lab_tests/"+walkInTest+"?lab_account_id="+absent, nil, 404, catalogue.LabAccountNotFound)
	require.Equal(t, []string{"path.lab_test_id"}, c.get("/v3/lab_tests/7", 422).Locs(t))

	var marker catalogue.Marker
	c.get("/v3/lab_tests/2/markers/S002", 200).JSON(t, &marker)
	require.Equal(t, 2002, marker.ID)
	c.refused("GET", "/v3/lab_tests/1/markers/S002", nil, 404, catalogue.MarkerNotFound)
	c.refused("GET", "/v3/lab_tests/9/markers/S002", nil, 404, catalogue.MarkerNotFound)
	require.Equal(t, catalogue.MarkerNotFound, c.With("x-service-api-key", "other").
		Send(t, "GET", "/v3/lab_tests/2/markers/S002?lab_account_id="+pendingAccount, nil).Want(t, 404).ErrorType(t))
}

func TestLabAccounts_areListedOnlyForTheirTeam(t *testing.T) {
	c := newFixture(t, nil)
	other := c.With("x-service-api-key", "other")
	list := func(c *contract.Client, query string) []catalogue.LabAccount {
		var out struct{ Data []catalogue.LabAccount }
		c.Send(t, "GET", "/v3/lab_test/lab_account?"+query, nil).Want(t, 200).JSON(t, &out)
		return out.Data
	}
	require.Empty(t, list(c.Client, ""), "accounts of the platform are not the team's")
	require.Len(t, list(other, ""), 1)
	require.Len(t, list(other, "status=PENDING&lab_account_id="+pendingAccount), 1)
	require.Empty(t, list(other, "status=active"))
	require.Empty(t, list(other, "lab_account_id="+absent))
	require.Empty(t, list(c.Client, "lab_account_id="+pendingAccount))
	require.Equal(t, []string{"query.status"}, c.get("/v3/lab_test/lab_account?status=closed", 422).Locs(t))
}
