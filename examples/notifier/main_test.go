package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/webhook/webhooktest"
)

func TestRun_sendsAMessageAndVerifiesIt(t *testing.T) {
	var out bytes.Buffer
	require.NoError(t, run(t.Context(), &out))
	require.Equal(t, "sent: ok\nread and verified: {\"event_type\":\"labtest.order.updated\"}\n", out.String())
}

func TestFileNotifier_passesTheSuite(t *testing.T) {
	webhooktest.RunNotifier(t, func(t testing.TB) webhooktest.NotifierHarness {
		folder := t.TempDir()
		path := filepath.Join(folder, "events.jsonl")
		require.NoError(t, os.WriteFile(path, nil, 0o600))
		return webhooktest.NotifierHarness{
			Notifier: NewFiles(folder), URL: "files://events.jsonl", Unreachable: "files://nowhere.jsonl",
			Received: func(t testing.TB) []webhooktest.Message {
				data, err := os.ReadFile(path)
				require.NoError(t, err)
				var out []webhooktest.Message
				for line := range bytes.Lines(data) {
					var m Message
					require.NoError(t, json.Unmarshal(line, &m))
					out = append(out, webhooktest.Message(m))
				}
				return out
			},
		}
	})
}
