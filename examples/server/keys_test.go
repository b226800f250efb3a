package main

import (
	"bytes"
	"encoding/base64"
	"encoding/hex"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/internal/pgtest"
)

// planted are invented values of a person, none of which may be in the database in clear.
var planted = []string{"Quillonia", "Brackwater", "1931-07-23", "77 Zanzibar Mews", "zq-marker@example.com", "+14155550199", "note-zq-marker"}

// dump returns a backup of the data, in the way of docs/operations.md but as text.
func dump(t *testing.T, database, file string) {
	t.Helper()
	if _, err := exec.LookPath("pg_dump"); err != nil {
		require.Empty(t, os.Getenv("CI"), "CI must have pg_dump")
		t.Skip("there is no pg_dump")
	}
	out, err := exec.CommandContext(t.Context(), "pg_dump", "--exclude-schema=healthlab_keys", "--no-owner", "--file="+file, database).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// requireNoMarks fails if a backup has a planted value, in text or in bytes.
func requireNoMarks(t *testing.T, file string) {
	t.Helper()
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Contains(t, string(text), "webhook_event")
	text = bytes.ToLower(text)
	for i, mark := range planted {
		low := bytes.ToLower([]byte(mark))
		require.False(t, bytes.Contains(text, low), "value %d is in the backup as text", i)
		require.False(t, bytes.Contains(text, []byte(hex.EncodeToString([]byte(mark)))), "value %d is in the backup as bytes", i)
		require.False(t, bytes.Contains(text, []byte(hex.EncodeToString(low))), "value %d is in the backup as bytes", i)
	}
}

// plant adds a user with the planted values, and returns the ids of the user and of an order.
func plant(t *testing.T, p *program, name string) (user, order string) {
	t.Helper()
	var u struct {
		ID string `json:"user_id"`
	}
	ask(p, "POST", "/v2/user/", `{"client_user_id":"`+name+`","fallback_birth_date":"1931-07-23"}`, 200, &u)
	person := `"first_name":"Quillonia","last_name":"Brackwater","dob":"1931-07-23","gender":"female","email":"zq-marker@example.com","phone_number":"+14155550199"`
	address := `{"receiver_name":"Quillonia Brackwater","first_line":"77 Zanzibar Mews","city":"Phoenix","state":"AZ","zip":"85004","country":"US","phone_number":"+14155550199"}`
	var placed struct{ Order struct{ ID string } }
	ask(p, "POST", "/v3/order", fmt.Sprintf(`{"user_id":"%s","lab_test_id":"%s","patient_details":{%s},"patient_address":%s,"clinical_notes":"note-zq-marker","consents":[{"consentType":"terms-of-use"},{"consentType":"telehealth-informed-consent"}]}`,
		u.ID, tourLabTest, person, address), 200, &placed)
	post(p, "/v3/order/"+placed.Order.ID+"/test", `{}`)
	wait(t, func() bool {
		var order struct{ Status string }
		p.get("/v3/order/"+placed.Order.ID, &order)
		return order.Status == "completed"
	})
	var found struct{ Total int }
	p.get("/v3/orders?patient_name=brackwat&user_id="+u.ID, &found)
	require.Equal(t, 1, found.Total, "the encrypted name is found by its beginning")
	return u.ID, placed.Order.ID
}

// No planted value is in a backup. Erasing a person erases the person from backups, too: in
// a restored backup nothing of the person can be read, others are as they were, and the command
// erases what is left.
func TestErasureReachesBackups(t *testing.T) {
	hook := newServer(t, func(http.ResponseWriter, *http.Request) {})
	database, secret, backup := pgtest.Empty(t), secretFile(t), filepath.Join(t.TempDir(), "data.sql")
	p := start(t, "-database-url", database, "-secret-file", secret, "-files", t.TempDir(), "-webhook-url", hook)
	erased, erasedOrder := plant(t, p, "erased")
	_, keptOrder := plant(t, p, "kept")
	dump(t, database, backup)
	requireNoMarks(t, backup)
	ask(p, "DELETE", "/v2/user/"+erased+"?grace=0", "", 200, nil)
	p.quit()

	restored := pgtest.Empty(t)
	out, err := exec.CommandContext(t.Context(), "psql", "--quiet", "--set=ON_ERROR_STOP=1", "--file="+backup, restored).CombinedOutput()
	require.NoError(t, err, "%s", out)
	args := []string{"-database-url", restored, "-keys-url", database, "-secret-file", secret, "-files", t.TempDir(), "-webhook-url", hook}
	p = start(t, args...)
	status := func(path string) int {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, p.url+path, http.NoBody)
		require.NoError(t, err)
		r.Header.Set("x-service-api-key", p.key)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		body, err := io.ReadAll(answer.Body)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		if path == "/v3/order/"+keptOrder {
			require.Contains(t, string(body), "Quillonia")
		} else {
			require.NotContains(t, string(body), "Quillonia")
		}
		return answer.StatusCode
	}
	require.Equal(t, http.StatusOK, status("/v3/order/"+keptOrder))
	require.Equal(t, http.StatusNotFound, status("/v3/order/"+erasedOrder))
	p.quit()

	var said bytes.Buffer
	require.NoError(t, run(t.Context(), append([]string{"keys", "erase"}, args...), &said, io.Discard))
	require.Equal(t, "1 users without a key were erased\n", said.String())
	pool := pgtest.Connect(t, restored)
	require.Equal(t, []int{0, 1}, []int{rowsOf(t, pool, erased), rowsOfOthers(t, pool, erased)})
}

func rowsOf(t *testing.T, pool *pgxpool.Pool, user string) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), `select (select count(*) from healthlab.users where user_id = $1) +
		(select count(*) from healthlab.orders where user_id = $1) + (select count(*) from healthlab.webhook_event where user_id = $1)`, user).Scan(&n))
	return n
}

func rowsOfOthers(t *testing.T, pool *pgxpool.Pool, user string) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from healthlab.orders where user_id <> $1`, user).Scan(&n))
	return n
}

// The keys of persons are sealed under the first of -sealing-keys while the server runs, and
// then the secret's own key is not needed for them.
func TestKeysRotate(t *testing.T) {
	database, secret, files := pgtest.Empty(t), secretFile(t), t.TempDir()
	args := []string{"-database-url", database, "-secret-file", secret, "-files", files}
	p := start(t, args...)
	_, order := plant(t, p, "ann")

	sealing := filepath.Join(t.TempDir(), "sealing")
	require.NoError(t, os.WriteFile(sealing, []byte("2027 "+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{9}, 32))+"\n"), 0o600))
	rotated := append(args, "-sealing-keys", sealing)
	var said bytes.Buffer
	require.NoError(t, run(t.Context(), append([]string{"keys", "rotate"}, rotated...), &said, io.Discard))
	require.Regexp(t, `^([0-9]+) of ([0-9]+) keys are sealed under the current key\n$`, said.String())
	said.Reset()
	require.NoError(t, run(t.Context(), append([]string{"keys", "rotate"}, rotated...), &said, io.Discard))
	require.Equal(t, "0 of 0 keys are sealed under the current key\n", said.String())
	pool := pgtest.Connect(t, database)
	var others int
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from healthlab_keys.person_key where key_id <> '2027'`).Scan(&others))
	require.Zero(t, others)
	p.quit()

	p = start(t, rotated...)
	var read struct {
		PatientDetails struct {
			FirstName string `json:"first_name"`
		} `json:"patient_details"`
	}
	p.get("/v3/order/"+order, &read)
	require.Equal(t, "Quillonia", read.PatientDetails.FirstName)
	p.quit()
	for _, bad := range [][]string{{"keys"}, {"keys", "list"}} {
		require.ErrorContains(t, run(t.Context(), bad, io.Discard, io.Discard), "server keys rotate|erase")
	}
	require.NoError(t, os.WriteFile(sealing, []byte("2027 short\n"), 0o600))
	require.ErrorContains(t, run(t.Context(), append([]string{"keys", "rotate"}, rotated...), io.Discard, io.Discard), "-sealing-keys: line 1")
}
