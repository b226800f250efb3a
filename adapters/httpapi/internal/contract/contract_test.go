package contract_test

import (
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

// answers is a handler that always says the same.
func answers(status int, contentType, body string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if contentType != "" {
			w.Header().Set("Content-Type", contentType)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	})
}

const thing = `{"id":"6f1c0b52-0000-4000-8000-000000000001","kind":"c","born":null,"parts":[{"n":1}],"best":null}`

// spy is a test that may fail without failing this one.
type spy struct {
	testing.TB
	failed bool
}

func (s *spy) Helper()               {}
func (s *spy) Fatalf(string, ...any) { s.failed = true; panic(s) }

// fails reports whether f fails its test.
func fails(t *testing.T, f func(testing.TB)) bool {
	s := &spy{TB: t}
	func() {
		defer func() { _ = recover() }()
		f(s)
	}()
	return s.failed
}

func TestClient_failsOnAnswersOutsideTheContract(t *testing.T) {
	const json = "application/json"
	for _, tt := range []struct {
		name    string
		handler http.Handler
		method  string
		target  string
		body    any
		fails   bool
	}{
		{"good", answers(200, json, thing), "GET", "/things/1?full=true", nil, false},
		{"no content", answers(204, "", ""), "GET", "/things/1", nil, false},
		{"literal path wins", answers(204, "", ""), "GET", "/things/latest", nil, false},
		{"status of another path", answers(200, json, thing), "GET", "/things/latest", nil, true},
		{"refused", answers(404, json, `{"detail":{}}`), "GET", "/things/1", nil, false},
		{"unknown path", answers(404, json, `{"detail":{}}`), "GET", "/other", nil, false},
		{"unknown path that answers", answers(200, json, `{}`), "GET", "/other", nil, true},
		{"status", answers(202, json, thing), "GET", "/things/1", nil, true},
		{"content type", answers(200, "text/plain", thing), "GET", "/things/1", nil, true},
		{"body where there is none", answers(204, json, thing), "GET", "/things/1", nil, true},
		{"key too many", answers(200, json, thing[:len(thing)-1]+`,"x":1}`), "GET", "/things/1", nil, true},
		{"bad format", answers(200, json, `{"id":"1","kind":"c","born":null,"parts":[],"best":null}`), "GET", "/things/1", nil, true},
		{"null list", answers(200, json, `{"id":"6f1c0b52-0000-4000-8000-000000000001","kind":"c","born":null,"parts":null,"best":null}`), "GET", "/things/1", nil, true},
		{"parameter", answers(200, json, thing), "GET", "/things/1?ful=true", nil, true},
		{"request", answers(204, "", ""), "POST", "/things/1", `{"name":"x","size":null}`, false},
		{"request with a key too many", answers(204, "", ""), "POST", "/things/1", `{"name":"x","x":1}`, true},
		{"request that was refused", answers(404, json, `{"detail":{}}`), "POST", "/things/1", `{"x":1}`, false},
		{"request without body", answers(204, "", ""), "POST", "/things/1", nil, true},
	} {
		t.Run(tt.name, func(t *testing.T) {
			require.Equal(t, tt.fails, fails(t, func(tb testing.TB) {
				contract.NewClient(tb, tt.handler, []byte(demo)).Send(tb, tt.method, tt.target, tt.body)
			}))
		})
	}
}

type part struct {
	N float64 `json:"n"`
}

type goodThing struct {
	ID    healthlab.UserID `json:"id"`
	Kind  string           `json:"kind"`
	Born  *healthlab.Date  `json:"born"`
	Parts []part           `json:"parts"`
	Best  *part            `json:"best"`
	Note  string           `json:"note,omitzero"`
}

type badThing struct {
	ID    string          `json:"id"`
	Kind  string          `json:"kind,omitempty"`
	Born  healthlab.Date  `json:"born"`
	Parts []struct{}      `json:"parts"`
	Best  *healthlab.Time `json:"best"`
	Extra int             `json:"extra"`
}

type change struct {
	Name string        `json:"name"`
	Size wire.Opt[int] `json:"size,omitzero"`
}

func TestCheckTypes_reportsDifferencesBetweenSchemaAndType(t *testing.T) {
	kinds := map[string][]string{"kind": {"b", "a"}}
	got, err := contract.CheckTypes([]byte(demo),
		contract.Pair{Schema: "Thing", Value: goodThing{}, Enums: kinds},
		contract.Pair{Schema: "Change", Value: change{}, Input: true},
		contract.Pair{Schema: "Change", Value: struct {
			Name string `json:"name"`
			Size *int   `json:"size"`
		}{}, Input: true},
		// The words of the wire tag that tell the two ways apart.
		contract.Pair{Schema: "Change", Value: struct {
			ID   string `json:"id" wire:"out"`
			Name string `json:"name"`
			Size int    `json:"size" wire:"opt"`
		}{}, Input: true},
		contract.Pair{Schema: "Part", Value: struct {
			N    float64 `json:"n"`
			Hint string  `json:"hint" wire:"in"`
		}{}})
	require.NoError(t, err)
	require.Empty(t, got)

	got, err = contract.CheckTypes([]byte(demo),
		contract.Pair{Schema: "Thing", Value: badThing{}, Enums: map[string][]string{"kind": {"a"}, "note": {"x"}}},
		contract.Pair{Schema: "Nothing", Value: part{}},
		contract.Pair{Schema: "Error", Value: struct {
			Detail map[string]any `json:"detail"`
		}{}})
	require.NoError(t, err)
	require.Equal(t, []string{
		"Error: does not say additionalProperties: false",
		"Nothing: there is no such schema",
		"Thing.best: is object in the contract and string in Go",
		"Thing.born: nullable is true in the contract and false in Go",
		"Thing.extra: is not in the contract",
		"Thing.kind: has the values [a b] in the contract and [a] in Go",
		"Thing.kind: required is true in the contract and false in Go",
		"Thing.note: is listed as an enumeration, and is none",
		"Thing.note: is not in Go",
		"Thing.parts.n: is not in Go",
	}, got)
}

// reader reads itself.
type reader struct{ N int }

func (r *reader) UnmarshalJSON(b []byte) error { return json.Unmarshal(b, &r.N) }

func TestCheckTypes_reportsDifferencesOfListsAndNulls(t *testing.T) {
	doc := `{"openapi":"3.1.0","info":{"title":"t","version":"1"},"paths":{},"components":{"schemas":{
		"Out":{"type":"object","additionalProperties":false,"required":["holes","whole","zone","when","named","sure"],"properties":{
			"named":{"type":"object","additionalProperties":{"type":["integer","null"]}},"sure":{"type":"object","additionalProperties":{"type":"integer"}},
			"holes":{"type":"array","items":{"type":["integer","null"]}},"whole":{"type":"array","items":{"type":"integer"}},
			"zone":{"type":"integer"},"when":{"type":["integer","null"]}}},
		"In":{"type":"object","additionalProperties":false,"required":["plain"],"properties":{"plain":{"anyOf":[{"type":"integer"},{"type":"string"}]},
			"maybe":{"anyOf":[{"type":"integer"},{"type":"string"},{"type":"null"}]}}}}}}`
	type out struct {
		Holes []*int          `json:"holes"`
		Whole []int           `json:"whole"`
		Zone  *int            `json:"zone" wire:"filled"`
		When  wire.Opt[int]   `json:"when"`
		Named map[string]*int `json:"named"`
		Sure  map[string]int  `json:"sure"`
	}
	got, err := contract.CheckTypes([]byte(doc), contract.Pair{Schema: "Out", Value: out{}}, contract.Pair{Schema: "In", Input: true, Value: struct {
		Plain reader  `json:"plain"`
		Maybe *reader `json:"maybe"`
	}{}})
	require.NoError(t, err)
	require.Empty(t, got)

	got, err = contract.CheckTypes([]byte(doc), contract.Pair{Schema: "Out", Value: struct {
		Holes []int           `json:"holes"`
		Whole []*int          `json:"whole"`
		Zone  *int            `json:"zone"`
		When  int             `json:"when"`
		Named map[string]int  `json:"named"`
		Sure  map[string]*int `json:"sure"`
	}{}}, contract.Pair{Schema: "In", Input: true, Value: struct {
		Plain *reader `json:"plain"`
		Maybe reader  `json:"maybe"`
	}{}})
	require.NoError(t, err)
	require.Equal(t, []string{
		"In.maybe: nullable is true in the contract and false in Go",
		"In.maybe: required is false in the contract and true in Go",
		"In.plain: nullable is false in the contract and true in Go",
		"In.plain: required is true in the contract and false in Go",
		"Out.holes: elements: nullable is true in the contract and false in Go",
		"Out.named: values: nullable is true in the contract and false in Go",
		"Out.sure: values: nullable is false in the contract and true in Go",
		"Out.when: nullable is true in the contract and false in Go",
		"Out.whole: elements: nullable is false in the contract and true in Go",
		"Out.zone: nullable is false in the contract and true in Go",
	}, got)
}

func TestNilCollections_reportsNilListsByPath(t *testing.T) {
	require.Empty(t, contract.NilCollections(goodThing{Parts: []part{}}))
	require.Equal(t, []string{"parts"}, contract.NilCollections(&goodThing{}))
	require.Equal(t, []string{"things[1].parts"}, contract.NilCollections(struct {
		Things []goodThing    `json:"things"`
		Maybe  map[string]int `json:"maybe,omitempty"`
	}{Things: []goodThing{{Parts: []part{}}, {}}}))
}

func TestLeaks_findsSentValuesInAnswersLogsAndPanics(t *testing.T) {
	logs := &contract.Logs{}
	look := func(h http.HandlerFunc) []string {
		found, err := contract.Leaks(t.Context(), h, contract.Probes{
			Document: []byte(demo), Logs: logs, Path: map[string]string{"id": uuid.Nil.String()},
			Header: http.Header{"X-Key": {"k"}},
		})
		require.NoError(t, err)
		return found
	}
	refuse := answers(404, "application/json", `{"detail":{}}`)
	require.Empty(t, look(refuse.ServeHTTP))
	require.Contains(t, look(func(w http.ResponseWriter, r *http.Request) {
		w.WriteHeader(404)
		_, _ = fmt.Fprint(w, r.URL.Query())
	}), "get_thing, full plain: in the reply 404")
	require.Contains(t, look(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		logs.Logger().Log(r.Context(), slog.LevelDebug, "got", "body", string(body))
		refuse.ServeHTTP(w, r)
	}), "change_thing, every text plain: in the log")
	require.Contains(t, look(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Key", r.Header.Get("X-Key"))
		refuse.ServeHTTP(w, r)
	}), "get_thing, X-Key: in the reply 404")
	require.Contains(t, look(func(_ http.ResponseWriter, r *http.Request) {
		panic(r.PathValue("id"))
	}), "latest_thing, Cookie: panicked with string")
}

func TestStrays_findsAnswersOutsideTheContract(t *testing.T) {
	p := contract.Probes{Document: []byte(demo), Logs: &contract.Logs{}}
	found, err := contract.Strays(t.Context(), answers(418, "application/json", `{"detail":{}}`), p)
	require.NoError(t, err)
	require.Contains(t, found, `get_thing, Cookie: get_thing: status 418 is not in the contract: {"detail":{}}`)
}
