package linking_test

import (
	"bytes"
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// scale is the sign-in of an invented provider. A real one calls the provider.
type scale struct{}

func (scale) SignIn(_ context.Context, r linking.PasswordRequest) (linking.PasswordResponse, error) {
	if r.Password != "correct horse" {
		return linking.PasswordResponse{}, &linking.Error{Type: linking.ProviderCredentialError}
	}
	return linking.PasswordResponse{Challenge: &linking.Challenge{Method: "sms", Hint: "ends in 42"}}, nil
}

func (scale) CompleteMFA(_ context.Context, r linking.MFARequest) (linking.Grant, error) {
	if r.Code != "123456" {
		return linking.Grant{}, &linking.Error{Type: linking.IncorrectMFACode}
	}
	return linking.Grant{Secret: []byte("access token")}, nil
}

func Example() {
	ctx := context.Background()
	team := healthlab.TeamID{UUID: uuid.New()}
	store := memory.New(nil)
	providers, _ := healthdata.NewProviders([]healthdata.Provider{
		{Slug: "acme_scale", Name: "Acme Scale", AuthType: "password", Category: "device", Class: "cloud"},
	})
	health, _ := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	ann, _ := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "patient-17"})

	sealer, _ := healthlab.NewAESSealer("2026", map[string][]byte{"2026": bytes.Repeat([]byte{1}, 32)}) // 32 random bytes
	service, _ := linking.New(store.Linking(), health, map[string]linking.ProviderConnector{
		"acme_scale": {Password: scale{}},
	}, sealer, &linking.Options{Environment: healthlab.Sandbox, SigningKeys: [][]byte{bytes.Repeat([]byte{2}, 32)}})

	// The customer's backend asks for a token and opens the pages with it.
	issued, _ := service.CreateToken(ctx, team, linking.NewToken{User: ann.ID, RedirectURL: "https://app.example/done?visit=7"})

	// Ann mistypes; the token still works. Then the provider wants a code.
	in := linking.PasswordSignIn{Provider: "acme_scale", Username: "ann", Password: "correct hose"}
	r, _ := service.SignIn(ctx, issued.Token, in)
	fmt.Println(r.State, r.Error)
	in.Password = "correct horse"
	r, _ = service.SignIn(ctx, issued.Token, in)
	fmt.Println(r.State, r.Challenge.Method, r.Challenge.Hint)
	r, _ = service.CompleteMFA(ctx, issued.Token, "acme_scale", "000000")
	fmt.Println(r.State, r.Error)
	r, _ = service.CompleteMFA(ctx, issued.Token, "acme_scale", "123456")
	fmt.Println(r.State, r.Location)

	// That was the one connection that the token was for.
	r, _ = service.SignIn(ctx, issued.Token, in)
	fmt.Println(r.State, r.Error)
	// Output:
	// error provider_credential_error
	// pending_provider_mfa sms ends in 42
	// error incorrect_mfa_code
	// success https://app.example/done?visit=7&state=success&provider=acme_scale
	// error token_consumed
}

func ExampleService_Redeem() {
	ctx := context.Background()
	team := healthlab.TeamID{UUID: uuid.New()}
	store := memory.New(nil)
	providers, _ := healthdata.NewProviders(nil)
	health, _ := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
	ann, _ := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "patient-17"})
	sealer, _ := healthlab.NewAESSealer("2026", map[string][]byte{"2026": bytes.Repeat([]byte{1}, 32)})
	service, _ := linking.New(store.Linking(), health, nil, sealer, &linking.Options{
		SigningKeys: [][]byte{bytes.Repeat([]byte{2}, 32)},
		Environment: healthlab.Sandbox,
		AppScheme:   "clinicapp", Random: bytes.NewReader([]byte{0x01, 0x23, 0xab, 0xcd}), // for the example alone
	})

	code, _ := service.CreateCode(ctx, team, ann.ID, nil)
	fmt.Println(code.ExchangeURL)

	// The app sends the code, and learns whose data it is to share.
	user, _ := service.Redeem(ctx, team, "203.0.113.7", code.Code)
	fmt.Println(user == ann.ID)
	_, err := service.Redeem(ctx, team, "203.0.113.7", code.Code)
	fmt.Println(err)
	// Output:
	// clinicapp://link?code=skus0123abcd
	// true
	// redeem link code: CODE_CONSUMED: the link code was used before; create a new one
}
