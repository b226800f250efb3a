package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/double"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/whoop"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/postgres/pgtest"
	"github.com/healthlab-dev/healthlab/adapters/stores"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Names of what a second process of the test is told.
const (
	envDatabase = "HEALTHLABTEST_EXCHANGE_DATABASE"
	envProvider = "HEALTHLABTEST_EXCHANGE_PROVIDER"
	envUser     = "HEALTHLABTEST_EXCHANGE_USER"
)

var exchangeTeam = healthlab.TeamID{UUID: uuid.MustParse("8f14e45f-ceea-467f-9b1c-3d4a0a1b2c3d")}

// renewing is a process that renews secrets of the double of WHOOP.
type renewing struct {
	store     *stores.Stores
	health    *healthdata.Service
	connector *rest.Connector
	refresher *linking.CredentialRefresher
	sealer    healthlab.Sealer
}

func newRenewing(t *testing.T, database, provider string) *renewing {
	t.Helper()
	var r renewing
	engine, err := postgres.Open(t.Context(), pgtest.Connect(t, database), stores.Tables(), nil)
	require.NoError(t, err)
	r.store = stores.New(engine, &stores.Options{Events: stores.Outbox})
	r.sealer, err = healthlab.NewAESSealer("k", map[string][]byte{"k": make([]byte, 32)})
	require.NoError(t, err)
	list, err := healthdata.NewProviders([]healthdata.Provider{whoop.Record()})
	require.NoError(t, err)
	r.health, err = healthdata.New(r.store.Users(), r.store.Data(), list, &healthdata.Options{Environment: healthlab.Production})
	require.NoError(t, err)
	r.connector, err = whoop.New(rest.Client{ID: "id", Secret: "secret"}, &rest.Options{
		Origin: provider, Guard: &webhook.Guard{Plain: true, Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	require.NoError(t, err)
	r.refresher, err = linking.NewCredentialRefresher(r.store.Credentials(), r.health, map[string]linking.ProviderConnector{whoop.Slug: r.connector.Flows()}, r.sealer, nil)
	require.NoError(t, err)
	return &r
}

// link connects a person whose access token has ended.
func (r *renewing) link(t *testing.T, p *double.Person) healthlab.UserID {
	t.Helper()
	const back = "https://app.example/callback"
	page, err := r.connector.Authorize(t.Context(), linking.AuthorizeRequest{State: "state-1234", RedirectURL: back, Scopes: r.connector.OAuth.Minimum})
	require.NoError(t, err)
	browser := &http.Client{CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	resp, err := browser.Get(page + "&person=" + p.ID)
	require.NoError(t, err)
	require.NoError(t, resp.Body.Close())
	to, err := url.Parse(resp.Header.Get("Location"))
	require.NoError(t, err)
	g, err := r.connector.Exchange(t.Context(), linking.ExchangeRequest{Code: to.Query().Get("code"), RedirectURL: back})
	require.NoError(t, err)
	u, err := r.health.CreateUser(t.Context(), exchangeTeam, healthdata.NewUser{ClientUserID: p.ID})
	require.NoError(t, err)
	now := time.Now()
	x := linking.Session{ID: linking.SessionID{UUID: uuid.New()}, Team: exchangeTeam, User: u.ID, State: linking.StateStarted, CreatedAt: now, ExpiresAt: now.Add(time.Hour)}
	require.NoError(t, r.store.Linking().InsertSession(t.Context(), x))
	box, err := r.sealer.Seal(t.Context(), g.Secret, fmt.Appendf(nil, "grant %s %s %s", exchangeTeam, u.ID, whoop.Slug))
	require.NoError(t, err)
	establish, err := r.health.Connections().ConnectingLinked(healthdata.NewConnection{Provider: whoop.Slug, ExternalUserID: &g.ExternalUserID})
	require.NoError(t, err)
	_, err = r.store.Linking().Complete(t.Context(), linking.Completion{
		Team: exchangeTeam, Session: x.ID,
		Credential: linking.Credential{
			ID: uuid.New(), Team: exchangeTeam, User: u.ID, Provider: whoop.Slug, Secret: box, CreatedAt: now.Add(-2 * time.Hour), ExpiresAt: now.Add(-time.Hour),
		},
		Change: func(x *linking.Session, u *healthdata.User) ([]healthlab.Event, error) {
			x.State = linking.StateConnected
			return establish(u)
		},
	})
	require.NoError(t, err)
	return u.ID
}

// renewals is how often each process needs the secret.
const renewals = 500

// Two processes of one database need one rotating token 1,000 times at once, and exchange it once.
func TestCheck_twoProcessesExchangeARotatingTokenOnce(t *testing.T) {
	if database := os.Getenv(envDatabase); database != "" {
		renew(t, database)
		return
	}
	database := pgtest.URL(t)
	one := double.NewPerson(1, time.Now(), 1)
	d, _ := double.Whoop(double.Options{People: []*double.Person{one}})
	provider := httptest.NewServer(d)
	t.Cleanup(provider.Close)
	user := newRenewing(t, database, provider.URL).link(t, one)
	type process struct {
		*exec.Cmd
		in  io.WriteCloser
		out *bufio.Reader
	}
	var both []process
	for range 2 {
		c := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestCheck_twoProcessesExchangeARotatingTokenOnce$")
		c.Env = append(os.Environ(), envDatabase+"="+database, envProvider+"="+provider.URL, envUser+"="+user.String())
		c.Stderr = os.Stderr
		in, err := c.StdinPipe()
		require.NoError(t, err)
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		both = append(both, process{c, in, bufio.NewReader(out)})
	}
	for _, p := range both { // both are ready, then both begin
		line, err := p.out.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
	}
	for _, p := range both {
		_, err := io.WriteString(p.in, "go\n")
		require.NoError(t, err)
	}
	for _, p := range both {
		rest, err := io.ReadAll(p.out)
		require.NoError(t, err)
		require.NoError(t, p.Wait(), string(rest))
	}
	require.Equal(t, 1, d.Exchanges())
}

// renew is what each process does.
func renew(t *testing.T, database string) {
	r := newRenewing(t, database, os.Getenv(envProvider))
	id, err := uuid.Parse(os.Getenv(envUser))
	require.NoError(t, err)
	fmt.Println("ready")
	_, err = bufio.NewReader(os.Stdin).ReadString('\n')
	require.NoError(t, err)
	var group sync.WaitGroup
	failed := make(chan error, renewals)
	for range renewals {
		group.Go(func() {
			_, err := r.refresher.Secret(context.WithoutCancel(t.Context()), exchangeTeam, healthlab.UserID{UUID: id}, whoop.Slug)
			failed <- err
		})
	}
	group.Wait()
	for range renewals {
		require.NoError(t, <-failed)
	}
}

func TestMain(m *testing.M) {
	os.Exit(pgtest.Main(m, func(ctx context.Context, conn *pgx.Conn) error {
		return postgres.Migrate(ctx, conn, stores.Tables(), nil)
	}))
}
