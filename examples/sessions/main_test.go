package main

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
)

// Each session reaches the data of its own person alone, and the contract says how to sign in.
func TestSession_readsOnlyItsOwnPerson(t *testing.T) {
	server := httptest.NewServer(clinic(t.Context(), healthlab.TeamID{UUID: uuid.New()}))
	defer server.Close()
	call := func(client *http.Client, method, path, body string, status int) string {
		r, err := http.NewRequestWithContext(t.Context(), method, server.URL+path, strings.NewReader(body))
		require.NoError(t, err)
		r.Header.Set("Content-Type", "application/json")
		answer, err := client.Do(r)
		require.NoError(t, err)
		defer answer.Body.Close()
		text, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.Equal(t, status, answer.StatusCode, "%s %s: %s", method, path, text)
		return string(text)
	}
	signIn := func(name string) (*http.Client, string) {
		jar, err := cookiejar.New(nil)
		require.NoError(t, err)
		client := &http.Client{Jar: jar}
		call(client, "POST", "/login?name="+name, "", http.StatusOK)
		var page struct {
			Users []struct {
				ID string `json:"user_id"`
			}
		}
		require.NoError(t, json.Unmarshal([]byte(call(client, "GET", "/health/v2/user/", "", http.StatusOK)), &page))
		require.Len(t, page.Users, 1)
		return client, page.Users[0].ID
	}
	ann, annID := signIn("ann")
	ben, _ := signIn("ben")
	weight := `{"provider":"manual","source":{"type":"app"},"data":[{"timestamp":"2026-03-01T07:00:00Z","unit":"kg","value":70.4}]}`
	call(ann, "POST", "/health/v2/link/provider/manual/manual", `{"user_id":"`+annID+`"}`, http.StatusOK)
	call(ben, "POST", "/health/v2/link/provider/manual/manual", `{"user_id":"`+annID+`"}`, http.StatusNotFound)
	call(ann, "POST", "/health/v2/timeseries/"+annID+"/body_weight", weight, http.StatusOK)
	require.Contains(t, call(ann, "GET", "/health/v2/timeseries/"+annID+"/body_weight/grouped?start_date=2026-03-01", "", http.StatusOK), "70.4")
	call(ben, "GET", "/health/v2/timeseries/"+annID+"/body_weight/grouped?start_date=2026-03-01", "", http.StatusNotFound)
	call(ben, "POST", "/health/v2/timeseries/"+annID+"/body_weight", weight, http.StatusNotFound)
	call(http.DefaultClient, "GET", "/health/v2/user/", "", http.StatusUnauthorized)
	contract := call(http.DefaultClient, "GET", "/health/openapi.json", "", http.StatusOK)
	require.Regexp(t, `"in":\s*"cookie"`, regexp.MustCompile(`"in":[^,]*`).FindAllString(contract, -1))
	require.False(t, strings.Contains(contract, "/v3/order"))
}
