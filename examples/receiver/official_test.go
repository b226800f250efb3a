package main

import (
	"encoding/json"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	standard "github.com/standard-webhooks/standard-webhooks/libraries/go"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/webhook"
)

// signed is one message, as the libraries of others are to judge it.
type signed struct {
	Name    string            `json:"name"`
	Secret  string            `json:"secret"`
	Headers map[string]string `json:"headers"`
	Body    string            `json:"body"`
	Good    bool              `json:"good"`
}

// messages returns valid messages of many sizes and signers, and forged ones.
func messages(t *testing.T) []signed {
	t.Helper()
	now := time.Now()
	key := func(text string) webhook.Secret {
		s, err := webhook.ParseSecret(text)
		require.NoError(t, err)
		return s
	}
	one, two := key(oldSecret), key(newSecret)
	long := key("whsec_" + strings.Repeat("QUJD", 21) + "QQ==")
	var out []signed
	add := func(name string, good bool, key webhook.Secret, body string, at time.Time, change func(h http.Header), signers ...webhook.Secret) {
		h := http.Header{}
		webhook.SetSignature(h, webhook.MessageID(uuid.New()), at, []byte(body), signers...)
		if change != nil {
			change(h)
		}
		headers := map[string]string{}
		for name := range h {
			headers[strings.ToLower(name)] = h.Get(name)
		}
		out = append(out, signed{name, key.Text(), headers, body, good})
	}
	bodies := map[string]string{
		"an event":  `{"event_type":"daily.data.sleep.created","user_id":"4f0f6c4c-3a54-4a6c-8a0b-0f8f0c1d2e3f","data":{"calendar_date":"2026-03-01","total":27000}}`,
		"accents":   `{"note":"café ☕ 𝛑"}`,
		"spaces":    " { \"a\" :\r\n1 } ",
		"escapes":   `{"a":"\u00e9\\\"<>&"}`,
		"a large":   `{"a":"` + strings.Repeat("0123456789", 100_000) + `"}`,
		"an object": `{}`,
	}
	for name, body := range bodies {
		add(name, true, one, body, now, nil, one)
		add(name+", long secret", true, long, body, now, nil, long)
		add(name+", rotation, old", true, one, body, now, nil, two, one)
		add(name+", rotation, new", true, two, body, now, nil, two, one)
		add(name+", another's secret", false, two, body, now, nil, one)
		add(name+", changed id", false, one, body, now, func(h http.Header) { h.Set(webhook.HeaderID, "msg_2") }, one)
		add(name+", too old", false, one, body, now.Add(-10*time.Minute), nil, one)
		add(name+", too new", false, one, body, now.Add(10*time.Minute), nil, one)
	}
	return out
}

// The official library for Go accepts our signatures and refuses forged ones; and we accept
// its signatures.
func TestSignatures_agreeWithTheOfficialGoLibrary(t *testing.T) {
	for _, m := range messages(t) {
		t.Run(m.Name, func(t *testing.T) {
			theirs, err := standard.NewWebhook(m.Secret)
			require.NoError(t, err)
			h := http.Header{}
			for name, value := range m.Headers {
				h.Set(name, value)
			}
			require.Equal(t, m.Good, theirs.Verify([]byte(m.Body), h) == nil)
			key, err := webhook.ParseSecret(m.Secret)
			require.NoError(t, err)
			require.Equal(t, m.Good, webhook.Verify([]byte(m.Body), h, time.Now(), key) == nil)

			now := time.Now()
			signature, err := theirs.Sign("msg_1", now, []byte(m.Body))
			require.NoError(t, err)
			require.Equal(t, signature, webhook.Sign(key, "msg_1", now, []byte(m.Body)))
		})
	}
}

// judge is a program for Node: it reads messages, and writes what the library says.
const judge = `
const { Webhook } = require("standardwebhooks");
const verdicts = JSON.parse(require("fs").readFileSync(0, "utf8")).map((m) => {
  const w = new Webhook(m.secret);
  let good = true;
  try { w.verify(m.body, m.headers); } catch (e) { good = false; }
  const at = new Date(1767225600000);
  return { good, signature: w.sign("msg_1", at, m.body) };
});
process.stdout.write(JSON.stringify(verdicts));
`

// The same with the official library for JavaScript, which npm fetches.
func TestSignatures_agreeWithTheOfficialJavaScriptLibrary(t *testing.T) {
	dir := t.TempDir()
	for _, program := range []string{"node", "npm"} {
		if _, err := exec.LookPath(program); err != nil {
			cannot(t, "there is no "+program)
		}
	}
	fetch := exec.CommandContext(t.Context(), "npm", "install", "--prefix", dir, "--no-audit", "--no-fund", "--ignore-scripts",
		"--fetch-retries=1", "--fetch-timeout=20000", "standardwebhooks@1.1.1")
	fetch.Dir = dir
	if out, err := fetch.CombinedOutput(); err != nil {
		t.Log(string(out))
		cannot(t, "npm could not fetch the library")
	}
	program := filepath.Join(dir, "judge.cjs")
	require.NoError(t, os.WriteFile(program, []byte(judge), 0o600))
	all := messages(t)
	asked, err := json.Marshal(all)
	require.NoError(t, err)
	run := exec.CommandContext(t.Context(), "node", program)
	run.Dir = dir
	run.Stdin = strings.NewReader(string(asked))
	run.Stderr = os.Stderr
	out, err := run.Output()
	require.NoError(t, err)
	var verdicts []struct {
		Good      bool   `json:"good"`
		Signature string `json:"signature"`
	}
	require.NoError(t, json.Unmarshal(out, &verdicts))
	require.Len(t, verdicts, len(all))
	for i, m := range all {
		key, err := webhook.ParseSecret(m.Secret)
		require.NoError(t, err)
		require.Equal(t, m.Good, verdicts[i].Good, m.Name)
		require.Equal(t, verdicts[i].Signature, webhook.Sign(key, "msg_1", time.Unix(1767225600, 0), []byte(m.Body)), m.Name)
	}
}

// cannot skips the test on a machine without what it needs, and fails it in CI.
func cannot(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("CI") != "" {
		require.FailNow(t, fmt.Sprintf("%s: CI must be able to run this", why))
	}
	t.Skip(why + ": the signatures are not compared with the official library for JavaScript")
}
