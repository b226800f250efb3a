package nightscout_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/nightscout"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/pull"
)

// annsSite is a Nightscout with one reading.
func annsSite() *httptest.Server {
	return httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("token") != token:
			fmt.Fprint(w, `{"status":200,"message":{"message":"UNAUTHORIZED","rolefound":"NOTFOUND"}}`)
		case strings.HasSuffix(r.URL.Path, "/verifyauth"):
			fmt.Fprint(w, `{"status":200,"message":{"message":"OK","rolefound":"FOUND","canRead":true}}`)
		case strings.HasSuffix(r.URL.Path, "/profile.json"):
			fmt.Fprint(w, `[{"defaultProfile":"Default","store":{"Default":{"timezone":"Europe/Vienna"}}}]`)
		case strings.HasSuffix(r.URL.Path, "/status.json"):
			fmt.Fprint(w, `{"status":"ok","settings":{"units":"mmol"}}`)
		case strings.HasSuffix(r.URL.Path, "/entries.json"):
			fmt.Fprint(w, `[{"_id":"1","type":"sgv","sgv":104,"date":1772618400000,"utcOffset":0}]`)
		default:
			fmt.Fprint(w, `[]`)
		}
	}))
}

// Ann connects the site that she runs herself, and what her sensor says is read.
func Example() {
	ctx := context.Background()
	ours := annsSite()
	defer ours.Close()
	connectors := map[string]linking.ProviderConnector{
		nightscout.Slug: nightscout.New(&nightscout.Options{Guard: guard()}).Flows(), // nil reaches public sites alone
	}
	team := healthlab.TeamID{UUID: uuid.New()}
	clock := func() time.Time { return noon }
	store := memory.New(&memory.Options{Now: clock})
	providers, _ := healthdata.NewProviders([]healthdata.Provider{nightscout.Record()})
	health, _ := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox, Now: clock})
	sealer, _ := healthlab.NewAESSealer("2026", map[string][]byte{"2026": bytes.Repeat([]byte{1}, 32)}) // 32 random bytes
	links, _ := linking.New(store.Linking(), health, connectors, sealer, &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{bytes.Repeat([]byte{2}, 32)}, Now: clock})
	refresher, _ := linking.NewCredentialRefresher(store.Credentials(), health, connectors, sealer, &linking.CredentialRefresherOptions{Now: clock})
	pulls, _ := pull.New(store.Pulls(), health, refresher, connectors, &pull.Options{Now: clock})

	ann, _ := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "patient-17"})
	issued, _ := links.CreateToken(ctx, team, linking.NewToken{User: ann.ID})
	in := linking.PasswordSignIn{Provider: nightscout.Slug, Username: ours.URL + "/", Password: "ann-0000000000000000"}
	r, _ := links.SignIn(ctx, issued.Token, in)
	fmt.Println(r.State, r.Error)
	in.Password = token
	r, _ = links.SignIn(ctx, issued.Token, in)
	fmt.Println(r.State)

	for n := 1; n > 0; {
		n, _ = pulls.Step(ctx)
	}
	readings, _ := health.AllSamples(ctx, team, ann.ID, healthdata.SampleQuery{Resource: "glucose", From: noon.AddDate(0, 0, -1), To: noon})
	for _, x := range readings {
		fmt.Printf("%s %.1f %s, %d s east\n", x.Timestamp, x.Value.Number, x.Unit, *x.TimezoneOffset)
	}
	// Output:
	// error provider_credential_error
	// success
	// 2026-03-04T10:00:00+00:00 5.8 mmol/L, 3600 s east
}
