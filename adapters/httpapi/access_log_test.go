package httpapi_test

import (
	"context"
	"crypto/ed25519"
	"errors"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
)

func newAccess(t *testing.T) *accesslog.Service {
	t.Helper()
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	s, err := accesslog.New(memory.New(nil).AccessLog(), key, nil)
	require.NoError(t, err)
	return s
}

// Every access to a person's data is in the log before it is answered, refused ones too.
func TestAccessLog_everyAccessIsRecordedBeforeItsAnswer(t *testing.T) {
	c, user := full(t)
	keyed := uuid.New()
	authenticate := c.Authenticate
	c.Authenticate = func(r *http.Request) (httpapi.Caller, error) {
		who, err := authenticate(r)
		who.Key = keyed
		return who, err
	}
	client := contract.NewClient(t, c.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	at := "/v2/user/" + user.String()
	client.Send(t, "GET", at, nil).Want(t, 200)
	client.Send(t, "GET", "/v2/summary/sleep/"+user.String()+"?start_date=2026-03-01", nil).Want(t, 200)
	client.Send(t, "GET", "/v2/user/", nil).Want(t, 200)
	client.Send(t, "POST", "/v2/link/token", object{"user_id": user}).Want(t, 200)
	client.Send(t, "GET", "/v3/order/"+uuid.NewString(), nil).Want(t, 404)
	client.Send(t, "GET", "/v2/providers", nil).Want(t, 200) // concerns no person
	client.With("x-service-api-key", "other").Send(t, "GET", at, nil).Want(t, 404)

	var page struct {
		Lines []struct {
			Seq                             int
			Actor, Kind, Operation, Address string
			User                            *healthlab.UserID `json:"user_id"`
			Status                          int
			Request                         string `json:"request_id"`
		}
		Next *int `json:"next_cursor"`
	}
	client.Send(t, "GET", "/v2/access_log", nil).Want(t, 200).JSON(t, &page)
	var got []string
	for _, l := range page.Lines {
		who := "none"
		if l.User != nil {
			require.Equal(t, user, *l.User)
			who = "user"
		}
		require.Equal(t, "key:"+keyed.String(), l.Actor)
		require.NotEmpty(t, l.Request)
		got = append(got, strings.Join([]string{l.Kind, l.Operation, who}, " "))
	}
	require.Equal(t, []string{"data read_user user", "data read_sleep user", "data list_users user", "link create_link_token user", "orders read_order none"}, got)
	require.Equal(t, 404, page.Lines[4].Status)

	client.Send(t, "GET", "/v2/access_log?limit=2&user_id="+user.String(), nil).Want(t, 200).JSON(t, &page)
	require.Len(t, page.Lines, 2)
	require.Equal(t, 2, *page.Next)
	client.Send(t, "GET", at+"/access_log", nil).Want(t, 200).JSON(t, &page)
	require.Greater(t, len(page.Lines), 4)
	require.Equal(t, "read_access_log", page.Lines[4].Operation, "reading the log about a person is in it")
	other := client.With("x-service-api-key", "other")
	other.Send(t, "GET", "/v2/access_log", nil).Want(t, 200).JSON(t, &page)
	require.Len(t, page.Lines, 1, "that of the other team")
	head, err := c.Access.Verify(t.Context(), team)
	require.NoError(t, err)
	require.Greater(t, head.Seq, int64(5))
}

// Requests with a link token are in the log of its team, with its user; those with a token that
// is not ours are in none.
func TestAccessLog_linkTokenRequestsAreRecordedForTheirTeam(t *testing.T) {
	c, user := full(t)
	client := contract.NewClient(t, c.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	var made struct {
		Token string `json:"link_token"`
	}
	client.Send(t, "POST", "/v2/link/token", object{"user_id": user}).Want(t, 200).JSON(t, &made)
	anonymous := contract.NewClient(t, c.handler(), httpapi.OpenAPI())
	anonymous.With("x-service-link-token", made.Token).Send(t, "GET", "/v2/link/state", nil).Want(t, 200)
	anonymous.With("x-service-link-token", made.Token).Send(t, "GET", "/v2/link/providers", nil).Want(t, 200)
	anonymous.With("x-service-link-token", "eyJhbGciOiJIUzI1NiJ9.e30.e30").Send(t, "GET", "/v2/link/state", nil)
	lines, err := c.Access.Lines(t.Context(), accesslog.Query{Team: team, Person: user, N: 10})
	require.NoError(t, err)
	var got []string
	for _, l := range lines {
		got = append(got, strings.Join([]string{l.Actor, l.Kind, l.Operation}, " "))
	}
	require.Equal(t, []string{"key link create_link_token", "link link read_link_state", "link link list_linkable_providers"}, got)
}

// downLog is a store that takes no entries.
type downLog struct{ accesslog.Store }

func (downLog) Append(context.Context, []accesslog.Entry, func()) error {
	return errors.New("disk full")
}

// A request whose access cannot be recorded gets an error instead of its answer.
func TestAccessLog_unrecordedAccessAnswersAnError(t *testing.T) {
	c, user := full(t)
	_, key, err := ed25519.GenerateKey(nil)
	require.NoError(t, err)
	c.Access, err = accesslog.New(downLog{memory.New(nil).AccessLog()}, key, nil)
	require.NoError(t, err)
	logs := &contract.Logs{}
	c.Log = logs.Logger()
	client := contract.NewClient(t, c.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	w, r := httptest.NewRecorder(), httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/v2/user/"+user.String(), nil)
	r.Header.Set("x-service-api-key", goodKey)
	c.handler().ServeHTTP(w, r)
	require.Equal(t, http.StatusServiceUnavailable, w.Code)
	require.JSONEq(t, `{"detail":{"error_type":"UNAVAILABLE","error_message":"the access could not be recorded; try again later"}}`, w.Body.String())
	require.Contains(t, logs.Take(), "access not recorded")
	client.Send(t, "GET", "/v2/providers", nil).Want(t, 200)
}

// The verifier in docs finds lines that were removed, changed or moved.
func TestPythonVerifier_findsRemovedChangedAndMovedLines(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Skip("python3 is not installed")
	}
	c, user := full(t)
	c.Organisations = nil // the team is of no organisation here
	client := contract.NewClient(t, c.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey).With("x-management-key", managementKey)
	for range 5 {
		client.Send(t, "GET", "/v2/user/"+user.String(), nil).Want(t, 200)
	}
	require.NoError(t, c.Access.Anchor(t.Context()))
	text := string(client.Send(t, "GET", "/v1/org/"+org.String()+"/team/"+team.String()+"/sandbox/access_log", nil).Want(t, 200).Body)
	lines := strings.SplitAfter(strings.TrimSuffix(text, "\n"), "\n")
	require.Len(t, lines, 6, "five lines and an anchor")
	verify := func(lines ...string) (string, error) {
		file := filepath.Join(t.TempDir(), "log.ndjson")
		require.NoError(t, os.WriteFile(file, []byte(strings.Join(lines, "")), 0o600))
		out, err := exec.CommandContext(t.Context(), python, "../../docs/verify_access_log.py", file).CombinedOutput()
		return string(out), err
	}
	out, err := verify(lines...)
	require.NoError(t, err, out)
	require.Contains(t, out, "5 lines")
	for name, bad := range map[string][]string{
		"removed":        {lines[0], lines[2], lines[3], lines[4], lines[5]},
		"cut at the end": {lines[0], lines[1], lines[2], lines[3], lines[5]},
		"cut in front":   {lines[1], lines[2], lines[3], lines[4], lines[5]},
		"changed":        {lines[0], strings.Replace(lines[1], `"status":200`, `"status":404`, 1), lines[2], lines[3], lines[4], lines[5]},
		"moved":          {lines[1], lines[0], lines[2], lines[3], lines[4], lines[5]},
	} {
		t.Run(name, func(t *testing.T) {
			out, err := verify(bad...)
			require.Error(t, err)
			require.Contains(t, out, "line ")
		})
	}
}
