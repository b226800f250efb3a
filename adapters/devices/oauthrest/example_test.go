package oauthrest_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/oauthrest"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// ringMaker is a provider with one customer, whose heart beats 58 times a minute.
func ringMaker() *httptest.Server {
	mux := http.NewServeMux()
	mux.HandleFunc("POST /oauth/token", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"access_token":"a","refresh_token":"r","token_type":"bearer","expires_in":3600,"user":{"id":17}}`)
	})
	mux.HandleFunc("GET /v1/users/17/heart", func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"user":17,"samples":[{"time":"2026-03-04T07:00:00+01:00","bpm":58,"device":"ring"}]}`)
	})
	return httptest.NewServer(mux)
}

// A team connects a provider with a file. A host reads the file that is in its folder, runs
// pull.Service.Run, and leaves the rest to the link pages.
func Example() {
	ctx := context.Background()
	maker := ringMaker()
	defer maker.Close()
	file, _ := os.ReadFile("../../../examples/server/connectors/fjord_ring.json")
	here := strings.NewReplacer("https://account.fjord.example", maker.URL, "https://api.fjord.example", maker.URL)
	config, err := oauthrest.ReadConfig(strings.NewReader(here.Replace(string(file))))
	fmt.Println(config.Provider.Name, err)
	ring, _ := oauthrest.New(config, oauthrest.Client{ID: "us", Secret: "ours"}, &oauthrest.Options{Guard: guard()})
	connectors := map[string]linking.ProviderConnector{"fjord_ring": ring.Flows()}

	team := healthlab.TeamID{UUID: uuid.New()}
	now := noon
	clock := func() time.Time { return now }
	store := memory.New(&memory.Options{Now: clock})
	providers, _ := healthdata.NewProviders([]healthdata.Provider{config.Provider})
	health, _ := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox, Now: clock})
	sealer, _ := healthlab.NewAESSealer("2026", map[string][]byte{"2026": bytes.Repeat([]byte{1}, 32)}) // 32 random bytes
	links, _ := linking.New(store.Linking(), health, connectors, sealer, &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{bytes.Repeat([]byte{2}, 32)}, Now: clock})
	refresher, _ := linking.NewCredentialRefresher(store.Credentials(), health, connectors, sealer, &linking.CredentialRefresherOptions{Now: clock})
	pulls, _ := pull.New(store.Pulls(), health, refresher, connectors, &pull.Options{Now: clock})

	// Ann leaves for the provider, says yes, and comes back with a code.
	ann, _ := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "patient-17"})
	issued, _ := links.CreateToken(ctx, team, linking.NewToken{User: ann.ID, Provider: "fjord_ring"})
	away, _ := links.Authorize(ctx, issued.Token, linking.OAuthSignIn{Provider: "fjord_ring"})
	fmt.Println(strings.HasPrefix(away.URL, maker.URL+"/oauth/authorize?"))
	back, _ := links.Callback(ctx, linking.Callback{Provider: "fjord_ring", State: issued.Token, Code: "from the provider"})
	fmt.Println(back.State, *back.ExternalUserID)

	// Her history is fetched, no faster than the provider allows.
	for range 40 {
		_, _ = pulls.Step(ctx)
		now = now.Add(2 * time.Second)
	}
	beats, _ := health.AllSamples(ctx, team, ann.ID, healthdata.SampleQuery{
		Resource: "heartrate", From: noon.AddDate(0, 0, -1), To: noon,
	})
	for _, b := range beats {
		fmt.Println(b.Timestamp, b.Value.Number, b.Unit, *b.TimezoneOffset)
	}
	// Output:
	// Fjord Ring <nil>
	// true
	// success 17
	// 2026-03-04T06:00:00+00:00 58 bpm 3600
}
