package httpapi_test

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/openapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/openapi/extras"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata/teamsettings"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// pairs returns the Go types and the schemas that must be the same. Add the Go type of a
// new schema here.
func pairs() []contract.Pair {
	var all []contract.Pair
	for _, list := range [][]contract.Pair{
		// One list per tag, next to the tests of its handlers.
		healthPairs(),
		orderPairs(),
		labTestPairs(),
		personPairs(),
		unmatchedPairs(),
		criticalPairs(),
		compendiumPairs(),
		userPairs(),
		exportPairs(),
		webhookPairs(),
		continuousPairs(),
		linkPairs(),
		appPairs(),
		httpapi.PriorityBodies(),
		httpapi.SettingsBodies(),
		httpapi.CredentialBodies(),
		httpapi.PipelineBodies(),
		httpapi.OrganisationBodies(),
		httpapi.AccessBodies(),
		reportPairs(),
		pullPairs(),
		bulkPairs(),
		eventPairs(),
	} {
		all = append(all, list...)
	}
	return all
}

func full(t *testing.T) (mount, healthlab.UserID) {
	// Add a new service here.
	t.Helper()
	c := fullFixture(t)
	return c.config, c.user
}

func fullFixture(t *testing.T) *fixture {
	t.Helper()
	c := newFixture(t, nil)
	c.config.Webhooks = newWebhooks(t, memory.New(nil), acceptingNotifier(t), time.Now)
	c.config.Continuous = newContinuous(t, memory.New(nil), c.config.Health, time.Now)
	c.config.Pipelines = newPipelineOffice(t).service
	c.config.Teams = newTeams(t, memory.New(nil), c.health, teamsettings.Choices{})
	c.config.AuthenticateManagement = func(*http.Request) (httpapi.Manager, error) { return httpapi.Manager{Mandate: httpapi.EveryTeam}, nil }
	c.config.Environment = healthlab.Sandbox
	c.config.Organisations = newOrganisations(t, memory.New(nil))
	c.config.TeamIdentity = func(context.Context, healthlab.TeamID) (httpapi.TeamIdentity, error) {
		return httpapi.TeamIdentity{Org: org, Name: "Riverside"}, nil
	}
	c.config.Reports = newReports(t, memory.New(&memory.Options{UsersElsewhere: true}), c.health, nil, c.logs)
	c.config.Pulls = newPulls(t, memory.New(nil), c.config.Health, nil, &pull.Options{Now: time.Now})
	c.config.Access = newAccess(t)
	c.config.Bulk = newBulk(t, memory.New(nil), c.config.Linking, c.config.Pulls)
	return c
}

func TestContract_partsJoinWithoutConflict(t *testing.T) {
	_, err := openapi.Join(os.DirFS("openapi"))
	require.NoError(t, err)
	require.NotPanics(t, func() { httpapi.OpenAPI() })
}

// The extras in the program are those that the code makes; go generate writes them.
func TestContract_generatedExtrasAreUpToDate(t *testing.T) {
	want, err := extras.Make()
	require.NoError(t, err)
	got, err := os.ReadFile("openapi/generated/extras.json")
	require.NoError(t, err)
	require.True(t, bytes.Equal(want, got), "go generate ./adapters/httpapi writes openapi/generated/extras.json")
}

func TestRoutes_areExactlyTheOperationsOfTheContract(t *testing.T) {
	doc, err := contract.Read(httpapi.OpenAPI())
	require.NoError(t, err)
	var want, got []string
	for _, op := range doc.Operations() {
		want = append(want, op.Method+" "+op.Path+" "+op.ID)
	}
	c, _ := full(t)
	for _, r := range httpapi.Routes(c.of()) {
		got = append(got, strings.TrimSuffix(r.Pattern, "{$}")+" "+r.ID)
	}
	slices.Sort(want)
	slices.Sort(got)
	require.Equal(t, want, got)
}

func TestTypes_fitTheSchemasOfTheContract(t *testing.T) {
	found, err := contract.CheckTypes(httpapi.OpenAPI(), pairs()...)
	require.NoError(t, err)
	require.Empty(t, found)
}

// Every operation is called with every kind of bad request: no sent value appears in an
// answer or a log, and every answer is as in the contract.
func TestBadRequests_areAnsweredPerContractWithoutEchoingValues(t *testing.T) {
	logs := &contract.Logs{}
	c, user := full(t)
	c.Log = logs.Logger()
	h := c.handler()
	probes := contract.Probes{
		Document: httpapi.OpenAPI(), Logs: logs, Header: http.Header{"X-Service-Api-Key": {"k"}},
		Path: map[string]string{"user_id": user.String(), "resource": "heartrate", "environment": "sandbox"},
	}
	found, err := contract.LeaksAndStrays(t.Context(), h, probes)
	require.NoError(t, err)
	require.Empty(t, found)
}

func TestContract_isServedWithTheConfiguredKeyHeader(t *testing.T) {
	c, _ := full(t)
	client := contract.NewClient(t, c.handler(), httpapi.OpenAPI())
	require.Equal(t, string(httpapi.OpenAPI()), string(client.Send(t, "GET", "/openapi.json", nil).Want(t, 200).Body))
	require.Equal(t, []string{"query.x"}, client.Send(t, "GET", "/openapi.json?x=1", nil).Want(t, 422).Locs(t))

	c.KeyHeader = "x-acme-key"
	client = contract.NewClient(t, c.handler(), httpapi.OpenAPI())
	body := string(client.Send(t, "GET", "/openapi.json", nil).Body)
	require.Contains(t, body, `"x-acme-key"`)
	require.NotContains(t, body, "x-service-api-key")
}

func TestHandler_panicsWithoutAuthenticate(t *testing.T) {
	require.PanicsWithValue(t, "httpapi: Config.Authenticate is nil", func() { httpapi.Handler(httpapi.Config{}) })
	c, _ := full(t)
	c.KeyHeader = "x key"
	require.Panics(t, func() { c.handler() })
}

// Every part of the contract whose text says deprecated has the deprecated flag, which
// generators of clients read.
func TestContract_deprecatedPartsHaveTheDeprecatedFlag(t *testing.T) {
	var doc struct {
		Components struct {
			Schemas map[string]struct {
				Properties map[string]struct{ Deprecated bool }
			}
		}
		Paths map[string]map[string]struct {
			Parameters []struct {
				Name       string
				Deprecated bool
			}
		}
	}
	require.NoError(t, json.Unmarshal(httpapi.OpenAPI(), &doc))
	for schema, names := range map[string][]string{
		"Order":                   {"requisition_form_url", "status"},
		"PlaceRequest":            {"lab_test_id", "health_insurance"},
		"CreateRequest":           {"lab_test_id", "health_insurance"},
		"LabTest":                 {"is_active", "is_delegated"},
		"LabResult":               {"value"},
		"ResultsMetadata":         {"date_reported", "date_collected", "date_received"},
		"AppointmentAddress":      {"unit"},
		"AppointmentAddressInput": {"unit"},
	} {
		for name, p := range doc.Components.Schemas[schema].Properties {
			require.Equal(t, slices.Contains(names, name), p.Deprecated, "%s.%s", schema, name)
		}
		require.Subset(t, slices.Collect(maps.Keys(doc.Components.Schemas[schema].Properties)), names)
	}
	for _, p := range doc.Paths["/v3/order/area/info"]["get"].Parameters {
		require.Equal(t, p.Name == "lab", p.Deprecated, p.Name)
	}
}

// The contract lists the error types that the source has, and the bounds and names of queries.
func TestContract_listsTheErrorTypesAndBoundsOfTheSource(t *testing.T) {
	form := regexp.MustCompile(`^[A-Z][A-Z0-9]+(_[A-Z0-9]+)+$`)
	word := regexp.MustCompile(`^[A-Z]{4,}$`) // in the table of kinds alone
	types := map[string]map[string]bool{}     // the folders of each, as in [httpapi.Part]
	for _, name := range sources(t, ".", "../../orders", "../../linking", "../../healthdata", "../../aggregate", "../../labreport", "../../privacy/personexport", "../../webhook") {
		folder := "httpapi"
		if domain, ok := strings.CutPrefix(filepath.ToSlash(name), "../../"); ok {
			folder, _, _ = strings.Cut(domain, "/")
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, 0)
		require.NoError(t, err)
		ast.Inspect(file, func(n ast.Node) bool {
			if lit, ok := n.(*ast.BasicLit); ok && lit.Kind == token.STRING {
				if s, err := strconv.Unquote(lit.Value); err == nil && (form.MatchString(s) || name == "internal/server/errors.go" && word.MatchString(s)) {
					if types[s] == nil {
						types[s] = map[string]bool{}
					}
					types[s][folder] = true
				}
			}
			return true
		})
	}
	for _, s := range notErrorTypes {
		require.Contains(t, types, s)
		delete(types, s)
	}
	want := ""
	for _, s := range slices.Sorted(maps.Keys(types)) {
		want += s + " " + strings.Join(slices.Sorted(maps.Keys(types[s])), " ") + "\n"
	}
	if *updateContract {
		require.NoError(t, os.WriteFile(errorTypesFile, []byte(want), 0o600))
	}
	got, err := os.ReadFile(errorTypesFile)
	require.NoError(t, err)
	require.Equal(t, want, string(got), "run go test ./adapters/httpapi -run Contract_lists -update")

	var doc struct {
		Types   []string                                        `json:"x-error-types"`
		Bounds  map[string]map[string]struct{ Maximum float64 } `json:"x-value-bounds"`
		Lengths map[string]struct {
			Start, End         string
			Required, Positive bool
			Longest            float64 `json:"longest_second"`
		} `json:"x-interval-bounds"`
		Schema aggregate.Schema `json:"x-query-schema"`
	}
	require.NoError(t, json.Unmarshal(httpapi.OpenAPI(), &doc))
	require.Contains(t, doc.Types, "NO_CONNECTION")
	require.InDelta(t, 400, doc.Bounds["heartrate"]["value"].Maximum, 0)
	require.InDelta(t, 86_400, doc.Lengths["steps"].Longest, 0)
	require.Equal(t, []any{"start", "end", true, true}, []any{doc.Lengths["steps"].Start, doc.Lengths["steps"].End, doc.Lengths["steps"].Required, doc.Lengths["steps"].Positive})
	require.False(t, doc.Lengths["water"].Required)
	require.Equal(t, "bedtime_stop", doc.Lengths["sleep"].End)
	require.NotContains(t, doc.Lengths, "heartrate")
	require.Equal(t, aggregate.Describe(), doc.Schema)
}

// errorTypesFile lists the error types of the contract.
const errorTypesFile = "internal/openapi/extras/error_types.txt"

var updateContract = flag.Bool("update", false, "write the list of error types")

// notErrorTypes are texts of the source that look like error types and are none.
var notErrorTypes = []string{
	"COMMON_TEST_RANK", "CONSUMER_NAME", "EXAMPLE_UCUM_UNITS", "LOINC_NUM", "LONG_COMMON_NAME", "ORDER_STATUS", "SCALE_TYP", // columns of the LOINC table
	"EXACT_LOINC_SET", "NAME_MATCH", "SYNONYM_MATCH", "NOT_DETECTED", // answers
}

// Requests made at random of the contract: none panics, none is answered with 5xx, and every
// answer is in the contract.
func TestRandomRequests_neverPanicAndAnswerPerContract(t *testing.T) {
	const each = 200 // requests to one service, for one of them deletes the user
	var found []string
	for seed := range prove.Sequential(10, 10, 500) {
		logs := &contract.Logs{}
		c, user := full(t)
		c.Log = logs.Logger()
		h := c.handler()
		fixture := &fixture{t: t, config: c, user: user}
		fixture.Client = contract.NewClient(t, h, httpapi.OpenAPI()).With("x-service-api-key", goodKey)
		o := fixture.placed()
		bad, err := contract.Fuzz(t.Context(), h, contract.Probes{
			Document: httpapi.OpenAPI(), Logs: logs, Header: http.Header{"X-Service-Api-Key": {goodKey}},
			Path: map[string]string{
				"user_id": user.String(), "resource": "heartrate", "environment": "sandbox", "order_id": o.ID.String(),
				"transaction_id": o.OrderTransaction.ID.String(), "provider": "manual", "lab_test_id": walkInTest, "client_user_id": "patient-77",
			},
		}, uint64(seed), each)
		require.NoError(t, err)
		found = append(found, bad...)
	}
	require.Empty(t, found)
}

func suiteOrMock(path string) bool {
	above := filepath.Base(filepath.Dir(path))
	return filepath.Base(path) == above+"test" || filepath.Base(path) == above+"mock"
}

// sources returns the Go files below some folders, but tests, suites and mocks.
func sources(t *testing.T, roots ...string) (files []string) {
	t.Helper()
	for _, root := range roots {
		require.NoError(t, filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			switch {
			case err != nil:
				return err
			case d.IsDir() && (suiteOrMock(path) || d.Name() == "testdata"):
				return filepath.SkipDir
			case strings.HasSuffix(path, ".go") && !strings.HasSuffix(path, "_test.go"):
				files = append(files, path)
			}
			return nil
		}))
	}
	return files
}

// A query parameter without a value is as one that is not there, in every operation: no answer
// finds anything wrong with it, unless it is required.
func TestQueryParameter_withoutAValueCountsAsAbsent(t *testing.T) {
	var doc struct {
		Paths map[string]map[string]json.RawMessage
	}
	require.NoError(t, json.Unmarshal(httpapi.OpenAPI(), &doc))
	type parameter struct {
		Name, In string
		Required bool
	}
	config, user := full(t)
	h := config.handler()
	seen := 0
	for path, methods := range doc.Paths {
		for method, raw := range methods {
			var op struct{ Parameters []parameter }
			if method == "parameters" || json.Unmarshal(raw, &op) != nil {
				continue
			}
			query := url.Values{}
			target := path
			for _, p := range op.Parameters {
				switch {
				case p.In == "query":
					query[p.Name] = []string{"", ""}
					if !p.Required {
						seen++
					}
				case p.Name == "user_id":
					target = strings.ReplaceAll(target, "{user_id}", user.String())
				case p.In == "path":
					target = strings.ReplaceAll(target, "{"+p.Name+"}", "7b9a1b1e-0000-4000-8000-000000000001")
				}
			}
			if len(query) == 0 {
				continue
			}
			r := httptest.NewRequestWithContext(t.Context(), strings.ToUpper(method), target+"?"+query.Encode(), nil)
			r.Header.Set("x-service-api-key", goodKey)
			r.Header.Set("x-management-key", "m")
			w := httptest.NewRecorder()
			h.ServeHTTP(w, r)
			for _, p := range op.Parameters {
				if p.In == "query" && !p.Required {
					require.NotContains(t, w.Body.String(), `["query","`+p.Name+`"`, "%s %s", method, path)
				}
			}
		}
	}
	require.Greater(t, seen, 80)
}

// Enumerations in answers are open: programs that pass over values they do not know keep working
// when one is added. Those that are closed are the caller's own choices and the ways of a query.
func TestContract_enumerationsInAnswersAreOpen(t *testing.T) {
	var doc map[string]any
	require.NoError(t, json.Unmarshal(httpapi.OpenAPI(), &doc))
	closed := map[string]bool{}
	seen := map[string]bool{}
	var walk func(node any, at string)
	walk = func(node any, at string) {
		switch n := node.(type) {
		case []any:
			for _, v := range n {
				walk(v, at)
			}
		case map[string]any:
			if ref, ok := n["$ref"].(string); ok {
				if name, isSchema := strings.CutPrefix(ref, "#/components/schemas/"); isSchema && !seen[name] {
					seen[name] = true
					walk(doc["components"].(map[string]any)["schemas"].(map[string]any)[name], name)
				}
				if name, isResponse := strings.CutPrefix(ref, "#/components/responses/"); isResponse {
					walk(doc["components"].(map[string]any)["responses"].(map[string]any)[name], name)
				}
			}
			if _, ok := n["enum"].([]any); ok {
				closed[at] = true
			}
			for _, k := range slices.Sorted(maps.Keys(n)) {
				next := at
				if k == "properties" {
					for name, v := range n[k].(map[string]any) {
						walk(v, at+"."+name)
					}
					continue
				}
				walk(n[k], next)
			}
		}
	}
	for _, methods := range doc["paths"].(map[string]any) {
		for _, op := range methods.(map[string]any) {
			if op, ok := op.(map[string]any); ok {
				walk(op["responses"], "")
			}
		}
	}
	for _, hook := range doc["webhooks"].(map[string]any) {
		walk(hook.(map[string]any)["post"].(map[string]any)["requestBody"], "")
	}
	for at := range closed {
		if strings.HasPrefix(at, "Aggregate") { // a query, as it was asked
			delete(closed, at)
		}
	}
	require.Equal(t, []string{"APIKeyScope", "ManagementKeyRole.role", "TeamSettings.verb_mode"}, slices.Sorted(maps.Keys(closed)))
}
