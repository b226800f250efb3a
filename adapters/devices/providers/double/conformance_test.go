package double_test

import (
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/double"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
)

// messages make what a provider sends about a person, signed with a secret.
var messages = map[string]func(p *double.Person, secret string) linking.Message{
	"google_health": func(p *double.Person, secret string) linking.Message {
		w := &p.Workouts[0]
		return linking.Message{Header: http.Header{"Authorization": {secret}}, Body: double.GoogleHealthMessage(p, "exercise", w.Start, w.End)}
	},
	"oura": func(p *double.Person, secret string) linking.Message {
		body, header := double.OuraMessage(p, "update", "sleep", p.Nights[0].ID, secret, noon)
		return linking.Message{Header: header, Body: body}
	},
	"polar": func(p *double.Person, secret string) linking.Message {
		body, header := double.PolarMessage(p, "SLEEP", secret, p.Nights[0].End)
		return linking.Message{Header: header, Body: body}
	},
	"suunto": func(p *double.Person, secret string) linking.Message {
		body, header := double.SuuntoMessage(double.SuuntoSleep(p, &p.Nights[0]), secret)
		return linking.Message{Header: header, Body: body}
	},
	"wahoo": func(p *double.Person, secret string) linking.Message {
		return linking.Message{Body: double.WahooMessage(p, 0, secret)}
	},
	"whoop": func(p *double.Person, secret string) linking.Message {
		body, header := double.WhoopMessage(p, "sleep.updated", p.Nights[0].ID, "trace", secret, noon)
		return linking.Message{Header: header, Body: body}
	},
	"withings": func(p *double.Person, secret string) linking.Message {
		return linking.Message{Query: map[string][]string{"token": {secret}}, Body: double.WithingsMessage(p, 44, p.Nights[0].Start, p.Nights[0].End)}
	},
}

// whole are the resources that a provider returns whole, whatever range is asked for.
var whole = map[string][]string{"polar": {"body_temperature_delta", "hrv", "respiratory_rate", "sleep", "sleep_cycle", "vo2_max", "weight"}, "wahoo": {"weight"}}

// secrets sign messages; providers without a row sign with the verify token.
var secrets = map[string]string{"oura": client.Secret, "whoop": client.Secret}

func TestConnectors_passTheConformanceSuite(t *testing.T) {
	for _, name := range slices.Sorted(maps.Keys(providers)) {
		t.Run(name, func(t *testing.T) {
			p := providers[name]
			linkingtest.RunConnector(t, func(t testing.TB) linkingtest.ConnectorHarness {
				one := double.NewPerson(3, noon, 10)
				d, truth := p.double(double.Options{People: []*double.Person{one}, Now: func() time.Time { return noon }, Limits: []double.Limit{{Requests: 1_000_000, Per: time.Minute}}})
				var fixed atomic.Pointer[http.HandlerFunc]
				server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
					if answer := fixed.Load(); answer != nil {
						answer.ServeHTTP(w, r)
						return
					}
					d.ServeHTTP(w, r)
				}))
				t.Cleanup(server.Close)
				c, err := p.make(options(server.URL, func() time.Time { return noon }))
				require.NoError(t, err)
				h := linkingtest.ConnectorHarness{
					Connector: c.Flows(), Scopes: c.OAuth.Minimum, From: noon.AddDate(0, 0, -12), To: noon, NoPKCE: !c.OAuth.PKCE, Whole: whole[name],
					Answer: func(status int, header map[string][]string, body string) {
						answer := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
							maps.Copy(w.Header(), header)
							w.WriteHeader(status)
							_, _ = io.WriteString(w, body) // a caller who has gone needs no answer
						})
						fixed.Store(&answer)
					},
					Approve: func(t testing.TB, page string) string {
						browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
						resp, err := browser.Get(page + "&person=" + one.ID)
						require.NoError(t, err)
						require.NoError(t, resp.Body.Close())
						to, err := url.Parse(resp.Header.Get("Location"))
						require.NoError(t, err)
						return to.Query().Get("code")
					},
				}
				for _, slug := range slices.Sorted(maps.Keys(truth(one))) {
					if class := healthdata.ResourceBySlug(slug).Class; slug != "profile" && (class == healthdata.ClassTimeseries || class == healthdata.ClassSummary) {
						h.Resources = append(h.Resources, slug)
					}
				}
				if p.permanent {
					h.Connector.Refresher = nil // it answers that the grant is over
				}
				make, ok := messages[name]
				if !ok {
					h.Connector.Listener = nil // its messages are tested by the connector's package
				}
				message := func(secret string) func(testing.TB) linking.Message {
					return func(testing.TB) linking.Message {
						m := make(one, secret)
						m.Method, m.At = http.MethodPost, noon
						return m
					}
				}
				secret := secrets[name]
				if secret == "" {
					secret = "verify"
				}
				h.Message, h.Forged = message(secret), message("guess")
				return h
			})
		})
	}
}
