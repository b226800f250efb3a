package reference_test

import (
	"fmt"
	"html"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/reference"
)

const contract = `{"info": {"title": "Clinic", "description": "Decide by ` + "`error_type`" + `, **never** by a text; see [the guide](https://docs.example.org/a)."},
"security": [{"TeamKey": []}],
"paths": {
	"/v2/user/{user_id}": {
		"get": {"operationId": "get_user", "tags": ["users"], "summary": "Read a user", "parameters": [{"$ref": "#/components/parameters/Day"}], "responses": {"200": {"description": "The ` + "`user`" + `."}}},
		"post": {"operationId": "set_user", "tags": ["users"], "summary": "Change a user", "security": [{"UserToken": []}], "requestBody": {"content": {"application/json": {"example": {"name": "O'Neil"}, "schema": {"properties": {"nick_name": {"type": "string"}}}}}}, "responses": {}},
		"put": {"operationId": "put_user", "tags": ["users"], "summary": "Replace a user", "security": [], "requestBody": {"content": {"application/json": {}}}, "responses": {}}
	},
	"/report": {
		"post": {"operationId": "send_report", "tags": ["reports"], "summary": "Send a report", "requestBody": {"content": {"multipart/form-data": {"schema": {"required": ["file"], "properties": {"file": {}, "note": {}}}}}}, "responses": {}},
		"put": {"operationId": "put_report", "tags": ["reports"], "summary": "Replace a report", "requestBody": {"content": {"application/pdf": {}}}, "responses": {}}
	}
},
"webhooks": {"user.created": {"post": {"summary": "A user is there", "responses": {}}}},
"components": {
	"schemas": {"User": {"description": "A person.", "properties": {"birth_date": {"type": "string"}}}},
	"parameters": {"Day": {"name": "start_date", "in": "query", "required": true}},
	"securitySchemes": {"TeamKey": {"type": "apiKey", "in": "header", "name": "x-clinic-key"}, "UserToken": {"type": "http", "scheme": "bearer"}}
}}`

func read(t *testing.T, path string) (int, string) {
	t.Helper()
	h := reference.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { fmt.Fprint(w, contract) }))
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequest(http.MethodGet, path, http.NoBody))
	return w.Code, w.Body.String()
}

func TestPage_showsACurlCommandOfEachOperation(t *testing.T) {
	_, users := read(t, "/docs/users")
	_, reports := read(t, "/docs/reports")
	var got []string
	for _, m := range regexp.MustCompile(`(?s)<h3>curl</h3><pre tabindex="0"><code>(.*?)</code>`).FindAllStringSubmatch(users+reports, -1) {
		got = append(got, html.UnescapeString(m[1]))
	}
	require.Equal(t, []string{
		"curl \"$URL/v2/user/${USER_ID}?start_date=${START_DATE}\" \\\n  -H \"x-clinic-key: ${TEAM_KEY}\"",
		"curl -X POST \"$URL/v2/user/${USER_ID}\" \\\n  -H \"authorization: Bearer ${USER_TOKEN}\" \\\n  -H \"content-type: application/json\" \\\n  -d '{\n    \"name\": \"O'\\''Neil\"\n  }'",
		"curl -X PUT \"$URL/v2/user/${USER_ID}\" \\\n  -H \"content-type: application/json\" \\\n  -d @body.json",
		"curl -X POST \"$URL/report\" \\\n  -H \"x-clinic-key: ${TEAM_KEY}\" \\\n  -F file=@file",
		"curl -X PUT \"$URL/report\" \\\n  -H \"x-clinic-key: ${TEAM_KEY}\" \\\n  -H \"content-type: application/pdf\" \\\n  --data-binary @body",
	}, got)
}

func TestPage_rendersMarkdownOfDescriptions(t *testing.T) {
	_, index := read(t, "/docs/")
	require.Contains(t, index, `Decide by <code>error_type</code>, <strong>never</strong> by a text; see <a href="https://docs.example.org/a">the guide</a>.`)
	_, users := read(t, "/docs/users")
	require.Contains(t, users, `The <code>user</code>.`)
	for _, page := range []string{index, users} {
		require.NotRegexp(t, "`|\\*\\*|\\]\\(", page)
	}
}

// A search finds operations, events and types by all words, in names first.
func TestSearch_findsByAllWordsWithNamesFirst(t *testing.T) {
	for text, want := range map[string][]string{
		"user":                    {"/docs/users#get_user", "/docs/users#set_user", "/docs/users#put_user", "/docs/events#user.created", "/docs/types#User"},
		"change USER":             {"/docs/users#set_user"},
		"get_user":                {"/docs/users#get_user"},
		"nick_name":               {"/docs/users#set_user"},
		"birth":                   {"/docs/types#User"},
		"/report":                 {"/docs/reports#send_report", "/docs/reports#put_report"},
		"reports replace":         {"/docs/reports#put_report"},
		"none of that":            nil,
		" ":                       nil,
		"":                        nil,
		"\xff":                    nil,
		"<script>alert(1)":        nil,
		strings.Repeat("a", 9000): nil,
	} {
		status, page := read(t, "/docs/search?q="+url.QueryEscape(text))
		require.Equal(t, http.StatusOK, status)
		require.NotContains(t, page, "<script")
		require.Less(t, len(page), 6000)
		var got []string
		for _, m := range regexp.MustCompile(`<li><a href="([^"]+#[^"]+)"`).FindAllStringSubmatch(page, -1) {
			got = append(got, m[1])
		}
		require.Equal(t, want, got, "%.20q", text)
	}
	_, page := read(t, "/docs/users")
	require.Contains(t, page, `action="/docs/search"`)
}
