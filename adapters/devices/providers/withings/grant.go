package withings

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/url"
	"strconv"
	"strings"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
)

const base = "https://wbsapi.withings.net"

// tokenBody converts a response of the token URL to the form of RFC 6749. A refusal has no error code: if its text
// names the refresh token or the code, it becomes invalid_grant, else temporarily_unavailable.
func tokenBody(b []byte) []byte {
	var v envelope
	if json.Unmarshal(b, &v) != nil || v.Status == nil {
		return b
	}
	if *v.Status == 0 {
		return v.Body
	}
	if strings.Contains(v.Error, "invalid refresh_token") || strings.Contains(v.Error, "invalid code") {
		return []byte(`{"error": "invalid_grant"}`)
	}
	return []byte(`{"error": "temporarily_unavailable"}`)
}

// account returns the person's id, and subscribes SignedIn.MessageURL to the person's messages.
func account(ctx context.Context, s *rest.SignedIn) (string, error) {
	id, err := rest.AccountIn(s.Token, "userid")
	if err != nil || s.MessageURL == "" {
		return id, err
	}
	for _, category := range rest.Words(kinds) {
		form := url.Values{"action": {"subscribe"}, "callbackurl": {s.MessageURL}, "appli": {category}}
		if _, err := s.Form(ctx, base+"/notify", form); err != nil && ctx.Err() != nil {
			return "", err
		}
	}
	return id, nil
}

func sign(c rest.Client, values ...string) string {
	mac := hmac.New(sha256.New, []byte(c.Secret))
	mac.Write([]byte(strings.Join(values, ",")))
	return hex.EncodeToString(mac.Sum(nil))
}

// revoke revokes a grant with a signed request. The provider then ends the subscriptions too.
func revoke(ctx context.Context, s *rest.SignedIn) error {
	id, err := rest.AccountIn(s.Token, "userid")
	if err != nil {
		return err
	}
	post := func(path string, form url.Values) (*rest.Answer, error) {
		a, err := s.Form(ctx, base+path, form)
		if err == nil {
			err = refused(a)
		}
		return a, err
	}
	at := strconv.FormatInt(s.Now().Unix(), 10)
	a, err := post("/v2/signature", url.Values{
		"action": {"getnonce"}, "client_id": {s.Client.ID}, "timestamp": {at}, "signature": {sign(s.Client, "getnonce", s.Client.ID, at)},
	})
	if err != nil {
		return err
	}
	nonce, err := rest.AccountIn(a.Body, "body.nonce")
	if err != nil {
		return err
	}
	_, err = post("/v2/oauth2", url.Values{
		"action": {"revoke"}, "client_id": {s.Client.ID}, "nonce": {nonce}, "userid": {id}, "signature": {sign(s.Client, "revoke", s.Client.ID, nonce)},
	})
	return err
}
