package httpapi_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
)

const pullPath = "/v1/org/{org}/team_data_pull_preferences/sandbox/us"

func pullsPath(query string) string {
	return strings.Replace(pullPath, "{org}", org.String(), 1) + query
}

func preference(of healthlab.TeamID, days string) string {
	return `{"team_id":"` + of.String() + `","providers":{"acme_band":` + days + `}}`
}

const (
	bandDefault = `{"default":{"historical_days_to_pull":90,"historical_days_to_pull_limit":180},
		"resource_overrides":{"sleep":{"historical_days_to_pull":10,"historical_days_to_pull_limit":10}}}`
	bandChosen = `{"default":{"historical_days_to_pull":30,"historical_days_to_pull_limit":180},"resource_overrides":{
		"sleep":{"historical_days_to_pull":10,"historical_days_to_pull_limit":10},
		"steps":{"historical_days_to_pull":7,"historical_days_to_pull_limit":180}}}`
)

func TestPullPreferences_areListedSetAndReset(t *testing.T) {
	o := newHeadOffice(t)
	ask := func(method, query string, body any) string {
		t.Helper()
		return string(o.Send(t, method, pullsPath(query), body).Want(t, 200).Body)
	}
	page := func(next string, teams ...string) string {
		return `{"data_pull_preferences":[` + strings.Join(teams, ",") + `],"next_cursor":` + next + `}`
	}
	require.JSONEq(t, page("null", preference(team, bandDefault)), ask("GET", "?team_id="+team.String(), nil), "what nobody has chosen; a source without a history is left out")
	chosen := page("null", preference(team, bandChosen), preference(otherTeam, bandChosen))
	const body = `"providers":{"acme_band":{"default":{"historical_days_to_pull":30},"resource_overrides":{"steps":{"historical_days_to_pull":7}}}}}`
	both := `{"team_ids":["` + team.String() + `","` + otherTeam.String() + `","` + team.String() + `"],` + body
	require.JSONEq(t, chosen, ask("POST", "", both))
	require.JSONEq(t, chosen, ask("POST", "", both), "may be repeated")
	require.Contains(t, o.read(team), `"historical_days_to_pull":30`, "it is the team's setting")
	require.JSONEq(t, page("null", `{"team_id":"`+team.String()+`","providers":{}}`), ask("GET", "?provider=acme_ring&team_id="+team.String(), nil))

	// A page at a time, by team id, also where the teams are those of the organisation that
	// the key opens.
	for _, query := range []string{"?limit=1", "?limit=1&team_id=" + team.String() + "&team_id=" + otherTeam.String()} {
		var first, second struct {
			List []struct {
				Team string `json:"team_id"`
			} `json:"data_pull_preferences"`
			Next *string `json:"next_cursor"`
		}
		o.Send(t, "GET", pullsPath(query), nil).Want(t, 200).JSON(t, &first)
		require.Len(t, first.List, 1)
		o.Send(t, "GET", pullsPath(query+"&next_cursor="+*first.Next), nil).Want(t, 200).JSON(t, &second)
		require.Len(t, second.List, 1)
		require.Nil(t, second.Next)
		require.Less(t, first.List[0].Team, second.List[0].Team)
	}

	require.JSONEq(t, page("null", preference(otherTeam, bandDefault)), ask("DELETE", "?provider=acme_band&team_id="+otherTeam.String(), nil))
	require.JSONEq(t, page("null", preference(team, bandChosen)), ask("GET", "?team_id="+team.String(), nil), "the other team's stay")
	require.JSONEq(t, page("null", preference(team, bandDefault)), ask("DELETE", "?team_id="+team.String(), nil))
	require.JSONEq(t, defaultSettings, o.read(team))
}

func TestPullPreferences_invalidInputIsRefusedByField(t *testing.T) {
	o := newHeadOffice(t)
	mine := `"team_ids":["` + team.String() + `"]`
	for _, c := range []struct {
		method, query, body string
		locs                []string
	}{
		{"GET", "?limit=0&next_cursor=x&team_id=1&colour=red", "", []string{"query.limit", "query.next_cursor", "query.team_id.0", "query.colour"}},
		{"GET", "?team_id=" + team.String() + "&provider=acme_band&provider=moon", "", []string{"query.provider.1"}},
		{"DELETE", "", "", []string{"query.team_id"}},
		{"DELETE", "?provider=moon&team_id=" + team.String(), "", []string{"query.provider.0"}},
		{"POST", "", `{"team_ids":[],"providers":{}}`, []string{"body.team_ids"}},
		{"POST", "", `{"team_ids":["1"],"providers":{"acme_band":{}},"limit":1}`, []string{"body.team_ids.0", "body.providers.acme_band.default", "body.limit"}},
		{"POST", "", `{` + mine + `,"providers":{"moon":{"default":{"historical_days_to_pull":1}},"acme_ring":{"default":{"historical_days_to_pull":1}},
			"acme_band":{"default":{"historical_days_to_pull":181},"resource_overrides":{"sleep":{"historical_days_to_pull":5}}}}}`,
			[]string{"body.providers.moon", "body.providers.acme_ring", "body.providers.acme_band.default.historical_days_to_pull", "body.providers.acme_band.resource_overrides.sleep"}},
	} {
		var body any
		if c.body != "" {
			body = c.body
		}
		require.ElementsMatch(t, c.locs, o.Send(t, c.method, pullsPath(c.query), body).Want(t, 422).Locs(t))
	}
	const good = `,"providers":{"acme_band":{"default":{"historical_days_to_pull":1}}}}`
	for _, method := range []string{"GET", "POST", "DELETE"} {
		var body any
		query := "?team_id=" + team.String()
		foreign := query + "&team_id=" + uuid.NewString()
		if method == "POST" {
			query, foreign = "", ""
			body = `{` + mine + good
		}
		send := func(path string) string { return o.Send(t, method, path, body).Want(t, 404).ErrorType(t) }
		require.Equal(t, "UNAUTHORIZED", o.With("x-management-key", "mk_wrong").Send(t, method, pullsPath(query), body).Want(t, 401).ErrorType(t))
		require.Equal(t, "NOT_FOUND", send(strings.Replace(pullsPath(query), "sandbox", "production", 1)))
		require.Equal(t, "NOT_FOUND", send(strings.Replace(pullsPath(query), "/us", "/eu", 1)))
		require.Equal(t, "NOT_FOUND", send(strings.Replace(pullsPath(query), org.String(), uuid.NewString(), 1)))
		if method == "POST" {
			body = `{"team_ids":["` + team.String() + `","` + uuid.NewString() + `"]` + good
		}
		require.Equal(t, "NOT_FOUND", send(pullsPath(foreign)), "one of them is not the key's")
	}
	require.JSONEq(t, defaultSettings, o.read(team), "nothing was changed")
	require.Equal(t, http.StatusMethodNotAllowed, o.Send(t, "PATCH", pullsPath(""), `{}`).Status)
}
