package main

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"go.etcd.io/bbolt"

	"github.com/healthlab-dev/healthlab/webhook"
	"github.com/healthlab-dev/healthlab/webhook/receiver"
	"github.com/healthlab-dev/healthlab/webhook/receiver/receivertest"
)

// newStore is a fresh store, and its clock.
func newStore(t testing.TB) (*Seen, func(time.Duration)) {
	t.Helper()
	db, err := bbolt.Open(filepath.Join(t.TempDir(), "seen.db"), 0o600, &bbolt.Options{NoSync: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, db.Close()) })
	var mu sync.Mutex
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s, err := NewSeen(db, func() time.Time {
		mu.Lock()
		defer mu.Unlock()
		return at
	})
	require.NoError(t, err)
	return s, func(d time.Duration) {
		mu.Lock()
		defer mu.Unlock()
		at = at.Add(d)
	}
}

func TestSeen(t *testing.T) {
	receivertest.RunSeen(t, func(t *testing.T) receivertest.SeenHarness {
		s, advance := newStore(t)
		return receivertest.SeenHarness{Seen: s, Advance: advance}
	})
}

func TestPrune(t *testing.T) {
	s, advance := newStore(t)
	c := receiver.Claim{Token: uuid.New(), ID: "msg_1", Key: "order", Lease: time.Minute, Keep: time.Hour, KeepVersion: 2 * time.Hour}
	verdict, err := s.Claim(t.Context(), c)
	require.NoError(t, err)
	require.Equal(t, receiver.Fresh, verdict)
	require.NoError(t, s.Done(t.Context(), c))
	count := func() (n int) {
		require.NoError(t, s.db.View(func(tx *bbolt.Tx) error {
			n = tx.Bucket(ids).Stats().KeyN + tx.Bucket(keys).Stats().KeyN
			return nil
		}))
		return n
	}
	for _, want := range []int{2, 1, 0} {
		require.NoError(t, s.Prune())
		require.Equal(t, want, count())
		advance(time.Hour)
	}
}

// An event that comes again after a restart is printed once.
func TestRestart(t *testing.T) {
	const secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	const body = `{"event_type":"daily.data.glucose.created","event_id":"0199d3a4-0000-7000-8000-000000000001",` +
		`"user_id":"6f0a1c1e-0000-4000-8000-000000000001","client_user_id":"member-42","team_id":"6f0a1c1e-0000-4000-8000-000000000002",` +
		`"sent_at":"2026-03-01T12:00:00+00:00","sequence":1,"data":{"user_id":"6f0a1c1e-0000-4000-8000-000000000001","data":[]}}`
	file := filepath.Join(t.TempDir(), "seen.db")
	var printed bytes.Buffer
	deliver := func() int {
		ctx, stop := context.WithCancel(t.Context())
		defer stop()
		out, in := io.Pipe()
		ended := make(chan error, 1)
		go func() { ended <- run(ctx, "127.0.0.1:0", secret, file, io.MultiWriter(&printed, firstLine{in})) }()
		line := make([]byte, 200)
		n, err := out.Read(line)
		require.NoError(t, err)
		_, url, _ := strings.Cut(strings.TrimSpace(string(line[:n])), "listening on ")
		r, err := http.NewRequestWithContext(ctx, http.MethodPost, url, strings.NewReader(body))
		require.NoError(t, err)
		key, err := webhook.ParseSecret(secret)
		require.NoError(t, err)
		webhook.SetSignature(r.Header, "msg_1", time.Now(), []byte(body), key)
		answer, err := http.DefaultClient.Do(r)
		require.NoError(t, err)
		require.NoError(t, answer.Body.Close())
		stop()
		require.NoError(t, <-ended)
		return answer.StatusCode
	}
	for range 2 {
		require.Equal(t, http.StatusNoContent, deliver())
	}
	require.Equal(t, 1, strings.Count(printed.String(), "new samples"), printed.String())
}

// firstLine writes lines that name the address alone.
type firstLine struct{ w io.Writer }

func (f firstLine) Write(p []byte) (int, error) {
	if bytes.HasPrefix(p, []byte("listening")) {
		return f.w.Write(p)
	}
	return len(p), nil
}
