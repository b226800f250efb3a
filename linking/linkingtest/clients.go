package linkingtest

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/linking"
)

// ClientsHarness is a store for the suite of teams' OAuth clients.
type ClientsHarness struct {
	// Clients is the interface under test.
	Clients linking.TeamClients
	// Linking stores the connections that use the clients.
	Linking StoreHarness
}

// RunClients runs the contract of [linking.TeamClients]. All cases share one store, and each
// has teams of its own.
func RunClients(t *testing.T, h ClientsHarness) {
	for name, run := range conformance.Sorted(clientCases) {
		t.Run(name, func(t *testing.T) { run(t, h, "clients "+name+" ") })
	}
}

// fullClient returns an OAuth client in which every field is set, except those that the store sets.
func fullClient(team, provider, id string) linking.TeamClient {
	return linking.TeamClient{
		Team: conformance.Team(team), Provider: provider, ClientID: id, Box: healthlab.Sealed{KeyID: "k1", Box: []byte("box of " + id)}, Tail: "…räv",
		Details: map[string]string{"push_key": "…1234"}, RedirectURL: "https://clinic.example/back",
		CreatedAt: noon, UpdatedAt: noon.Add(time.Minute),
	}
}

func (h ClientsHarness) put(t *testing.T, c linking.TeamClient) linking.TeamClient {
	t.Helper()
	got, err := h.Clients.PutClient(t.Context(), c)
	require.NoError(t, err)
	return got
}

func (h ClientsHarness) list(t *testing.T, team string) []linking.TeamClient {
	t.Helper()
	list, err := h.Clients.Clients(t.Context(), linking.ClientQuery{Team: conformance.Team(team), Count: true})
	require.NoError(t, err)
	return list
}

// bind connects a user through an OAuth client.
func (h ClientsHarness) bind(t *testing.T, team, user, client string) linking.Session {
	t.Helper()
	h.Linking.AddUser(t, team, user)
	s := linkSession(team, user, "session of "+user)
	require.NoError(t, h.Linking.Linking.InsertSession(t.Context(), s))
	c := h.Linking.success(s, "ext of "+user)
	change := c.Change
	c.Change = func(x *linking.Session, u *healthdata.User) ([]healthlab.Event, error) {
		events, err := change(x, u)
		u.Connections[0].Client = client
		return events, err
	}
	_, err := h.Linking.Linking.Complete(t.Context(), c)
	require.NoError(t, err)
	return s
}

func (h ClientsHarness) forget(t *testing.T, team, provider string, before time.Time) int {
	t.Helper()
	n, err := h.Clients.ForgetClients(t.Context(), conformance.Team(team), provider, before)
	require.NoError(t, err)
	return n
}

func clientIDs(list []linking.TeamClient) []string {
	ids := []string{}
	for _, c := range list {
		ids = append(ids, c.ClientID)
	}
	return ids
}

var clientCases = map[string]func(t *testing.T, h ClientsHarness, x string){
	"RoundTrip": func(t *testing.T, h ClientsHarness, x string) {
		want := fullClient(x, "acme_scale", "id 1")
		given := want
		given.CreatedAt = want.CreatedAt.In(time.FixedZone("x", 3600)).Add(123 * time.Nanosecond)
		given.RetiredAt, given.ProvenAt, given.ProvenURL, given.Connections = noon, noon, "https://x.example", 7 // ignored by the store
		require.Equal(t, want, h.put(t, given))
		got, err := h.Clients.Client(t.Context(), want.Team, want.Provider, want.ClientID)
		require.NoError(t, err)
		require.Equal(t, want, got)
		require.Equal(t, []linking.TeamClient{want}, h.list(t, x))

		bare := linking.TeamClient{Team: want.Team, Provider: "acme_band", ClientID: "id", Box: want.Box, CreatedAt: noon, UpdatedAt: noon}
		require.Equal(t, bare, h.put(t, bare))
		require.Equal(t, []linking.TeamClient{bare, want}, h.list(t, x))
	},
	"Again": func(t *testing.T, h ClientsHarness, x string) {
		first := h.put(t, fullClient(x, "acme_scale", "id"))
		require.NoError(t, h.Clients.ProveClient(t.Context(), first.Team, first.Provider, "id", "https://a.example", noon.Add(time.Second)))
		next := first
		next.Box, next.Tail, next.Details, next.RedirectURL = healthlab.Sealed{KeyID: "k2", Box: []byte("new")}, "…2", nil, ""
		next.CreatedAt, next.UpdatedAt = noon.Add(time.Hour), noon.Add(time.Hour)
		got := h.put(t, next)
		next.CreatedAt, next.ProvenAt, next.ProvenURL = first.CreatedAt, noon.Add(time.Second), "https://a.example"
		require.Equal(t, next, got, "replaced, but for when it came first and what it has shown")
		require.Equal(t, []linking.TeamClient{next}, h.list(t, x))
	},
	"OneIsCurrent": func(t *testing.T, h ClientsHarness, x string) {
		at := func(id string, minutes int) linking.TeamClient {
			c := fullClient(x, "acme_scale", id)
			c.UpdatedAt = noon.Add(time.Duration(minutes) * time.Minute)
			return c
		}
		h.put(t, at("b", 1))
		h.put(t, at("a", 2))
		other := h.put(t, fullClient(x, "acme_band", "c"))
		h.put(t, at("d", 3))
		list := h.list(t, x)
		require.Equal(t, []string{"c", "d", "a", "b"}, clientIDs(list))
		require.Equal(t, []time.Time{{}, {}, noon.Add(3 * time.Minute), noon.Add(2 * time.Minute)},
			[]time.Time{list[0].RetiredAt, list[1].RetiredAt, list[2].RetiredAt, list[3].RetiredAt})
		h.put(t, at("b", 4)) // the client becomes current again
		list = h.list(t, x)
		require.Equal(t, []string{"c", "b", "d", "a"}, clientIDs(list))
		require.Zero(t, list[1].RetiredAt)
		require.NoError(t, h.Clients.RetireClient(t.Context(), other.Team, "acme_scale", noon.Add(5*time.Minute)))
		require.ErrorIs(t, h.Clients.RetireClient(t.Context(), other.Team, "acme_scale", noon), healthlab.NotFound)
		list = h.list(t, x)
		require.Equal(t, []string{"c", "b", "d", "a"}, clientIDs(list))
		require.Equal(t, noon.Add(5*time.Minute), list[1].RetiredAt)
		require.Equal(t, noon.Add(4*time.Minute), list[2].RetiredAt, "it was retired before")
		wins := conformance.Successes(conformance.Together(8, func(i int) error {
			_, err := h.Clients.PutClient(t.Context(), at(string(rune('k'+i)), 6+i))
			return err
		}))
		require.Positive(t, wins)
		current := 0
		for _, c := range h.list(t, x) {
			if c.Provider == "acme_scale" && c.RetiredAt.IsZero() {
				current++
			}
		}
		require.Equal(t, 1, current)
	},
	"Proven": func(t *testing.T, h ClientsHarness, x string) {
		c := h.put(t, fullClient(x, "acme_scale", "id"))
		prove := func(id, url string, minutes int) {
			require.NoError(t, h.Clients.ProveClient(t.Context(), c.Team, "acme_scale", id, url, noon.Add(time.Duration(minutes)*time.Minute)))
		}
		prove("id", "https://a.example", 1)
		prove("id", "https://a.example", 2)
		prove("nobody", "https://a.example", 2)
		c.ProvenAt, c.ProvenURL = noon.Add(time.Minute), "https://a.example"
		require.Equal(t, []linking.TeamClient{c}, h.list(t, x))
		prove("id", "https://b.example", 3)
		c.ProvenAt, c.ProvenURL = noon.Add(3*time.Minute), "https://b.example"
		require.Equal(t, []linking.TeamClient{c}, h.list(t, x))
	},
	"OtherTeam": func(t *testing.T, h ClientsHarness, x string) {
		mine := h.put(t, fullClient(x, "acme_scale", "id"))
		other := conformance.Team(x + "b")
		_, err := h.Clients.Client(t.Context(), other, "acme_scale", "id")
		require.ErrorIs(t, err, healthlab.NotFound)
		require.Empty(t, h.list(t, x+"b"))
		require.ErrorIs(t, h.Clients.RetireClient(t.Context(), other, "acme_scale", noon), healthlab.NotFound)
		require.NoError(t, h.Clients.ProveClient(t.Context(), other, "acme_scale", "id", "https://b.example", noon))
		require.Zero(t, h.forget(t, x+"b", "acme_scale", noon))
		theirs := fullClient(x+"b", "acme_scale", "id")
		theirs.Tail = "…b"
		require.Equal(t, theirs, h.put(t, theirs), "the same id is another client")
		require.Equal(t, []linking.TeamClient{mine}, h.list(t, x))
	},
	"Bound": func(t *testing.T, h ClientsHarness, x string) {
		h.put(t, fullClient(x, "acme_scale", "old"))
		ann, bob := h.bind(t, x, x+"ann", "old"), h.bind(t, x, x+"bob", "old")
		h.bind(t, x, x+"eve", "")
		h.bind(t, x+"b", x+"foreign", "old")
		h.put(t, fullClient(x, "acme_scale", "new"))
		counts := func() []int {
			list := h.list(t, x)
			require.Equal(t, []string{"new", "old"}, clientIDs(list))
			return []int{list[0].Connections, list[1].Connections}
		}
		require.Equal(t, []int{0, 2}, counts())
		plain, err := h.Clients.Clients(t.Context(), linking.ClientQuery{Team: ann.Team})
		require.NoError(t, err)
		require.Equal(t, []string{"new", "old"}, clientIDs(plain))
		require.Zero(t, plain[1].Connections, "nobody asked")
		c, err := h.Linking.Linking.Credential(t.Context(), ann.Team, ann.User, "acme_scale")
		require.NoError(t, err)
		require.Equal(t, "old", c.Client)
		c, err = h.Linking.updateGrant(t.Context(), c, func(c *linking.Credential, _ *healthdata.User) ([]healthlab.Event, error) {
			require.Equal(t, "old", c.Client)
			c.Client = "new" // not stored
			return nil, nil
		})
		require.NoError(t, err)
		require.Equal(t, "old", c.Client)

		later := noon.Add(time.Hour)
		require.Zero(t, h.forget(t, x, "", later), "it is needed")
		drop := func(s linking.Session) linking.Credential {
			c, err := h.Linking.Linking.Disconnect(t.Context(), s.Team, s.User, "acme_scale", func(u *healthdata.User) ([]healthlab.Event, error) {
				u.Connections[0].Status, u.Connections[0].Client = healthdata.Deregistered, ""
				return nil, nil
			})
			require.NoError(t, err)
			return c
		}
		require.Equal(t, "old", drop(ann).Client)
		require.Equal(t, []int{0, 1}, counts())
		_, err = h.Linking.Users.Update(t.Context(), bob.Team, bob.User, func(u *healthdata.User) ([]healthlab.Event, error) {
			u.DeletedAt = noon
			return nil, nil
		})
		require.NoError(t, err)
		require.Equal(t, []int{0, 0}, counts())
		require.Zero(t, h.forget(t, x, "", later), "the user is not erased")
		require.NoError(t, h.Linking.Users.Erase(t.Context(), bob.Team, bob.User))
		require.Zero(t, h.forget(t, x, "", noon), "it was retired later")
		require.Equal(t, 1, h.forget(t, x, "", later))
		require.Equal(t, []string{"new"}, clientIDs(h.list(t, x)))
	},
	"Erased": func(t *testing.T, h ClientsHarness, x string) {
		h.put(t, fullClient(x, "acme_scale", "old"))
		h.bind(t, x, x+"ann", "old")
		h.put(t, fullClient(x, "acme_scale", "new"))
		h.put(t, fullClient(x, "acme_band", "stays"))
		require.Equal(t, 2, h.forget(t, x, "acme_scale", time.Time{}))
		require.Equal(t, []string{"stays"}, clientIDs(h.list(t, x)))
		require.Zero(t, h.forget(t, x, "acme_scale", time.Time{}))
	},
	"Refused": func(t *testing.T, h ClientsHarness, x string) {
		for _, spoil := range []func(*linking.TeamClient){
			func(c *linking.TeamClient) { c.Team = healthlab.TeamID{} },
			func(c *linking.TeamClient) { c.Provider = "" },
			func(c *linking.TeamClient) { c.ClientID = "" },
			func(c *linking.TeamClient) { c.Box = healthlab.Sealed{} },
			func(c *linking.TeamClient) { c.ClientID = "a\x00" },
			func(c *linking.TeamClient) { c.RedirectURL = "a\xff" },
			func(c *linking.TeamClient) { c.Details = map[string]string{"a": "\x00"} },
		} {
			bad := fullClient(x, "acme_scale", "id")
			spoil(&bad)
			_, err := h.Clients.PutClient(t.Context(), bad)
			require.ErrorIs(t, err, healthlab.Invalid)
		}
		require.Empty(t, h.list(t, x))
	},
	"Aliasing": func(t *testing.T, h ClientsHarness, x string) {
		want := fullClient(x, "acme_scale", "id")
		given := fullClient(x, "acme_scale", "id")
		spoil := func(c linking.TeamClient) { c.Box.Box[0], c.Details["push_key"] = 'X', "x" }
		spoil(h.put(t, given))
		spoil(given)
		spoil(h.list(t, x)[0])
		got, err := h.Clients.Client(t.Context(), want.Team, want.Provider, want.ClientID)
		require.NoError(t, err)
		require.Equal(t, want, got)
		spoil(got)
		require.Equal(t, []linking.TeamClient{want}, h.list(t, x))
	},
	"Ended": func(t *testing.T, h ClientsHarness, x string) {
		ctx, stop := context.WithCancel(t.Context())
		stop()
		c := h.put(t, fullClient(x, "acme_scale", "id"))
		for _, err := range []error{
			func() error { _, err := h.Clients.PutClient(ctx, fullClient(x, "acme_scale", "other")); return err }(),
			func() error { _, err := h.Clients.Clients(ctx, linking.ClientQuery{Team: c.Team}); return err }(),
			func() error { _, err := h.Clients.Client(ctx, c.Team, c.Provider, "id"); return err }(),
			h.Clients.RetireClient(ctx, c.Team, c.Provider, noon),
			h.Clients.ProveClient(ctx, c.Team, c.Provider, "id", "https://a.example", noon),
			func() error { _, err := h.Clients.ForgetClients(ctx, c.Team, c.Provider, noon); return err }(),
		} {
			require.ErrorIs(t, err, context.Canceled)
		}
		require.Equal(t, []linking.TeamClient{c}, h.list(t, x))
	},
}
