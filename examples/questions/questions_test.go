package main

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
	"github.com/stretchr/testify/require"
)

// answers are what each question is answered with: lines in Go, and parts of the JSON of curl and of the
// assistant's call.
var answers = []struct {
	lines      string
	curl, call []string
}{
	{
		"January: 124000 steps, LDL 4.14 mmol/L\nFebruary: 252000 steps, LDL 3.10 mmol/L\nMarch: 294500 steps, LDL 3.10 mmol/L\n",
		[]string{`"sum":[124000,252000,294500]`, `"ldl.value":[4.138`, `,3.1,3.1]`, `"ldl.unit":["mmol/L","mmol/L","mmol/L"]`},
		[]string{`"value":124000`, `"value":252000`, `"value":294500`, `"value":4.138`, `"value":3.1}`, `"day":"2026-02-27"`},
	},
	{
		"week of 2026-03-02: 8.50 mmol/L, 75 % in range\nweek of 2026-03-09: 9.50 mmol/L, 50 % in range\n",
		[]string{`"mean":[8.5,9.5]`, `"time_in_range_in_range":[75,50]`}, []string{`"value":8.5}`, `"value":9.5}`, `"unit":"mmol/L"`},
	},
	{
		"January: 64.5 bpm over 31 nights\nFebruary: 61.5 bpm over 28 nights\nMarch: 58.5 bpm over 31 nights\n",
		[]string{`"count":[31,28,31]`, `61.5`}, []string{`"value":61.5`, `"unit":"bpm"`},
	},
	{
		"Hemoglobin: 12.9 g/dL, range 12.0 to 15.5 (Female)\n",
		[]string{`"value":12.9`, `"range_low":12,`, `"range_high":15.5`, `"range_group":"Female"`}, []string{`"value":12.9`, `"range_low":12,`, `"range_group":"Female"`},
	},
	{"weight: no data\n", []string{`"mean":[null]`}, []string{`"value":null`, `"no_data":true`}},
}

// code returns lines without indentation and empty lines.
func code(source string) string {
	var out strings.Builder
	for line := range strings.Lines(source) {
		if line = strings.Join(strings.Fields(line), " "); line != "" {
			out.WriteString(line + "\n")
		}
	}
	return out.String()
}

func blocks(page, kind string) (out []string) {
	for _, m := range regexp.MustCompile("(?s)\n```"+kind+"\n(.*?)\n```").FindAllStringSubmatch(page, -1) {
		out = append(out, m[1])
	}
	return out
}

// Every block of docs/guides/questions.md runs and gives the same answer: the Go of this program, curl, and an
// assistant's call.
func TestDocs_goCurlAndAssistantGiveTheSameAnswers(t *testing.T) {
	text, err := os.ReadFile("../../docs/guides/questions.md")
	require.NoError(t, err)
	page := string(text)
	source, err := os.ReadFile("main.go")
	require.NoError(t, err)
	for _, block := range blocks(page, "go") {
		require.Contains(t, "\n"+code(string(source)), "\n"+code(block))
	}
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), "", &out))
	want := ""
	for _, a := range answers {
		want += a.lines
	}
	require.Equal(t, want, out.String())

	p, err := newPerson(t.Context())
	require.NoError(t, err)
	server := httptest.NewServer(p.handler)
	defer server.Close()
	t.Run("assistant", func(t *testing.T) {
		calls := blocks(page, "json call")
		require.Len(t, calls, len(answers))
		session, err := sdk.NewClient(&sdk.Implementation{Name: "guide"}, nil).Connect(t.Context(),
			&sdk.StreamableClientTransport{Endpoint: server.URL + "/mcp", HTTPClient: &http.Client{Transport: keyed{}}}, nil)
		require.NoError(t, err)
		defer func() { require.NoError(t, session.Close()) }()
		for i, text := range calls {
			var call struct {
				Tool      string         `json:"tool"`
				Arguments map[string]any `json:"arguments"`
			}
			require.NoError(t, json.Unmarshal([]byte(text), &call))
			got, err := session.CallTool(t.Context(), &sdk.CallToolParams{Name: call.Tool, Arguments: call.Arguments})
			require.NoError(t, err)
			answer, err := json.Marshal(got.StructuredContent)
			require.NoError(t, err)
			require.False(t, got.IsError, text)
			for _, part := range answers[i].call {
				require.Contains(t, string(answer), part)
			}
		}
	})
	t.Run("curl", func(t *testing.T) {
		for _, program := range []string{"curl", "bash"} {
			if _, err := exec.LookPath(program); err != nil {
				t.Skip("there is no " + program)
			}
		}
		runs := blocks(page, "sh run")
		require.Len(t, runs, len(answers)+1)
		for i, script := range runs {
			cmd := exec.CommandContext(t.Context(), "bash", "-euc", script)
			cmd.Env = append(os.Environ(), "URL="+server.URL, "USER_ID="+p.user.String(), "KEY="+apiKey)
			out, err := cmd.CombinedOutput()
			require.NoError(t, err, "%s", out)
			if i == len(answers) {
				require.Contains(t, string(out), "%PDF-")
				continue
			}
			for _, part := range answers[i].curl {
				require.Contains(t, string(out), part)
			}
		}
	})
}

// keyed sends the key with each request.
type keyed struct{}

func (keyed) RoundTrip(r *http.Request) (*http.Response, error) {
	r = r.Clone(r.Context())
	r.Header.Set("Authorization", "Bearer "+apiKey)
	return http.DefaultTransport.RoundTrip(r)
}
