package httpapi_test

import (
	"encoding/json"
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
)

// served returns the contract of a mount.
func served(t *testing.T, c httpapi.Config) (text string, doc map[string]any) {
	t.Helper()
	client := contract.NewClient(t, httpapi.Handler(c), httpapi.OpenAPI())
	text = string(client.Send(t, "GET", "/openapi.json", nil).Want(t, 200).Body)
	require.NoError(t, json.Unmarshal([]byte(text), &doc))
	return text, doc
}

// The contract of a mount has its operations and events alone, and just the components that they name.
func TestMount_contractHasOnlyTheMountedOperations(t *testing.T) {
	all, _ := full(t)
	for i, p := range all.of().Parts {
		c := all.Config
		c.Parts, c.Access = []httpapi.Part{p}, nil
		if needsHealth := i > 0; needsHealth {
			c.Parts = []httpapi.Part{httpapi.HealthData(all.Health), p}
		}
		if i == 2 { // pages need linking
			c.Parts = slices.Insert(c.Parts, 1, httpapi.Linking(all.Linking))
		}
		text, doc := served(t, c)
		var want, got []string
		for _, r := range httpapi.Routes(c) {
			if !strings.HasPrefix(r.ID, "link_page") {
				want = append(want, r.ID)
			}
		}
		read, err := contract.Read([]byte(text))
		require.NoError(t, err)
		for _, op := range read.Operations() {
			got = append(got, op.ID)
		}
		require.ElementsMatch(t, want, got)
		components := doc["components"].(map[string]any)
		for kind, members := range components {
			for name := range members.(map[string]any) {
				if kind != "securitySchemes" {
					require.Contains(t, text, "#/components/"+kind+"/"+name+`"`)
				}
			}
		}
		for _, ref := range strings.Split(text, `"#/components/`)[1:] {
			ref, _, _ = strings.Cut(ref, `"`)
			kind, name, _ := strings.Cut(ref, "/")
			require.Contains(t, components[kind], name, "a reference leads nowhere")
		}
		used := map[string]bool{}
		for _, methods := range doc["paths"].(map[string]any) {
			for _, op := range methods.(map[string]any) {
				for _, tag := range op.(map[string]any)["tags"].([]any) {
					used[tag.(string)] = true
				}
			}
		}
		for _, tag := range doc["tags"].([]any) {
			name := tag.(map[string]any)["name"].(string)
			require.True(t, used[name] || name == "events", name)
		}
	}
}

// A mount of health data says nothing of laboratories, and its contract states where it is and how its
// callers sign in.
func TestMount_contractStatesItsURLAndSignIn(t *testing.T) {
	all, _ := full(t)
	c := httpapi.Config{
		Authenticate: all.Authenticate, Parts: []httpapi.Part{httpapi.HealthData(all.Health)},
		URL: "https://clinic.example.org/health", SignIn: json.RawMessage(`{"type":"apiKey","in":"cookie","name":"session"}`),
	}
	text, doc := served(t, c)
	require.Less(t, len(text), len(httpapi.OpenAPI())/2)
	for _, word := range []string{"lab_test", "Appointment", "Insurance", "x-query-schema", "ManagementKey", "webhooks"} {
		require.NotContains(t, strings.ReplaceAll(text, "webhook endpoints", ""), `"`+word)
	}
	refused := contract.NewClient(t, httpapi.Handler(c), httpapi.OpenAPI()).Send(t, "GET", "/v2/user/", nil).Want(t, 401)
	require.Contains(t, string(refused.Body), "not signed in")
	sending := c
	sending.SendsEvents = true
	text, _ = served(t, sending)
	require.Contains(t, text, `"daily.data.sleep.created"`)
	require.NotContains(t, text, `"labtest.order.created"`)
	require.Equal(t, []any{map[string]any{"url": "https://clinic.example.org/health"}}, doc["servers"])
	schemes := doc["components"].(map[string]any)["securitySchemes"].(map[string]any)
	require.Equal(t, map[string]any{"type": "apiKey", "in": "cookie", "name": "session"}, schemes["TeamKey"])
}

// The title, the texts of the whole document, its tags and its ways to sign in name no domain that is not
// mounted.
func TestMount_contractNamesOnlyMountedDomains(t *testing.T) {
	all, _ := full(t)
	health, orders, queries := httpapi.HealthData(all.Health), httpapi.LabOrders(all.Laboratory), httpapi.Queries(all.Aggregate)
	links, reports := httpapi.Linking(all.Linking), httpapi.LabReports(all.Reports)
	words := map[string]string{
		"health": "health data", "orders": "lab order", "queries": "aggregate", "links": "link API", "reports": "lab reports",
	}
	for name, mounted := range map[string]struct {
		parts []httpapi.Part
		has   []string
	}{
		"health":  {[]httpapi.Part{health}, []string{"health"}},
		"orders":  {[]httpapi.Part{orders}, []string{"orders"}},
		"queries": {[]httpapi.Part{health, queries}, []string{"health", "queries"}},
		"links":   {[]httpapi.Part{health, links}, []string{"health", "links"}},
		"reports": {[]httpapi.Part{reports}, []string{"reports"}},
		"two":     {[]httpapi.Part{health, orders}, []string{"health", "orders"}},
	} {
		t.Run(name, func(t *testing.T) {
			c := all.Config
			c.Parts, c.Access = mounted.parts, nil
			_, doc := served(t, c)
			components := doc["components"].(map[string]any)
			text, err := json.Marshal([]any{doc["info"], doc["tags"], components["securitySchemes"]})
			require.NoError(t, err)
			require.NotContains(t, string(text), "UserToken", "apps are not mounted")
			for domain, word := range words {
				if slices.Contains(mounted.has, domain) {
					require.Contains(t, strings.ToLower(string(text)), strings.ToLower(word), domain)
				} else {
					require.NotContains(t, strings.ToLower(string(text)), strings.ToLower(word), domain)
				}
			}
		})
	}
}

// The types of errors of a mount are those of its domains, and those that every mount answers.
func TestMount_contractListsOnlyErrorTypesOfMountedDomains(t *testing.T) {
	all, _ := full(t)
	health, orders := httpapi.HealthData(all.Health), httpapi.LabOrders(all.Laboratory)
	for _, mount := range []struct {
		parts     []httpapi.Part
		has, lack []string
	}{
		{[]httpapi.Part{health}, []string{"NO_CONNECTION", "INTERNAL_ERROR"}, []string{"ORDER_NOT_FOUND", "JOB_NOT_FOUND", "CODE_EXPIRED"}},
		{[]httpapi.Part{orders}, []string{"ORDER_NOT_FOUND", "INTERNAL_ERROR"}, []string{"NO_CONNECTION", "JOB_NOT_FOUND", "CODE_EXPIRED"}},
		{[]httpapi.Part{health, orders}, []string{"ORDER_NOT_FOUND", "NO_CONNECTION"}, []string{"JOB_NOT_FOUND", "CODE_EXPIRED"}},
		{all.of().Parts, []string{"ORDER_NOT_FOUND", "NO_CONNECTION", "JOB_NOT_FOUND", "CODE_EXPIRED", "EXPORT_NOT_FOUND"}, nil},
	} {
		c := all.Config
		c.Parts, c.Access = mount.parts, nil
		_, doc := served(t, c)
		require.Subset(t, doc["x-error-types"], mount.has)
		for _, name := range mount.lack {
			require.NotContains(t, doc["x-error-types"], name)
		}
	}
}

// Without a writer of Parquet files, queries answer JSON alone.
func TestMount_withoutParquetAnswersQueriesOnlyAsJSON(t *testing.T) {
	all, user := full(t)
	c := all.of()
	c.Parquet = nil
	client := contract.NewClient(t, httpapi.Handler(c), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	const body = `{"timeframe":{"type":"relative","anchor":"2026-03-02","past":{"unit":"day","value":7}},"queries":[{"select":[{"func":"count","arg":{"index":"sleep"}}]}]}`
	path := "/aggregate/v1/user/" + user.String() + "/query"
	client.Send(t, "POST", path, json.RawMessage(body)).Want(t, 200)
	client.With("Accept", "application/vnd.healthlab.tar+gzip+parquet").Send(t, "POST", path, json.RawMessage(body)).Want(t, http.StatusNotAcceptable)
}
