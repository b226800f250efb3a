package healthdatatest

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
)

func runUserLists(run func(string, func(usersT))) {
	run("List/Order", listOrder)
	run("List/Pages", listPages)
	run("List/InsertBetweenPages", listInsertBetweenPages)
	run("List/DefaultLimit", listDefaultLimit)
	run("List/Teams", listTeams)
	run("List/Prefix", listPrefix)
	run("List/PrefixOfID", listPrefixOfID)
	run("List/Deleted", listDeleted)
	run("List/Refused", listRefused)
	run("Metrics/Counts", metricsCounts)
	run("Metrics/Empty", metricsEmpty)
}

func sorted(s []string) []string {
	slices.Sort(s)
	return s
}

// numbered returns the id whose bytes are all n.
func numbered(n byte) healthlab.UserID {
	var id uuid.UUID
	for i := range id {
		id[i] = n
	}
	return healthlab.UserID{UUID: id}
}

func listOrder(t usersT) {
	team := conformance.NewTeam()
	// Equal times, ids that compare differently as signed bytes, and neither in the order of insertion.
	for _, u := range []struct {
		name string
		at   time.Duration
		id   byte
	}{
		{"e", 2 * time.Microsecond, 1},
		{"c", time.Microsecond, 0x80},
		{"b", time.Microsecond, 0x7f},
		{"d", time.Microsecond, 0xff},
		{"a", 0, 0xfe},
	} {
		v := LiveUser(team, u.name)
		v.ID, v.CreatedOn = numbered(u.id), healthlab.At(noon.Add(u.at))
		t.insert(v)
	}
	require.Equal(t, []string{"a", "b", "c", "d", "e"}, t.names(healthdata.UserQuery{Team: team}))
}

// addUsers adds n users with the client user ids 00, 01, … and creation times one second apart.
func (t usersT) addUsers(team healthlab.TeamID, n int) {
	t.Helper()
	for i := range n {
		u := LiveUser(team, fmt.Sprintf("%02d", i))
		u.CreatedOn = healthlab.At(noon.Add(time.Duration(i) * time.Second))
		t.insert(u)
	}
}

func listPages(t usersT) {
	team := conformance.NewTeam()
	t.addUsers(team, 7)
	for _, tt := range []struct {
		offset, limit int
		want          []string
	}{
		{0, 3, []string{"00", "01", "02"}},
		{3, 3, []string{"03", "04", "05"}},
		{6, 3, []string{"06"}},
		{5, 1, []string{"05"}},
		{0, 500, []string{"00", "01", "02", "03", "04", "05", "06"}},
		{7, 3, nil},
		{700, 3, nil},
	} {
		page := t.list(healthdata.UserQuery{Team: team, Offset: tt.offset, Limit: tt.limit})
		require.Equal(t, 7, page.Total, tt)
		var got []string
		for _, u := range page.Users {
			got = append(got, u.ClientUserID)
		}
		require.Equal(t, tt.want, got, tt)
	}
}

func listInsertBetweenPages(t usersT) {
	team := conformance.NewTeam()
	t.addUsers(team, 4)
	q := healthdata.UserQuery{Team: team, Limit: 2}
	require.Equal(t, []string{"00", "01"}, t.names(q))
	late := LiveUser(team, "late")
	late.CreatedOn = healthlab.At(noon.Add(time.Hour))
	t.insert(late)
	q.Offset = 2
	require.Equal(t, []string{"02", "03"}, t.names(q))
	q.Offset = 4
	require.Equal(t, []string{"late"}, t.names(q))
}

func listDefaultLimit(t usersT) {
	team := conformance.NewTeam()
	t.addUsers(team, 102)
	page := t.list(healthdata.UserQuery{Team: team})
	require.Len(t, page.Users, 100)
	require.Equal(t, 102, page.Total)
}

func listTeams(t usersT) {
	a, b := t.insert(person(conformance.NewTeam(), "ann")), t.insert(person(conformance.NewTeam(), "ann"))
	for _, u := range []healthdata.User{a, b} {
		for _, q := range []healthdata.UserQuery{
			{Team: u.Team},
			{Team: u.Team, ClientUserID: "ann"},
			{Team: u.Team, Prefix: "an"},
		} {
			page := t.list(q)
			require.Equal(t, []healthdata.User{u}, page.Users)
			require.Equal(t, 1, page.Total)
		}
	}
	require.Zero(t, t.list(healthdata.UserQuery{Team: conformance.NewTeam()}).Total)
	require.Zero(t, t.list(healthdata.UserQuery{Team: a.Team, Prefix: b.ID.String()}).Total)
}

func listPrefix(t usersT) {
	team := conformance.NewTeam()
	for _, name := range []string{"Alba-1", "ALBA-2", "alb", "xalba", "al%ba", "al_ba", `al\ba`, "Älba", "älba", "ı", "İ"} {
		t.add(team, name)
	}
	for _, tt := range []struct {
		prefix string
		want   []string
	}{
		{"alba", []string{"ALBA-2", "Alba-1", "Älba", "älba"}},
		{"ALB", []string{"ALBA-2", "Alba-1", "alb", "Älba", "älba"}},
		{"alba-1", []string{"Alba-1"}},
		{"alba-12", []string{}},
		{"al%", []string{"al%ba"}},
		{"al_", []string{"al_ba"}},
		{`al\`, []string{`al\ba`}},
		{"%", []string{}},
		{"älb", []string{"ALBA-2", "Alba-1", "alb", "Älba", "älba"}},
		{"A\u0308LB", []string{"ALBA-2", "Alba-1", "alb", "Älba", "älba"}},
		{"i", []string{"İ"}},
		{"ı", []string{"ı"}},
	} {
		q := healthdata.UserQuery{Team: team, Prefix: tt.prefix}
		require.Equal(t, tt.want, sorted(t.names(q)), tt.prefix)
		require.Equal(t, len(tt.want), t.list(q).Total, tt.prefix)
	}
	require.Equal(t, []string{"Alba-1"}, t.names(healthdata.UserQuery{Team: team, Prefix: "al", ClientUserID: "Alba-1"}),
		"all filters hold at once")
	require.Empty(t, t.names(healthdata.UserQuery{Team: team, Prefix: "al", ClientUserID: "xalba"}))
}

func listPrefixOfID(t usersT) {
	u := LiveUser(conformance.NewTeam(), "ann")
	u.ID = healthlab.UserID{UUID: uuid.MustParse("abcdef01-2345-4789-8bcd-ef0123456789")}
	t.insert(u)
	other := LiveUser(u.Team, "bob")
	other.ID = healthlab.UserID{UUID: uuid.MustParse("bbcdef01-2345-4789-8bcd-ef0123456789")}
	t.insert(other)
	for _, prefix := range []string{"ab", "ABCDEF01-2", u.ID.String(), strings.ToUpper(u.ID.String())} {
		require.Equal(t, []string{"ann"}, t.names(healthdata.UserQuery{Team: u.Team, Prefix: prefix}), prefix)
	}
	require.Empty(t, t.names(healthdata.UserQuery{Team: u.Team, Prefix: "abcdef0123"}), "hyphens belong to it")
}

func listDeleted(t usersT) {
	team := conformance.NewTeam()
	t.add(team, "live")
	for i, name := range []string{"c", "a", "b"} {
		t.remove(t.add(team, name), noon.Add(time.Duration(i)*time.Microsecond))
	}
	for id := byte(3); id > 0; id-- { // several users of one name, two of them at one instant
		u := LiveUser(team, "twice")
		u.ID = numbered(id)
		t.insert(u)
		t.remove(u, noon.Add(-time.Hour*time.Duration(id/2+1)))
	}
	q := healthdata.UserQuery{Team: team, Deleted: true}
	require.Equal(t, []string{"b", "a", "c", "twice", "twice", "twice"}, t.names(q))
	require.Equal(t, []string{"live"}, t.names(healthdata.UserQuery{Team: team}))

	q.ClientUserID = "twice"
	page := t.list(q)
	require.Equal(t, 3, page.Total)
	var ids []healthlab.UserID
	for _, u := range page.Users {
		ids = append(ids, u.ID)
	}
	require.Equal(t, []healthlab.UserID{numbered(1), numbered(2), numbered(3)}, ids)
	require.Empty(t, t.names(healthdata.UserQuery{Team: conformance.NewTeam(), Deleted: true}))
}

func listRefused(t usersT) {
	u := t.add(conformance.NewTeam(), "ann")
	for what, q := range conformance.Sorted(map[string]healthdata.UserQuery{
		"negative offset":        {Team: u.Team, Offset: -1},
		"negative limit":         {Team: u.Team, Limit: -1},
		"NUL in the id":          {Team: u.Team, ClientUserID: "a\x00"},
		"NUL in the prefix":      {Team: u.Team, Prefix: "a\x00"},
		"the id is not UTF-8":    {Team: u.Team, ClientUserID: "a\xff"},
		"prefix that is no text": {Team: u.Team, Prefix: "a\xff"},
	}) {
		t.Run(what, func(sub *testing.T) {
			t := t.on(sub)
			_, err := t.Users.List(t.Context(), q)
			require.ErrorIs(t, err, healthlab.Invalid)
		})
	}
}

func metricsCounts(t usersT) {
	team := conformance.NewTeam()
	at := func(s string) time.Time {
		v, err := healthlab.ParseTime(s)
		require.NoError(t, err)
		return v.Time
	}
	connect := func(name string, connections ...healthdata.Connection) healthdata.User {
		u := LiveUser(team, name)
		u.Connections = connections
		return t.insert(u)
	}
	connect("ann",
		// It is Sunday in UTC, although it is Monday further east.
		healthdata.Connection{Provider: "a", Status: healthdata.Connected, CreatedOn: at("2026-03-02T01:00:00+02:00")},
		healthdata.Connection{Provider: "b", Status: healthdata.ConnectionError, CreatedOn: at("2026-03-02T00:00:00Z")},
		healthdata.Connection{Provider: "c", Status: healthdata.Deregistered, CreatedOn: at("2026-01-02T00:00:00Z")})
	connect("bob", healthdata.Connection{Provider: "a", Status: healthdata.Paused, CreatedOn: at("2026-03-08T23:59:59Z")})
	gone := connect("carl", healthdata.Connection{Provider: "a", Status: healthdata.Connected, CreatedOn: at("2026-03-01T00:00:00Z")})
	t.remove(gone, noon.Time)
	t.insert(person(conformance.NewTeam(), "dora"))

	m, err := t.Users.Metrics(t.Context(), team)
	require.NoError(t, err)
	require.Equal(t, healthdata.TeamMetrics{
		Team: team, Users: 2, ConnectedSources: 3, ErroredConnectedSources: 1,
		ConnectedSourcesByWeek: []healthdata.WeekCount{
			{Date: healthlab.Date{Year: 2026, Month: 2, Day: 23}, Value: 1, All: 1},
			{Date: healthlab.Date{Year: 2026, Month: 3, Day: 2}, Value: 2, All: 3},
		},
	}, m)
}

func metricsEmpty(t usersT) {
	team := conformance.NewTeam()
	m, err := t.Users.Metrics(t.Context(), team)
	require.NoError(t, err)
	require.Empty(t, m.ConnectedSourcesByWeek)
	m.ConnectedSourcesByWeek = nil
	require.Equal(t, healthdata.TeamMetrics{Team: team}, m)
}
