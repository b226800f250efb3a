package main

import (
	"bytes"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/operations/blob"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/store"
)

// uploadName begins the name of an uploaded file.
const uploadName = "scan-zq-marker"

// planted are invented values of a person, the name of an uploaded file and what it says among them.
// None of them may be in the database or in files in clear.
var planted = []string{"Quillonia", "Brackwater", "1931-07-23", "77 Zanzibar Mews", "zq-marker@example.com", "+14155550199", "note-zq-marker", "Hartley", "05/21/1980", uploadName}

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
	status, made := send(p, u.ID, uploadName+".pdf", reportPDF())
	require.Equal(t, http.StatusOK, status)
	var job struct{ ID, Status string }
	require.NoError(t, json.Unmarshal(made, &job))
	wait(t, func() bool {
		p.get("/lab_report/v1/parser/job/"+job.ID, &job)
		return job.Status == "completed"
	})
	post(p, "/v2/link/provider/manual/manual", `{"user_id":"`+u.ID+`"}`)
	post(p, "/v2/timeseries/"+u.ID+"/note", `{"stage":"daily","provider":"manual","time_zone":"UTC","source":{"type":"app"},"data":[
		{"timestamp":"2026-03-01T07:00:00Z","end":"2026-03-01T08:00:00Z","unit":"text","value":"note-zq-marker"}]}`)
	return u.ID, placed.Order.ID
}

// listsOf returns the paths of the contract whose answers show both users.
func listsOf(p *program, one, other string) (out []string) {
	p.Helper()
	var doc struct {
		Paths map[string]map[string]json.RawMessage `json:"paths"`
	}
	require.NoError(p, json.Unmarshal(httpapi.OpenAPI(), &doc))
	given := strings.NewReplacer("{team_id}", teamOf(p.key).String(), "{org_id}", orgOf(p), "{environment}", "sandbox", "{region}", "us")
	for path, operations := range doc.Paths {
		path = given.Replace(path)
		if _, ok := operations["get"]; !ok || strings.Contains(path, "{") {
			continue
		}
		if code, body := answerTo(p, path); code == http.StatusOK && strings.Contains(body, one) && strings.Contains(body, other) {
			out = append(out, path)
		}
	}
	return out
}

// answerTo returns the status and the body of the answer to a request.
func answerTo(p *program, path string) (int, string) {
	p.Helper()
	r, err := http.NewRequestWithContext(p.Context(), http.MethodGet, p.url+path, http.NoBody)
	require.NoError(p, err)
	r.Header.Set("x-service-api-key", p.key)
	r.Header.Set("x-management-key", "manager")
	answer, err := http.DefaultClient.Do(r)
	require.NoError(p, err)
	body, err := io.ReadAll(answer.Body)
	require.NoError(p, err)
	require.NoError(p, answer.Body.Close())
	return answer.StatusCode, string(body)
}

// keptFiles returns the names of the files in a folder, and fails if one has a planted value.
func keptFiles(t *testing.T, folder string) (names []string) {
	t.Helper()
	eachFile(t, folder, func(path string) error {
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for i, mark := range planted {
			require.False(t, bytes.Contains(content, []byte(mark)) || strings.Contains(path, mark), "value %d is in a file", i)
		}
		names = append(names, path)
		return nil
	})
	return names
}

// eachFile calls do for each file in a folder. A running server may remove files and folders meanwhile.
func eachFile(t *testing.T, folder string, do func(path string) error) {
	t.Helper()
	require.NoError(t, filepath.WalkDir(folder, func(path string, e fs.DirEntry, err error) error {
		if err == nil && !e.IsDir() {
			err = do(path)
		}
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		return err
	}))
}

func notesOf(user string) string {
	return "/v2/timeseries/" + user + "/note/grouped?start_date=2026-03-01&end_date=2026-03-02"
}

// No planted value is in a backup. Erasing a person erases the person from backups, too: in
// a restored backup nothing of the person can be read, others are as they were, and the command
// erases what is left.
func TestBackup_erasedPersonIsUnreadableInBackups(t *testing.T) {
	t.Parallel()
	hook := newServer(t, func(http.ResponseWriter, *http.Request) {})
	database, secret, backup := pgtest.Empty(t), secretFile(t), filepath.Join(t.TempDir(), "data.sql")
	files, copied := t.TempDir(), filepath.Join(t.TempDir(), "files")
	p := start(t, "-database-url", database, "-secret-file", secret, "-files", files, "-webhook-url", hook, "-encrypt-samples", "-management-key", "manager")
	erased, erasedOrder := plant(t, p, "erased")
	kept, keptOrder := plant(t, p, "kept")
	dump(t, database, backup)
	requireNoMarks(t, backup)
	lists := listsOf(p, erased, kept)
	for _, list := range []string{"/v2/user/", "/v3/orders", "/lab_report_job", "/access_log"} {
		require.True(t, slices.ContainsFunc(lists, func(path string) bool { return strings.HasSuffix(path, list) }), list)
	}
	before := keptFiles(t, files)
	require.NoError(t, os.CopyFS(copied, os.DirFS(files)))
	ask(p, "DELETE", "/v2/user/"+erased+"?grace=0", "", 200, nil)
	// Files of reports are deleted by the background work.
	wait(t, func() bool { return len(keptFiles(t, files)) == len(before)/2 })
	p.quit()
	after := keptFiles(t, files)
	requireFilesOpen(t, database, secret, copied, before, after)

	restored := pgtest.Empty(t)
	out, err := exec.CommandContext(t.Context(), "psql", "--quiet", "--set=ON_ERROR_STOP=1", "--file="+backup, restored).CombinedOutput()
	require.NoError(t, err, "%s", out)
	args := []string{"-database-url", restored, "-keys-url", database, "-secret-file", secret, "-files", t.TempDir(), "-webhook-url", hook, "-management-key", "manager"}
	p = start(t, args...)
	status := func(path string) int {
		code, body := answerTo(p, path)
		if path == "/v3/order/"+keptOrder {
			require.Contains(t, body, "Quillonia")
		} else {
			require.NotContains(t, body, "Quillonia")
		}
		return code
	}
	require.Equal(t, http.StatusOK, status("/v3/order/"+keptOrder))
	require.Equal(t, http.StatusNotFound, status("/v3/order/"+erasedOrder))
	require.Equal(t, http.StatusOK, status(notesOf(kept)), "encrypted samples are read by a server that does not encrypt them")
	require.Equal(t, http.StatusNotFound, status(notesOf(erased)))
	require.Equal(t, http.StatusOK, status("/v2/user/"+erased), "the backup has the user")
	for _, path := range lists {
		code, body := answerTo(p, path)
		require.Equal(t, http.StatusOK, code, path)
		require.Contains(t, body, kept, path)
		if !strings.Contains(path, "access_log") { // its lines name the users of the past
			require.NotContains(t, body, erased, path)
		}
	}
	p.quit()
	export := func(user string, more ...string) (string, error) {
		var lines bytes.Buffer
		err := run(t.Context(), append([]string{"export", "-database-url", restored, "-keys-url", database, "-team", teamOf(p.key).String(), "-user", user, "-resource", "note"},
			more...), &lines, io.Discard)
		return lines.String(), err
	}
	lines, err := export(kept, "-secret-file", secret)
	require.NoError(t, err)
	require.Contains(t, lines, "note-zq-marker")
	_, err = export(erased, "-secret-file", secret)
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = export(kept)
	require.ErrorIs(t, err, healthlab.Unavailable, "encrypted samples need the keys")

	var said bytes.Buffer
	require.NoError(t, run(t.Context(), append([]string{"keys", "erase"}, args...), &said, io.Discard))
	require.Equal(t, "1 users without a key were erased\n", said.String())
	pool := pgtest.Connect(t, restored)
	require.Equal(t, []int{0, 1}, []int{rowsOfUser(t, pool, erased), rowsOfOthers(t, pool, erased)})
}

// requireFilesOpen requires that of the copies of files those of a person who is there open, and
// those of an erased person do not.
func requireFilesOpen(t *testing.T, database, secret, copied string, before, after []string) {
	t.Helper()
	made, err := newMaster(secret)
	require.NoError(t, err)
	host, err := made.sealer("", true)
	require.NoError(t, err)
	kept, err := openStorage(t.Context(), storeAt{database: database, keys: keysAt{sealer: host}}, nil)
	require.NoError(t, err)
	place, err := blob.OpenDirectory(copied, nil)
	require.NoError(t, err)
	store, err := blob.New(place, host, &blob.Options{Keys: kept.PersonKeys()})
	require.NoError(t, err)
	rows, err := kept.pool.Query(t.Context(), `select encode(substr(id, 17), 'hex')::uuid, encode(substr(id, 1, 16), 'hex')::uuid
		from healthlab_keys.person_key where substr(id, 1, 16) <> decode(repeat('00', 16), 'hex')`)
	require.NoError(t, err)
	owners, err := pgx.CollectRows(rows, pgx.RowToStructByPos[struct{ Team, User uuid.UUID }])
	require.NoError(t, err)
	for _, path := range before {
		_, key, found := strings.Cut(path, "/lab-reports/")
		if !found {
			continue
		}
		key = "lab-reports/" + strings.TrimSuffix(key, ".age")
		opens := 0
		for _, o := range owners {
			if f, err := store.Get(t.Context(), healthlab.TeamID{UUID: o.Team}, healthlab.UserID{UUID: o.User}, key); err == nil {
				require.NoError(t, f.Close())
				opens++
			}
		}
		want := 0
		if slices.Contains(after, path) {
			want = 1
		}
		require.Equal(t, want, opens, "persons whose key opens a copy of a file")
	}
	require.NoError(t, kept.close(t.Context()))
}

// rowsOfUser counts what a database has of a user, in all tables.
func rowsOfUser(t *testing.T, pool *pgxpool.Pool, user string) int {
	t.Helper()
	engine, err := postgres.Open(t.Context(), pool, stores.Tables(), nil)
	require.NoError(t, err)
	got, err := engine.Read(t.Context(), store.Query{Key: store.Key{User: healthlab.UserID{UUID: uuid.MustParse(user)}}, By: store.ByUser, Bare: true})
	require.NoError(t, err)
	return len(got[0])
}

func rowsOfOthers(t *testing.T, pool *pgxpool.Pool, user string) (n int) {
	t.Helper()
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from healthlab."order" where user_id <> $1`, user).Scan(&n))
	return n
}

// The keys of persons are sealed under the first of -sealing-keys while the server runs, and
// then the secret's own key is not needed for them.
func TestKeys_rotateWhileTheServerRuns(t *testing.T) {
	t.Parallel()
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
	require.NoError(t, pool.QueryRow(t.Context(), `select count(*) from healthlab_keys.person_key where convert_from(doc, 'UTF8') not like '%"2027"%'`).Scan(&others))
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

// After a rotation the older key and the secret are needed for nothing: a server without them reads
// orders, signing secrets and files.
func TestKeys_afterRotationTheOldSecretIsNotNeeded(t *testing.T) {
	t.Parallel()
	hook := newServer(t, func(http.ResponseWriter, *http.Request) {})
	database, secret, signing, files, sealing := pgtest.Empty(t), secretFile(t), secretFile(t), t.TempDir(), secretFile(t)
	args := []string{"-database-url", database, "-signing-key", signing, "-files", files, "-webhook-url", hook}
	p := start(t, append(args, "-secret-file", secret)...)
	hookSecret := p.until("webhook secret: ")
	user, order := plant(t, p, "ann")

	require.NoError(t, os.WriteFile(sealing, []byte("2027 "+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{9}, 32))+"\n"), 0o600))
	args = append(args, "-sealing-keys", sealing)
	require.NoError(t, run(t.Context(), append([]string{"keys", "rotate", "-secret-file", secret}, args...), io.Discard, io.Discard))
	p.quit()

	p = start(t, append(args, "-api-key", p.key)...)
	require.Equal(t, hookSecret, p.until("webhook secret: "))
	var read struct {
		PatientDetails struct {
			FirstName string `json:"first_name"`
		} `json:"patient_details"`
	}
	p.get("/v3/order/"+order, &read)
	require.Equal(t, "Quillonia", read.PatientDetails.FirstName)
	p.quit()

	newest, err := master(nil).sealer(sealing, false)
	require.NoError(t, err)
	kept, err := openStorage(t.Context(), storeAt{database: database, keys: keysAt{sealer: newest}}, nil)
	require.NoError(t, err)
	place, err := blob.OpenDirectory(files, nil)
	require.NoError(t, err)
	store, err := blob.New(place, newest, &blob.Options{Keys: kept.PersonKeys()})
	require.NoError(t, err)
	owner := healthlab.UserID{UUID: uuid.MustParse(user)}
	opened := 0
	for _, name := range keptFiles(t, files) {
		if _, key, found := strings.Cut(name, "/lab-reports/"); found {
			f, err := store.Get(t.Context(), teamOf(p.key), owner, "lab-reports/"+strings.TrimSuffix(key, ".age"))
			require.NoError(t, err)
			require.NoError(t, f.Close())
			opened++
		}
	}
	require.Positive(t, opened)
	require.NoError(t, kept.close(t.Context()))
}

// What seals, what signs and the API key are set apart. A secret beside the data is a warning in
// production, and a database needs one elsewhere.
func TestSecret_keysAreSetSeparatelyAndAFileBesideTheDataWarns(t *testing.T) {
	t.Parallel()
	folder := filepath.Join(t.TempDir(), "db")
	parse := func(args ...string) (config, string, error) {
		var said bytes.Buffer
		c, _, err := flags(args, &said)
		return c, said.String(), err
	}
	c, said, err := parse("-data", folder)
	require.NoError(t, err)
	require.Equal(t, filepath.Join(folder, "secret"), c.secretFile)
	require.Empty(t, said)
	require.Equal(t, "made of "+c.secretFile, c.secretPlace())
	_, said, err = parse("-env", "production", "-data", folder)
	require.NoError(t, err)
	require.Contains(t, said, "the secret is kept beside the data")

	production := []string{"-env", "production", "-database-url", "postgres://db.example.com/clinic", "-files", t.TempDir()}
	_, _, err = parse(production...)
	require.ErrorContains(t, err, "needs -secret-file, or all of -sealing-keys, -signing-key and -api-key")

	sealing, signing := secretFile(t), secretFile(t)
	require.NoError(t, os.WriteFile(sealing, []byte("k1 "+base64.StdEncoding.EncodeToString(bytes.Repeat([]byte{9}, 32))+"\n"), 0o600))
	key, _, err := httpapi.NewKey(rand.Reader, healthlab.Production, region)
	require.NoError(t, err)
	c, said, err = parse(append(production, "-sealing-keys", sealing, "-signing-key", signing, "-api-key", key)...)
	require.NoError(t, err)
	require.Empty(t, said)
	require.Empty(t, c.secretFile)
	require.Equal(t, key, c.apiKey)
	box, err := c.sealer.Seal(t.Context(), []byte("x"), nil)
	require.NoError(t, err)
	require.Equal(t, "k1", box.KeyID)
	kept, err := newMaster(signing)
	require.NoError(t, err)
	require.Equal(t, kept, c.signing)
	for _, missing := range [][]string{{"-signing-key", signing, "-api-key", key}, {"-sealing-keys", sealing, "-api-key", key}, {"-sealing-keys", sealing, "-signing-key", signing}} {
		_, _, err = parse(append(production, missing...)...)
		require.ErrorContains(t, err, "needs -secret-file", "%v", missing)
	}

	c, _, err = parse("-store", "memory")
	require.NoError(t, err)
	require.Equal(t, "made by this process, but for the parts that flags set; they end with it", c.secretPlace())
}
