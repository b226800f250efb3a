package oauthrest_test

import (
	"errors"
	"net/http"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
)

// Whatever a provider answers, mapping it ends; what is read has a time that can be
// written, what is not is told with field and rule, and the same answer gives the same.
func FuzzAnswer(f *testing.F) {
	for _, doc := range []string{
		`{"user":"ann/7","next_cursor":"b","samples":[{"time":"2026-03-04T08:00:00+01:00","bpm":61,"device":"ring"}]}`,
		`{"nights":[{"zone":"Europe/Vienna","spo2":{"times":[1772600400,1e300],"values":[0.97]}}]}`,
		`[{"day":"2026-03-03","clock":"07:00","amount":"1e9","unit":"pound"}]`,
		`{"days":[{"day":"2026-03-03","steps":-1e18,"kilometres":5.5,"zone":"Mars"}]}`,
		`{"sleeps":[{"id":1,"begin":"2026-03-03T22:30:00Z","end":"9999-12-31T23:59:59-18:00","kind":"night","minutes":{"light":1e308}}]}`,
	} {
		f.Add([]byte(doc))
	}
	p := newFjord(f)
	c := p.connector(nil)
	f.Fuzz(func(t *testing.T, doc []byte) {
		p.data = func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(doc) }
		for _, resource := range []string{"heartrate", "blood_oxygen", "weight", "activity", "sleep"} {
			page, err := c.Pull(t.Context(), ask(resource))
			again, err2 := c.Pull(t.Context(), ask(resource))
			require.Equal(t, err == nil, err2 == nil)
			require.Equal(t, page, again)
			if err != nil {
				require.True(t, errors.Is(err, healthlab.Unavailable) || errors.Is(err, healthlab.Invalid))
				continue
			}
			for _, item := range page.Items {
				for _, s := range item.Samples {
					_, err := s.Timestamp.MarshalText()
					require.NoError(t, err)
					if s.TimezoneOffset != nil {
						require.LessOrEqual(t, time.Duration(*s.TimezoneOffset).Abs(), time.Duration(18*3600))
					}
				}
				for _, u := range item.Unparsed {
					require.NotEmpty(t, u.Problems)
				}
			}
		}
	})
}
