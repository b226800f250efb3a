package httpapi_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
)

const importPath = "/v2/link/bulk_import"

func (m *removal) user(of healthlab.TeamID, name string) healthlab.UserID {
	m.t.Helper()
	u, err := m.health.CreateUser(m.t.Context(), of, healthdata.NewUser{ClientUserID: name})
	require.NoError(m.t, err)
	return u.ID
}

func recipeOf(u healthlab.UserID, code string) map[string]any {
	return map[string]any{
		"user_id": u.String(), "access_token": "access-" + code, "refresh_token": "refresh-" + code, "provider_id": "account " + code,
		"expires_at": tokenEnd.Unix(), "oauth_scopes": []string{"sleep"},
	}
}

func importOf(provider string, recipes ...map[string]any) map[string]any {
	return map[string]any{"provider": provider, "connections": recipes}
}

func (m *removal) exported(provider string) (out bulk.Export) {
	m.t.Helper()
	m.Send(m.t, "POST", "/v2/link/bulk_export", map[string]any{"provider": provider}).Want(m.t, 200).JSON(m.t, &out)
	return out
}

// last is the operation that began last.
func (m *removal) last() bulk.Op {
	m.t.Helper()
	list, err := m.store.Bulk().Ops(m.t.Context(), team, bulk.ListPosition{}, 1)
	require.NoError(m.t, err)
	require.Len(m.t, list, 1)
	return list[0]
}

// announced counts the messages that say that a connection of a user is made.
func (m *removal) announced(user healthlab.UserID) (n int) {
	m.t.Helper()
	for _, id := range m.ids.all() {
		got, err := m.store.WebhookLog().Message(m.t.Context(), team, id)
		if errors.Is(err, healthlab.NotFound) {
			continue
		}
		require.NoError(m.t, err)
		if got.Type == healthdata.EventConnectionCreated && got.User == user {
			n++
		}
	}
	return n
}

// drawn are the ids that were drawn.
type drawn struct {
	mu  sync.Mutex
	ids []uuid.UUID
}

func (d *drawn) next() uuid.UUID {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.ids = append(d.ids, uuid.New())
	return d.ids[len(d.ids)-1]
}

func (d *drawn) all() []uuid.UUID {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.ids)
}

func TestBulkImport_linksKnownUsersAndReportsTheOthers(t *testing.T) {
	m := newRemoval(t)
	ann, cyd := m.user(team, "ann"), m.user(team, "cyd")
	bob := m.person(team, "acme_band", "old")
	foreign, nobody := m.user(otherTeam, "foreign"), healthlab.UserID{UUID: uuid.New()}
	unknown := recipeOf(cyd, "c")
	unknown["oauth_scopes"], unknown["expires_at"], unknown["provider_id"] = nil, bulk.NeverExpires, ""
	body := importOf("acme_band", recipeOf(ann, "a"), recipeOf(bob, "b"), recipeOf(nobody, "n"), recipeOf(foreign, "f"), unknown)
	require.Empty(t, m.Send(t, "POST", importPath, body).Want(t, 202).Body)
	op := m.ops("/v2/link/bulk_op").Data[0]
	require.Equal(t, bulk.ConnectionImport, op.Type)
	require.Equal(t, bulk.InProgress, op.Status)
	require.Equal(t, 5, op.Pending)
	require.Zero(t, m.announced(ann), "it is done in the background")

	m.now = m.now.Add(time.Minute)
	m.step()
	op = m.ops("/v2/link/bulk_op").Data[0]
	require.Equal(t, bulk.Failure, op.Status)
	require.Equal(t, []int{0, 5}, []int{op.Pending, op.Processed})
	kept := m.last()
	got, err := m.bulk.ImportResult(t.Context(), team, kept.ID)
	require.NoError(t, err)
	require.Equal(t, []healthlab.UserID{ann, bob, cyd}, got.Users)
	require.Equal(t, []bulk.FailedImport{{User: nobody, Outcome: bulk.NoUser}, {User: foreign, Outcome: bulk.NoUser}}, got.Failed)
	_, err = m.bulk.ImportResult(t.Context(), otherTeam, kept.ID)
	require.ErrorIs(t, err, healthlab.NotFound)

	want := []bulk.ConnectionTokens{
		{UserID: ann, AccessToken: "access-a", RefreshToken: "refresh-a", ProviderID: "account a", ExpiresAt: tokenEnd.Unix(), Scopes: &[]string{"sleep"}},
		{UserID: bob, AccessToken: "access-b", RefreshToken: "refresh-b", ProviderID: "account b", ExpiresAt: tokenEnd.Unix(), Scopes: &[]string{"sleep"}},
		{UserID: cyd, AccessToken: "access-c", RefreshToken: "refresh-c", ExpiresAt: bulk.NeverExpires},
	}
	slices.SortFunc(want, func(a, b bulk.ConnectionTokens) int { return slices.Compare(a.UserID.UUID[:], b.UserID.UUID[:]) })
	require.Equal(t, bulk.Export{Data: want}, m.exported("acme_band"))
	require.Equal(t, []int{1, 2, 1}, []int{m.announced(ann), m.announced(bob), m.announced(cyd)})
	m.pull()
	require.Equal(t, m.now, m.scheduled(ann, "acme_band"), "its history is fetched")
	require.Equal(t, m.now, m.scheduled(bob, "acme_band"), "again")
	items, err := m.store.Bulk().Items(t.Context(), team, kept.ID, 0, 10)
	require.NoError(t, err)
	for _, it := range items {
		require.Nil(t, it.Grant.Box, "nothing is kept that nobody needs")
	}
}

func TestBulkImport_waitForCompletionAnswersWhenDone(t *testing.T) {
	m := newPatientRemoval(t, time.Minute)
	ctx, stop := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- m.bulk.Run(ctx) }()
	ann, nobody := m.user(team, "ann"), healthlab.UserID{UUID: uuid.New()}
	body := importOf("acme_band", recipeOf(ann, "a"), recipeOf(nobody, "n"))
	body["wait_for_completion"] = true
	var out httpapi.BulkImported
	m.Send(t, "POST", importPath, body).Want(t, 200).JSON(t, &out)
	require.Equal(t, httpapi.BulkImported{Users: []healthlab.UserID{ann}, Failed: []healthlab.UserID{nobody}}, out)
	out = httpapi.BulkImported{}
	m.Send(t, "POST", importPath, map[string]any{"provider": "acme_band", "connections": []any{}, "wait_for_completion": true}).Want(t, 200).JSON(t, &out)
	require.Equal(t, httpapi.BulkImported{Users: []healthlab.UserID{}, Failed: []healthlab.UserID{}}, out)
	stop()
	require.NoError(t, <-done)

	m = newRemoval(t)
	ann = m.user(team, "ann")
	body = importOf("acme_band", recipeOf(ann, "a"))
	body["wait_for_completion"] = true
	require.Empty(t, m.Send(t, "POST", importPath, body).Want(t, 202).Body, "nobody works on it")
}

func TestBulkImport_refusesInvalidItemsByField(t *testing.T) {
	m := newRemoval(t)
	ann, bob := m.user(team, "ann"), m.user(team, "bob")
	locs := func(body map[string]any, want ...string) {
		t.Helper()
		require.Equal(t, want, m.Send(t, "POST", importPath, body).Want(t, 422).Locs(t))
	}
	with := func(key string, value any) map[string]any {
		r := recipeOf(ann, "a")
		r[key] = value
		return importOf("acme_band", recipeOf(bob, "b"), r)
	}
	locs(with("access_token", strings.Repeat("x", 16<<10+1)), "body.connections.1.access_token")
	locs(with("refresh_token", "a\x00b"), "body.connections.1.refresh_token")
	locs(with("provider_id", strings.Repeat("x", 513)), "body.connections.1.provider_id")
	locs(with("expires_at", -1), "body.connections.1.expires_at")
	locs(with("expires_at", 253402300800), "body.connections.1.expires_at")
	locs(with("oauth_scopes", []string{"sleep", strings.Repeat("x", 513)}), "body.connections.1.oauth_scopes.1")
	locs(with("oauth_scopes", slices.Repeat([]string{"sleep"}, 201)), "body.connections.1.oauth_scopes")
	locs(with("user_id", bob.String()), "body.connections.1.user_id")
	locs(with("user_id", uuid.Nil.String()), "body.connections.1.user_id")
	locs(with("access_token", ""), "body.connections.1")
	locs(importOf("nothing", recipeOf(ann, "a")), "body.provider")
	missing := recipeOf(ann, "a")
	delete(missing, "refresh_token")
	locs(importOf("acme_band", missing), "body.connections.0.refresh_token")
	good := importOf("acme_band", recipeOf(ann, "a"))
	m.Send(t, "POST", importPath+"?team_id="+otherTeam.String(), good).Want(t, 404)
	for _, provider := range []string{"acme_bike", "acme_own"} {
		require.Equal(t, bulk.RuleOtherCredentials, m.Send(t, "POST", importPath, importOf(provider, recipeOf(ann, "a"))).Want(t, 400).ErrorType(t))
	}
	m.settings.Bulk = false
	require.Equal(t, bulk.RuleNotEnabled, m.Send(t, "POST", importPath, good).Want(t, 403).ErrorType(t))
	m.settings.Bulk = true
	require.Empty(t, m.ops("/v2/link/bulk_op").Data, "none of it was written down")

	var many []map[string]any
	for range 1500 {
		many = append(many, recipeOf(bob, "b"))
	}
	require.Len(t, m.Send(t, "POST", importPath, importOf("acme_band", many...)).Want(t, 422).Locs(t), 1001, "enough is enough")
}

// The team's rules that refuse a link also refuse an import.
func TestBulkImport_appliesTheTeamsLinkRules(t *testing.T) {
	m := newRemoval(t)
	m.settings.RejectDuplicates = true
	m.settings.Scopes = map[string]linking.ScopeRequirement{"acme_watch": {MustGrant: []string{"sleep"}}}
	m.person(team, "acme_watch", "a")
	gone := m.user(team, "gone")
	taken, twin, first, narrow, demo := m.user(team, "taken"), m.user(team, "twin"), m.user(team, "first"), m.user(team, "narrow"), m.user(team, "demo")
	_, err := m.store.Users().Update(t.Context(), team, demo, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.Connections = []healthdata.Connection{{Provider: "acme_bike", Status: healthdata.Connected, Demo: true, CreatedOn: m.now, LinkedAt: m.now}}
		return nil, nil
	})
	require.NoError(t, err)
	less := recipeOf(narrow, "n")
	less["oauth_scopes"] = []string{"move"}
	unknown := recipeOf(first, "x")
	unknown["oauth_scopes"] = nil
	m.Send(t, "POST", importPath, importOf("acme_watch",
		recipeOf(taken, "a"), unknown, recipeOf(twin, "x"), less, recipeOf(demo, "d"), recipeOf(gone, "g"))).Want(t, 202)
	require.NoError(t, m.health.Deletions().Delete(t.Context(), team, gone))
	m.step()
	op := m.last()
	got, err := m.bulk.ImportResult(t.Context(), team, op.ID)
	require.NoError(t, err)
	require.Equal(t, []healthlab.UserID{first}, got.Users)
	require.Equal(t, []bulk.FailedImport{
		{User: taken, Outcome: bulk.AccountTaken}, {User: twin, Outcome: bulk.AccountTaken}, {User: narrow, Outcome: bulk.ScopesMissing},
		{User: demo, Outcome: bulk.Refused}, {User: gone, Outcome: bulk.NoUser},
	}, got.Failed)
	require.Equal(t, 5, op.Failed)
	u, err := m.health.User(t.Context(), team, first)
	require.NoError(t, err)
	require.Equal(t, []string{"sleep"}, u.Connection("acme_watch").Scopes, "what the team asks for")
}

// An import is aborted, and its tokens are deleted, when the team no longer has a client of
// its own at the provider.
func TestBulkImport_withoutTheTeamsClientAbortsAndDeletesTokens(t *testing.T) {
	m := newRemoval(t)
	ann := m.user(team, "ann")
	m.Send(t, "POST", importPath, importOf("acme_band", recipeOf(ann, "a"))).Want(t, 202)
	m.settings.OwnOAuth = nil
	m.step()
	op := m.last()
	require.Equal(t, bulk.Aborted, op.Status)
	got, err := m.bulk.ImportResult(t.Context(), team, op.ID)
	require.NoError(t, err)
	require.Empty(t, got.Users)
	require.Equal(t, []bulk.FailedImport{{User: ann}}, got.Failed)
	items, err := m.store.Bulk().Items(t.Context(), team, op.ID, 0, 10)
	require.NoError(t, err)
	require.Nil(t, items[0].Grant.Box)
	require.Zero(t, m.announced(ann))
}

// Tokens that wait for their import are sealed, and each opens for its own item only.
func TestBulkImport_sealsEachTokenForItsItem(t *testing.T) {
	m := newRemoval(t)
	ann, bob := m.user(team, "ann"), m.user(team, "bob")
	m.Send(t, "POST", importPath, importOf("acme_band", recipeOf(ann, "MARK"))).Want(t, 202)
	op := m.last()
	items, err := m.store.Bulk().Items(t.Context(), team, op.ID, 0, 10)
	require.NoError(t, err)
	require.NotContains(t, string(items[0].Grant.Box), "MARK")
	moved := op
	moved.ID = uuid.New()
	moved.StartedAt = op.StartedAt.Add(-time.Second)
	require.NoError(t, m.store.Bulk().Submit(t.Context(), moved, []bulk.Item{{User: bob, Grant: items[0].Grant}}))
	m.step()
	got, err := m.bulk.ImportResult(t.Context(), team, moved.ID)
	require.NoError(t, err)
	require.Equal(t, []bulk.FailedImport{{User: bob, Outcome: bulk.Refused}}, got.Failed)
}

// crashing is a store whose process dies, or is overtaken, in the middle of a turn.
type crashing struct {
	bulk.Store
	before, after func() error // of making a connection
	note          func() error // before it is noted how far an operation is
}

func (c *crashing) Import(ctx context.Context, x bulk.Import) (bulk.Outcome, error) {
	if err := c.before(); err != nil {
		return "", err
	}
	out, err := c.Store.Import(ctx, x)
	return out, errors.Join(err, c.after())
}

func (c *crashing) UpdateOp(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change func(*bulk.Op) error) (bulk.Op, error) {
	if err := c.note(); err != nil {
		return bulk.Op{}, err
	}
	return c.Store.UpdateOp(ctx, team, id, change)
}

// Whenever a process dies, others go on after its lease, and nothing is made twice.
func TestBulkImport_continuesAfterCrashesWithoutDuplicates(t *testing.T) {
	m := newRemoval(t)
	var users []healthlab.UserID
	var recipes []map[string]any
	for i := range 120 {
		u := m.user(team, fmt.Sprint("u", i))
		users = append(users, u)
		recipes = append(recipes, recipeOf(u, fmt.Sprint(i)))
	}
	recipes = append(recipes, recipeOf(healthlab.UserID{UUID: uuid.New()}, "nobody"))
	m.Send(t, "POST", importPath, importOf("acme_band", recipes...)).Want(t, 202)

	dead := errors.New("dead")
	calls, at := 0, 0
	die := func() error {
		if calls++; calls == at {
			return dead
		}
		return nil
	}
	mortal := m.served(&crashing{Store: m.store.Bulk(), before: die, after: die, note: die})
	status := func() bulk.Status { return m.ops("/v2/link/bulk_op").Data[0].Status }
	crashes := 0
	for at = 1; status() == bulk.InProgress; at += 3 {
		calls = 0
		if _, err := mortal.Step(t.Context()); err != nil {
			require.ErrorIs(t, err, dead)
			crashes++
			n, err := mortal.Step(t.Context())
			require.NoError(t, err)
			require.Zero(t, n, "its lease holds")
			m.now = m.now.Add(2 * time.Minute)
		}
	}
	require.Greater(t, crashes, 5)
	m.requireImported(users)
}

// A process that is slower than its lease loses its work to another process, and its late
// writes change nothing.
func TestBulkImport_writesAfterTheLeaseExpiredAreIgnored(t *testing.T) {
	m := newRemoval(t)
	var users []healthlab.UserID
	var recipes []map[string]any
	for i := range 10 {
		u := m.user(team, fmt.Sprint("u", i))
		users = append(users, u)
		recipes = append(recipes, recipeOf(u, fmt.Sprint(i)))
	}
	recipes = append(recipes, recipeOf(healthlab.UserID{UUID: uuid.New()}, "nobody"))
	m.Send(t, "POST", importPath, importOf("acme_band", recipes...)).Want(t, 202)
	fine := func() error { return nil }
	calls := 0
	slow := m.served(&crashing{Store: m.store.Bulk(), after: fine, note: fine, before: func() error {
		if calls++; calls == 4 {
			m.now = m.now.Add(2 * time.Minute)
			m.step()
		}
		return nil
	}})
	n, err := slow.Step(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, n)
	m.requireImported(users)
}

func (m *removal) served(store bulk.Store) *bulk.Service {
	m.t.Helper()
	s, err := bulk.New(store, m.links, m.pulls, m.seal, &bulk.Options{Now: func() time.Time { return m.now }})
	require.NoError(m.t, err)
	return s
}

// requireImported expects that each was connected once, and one more was not there.
func (m *removal) requireImported(users []healthlab.UserID) {
	m.t.Helper()
	op := m.last()
	require.Equal(m.t, bulk.Failure, op.Status)
	require.Equal(m.t, 1, op.Failed)
	got, err := m.bulk.ImportResult(m.t.Context(), team, op.ID)
	require.NoError(m.t, err)
	require.Equal(m.t, users, got.Users)
	for _, u := range users {
		require.Equal(m.t, 1, m.announced(u))
		stored, err := m.store.Users().Get(m.t.Context(), team, u)
		require.NoError(m.t, err)
		require.EqualValues(m.t, 2, stored.Revision, "written once")
	}
}
