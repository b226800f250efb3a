package sandbox_test

import (
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/sandbox"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
)

func TestConnector_passesTheConnectorSuite(t *testing.T) {
	now := time.Date(2026, 3, 20, 12, 0, 0, 0, time.UTC)
	linkingtest.RunConnector(t, func(testing.TB) linkingtest.ConnectorHarness {
		c := sandbox.NewConnector("fitbit", &sandbox.ConnectorOptions{PushKey: []byte("a key of the provider"), Now: func() time.Time { return now }})
		push := func(c *sandbox.Connector) func(testing.TB) linking.Message {
			return func(testing.TB) linking.Message {
				header, body := c.Push("p1", "ann", time.Time{}, "steps")
				return linking.Message{Method: "POST", Header: header, Body: body, At: now}
			}
		}
		stranger := sandbox.NewConnector("fitbit", &sandbox.ConnectorOptions{PushKey: []byte("another key"), Now: func() time.Time { return now }})
		return linkingtest.ConnectorHarness{
			Connector: c.Flows(),
			Approve: func(t testing.TB, page string) string {
				to, err := c.Approve(page, "ann")
				require.NoError(t, err)
				u, err := url.Parse(to)
				require.NoError(t, err)
				return u.Query().Get("code")
			},
			RefusedPassword: linking.PasswordRequest{Username: "ann+refused", Password: "planted"},
			RefusedEmail:    linking.EmailRequest{Email: "ann+refused@riverside.example"},
			Resources:       []string{"steps", "heartrate", "sleep"}, From: now.AddDate(0, 0, -6), To: now,
			Message: push(c), Forged: push(stranger),
		}
	})
}
