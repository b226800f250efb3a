package main

import (
	"archive/zip"
	"bytes"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
)

// fetch reads a path of the API.
func fetch(p *program, path string) (status int, body []byte) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), http.MethodGet, p.url+path, http.NoBody)
	require.NoError(p, err)
	r.Header.Set("x-service-api-key", p.key)
	answer, err := http.DefaultClient.Do(r)
	require.NoError(p, err)
	defer answer.Body.Close()
	body, err = io.ReadAll(answer.Body)
	require.NoError(p, err)
	return answer.StatusCode, body
}

// The export of a person has everything that was planted, and no file of it is left after the
// erasure.
func TestPersonExport_containsEverythingUntilTheErasure(t *testing.T) {
	t.Parallel()
	hook := newServer(t, func(http.ResponseWriter, *http.Request) {})
	files := t.TempDir()
	p := start(t, "-database-url", pgtest.Empty(t), "-secret-file", secretFile(t), "-files", files, "-webhook-url", hook)
	user, order := plant(t, p, "exported")
	ask(p, "PATCH", "/v2/user/"+user+"/info", `{"first_name":"Quillonia","last_name":"Brackwater","email":"zq-marker@example.com","phone_number":"+14155550199","gender":"female","dob":"1931-07-23",
		"address":{"first_line":"77 Zanzibar Mews","city":"Phoenix","state":"AZ","zip":"85004","country":"US"}}`, 200, nil)
	ask(p, "POST", "/v2/link/provider/manual/manual", `{"user_id":"`+user+`"}`, 200, nil)
	ask(p, "POST", "/v2/timeseries/"+user+"/heartrate", `{"stage":"daily","provider":"manual","time_zone":"UTC","source":{"type":"watch"},"data":[
		{"timestamp":"2026-03-01T07:00:00Z","value":61.25,"unit":"bpm"}]}`, 200, nil)

	path := "/v2/user/" + user + "/export"
	type export struct {
		ID     string `json:"id"`
		Status string `json:"status"`
		Path   string `json:"download_path"`
	}
	var job export
	ask(p, "POST", path, "", 202, &job)
	wait(t, func() bool {
		p.get(path+"/"+job.ID, &job)
		return job.Status == "completed"
	})
	status, body := fetch(p, job.Path)
	require.Equal(t, http.StatusOK, status)
	z, err := zip.NewReader(bytes.NewReader(body), int64(len(body)))
	require.NoError(t, err)
	content := map[string]string{}
	var all strings.Builder
	for _, f := range z.File {
		r, err := f.Open()
		require.NoError(t, err)
		text, err := io.ReadAll(r)
		require.NoError(t, err)
		content[f.Name] = string(text)
		all.Write(text)
	}
	for i, mark := range planted {
		if mark == uploadName {
			continue // names of uploads are kept nowhere
		}
		require.Contains(t, all.String(), mark, "value %d is missing", i)
	}
	require.Contains(t, content["person/demographics.json"], "Zanzibar")
	require.Contains(t, content["samples/heartrate.ndjson"], `"value":61.25`)
	require.True(t, strings.HasPrefix(content["samples/heartrate.parquet"], "PAR1"))
	require.Contains(t, content["orders/orders.ndjson"], order)
	require.Contains(t, content["orders/orders.ndjson"], `"results":[`)
	require.True(t, strings.HasPrefix(content["documents/"+order+"_requisition.pdf"], "%PDF"))
	require.True(t, strings.HasPrefix(content["documents/"+order+"_result.pdf"], "%PDF"))
	require.Contains(t, content["access/access_log.ndjson"], `"start_user_export"`)
	require.Contains(t, content["access/access_log.ndjson"], `"job:export"`)

	require.NotZero(t, exportsIn(t, files))
	ask(p, "DELETE", "/v2/user/"+user+"?grace=0", "", 200, nil)
	require.Zero(t, exportsIn(t, files))
	status, _ = fetch(p, job.Path)
	require.Equal(t, http.StatusNotFound, status)
}

// exportsIn counts the files of exports in a folder.
func exportsIn(t *testing.T, folder string) (n int) {
	t.Helper()
	eachFile(t, folder, func(path string) error {
		if strings.Contains(filepath.ToSlash(path), "/exports/") {
			n++
		}
		return nil
	})
	return n
}
