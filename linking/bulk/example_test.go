package bulk_test

import (
	"context"
	"fmt"
	"strings"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// band is a provider whose secrets are two words.
type band struct{}

func (band) Authorize(_ context.Context, r linking.AuthorizeRequest) (string, error) {
	return "https://band.example/sign-in?state=" + r.State, nil
}

func (band) Exchange(context.Context, linking.ExchangeRequest) (linking.Grant, error) {
	return linking.Grant{ExternalUserID: "ann@band", Secret: []byte("access-1 refresh-1")}, nil
}

func (band) Encode(t linking.Tokens) ([]byte, error) { return []byte(t.Access + " " + t.Refresh), nil }

func (band) Decode(secret []byte) (linking.Tokens, error) {
	access, refresh, _ := strings.Cut(string(secret), " ")
	return linking.Tokens{Access: access, Refresh: refresh}, nil
}

// service makes bulk operations of a service in memory.
func service() (*healthdata.Service, *linking.Service, *bulk.Service) {
	store := memory.New(nil)
	providers, _ := healthdata.NewProviders([]healthdata.Provider{
		{Slug: "acme_band", Name: "Acme Band", AuthType: "oauth", Category: "device", Class: "cloud"},
	})
	health, _ := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	sealer, _ := healthlab.NewAESSealer("2026", map[string][]byte{"2026": make([]byte, 32)}) // 32 random bytes
	connectors := map[string]linking.ProviderConnector{"acme_band": {OAuth: band{}, TokenCodec: band{}}}
	links, _ := linking.New(store.Linking(), health, connectors, sealer, &linking.Options{
		SigningKeys: [][]byte{make([]byte, 32)},
		Environment: healthlab.Sandbox,
		Settings: func(context.Context, healthlab.TeamID) (linking.TeamSettings, error) {
			return linking.TeamSettings{Bulk: true, OwnOAuth: []string{"acme_band"}}, nil
		},
	})
	refresher, _ := linking.NewCredentialRefresher(store.Credentials(), health, connectors, sealer, nil)
	pulls, _ := pull.New(store.Pulls(), health, refresher, connectors, nil)
	moves, _ := bulk.New(store.Bulk(), links, pulls, sealer, nil)
	return health, links, moves
}

// A team moves away: it pauses, so that no token changes any more, and takes the tokens
// along.
func Example() {
	ctx := context.Background()
	team := healthlab.TeamID{UUID: uuid.New()}
	health, links, moves := service()

	ann, _ := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "patient-17"})
	token, _ := links.CreateToken(ctx, team, linking.NewToken{User: ann.ID})
	away, _ := links.Authorize(ctx, token.Token, linking.OAuthSignIn{Provider: "acme_band"})
	_, state, _ := strings.Cut(away.URL, "state=")
	_, _ = links.Callback(ctx, linking.Callback{Provider: "acme_band", State: state, Code: "code"})

	paused, _ := moves.Pause(ctx, team, "acme_band", []healthlab.UserID{ann.ID})
	page, _ := moves.Export(ctx, bulk.ExportQuery{Team: team, Provider: "acme_band"})
	fmt.Println(len(paused.Users), "paused;", page.Data[0].AccessToken, page.Data[0].RefreshToken, page.Data[0].ProviderID)
	// Output: 1 paused; access-1 refresh-1 ann@band
}

// A team moves in: what was exported elsewhere becomes connections here.
func ExampleService_Import() {
	ctx := context.Background()
	team := healthlab.TeamID{UUID: uuid.New()}
	health, _, moves := service()

	ann, _ := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "patient-17"})
	tokens := bulk.ConnectionTokens{UserID: ann.ID, AccessToken: "access-1", RefreshToken: "refresh-1", ProviderID: "ann@band", ExpiresAt: bulk.NeverExpires}
	submitted, _ := moves.Import(ctx, team, "acme_band", []bulk.ConnectionTokens{tokens}, false)
	_, _ = moves.Step(ctx) // or Run, in the background of any process
	done, _ := moves.ImportResult(ctx, team, submitted.Op.ID)
	ann, _ = health.User(ctx, team, ann.ID)
	fmt.Println(done.Op.Status, len(done.Users), ann.Connection("acme_band").Status)
	// Output: success 1 connected
}
