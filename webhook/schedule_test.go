package webhook_test

import (
	"net/http"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v4"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/webhook"
)

func delays(s webhook.Schedule) []time.Duration {
	var out []time.Duration
	b := s()
	for d := b.NextBackOff(); d != backoff.Stop; d = b.NextBackOff() {
		out = append(out, d)
	}
	return out
}

func TestDefaultSchedule_hasSevenDelaysAndJitter(t *testing.T) {
	want := []time.Duration{
		5 * time.Second, 5 * time.Minute, 30 * time.Minute, 2 * time.Hour, 5 * time.Hour, 10 * time.Hour, 10 * time.Hour,
	}
	require.Equal(t, want, delays(webhook.DefaultSchedule(0, nil)))
	sum := time.Duration(0)
	for _, d := range want {
		sum += d
	}
	require.Equal(t, 27*time.Hour+35*time.Minute+5*time.Second, sum)

	require.Equal(t, []time.Duration{2, 1}, delays(webhook.Delays(2, 1)))
	jittered := delays(webhook.DefaultSchedule(0.5, func() float64 { return 0.5 }))
	require.Equal(t, 5*time.Second, jittered[0], "short delays are exact")
	require.Equal(t, 375*time.Second, jittered[1])
	require.Equal(t, 12*time.Hour+30*time.Minute, jittered[6])
}

func TestParseRetryAfter_readsSecondsAndDates(t *testing.T) {
	for _, c := range []struct {
		name, value string
		want        time.Duration
	}{
		{"nothing", "", 0},
		{"seconds", "120", 2 * time.Minute},
		{"with spaces", " 120 ", 2 * time.Minute},
		{"zero", "0", 0},
		{"negative", "-5", 0},
		{"fraction", "1.5", 0},
		{"date", noon.Add(time.Hour).Format(http.TimeFormat), time.Hour},
		{"past date", noon.Add(-time.Hour).Format(http.TimeFormat), 0},
		{"ten years, date", noon.AddDate(10, 0, 0).Format(http.TimeFormat), 24 * time.Hour},
		{"ten years, seconds", "315360000", 24 * time.Hour},
		{"beyond any number", "99999999999999999999999999999999", 24 * time.Hour},
		{"words", "later", 0},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, webhook.ParseRetryAfter(c.value, noon)) })
	}
}

func FuzzParseRetryAfter(f *testing.F) {
	for _, s := range []string{"1", "120", "-1", "Mon, 02 Jan 2006 15:04:05 GMT", "99999999999999999999", "\x00"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, value string) {
		d := webhook.ParseRetryAfter(value, noon)
		require.True(t, d >= 0 && d <= 24*time.Hour)
	})
}

func TestClassOf_mapsStatusCodesToClasses(t *testing.T) {
	for status, want := range map[int]webhook.Class{
		200: webhook.ClassOK, 204: webhook.ClassOK, 299: webhook.ClassOK,
		301: webhook.ClassRedirect, 302: webhook.ClassRedirect, 304: webhook.ClassRedirect, 308: webhook.ClassRedirect,
		410: webhook.ClassGone,
		429: webhook.ClassThrottled, 502: webhook.ClassThrottled, 503: webhook.ClassThrottled, 504: webhook.ClassThrottled,
		400: webhook.ClassRefused, 401: webhook.ClassRefused, 404: webhook.ClassRefused, 500: webhook.ClassRefused, 600: webhook.ClassRefused, 101: webhook.ClassRefused,
	} {
		require.Equal(t, want, webhook.ClassOf(status), status)
	}
}
