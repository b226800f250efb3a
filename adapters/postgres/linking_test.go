package postgres_test

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk/bulktest"
	"github.com/healthlab-dev/healthlab/linking/linkingtest"
)

func linkingOf(s *postgres.Store) linkingtest.StoreHarness {
	return linkingtest.StoreHarness{Linking: s.Linking(), Credentials: s.Credentials(), Second: s.Credentials(), Users: s.Users(), Data: s.Data(), Messages: s.WebhookLog()}
}

func newLinking(t testing.TB) linkingtest.StoreHarness {
	address := pgtest.URL(t)
	pool := pgtest.Connect(t, address)
	h := linkingOf(postgres.New(pool, nil))
	h.Second, h.SetClock = postgres.New(pgtest.Connect(t, address), nil).Credentials(), setClock(t, pool)
	return h
}

func TestLinking(t *testing.T) {
	t.Parallel()
	linkingtest.RunStore(t, newLinking)
}

func TestCredentialStore(t *testing.T) {
	t.Parallel()
	linkingtest.RunCredentialStore(t, newLinking)
}

func TestApps(t *testing.T) {
	t.Parallel()
	store := postgres.New(pgtest.Connect(t, pgtest.URL(t)), nil)
	linkingtest.RunApps(t, linkingtest.AppsHarness{Apps: store.Apps(), Users: store.Users()})
}

func TestTeamClients(t *testing.T) {
	t.Parallel()
	runClients(t, postgres.New(pgtest.Connect(t, pgtest.URL(t)), nil))
}

func runClients(t *testing.T, store *postgres.Store) {
	t.Helper()
	linkingtest.RunClients(t, linkingtest.ClientsHarness{Clients: store.TeamClients(), Linking: linkingOf(store)})
}

func TestKeeping(t *testing.T) {
	t.Parallel()
	linkingtest.RunCredentialRefresh(t, newLinking)
}

func TestLinkingFlows(t *testing.T) {
	t.Parallel()
	linkingtest.RunFlows(t, newLinking)
}

// The suite passes for a role that row-level security holds for.
func TestLinkingWithRowSecurity(t *testing.T) {
	skipRowSecurity(t)
	t.Parallel()
	restricted := func(t testing.TB) linkingtest.StoreHarness {
		store, setClock := restrictedClock(t)
		h := linkingOf(store)
		h.SetClock = setClock
		return h
	}
	linkingtest.RunStore(t, restricted)
	linkingtest.RunCredentialStore(t, restricted)
	store, setClock := restrictedClock(t)
	linkingtest.RunApps(t, linkingtest.AppsHarness{Apps: store.Apps(), Users: store.Users()})
	runClients(t, store)
	bulktest.RunStore(t, bulktest.StoreHarness{Bulk: store.Bulk(), Linking: linkingOf(store), SetClock: setClock})
}

const linkedProvider = "acme_scale"

func linkSession(u healthdata.User) linking.Session {
	return linking.Session{
		ID: linking.SessionID{UUID: uuid.New()}, Team: u.Team, User: u.ID, State: linking.StateStarted,
		Options: linking.NewToken{User: u.ID}, CreatedAt: noon.Time, ExpiresAt: time.Now().Add(time.Hour),
	}
}

func linkCode(u healthdata.User, text string) linking.Code {
	return linking.Code{Text: text, Team: u.Team, User: u.ID, CreatedAt: noon.Time, ExpiresAt: time.Now().Add(time.Hour)}
}

// completed ends a session with an account.
func completed(x linking.Session, account string) linking.Completion {
	return linking.Completion{
		Team: x.Team, Session: x.ID, Sole: &account,
		Credential: linking.Credential{
			Team: x.Team, User: x.User, Provider: linkedProvider, Secret: healthlab.Sealed{KeyID: "k1", Box: []byte("box")}, CreatedAt: noon.Time,
		},
		Change: func(x *linking.Session, u *healthdata.User) ([]healthlab.Event, error) {
			x.State = linking.StateConnected
			u.Connections = append(u.Connections, healthdata.Connection{
				Provider: linkedProvider, Status: healthdata.Connected, CreatedOn: noon.Time, ExternalUserID: &account,
			})
			return []healthlab.Event{event(*u, "k")}, nil
		},
	}
}

// clientOf is a client of a person's team.
func clientOf(u healthdata.User) linking.TeamClient {
	return linking.TeamClient{
		Team: u.Team, Provider: linkedProvider, ClientID: "id", Box: healthlab.Sealed{KeyID: "k1", Box: []byte("box")}, CreatedAt: noon.Time, UpdatedAt: noon.Time,
	}
}

func register(t testing.TB, s *postgres.Store, u healthdata.User) {
	t.Helper()
	_, err := s.TeamClients().PutClient(t.Context(), clientOf(u))
	require.NoError(t, err)
}

// link gives a user a code, a session and the credential of a connection.
func link(t testing.TB, s *postgres.Store, u healthdata.User) linking.Session {
	t.Helper()
	require.NoError(t, s.Linking().InsertCode(t.Context(), linkCode(u, u.ID.String())))
	require.NoError(t, s.Apps().InsertApp(t.Context(), linking.AppSession{ID: uuid.New(), Team: u.Team, User: u.ID, CreatedAt: noon.Time}))
	submit(t, s, u)
	x := linkSession(u)
	require.NoError(t, s.Linking().InsertSession(t.Context(), x))
	x, err := s.Linking().Complete(t.Context(), completed(x, u.ID.String()))
	require.NoError(t, err)
	return x
}

// everyLinkWrite calls every method of the interface that writes, once.
func everyLinkWrite(t testing.TB, s *postgres.Store, u healthdata.User) {
	t.Helper()
	x := link(t, s, u)
	_, err := s.Linking().UpdateSession(t.Context(), u.Team, x.ID, func(*linking.Session) error { return nil })
	require.NoError(t, err)
	for _, text := range []string{"nobody's", u.ID.String()} {
		require.NoError(t, s.Linking().TryCode(t.Context(), u.Team, [32]byte{1}, text, func(x *linking.CodeAttempt) { _, _ = x.Redeem(time.Now()) }))
	}
	c, err := s.Linking().Disconnect(t.Context(), u.Team, u.ID, linkedProvider, func(u *healthdata.User) ([]healthlab.Event, error) {
		u.Connections = nil
		return nil, nil
	})
	require.NoError(t, err)
	require.Equal(t, []byte("box"), c.Secret.Box)
}

// Wrong tries count whichever process they come to.
func TestGuessesAreCountedTogether(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	one, two := postgres.New(pool, nil), postgres.New(pool, nil)
	u := newPerson(t, one)
	try := func(s *postgres.Store, client byte, text string) (verdict error) {
		require.NoError(t, s.Linking().TryCode(t.Context(), u.Team, [32]byte{client}, text, func(x *linking.CodeAttempt) {
			_, verdict = x.Redeem(time.Now())
		}))
		return verdict
	}
	for i := range linking.MaxWrongPerClient {
		s := one
		if i%2 == 1 {
			s = two
		}
		require.ErrorIs(t, try(s, 1, fmt.Sprint("guess ", i)), healthlab.Precondition)
	}
	require.NoError(t, one.Linking().InsertCode(t.Context(), linkCode(u, "right")))
	for _, s := range []*postgres.Store{one, two} {
		require.ErrorIs(t, try(s, 1, "right"), healthlab.Exhausted)
	}
	require.NoError(t, try(two, 2, "right"))
	require.Equal(t, []string{"20"}, texts(t, pool, `select wrong::text from healthlab.link_try where team_id = $1`, u.Team.UUID))
	require.Equal(t, []string{"1"}, texts(t, pool, `select first::text from healthlab.link_try where team_id = $1`, u.Team.UUID))
}

// Writes delete expired rows, and no table holds a code in clear.
func TestLinkTablesStaySmall(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := postgres.New(pool, nil)
	u := newPerson(t, s)
	old := time.Now().Add(-25 * time.Hour)
	for i := range 25 {
		c := linkCode(u, fmt.Sprint("old ", i))
		c.CreatedAt, c.ExpiresAt = old.Add(-time.Hour), old
		require.NoError(t, s.Linking().InsertCode(t.Context(), c))
		x := linkSession(u)
		x.ExpiresAt = old
		require.NoError(t, s.Linking().InsertSession(t.Context(), x))
		require.NoError(t, s.Linking().TryCode(t.Context(), u.Team, [32]byte{byte(i)}, "wrong", func(x *linking.CodeAttempt) { x.Since, x.Wrong = old, 1 }))
	}
	for _, table := range []string{"link_code", "link_session", "link_guesser"} {
		require.LessOrEqual(t, rows(t, pool, table), 1, table)
	}
	require.NoError(t, s.Linking().InsertCode(t.Context(), linkCode(u, "skus00000001")))
	requireNowhere(t, pool, "skus00000001")
}

// requireNowhere requires that no column of any table shows a text.
func requireNowhere(t *testing.T, pool *pgxpool.Pool, text string) {
	t.Helper()
	for _, table := range texts(t, pool, `select relname from`+ourTables) {
		var n int
		err := pool.QueryRow(t.Context(), `select count(*) from healthlab.`+table+` whole where strpos(whole::text, $1) > 0
			or strpos(whole::text, encode(convert_to($1, 'UTF8'), 'hex')) > 0`, text).Scan(&n)
		require.NoError(t, err)
		require.Zero(t, n, table)
	}
}

// Completed links of a team's users and erasures of some of these users do not deadlock, and
// each is done as a whole.
func TestCompletionsAndErasuresTogether(t *testing.T) {
	t.Parallel()
	pool := pgtest.Pool(t)
	s := postgres.New(pool, nil)
	first := newPerson(t, s)
	people := []healthdata.User{first}
	for range 7 {
		u := personOf(first.Team)
		require.NoError(t, s.Users().Insert(t.Context(), u, 0))
		people = append(people, u)
	}
	var all sync.WaitGroup
	for i, u := range people {
		x := linkSession(u)
		require.NoError(t, s.Linking().InsertSession(t.Context(), x))
		all.Go(func() {
			for n := range 10 {
				_, err := s.Linking().Complete(t.Context(), completed(x, fmt.Sprint("account ", (i+n)%4)))
				if k := healthlab.KindOf(err); err != nil && k != healthlab.Conflict && k != healthlab.NotFound {
					t.Error(err)
				}
				if _, err := s.Linking().Disconnect(t.Context(), u.Team, u.ID, linkedProvider, func(u *healthdata.User) ([]healthlab.Event, error) {
					u.Connections = nil
					return nil, nil
				}); err != nil && healthlab.KindOf(err) != healthlab.NotFound {
					t.Error(err)
				}
			}
		})
		if i%2 == 0 {
			all.Go(func() {
				_, err := s.Users().Update(t.Context(), u.Team, u.ID, func(u *healthdata.User) ([]healthlab.Event, error) {
					u.DeletedAt = noon.Time
					return nil, nil
				})
				if err == nil {
					err = s.Users().Erase(t.Context(), u.Team, u.ID)
				}
				if err != nil {
					t.Error(err)
				}
			})
		}
	}
	all.Wait()
	require.Equal(t, 4, rows(t, pool, "users"))
	require.Equal(t, 4, rows(t, pool, "link_session"))
	require.Zero(t, rows(t, pool, "connection"))
	require.Zero(t, rows(t, pool, "link_credential"))
	requireIdle(t, pool)
}
