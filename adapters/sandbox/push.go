package sandbox

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"regexp"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

// Headers of pushed messages.
const (
	PushTime      = "Sandbox-Timestamp"
	PushSignature = "Sandbox-Signature"
)

// pushAge is the greatest age of a push message that is accepted. A message may also be as far in the future.
const pushAge = 5 * time.Minute

// pushed is the body of a push message.
type pushed struct {
	ID        string         `json:"id"`
	Account   string         `json:"account"`
	Resources []string       `json:"resources,omitempty"`
	Since     healthlab.Time `json:"since,omitzero"`
}

// Push returns a signed push message, as headers and body. It says that the account of name has new data. Equal
// arguments give an equal body. resources are slugs; without any, the message does not name resources. since is from
// when the data has changed; it may be zero.
func (c *Connector) Push(id, name string, since time.Time, resources ...string) (http.Header, []byte) {
	p := pushed{ID: id, Account: c.account(name), Resources: resources}
	if !since.IsZero() {
		p.Since = healthlab.At(since)
	}
	body, err := json.Marshal(p)
	if err != nil {
		panic(err) // strings and an instant always encode
	}
	at := strconv.FormatInt(c.now().Unix(), 10)
	return http.Header{
		"Content-Type": {"application/json"}, PushTime: {at}, PushSignature: {c.pushSum(at + "." + string(body))},
	}, body
}

// Verify returns the query of the GET request with which the provider checks the address for push messages. The body of
// the answer must be the challenge.
func (c *Connector) Verify(challenge string) string {
	return "challenge=" + challenge + "&token=" + c.pushSum("verify")
}

func (c *Connector) pushSum(text string) string {
	h := hmac.New(sha256.New, c.pushKey)
	h.Write([]byte(c.provider + "\n" + text))
	return hex.EncodeToString(h.Sum(nil))
}

var plainChallenge = regexp.MustCompile(`^[A-Za-z0-9_-]{1,100}$`)

// Listen reads the messages of [Connector.Push] and [Connector.Verify]. It refuses a pushed message that is more than
// five minutes old, or more than five minutes in the future.
func (c *Connector) Listen(_ context.Context, m linking.Message) (linking.ListenResult, error) {
	one := func(values map[string][]string, name string) string {
		if all := values[name]; len(all) == 1 {
			return all[0]
		}
		return ""
	}
	if m.Method == http.MethodGet {
		challenge := one(m.Query, "challenge")
		if !hmac.Equal([]byte(one(m.Query, "token")), []byte(c.pushSum("verify"))) {
			return linking.ListenResult{}, healthlab.Unauthenticated
		}
		if !plainChallenge.MatchString(challenge) {
			return linking.ListenResult{}, healthlab.Invalid
		}
		return linking.ListenResult{Reply: []byte(challenge)}, nil
	}
	at := one(m.Header, PushTime)
	if !hmac.Equal([]byte(one(m.Header, PushSignature)), []byte(c.pushSum(at+"."+string(m.Body)))) {
		return linking.ListenResult{}, healthlab.Unauthenticated
	}
	seconds, err := strconv.ParseInt(at, 10, 64)
	if age := m.At.Sub(time.Unix(seconds, 0)); err != nil || age > pushAge || age < -pushAge {
		return linking.ListenResult{}, healthlab.Unauthenticated
	}
	var p pushed
	if json.Unmarshal(m.Body, &p) != nil || p.Account == "" {
		return linking.ListenResult{}, healthlab.Invalid
	}
	return linking.ListenResult{Notifications: []linking.Notification{{
		ID: p.ID, ExternalUserID: p.Account, Resources: p.Resources, Since: p.Since.Time,
	}}}, nil
}
