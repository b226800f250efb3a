package httpapi_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/healthdata"
)

func TestPriorities_arePatchedAndRead(t *testing.T) {
	c := newFixture(t, nil)
	const path = "/v2/team/source/priorities"
	patch := func(body string, status int) string {
		t.Helper()
		return string(c.Send(t, "PATCH", path, body).Want(t, status).Body)
	}
	require.JSONEq(t, `[]`, string(c.get(path, 200).Body))
	require.JSONEq(t, `[{"data_type":null,"provider":"manual","priority":5},{"data_type":"sleep","provider":"acme_band","priority":-1}]`,
		patch(`[{"data_type":"sleep","provider":"acme_band","priority":-1},{"provider":"manual","priority":5}]`, 200))
	require.JSONEq(t, `[{"data_type":null,"provider":"manual","priority":6}]`,
		patch(`[{"data_type":"sleep","provider":"acme_band","priority":null},{"data_type":null,"provider":"manual","priority":6}]`, 200))
	require.JSONEq(t, `[]`, string(c.get(path+"?data_type=sleep", 200).Body))
	require.Equal(t, []string{"query.data_type"}, c.get(path+"?data_type=moon", 422).Locs(t))
	require.JSONEq(t, `[]`, string(c.With("x-service-api-key", "other").Send(t, "GET", path, nil).Want(t, 200).Body))

	reply := c.Send(t, "PATCH", path, `[{"provider":"manual","priority":1},{"provider":"acme_ring","data_type":"moon","priority":9000000},{"provider":"manual","priority":2}]`).Want(t, 422)
	require.Equal(t, []string{"body.1.provider", "body.1.data_type", "body.1.priority", "body.2"}, reply.Locs(t))
	require.Equal(t, []string{"body.0.priority"}, c.Send(t, "PATCH", path, `[{"provider":"manual"}]`).Want(t, 422).Locs(t))
	require.JSONEq(t, `[{"data_type":null,"provider":"manual","priority":6}]`, string(c.get(path, 200).Body), "nothing of it was kept")
}

// Between two sources of equal type the team's preference decides what a query answers.
func TestPriorities_decideBetweenSourcesOfEqualTypeInQueries(t *testing.T) {
	c := newFixture(t, nil)
	_, err := c.health.Connections().Connect(t.Context(), team, c.user, healthdata.NewConnection{Provider: "manual"})
	require.NoError(t, err)
	steps := func(provider string, value string) {
		c.post(c.timeseries("steps"), `{"provider":"`+provider+`","source":{"type":"watch"},"data":[{"timestamp":"2026-03-01T07:00:00Z","start":"2026-03-01T07:00:00Z","end":"2026-03-01T08:00:00Z","unit":"count","value":`+value+`}]}`, 200)
	}
	steps("acme_band", "100")
	steps("manual", "700")
	ask := func() string {
		body := `{"timeframe":{"type":"relative","anchor":"2026-03-02","past":{"unit":"day","value":7}},"queries":[{"select":[{"func":"sum","arg":{"timeseries":"steps","field":"value"}}],"group_by":[{"date_trunc":{"unit":"day","value":1},"arg":{"index":"timeseries"}}]}]}`
		return string(c.post("/aggregate/v1/user/"+c.user.String()+"/query", body, 200).Body)
	}
	require.Contains(t, ask(), "[100", "by name")
	c.Send(t, "PATCH", "/v2/team/source/priorities", `[{"provider":"manual","data_type":"timeseries","priority":1}]`).Want(t, 200)
	require.Contains(t, ask(), "[700")
	require.NotContains(t, ask(), strings.TrimSpace("[100"))
}
