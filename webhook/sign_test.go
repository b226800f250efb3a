package webhook_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"log/slog"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/webhook"
)

const (
	k1 = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
	k2 = "whsec_ZGVmZ2hpamtsbW5vcHFyc3R1dnd4eXp7fH1+f4CBgoM="
	// public is the secret of the interoperability vector of Standard Webhooks.
	public = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
)

var vectors = []struct {
	name, secret, id string
	at               int64
	body, signature  string
}{
	{"public", public, "msg_p5jXN8AQM9LWM0D4loKWxJek", 1614265330,
		`{"test": 2432232314}`, "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE="},
	{"first key", k1, "msg_0001", 1767225600,
		`{"event_type":"daily.data.steps.created","data":{}}`, "v1,k0cepTrWoPKg6czQZYcDFrgNRZuOBT8/4QyxrwaHuNA="},
	{"second key", k2, "msg_0001", 1767225600,
		`{"event_type":"daily.data.steps.created","data":{}}`, "v1,N1TL0R8gwYAvrgk5gxsv1k0wC1db/PKQHDeLXp6aNPA="},
	{"not ASCII", k1, "msg_0002", 1767225601,
		"{\"note\":\"caf\xc3\xa9\"}", "v1,mIbyx/V8xoJ3JpdaaXetSXqOiDFz+O89cynus85c0yg="},
	{"empty body", k1, "msg_0003", 1767225602,
		"", "v1,tPYSV9r9EKMWAlAZ5LTaC/nrX244xx06ENjUbekZCuc="},
}

func secret(t testing.TB, text string) webhook.Secret {
	t.Helper()
	s, err := webhook.ParseSecret(text)
	require.NoError(t, err)
	return s
}

func TestSign_matchesThePublishedVectors(t *testing.T) {
	for _, v := range vectors {
		t.Run(v.name, func(t *testing.T) {
			s, at := secret(t, v.secret), time.Unix(v.at, 0)
			require.Equal(t, v.signature, webhook.Sign(s, v.id, at, []byte(v.body)))
			h := http.Header{}
			webhook.SetSignature(h, v.id, at, []byte(v.body), s)
			require.NoError(t, webhook.Verify([]byte(v.body), h, at, s))
			require.NoError(t, webhook.VerifyArchived([]byte(v.body), h, s))
			require.Error(t, webhook.Verify([]byte(v.body+" "), h, at, s))
		})
	}
}

func TestSign_withTwoSecretsPutsTheNewestFirst(t *testing.T) {
	v, at := vectors[1], time.Unix(1767225600, 0)
	h := http.Header{}
	webhook.SetSignature(h, v.id, at, []byte(v.body), secret(t, k2), secret(t, k1))
	require.Equal(t, vectors[2].signature+" "+vectors[1].signature, h.Get("webhook-signature"))
	require.NoError(t, webhook.Verify([]byte(v.body), h, at, secret(t, k1)))
	require.NoError(t, webhook.Verify([]byte(v.body), h, at, secret(t, k2)))
}

func TestVerify_eachDefectHasItsReason(t *testing.T) {
	v := vectors[1]
	now := time.Unix(v.at, 0)
	headers := func(change ...string) http.Header {
		h := http.Header{}
		h.Set("webhook-id", v.id)
		h.Set("webhook-timestamp", fmt.Sprint(v.at))
		h.Set("webhook-signature", v.signature)
		for i := 0; i < len(change); i += 2 {
			h.Set(change[i], change[i+1])
		}
		return h
	}
	wrong := "v1," + strings.Repeat("A", 43) + "="
	for _, c := range []struct {
		name string
		h    http.Header
		at   time.Time
		want webhook.VerifyReason
	}{
		{"valid", headers(), now, ""},
		{"names in another case", http.Header{
			"webhook-id":        {v.id},
			"WEBHOOK-TIMESTAMP": {fmt.Sprint(v.at)},
			"Webhook-signature": {v.signature},
		}, now, ""},
		{"no id", headers("webhook-id", ""), now, webhook.MissingHeader},
		{"no timestamp", headers("webhook-timestamp", ""), now, webhook.MissingHeader},
		{"no signature", headers("webhook-signature", ""), now, webhook.MissingHeader},
		{"nothing", http.Header{}, now, webhook.MissingHeader},
		{"timestamp of letters", headers("webhook-timestamp", "soon"), now, webhook.BadTimestamp},
		{"timestamp with fraction", headers("webhook-timestamp", "1767225600.0"), now, webhook.BadTimestamp},
		{"timestamp with sign", headers("webhook-timestamp", "+1767225600"), now, webhook.BadTimestamp},
		{"timestamp with leading zero", headers("webhook-timestamp", "01767225600"), now, webhook.BadTimestamp},
		{"timestamp beyond int64", headers("webhook-timestamp", "92233720368547758080"), now, webhook.BadTimestamp},
		{"300 s old", headers(), now.Add(300 * time.Second), ""},
		{"300 s old and a fraction", headers(), now.Add(300*time.Second + 999*time.Millisecond), ""},
		{"301 s old", headers(), now.Add(301 * time.Second), webhook.TimestampTooOld},
		{"300 s new", headers(), now.Add(-300 * time.Second), ""},
		{"301 s new", headers(), now.Add(-301 * time.Second), webhook.TimestampTooNew},
		{"the oldest timestamp", headers("webhook-timestamp", "-9223372036854775808"), now, webhook.TimestampTooOld},
		{"the newest timestamp", headers("webhook-timestamp", "9223372036854775807"), now, webhook.TimestampTooNew},
		{"wrong signature", headers("webhook-signature", wrong), now, webhook.NoMatchingSignature},
		{"unknown versions first", headers("webhook-signature", wrong+" v2,abc nothing  "+v.signature), now, ""},
		{"asymmetric only", headers("webhook-signature", "v1a,"+v.signature[3:]), now, webhook.NoMatchingSignature},
		{"another id", headers("webhook-id", "msg_0002"), now, webhook.NoMatchingSignature},
		{"another time", headers("webhook-timestamp", "1767225601"), now, webhook.NoMatchingSignature},
	} {
		t.Run(c.name, func(t *testing.T) {
			err := webhook.Verify([]byte(v.body), c.h, c.at, secret(t, k2), secret(t, k1))
			if c.want == "" {
				require.NoError(t, err)
				return
			}
			var refused *webhook.VerifyError
			require.ErrorAs(t, err, &refused)
			require.Equal(t, c.want, refused.Reason)
			require.ErrorIs(t, err, healthlab.Unauthenticated)
		})
	}
}

// One signature must not stand for two messages: "a" + "." + "1.2" + "." + body.
func TestVerify_refusesAFullStopInTheMessageID(t *testing.T) {
	at, s := time.Unix(1767225600, 0), secret(t, k1)
	h := http.Header{}
	webhook.SetSignature(h, "msg.1", at, nil, s)
	require.ErrorContains(t, webhook.Verify(nil, h, at, s), "no_matching_signature")
}

func TestVerify_withoutSecretsIsRefused(t *testing.T) {
	v, at := vectors[1], time.Unix(1767225600, 0)
	h := http.Header{}
	webhook.SetSignature(h, v.id, at, []byte(v.body), secret(t, k1))
	require.ErrorContains(t, webhook.Verify([]byte(v.body), h, at), "no_matching_signature")
	require.ErrorIs(t, webhook.Verify([]byte(v.body), h, at, webhook.Secret{}), healthlab.Invalid)
	require.Empty(t, webhook.Sign(webhook.Secret{}, v.id, at, nil))
}

func TestVerifier_optionsChangePrefixAndTolerance(t *testing.T) {
	v, at := vectors[1], time.Unix(1767225600, 0)
	h := http.Header{}
	h.Set("acme-id", v.id)
	h.Set("acme-timestamp", fmt.Sprint(v.at))
	h.Set("acme-signature", v.signature)
	require.Error(t, webhook.Verify([]byte(v.body), h, at, secret(t, k1)))
	wide := webhook.Verifier{Prefix: "acme-", Tolerance: time.Hour}
	require.NoError(t, wide.Verify([]byte(v.body), h, at.Add(time.Hour), secret(t, k1)))
	require.Error(t, wide.Verify([]byte(v.body), h, at.Add(time.Hour+time.Second), secret(t, k1)))
}

func TestParseSecret_refusesWrongLengthsAndPrefixes(t *testing.T) {
	require.Equal(t, k1, secret(t, k1).Text())
	require.Equal(t, k1, secret(t, strings.TrimPrefix(k1, "whsec_")).Text(), "the prefix may be missing")
	for _, c := range []struct{ name, text string }{
		{"empty", ""},
		{"prefix alone", "whsec_"},
		{"23 bytes", "whsec_AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="},
		{"65 bytes", "whsec_" + strings.Repeat("AAAA", 21) + "AAA="},
		{"no padding", strings.TrimSuffix(k1, "=")},
		{"URL alphabet", "whsec_" + strings.Repeat("-_-_", 8)},
		{"line break", k1[:20] + "\n" + k1[20:]},
		{"other prefix", "whsk_" + k1[6:]},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := webhook.ParseSecret(c.text)
			require.ErrorIs(t, err, healthlab.Invalid)
		})
	}
}

func TestSecret_isRedactedWhenPrinted(t *testing.T) {
	s, err := webhook.GenerateSecret(rand.Reader)
	require.NoError(t, err)
	require.Len(t, s.Text(), len(k1))
	var logs bytes.Buffer
	slog.New(slog.NewJSONHandler(&logs, nil)).Info("x", "secret", s)
	js, err := json.Marshal(map[string]any{"secret": s})
	require.NoError(t, err)
	for _, out := range []string{fmt.Sprint(s), fmt.Sprintf("%v %+v %#v %q %s", s, s, s, s, s), logs.String(), string(js)} {
		require.NotContains(t, out, s.Text()[6:])
		require.Contains(t, out, "redacted")
	}
	_, err = webhook.GenerateSecret(strings.NewReader("too short"))
	require.Error(t, err)
}

func TestMessageID_hasFixedLengthAndIsUnique(t *testing.T) {
	seen := map[string]bool{}
	for _, id := range []uuid.UUID{uuid.Nil, uuid.Max, uuid.MustParse("018e5f2a-7b1c-7d3e-8f90-a1b2c3d4e5f6")} {
		m := webhook.MessageID(id)
		require.Regexp(t, `^msg_[0-9A-Za-z]{27}$`, m)
		require.Equal(t, m, webhook.MessageID(id))
		require.False(t, seen[m])
		seen[m] = true
	}
	// Computed apart from this code: 20 bytes as a number, in base 62.
	require.Equal(t, "msg_0DlVSuPzoHicy7IowTn3G0Pxu1I", webhook.MessageID(uuid.MustParse("018e5f2a-7b1c-7d3e-8f90-a1b2c3d4e5f6")))
}

func FuzzVerify(f *testing.F) {
	for _, v := range vectors {
		f.Add(v.id, fmt.Sprint(v.at), v.signature, []byte(v.body))
	}
	f.Add("msg_1", "-1", "v1, v1,x v1", []byte{})
	f.Fuzz(func(t *testing.T, id, ts, signature string, body []byte) {
		s := secret(t, k1)
		h := http.Header{"Webhook-Id": {id}, "Webhook-Timestamp": {ts}, "Webhook-Signature": {signature}}
		err := webhook.VerifyArchived(body, h, s)
		if err == nil {
			require.Contains(t, strings.Split(signature, " "), signatureOf(t, s, id, ts, body))
		}
	})
}

// signatureOf signs the way the specification reads, with nothing of the package
// but Sign.
func signatureOf(t *testing.T, s webhook.Secret, id, ts string, body []byte) string {
	t.Helper()
	var sec int64
	_, err := fmt.Sscan(ts, &sec)
	require.NoError(t, err)
	return webhook.Sign(s, id, time.Unix(sec, 0), body)
}
