package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// takeTransaction answers a transaction as a FHIR server that takes it.
func takeTransaction(w http.ResponseWriter, r *http.Request) {
	var b struct{ Entry []json.RawMessage }
	if err := json.NewDecoder(r.Body).Decode(&b); err != nil {
		w.WriteHeader(http.StatusBadRequest)
		return
	}
	one := `{"response":{"status":"201 Created"}}`
	_, _ = io.WriteString(w, `{"resourceType":"Bundle","type":"transaction-response","entry":[`+strings.Join(slices.Repeat([]string{one}, len(b.Entry)), ",")+`]}`)
}

// The commands of docs/fhir.md make a person with data and a result, and read both as FHIR.
func TestDocs_commandsOfFHIRRun(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/fhir.md")
	require.NoError(t, err)
	var script strings.Builder
	blocks := regexp.MustCompile("(?s)```sh run\n(.*?)```").FindAllStringSubmatch(string(text), -1)
	require.Len(t, blocks, 14)
	for _, m := range blocks {
		script.WriteString(m[1])
	}
	for _, program := range []string{"curl", "openssl"} {
		if _, err := exec.LookPath(program); err != nil {
			require.Empty(t, os.Getenv("CI"), "CI must have "+program)
			t.Skip("there is no " + program)
		}
	}
	clients := newSmartClients(t)
	p := start(t, "-ehr-pipelines", "-management-key", "manager", "-smart-clients", clients.path)
	ehr := httptest.NewServer(http.HandlerFunc(takeTransaction))
	defer ehr.Close()
	org, team := orgOf(p), teamOf(p.key).String()
	cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", script.String())
	cmd.Env = append(os.Environ(), "URL="+p.url, "KEY="+p.key, "EHR="+ehr.URL, "ORG="+org, "TEAM="+team, "CLIENTS="+clients.path)
	cmd.Dir = t.TempDir()
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	for _, part := range []string{
		`"resourceType":"CapabilityStatement"`, `"resourceType":"Patient"`, `"value":61,`, `"left_out":{"Observation that is entered-in-error":1}`, `"samples":{"heartrate":2}`, `"valueSampledData"`, `"resourceType":"Group"`, `"transactionTime"`, `"resourceType":"DiagnosticReport"`, `"code":"laboratory"`, `"relation":"next"`, `"dead_letters":0,"pushed":`, `"type":"searchset","total":1`, `"failed":0,"dead_letters":0,"last_error":null`, `"next_cursor":null`, `"replayed":0`,
		`"scope":"system/Patient.read system/Observation.rs"`, `the token lacks the scope system/Device.s`, `"key:`, `{"access_token":`, `"error":"invalid_client"`, `"code":"login"`, `"code":"SUBSETTED"`, `"mode":"include"`,
	} {
		require.Contains(t, string(out), part)
	}
}
