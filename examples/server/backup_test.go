package main

import (
	"bytes"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
)

// The commands of docs/operations.md back up a server that runs, and restore it on another
// machine: users, orders, files, the API key and the secret of the endpoint are as they were
// at the backup.
func TestBackup_databaseIsRestoredOnAnotherMachine(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../docs/operations.md")
	require.NoError(t, err)
	section := string(text[bytes.Index(text, []byte("\n## Backup\n")):])
	blocks := regexp.MustCompile("(?s)```sh\n(.*?)```").FindAllStringSubmatch(section, 2)
	require.Len(t, blocks, 2, "one block of commands makes the backup, one restores it")
	for _, name := range []string{"pg_dump", "pg_restore"} {
		if _, err := exec.LookPath(name); err != nil {
			require.Empty(t, os.Getenv("CI"), "CI must have %s", name)
			t.Skipf("there is no %s", name)
		}
	}
	commands := func(block, database, files, secret, backup string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "bash", "-euo", "pipefail", "-c", block)
		cmd.Env = append(os.Environ(), "DATABASE_URL="+database, "FILES="+files, "SECRET_FILE="+secret, "BACKUP="+backup)
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%s\n%s", block, out)
	}

	events := make(chan string, 100)
	hook := newServer(t, func(_ http.ResponseWriter, r *http.Request) { events <- r.Header.Get("webhook-signature") })
	database, secret, files, backup := pgtest.Empty(t), secretFile(t), t.TempDir(), t.TempDir()
	p := start(t, "-database-url", database, "-secret-file", secret, "-files", files, "-webhook-url", hook)
	key, signing := p.key, p.until("webhook secret: ")
	p.connect("ann")
	var user struct {
		ID string `json:"user_id"`
	}
	p.get("/v2/user/resolve/ann", &user)
	post(p, "/v2/timeseries/"+user.ID+"/heartrate", `{"provider":"manual","source":{"type":"app"},"data":[{"timestamp":"2026-03-01T07:00:00+00:00","unit":"bpm","value":61}]}`)
	var placed struct{ Order struct{ ID string } }
	ask(p, "POST", "/v3/order", fmt.Sprintf(anOrder, user.ID, tourLabTest, time.Now().Year()-40), 200, &placed)
	post(p, "/v3/order/"+placed.Order.ID+"/test", `{}`)
	wait(t, func() bool {
		var order struct{ Status string }
		p.get("/v3/order/"+placed.Order.ID, &order)
		return order.Status == "completed"
	})
	const samples = "/v2/timeseries/%s/heartrate/grouped?start_date=2026-03-01&end_date=2026-03-02"
	old := p.url
	read := func(p *program) (all []string) {
		for _, path := range []string{"/v2/user/" + user.ID, fmt.Sprintf(samples, user.ID), "/v3/order/" + placed.Order.ID, "/v3/order/" + placed.Order.ID + "/result/pdf"} {
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+path, http.NoBody)
			require.NoError(t, err)
			r.Header.Set("x-service-api-key", p.key)
			answer, err := http.DefaultClient.Do(r)
			require.NoError(t, err)
			var body bytes.Buffer
			_, err = body.ReadFrom(answer.Body)
			require.NoError(t, err)
			require.NoError(t, answer.Body.Close())
			require.Equal(t, http.StatusOK, answer.StatusCode, path)
			all = append(all, strings.NewReplacer(p.url, "", old, "").Replace(body.String())) // links name it
		}
		return all
	}
	before := read(p)
	require.True(t, slices.ContainsFunc(before, func(s string) bool { return len(s) > 4 && s[:5] == "%PDF-" }))
	kept, err := filepath.Glob(files + "/*")
	require.NoError(t, err)
	require.NotEmpty(t, kept, "documents are in files")
	commands(blocks[0][1], database, files, secret, backup)
	post(p, "/v2/user/", `{"client_user_id":"after the backup"}`)
	p.quit()
	require.NoError(t, os.RemoveAll(files))
	require.NoError(t, os.Remove(secret))

	database, secret, files = pgtest.Empty(t), secretFile(t), filepath.Join(t.TempDir(), "files")
	commands(blocks[1][1], database, files, secret, backup)
	p = start(t, "-database-url", database, "-secret-file", secret, "-files", files, "-webhook-url", hook)
	require.Equal(t, key, p.key)
	require.Equal(t, signing, p.until("webhook secret: "))
	require.Equal(t, []string{"ann"}, p.names())
	for i, now := range read(p) {
		require.True(t, before[i] == now, "answer %d", i)
	}
	for len(events) > 0 {
		<-events
	}
	p.connect("bob")
	select {
	case signature := <-events:
		require.NotEmpty(t, signature)
	case <-time.After(time.Minute):
		require.Fail(t, "the restored server delivers nothing")
	}
	p.quit()
}

// The backup of a folder is made while the server runs, and what was answered before is in it. Without
// the keys that go elsewhere nothing of a person can be read.
func TestBackup_ofARunningFolderIsCompleteAndEncrypted(t *testing.T) {
	t.Parallel()
	dir, kept := filepath.Join(t.TempDir(), "data"), t.TempDir()
	p := start(t, "-data", dir)
	user, order := plant(t, p, "ann")
	data, keys := filepath.Join(kept, "data"), filepath.Join(kept, "keys")
	args := []string{"backup", "-data", dir, "-to", data, "-keys-to", keys}
	require.NoError(t, run(t.Context(), args, io.Discard, io.Discard))
	require.ErrorIs(t, run(t.Context(), args, io.Discard, io.Discard), fs.ErrExist, "a backup is not written over")
	post(p, "/v2/user/", `{"client_user_id":"later"}`)
	p.quit()

	require.NoFileExists(t, filepath.Join(data, keysFile))
	text, err := os.ReadFile(filepath.Join(data, dataFile))
	require.NoError(t, err)
	for i, mark := range planted {
		require.False(t, bytes.Contains(bytes.ToLower(text), bytes.ToLower([]byte(mark))), "value %d", i)
	}

	restored := filepath.Join(t.TempDir(), "restored")
	require.NoError(t, os.CopyFS(restored, os.DirFS(data)))
	for _, name := range []string{keysFile, secretName} {
		require.NoError(t, copyIfThere(filepath.Join(keys, name), filepath.Join(restored, name)))
	}
	p = start(t, "-data", restored)
	require.Equal(t, []string{"ann"}, p.names())
	ask(p, "GET", "/v3/order/"+order, "", 200, nil)
	ask(p, "GET", "/v2/user/"+user, "", 200, nil)
	p.quit()
}
