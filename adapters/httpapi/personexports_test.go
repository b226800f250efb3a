package httpapi_test

import (
	"archive/zip"
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/privacy/personexport"
)

func exportPairs() []contract.Pair {
	return []contract.Pair{{Schema: "UserExport", Value: personexport.PublishedJob{}, Enums: map[string][]string{"status": {"in_progress", "completed", "failed"}}}}
}

// userFile is a source of an export with one file: the id of the user.
type userFile struct{}

func (userFile) Files(context.Context, healthlab.TeamID, healthlab.UserID) ([]string, error) {
	return []string{"user.txt"}, nil
}

func (userFile) Write(_ context.Context, _ healthlab.TeamID, user healthlab.UserID, _ string, w io.Writer) error {
	_, err := fmt.Fprint(w, user)
	return err
}

func newExports(t *testing.T, store *memory.Store, health *healthdata.Service, now func() time.Time) *personexport.Service {
	t.Helper()
	s, err := personexport.New(store.PersonExports(), store.Blobs(), health, map[string]personexport.Source{"person": userFile{}}, &personexport.Options{Now: now})
	require.NoError(t, err)
	return s
}

// finishExports does the background work that is due.
func (c *fixture) finishExports() {
	c.t.Helper()
	due, err := c.exports.Claim(c.t.Context(), 10, time.Hour)
	require.NoError(c.t, err)
	for _, j := range due {
		require.NoError(c.t, c.config.Exports.Step(c.t.Context(), j))
	}
}

func TestUserExport_isMadeDownloadedAndExpires(t *testing.T) {
	at := fixtureNow
	c := newFixture(t, &healthdata.Options{Now: func() time.Time { return at }})
	path := "/v2/user/" + c.user.String() + "/export"
	var job personexport.PublishedJob
	c.post(path, nil, http.StatusAccepted).JSON(t, &job)
	require.Equal(t, personexport.InProgress, job.Status)
	require.Nil(t, job.DownloadPath)
	early := c.get(path+"/"+job.ID.String()+"/zip", http.StatusConflict)
	require.Equal(t, personexport.RuleNotCompleted, early.ErrorType(t))

	c.finishExports()
	c.get(path+"/"+job.ID.String(), http.StatusOK).JSON(t, &job)
	require.Equal(t, personexport.Completed, job.Status)
	require.Equal(t, 1, job.FilesDone)
	reply := c.get(*job.DownloadPath, http.StatusOK)
	require.Equal(t, "application/zip", reply.Header.Get("Content-Type"))
	require.Contains(t, reply.Header.Get("Cache-Control"), "no-store")
	z, err := zip.NewReader(bytes.NewReader(reply.Body), int64(len(reply.Body)))
	require.NoError(t, err)
	require.Len(t, z.File, 2)
	require.Equal(t, "manifest.json", z.File[0].Name)
	f, err := z.Open("person/user.txt")
	require.NoError(t, err)
	text, err := io.ReadAll(f)
	require.NoError(t, err)
	require.Equal(t, c.user.String(), string(text))

	for range 2 {
		c.post(path, nil, http.StatusAccepted)
	}
	require.Equal(t, personexport.RuleTooManyExports, c.post(path, nil, http.StatusConflict).ErrorType(t))

	at = at.Add(7 * 24 * time.Hour)
	c.get(*job.DownloadPath, http.StatusNotFound)
	c.get(path+"/"+job.ID.String(), http.StatusNotFound)
}

// The export of a person of another team is answered as one of a person who does not exist.
func TestUserExport_ofAnotherTeamIsNotFound(t *testing.T) {
	c := newFixture(t, nil)
	other := contract.NewClient(t, c.config.handler(), httpapi.OpenAPI()).With("x-service-api-key", "other")
	own := "/v2/user/" + c.user.String() + "/export"
	var job personexport.PublishedJob
	c.post(own, nil, http.StatusAccepted).JSON(t, &job)
	c.finishExports()
	nobody := uuid.NewString()
	unknown := "/v2/user/" + nobody + "/export"
	for _, call := range []struct{ method, path string }{
		{"POST", ""}, {"GET", ""}, {"GET", "/" + job.ID.String()}, {"GET", "/" + job.ID.String() + "/zip"},
	} {
		want := other.Send(t, call.method, unknown+call.path, nil).Want(t, http.StatusNotFound)
		got := other.Send(t, call.method, own+call.path, nil).Want(t, http.StatusNotFound)
		require.JSONEq(t, strings.ReplaceAll(string(want.Body), nobody, c.user.String()), string(got.Body), call.method+" "+call.path)
	}
	// The other team's own user does not have this export, or any other.
	foreign := "/v2/user/" + c.foreign.String() + "/export/"
	for _, end := range []string{"", "/zip"} {
		none := uuid.NewString()
		want := other.Send(t, "GET", foreign+none+end, nil).Want(t, http.StatusNotFound)
		got := other.Send(t, "GET", foreign+job.ID.String()+end, nil).Want(t, http.StatusNotFound)
		require.Equal(t, personexport.RuleExportNotFound, got.ErrorType(t))
		require.JSONEq(t, strings.ReplaceAll(string(want.Body), none, job.ID.String()), string(got.Body))
	}
}

// A deleted user has no exports until the deletion is undone, and an erased one none at all.
func TestUserExport_ofADeletedUserIsNotFoundUntilUndone(t *testing.T) {
	c := newFixture(t, nil)
	path := "/v2/user/" + c.user.String() + "/export"
	var job personexport.PublishedJob
	c.post(path, nil, http.StatusAccepted).JSON(t, &job)
	c.finishExports()
	c.get(path+"/"+job.ID.String(), http.StatusOK).JSON(t, &job)
	require.NoError(t, c.health.Deletions().Delete(t.Context(), team, c.user))
	c.get(*job.DownloadPath, http.StatusNotFound)
	c.get(path, http.StatusNotFound)
	c.post(path, nil, http.StatusNotFound)
	_, err := c.health.Deletions().Undo(t.Context(), team, healthdata.DeletedUser{User: c.user})
	require.NoError(t, err)
	c.get(*job.DownloadPath, http.StatusOK)
}
