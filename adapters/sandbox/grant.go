package sandbox

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// ticket is the content of a grant's secret. It is enough to check the grant, so any process can do so.
type ticket struct {
	account, behaviour string
	serial             int64
	until              time.Time // when the grant expires; zero if it does not
}

func (t *ticket) secret() []byte {
	var until int64
	if !t.until.IsZero() {
		until = t.until.UnixMicro()
	}
	return []byte(strings.Join([]string{t.account, t.behaviour, strconv.FormatInt(t.serial, 10), strconv.FormatInt(until, 10)}, "|"))
}

func openTicket(secret []byte) (t ticket, ok bool) {
	parts := strings.Split(string(secret), "|")
	if len(parts) < 4 {
		return t, false
	}
	n := len(parts) // the behaviour is chosen by a person, so it may contain separators
	serial, err := strconv.ParseInt(parts[n-2], 10, 64)
	until, bad := strconv.ParseInt(parts[n-1], 10, 64)
	t = ticket{account: parts[0], behaviour: strings.Join(parts[1:n-2], "|"), serial: serial}
	if until != 0 {
		t.until = time.UnixMicro(until)
	}
	return t, err == nil && bad == nil
}

// Encode returns what is stored, encrypted, of a connection's tokens: in the sandbox only the refresh token.
func (c *Connector) Encode(t linking.Tokens) ([]byte, error) {
	if _, ok := openTicket([]byte(t.Refresh)); !ok {
		return nil, fmt.Errorf("%w: refresh token: must be one that the sandbox issued", healthlab.Invalid)
	}
	return []byte(t.Refresh), nil
}

// Decode returns the tokens that [Connector.Encode] encoded. Access and refresh token are the same text.
func (c *Connector) Decode(secret []byte) (linking.Tokens, error) {
	if _, ok := openTicket(secret); !ok {
		return linking.Tokens{}, fmt.Errorf("%w: secret: must be one that the sandbox issued", healthlab.Invalid)
	}
	return linking.Tokens{Access: string(secret), Refresh: string(secret)}, nil
}

// accountState returns the state of an account, by the key that accountKey returns. It creates the state if there is
// none. c.mu must be locked.
func (c *Connector) accountState(name string) *account {
	a := c.accounts[name]
	if a == nil {
		a = &account{asked: map[string]int{}}
		c.accounts[name] = a
	}
	return a
}

// issue gives t the next number and makes it the newest grant of the account a. It returns when the grant expires; zero
// for a life of zero, except with [BehaviourEnded] and [BehaviourStuck], whose grants have expired already.
func (c *Connector) issue(t *ticket, a *account, life time.Duration) (until time.Time) {
	now := c.now()
	switch {
	case t.behaviour == BehaviourEnded || t.behaviour == BehaviourStuck:
		until = now // the token has already expired and must be renewed
	case life > 0:
		until = now.Add(life)
	}
	t.serial, t.until = max(now.UnixMicro(), a.last+1), until
	a.before, a.last = a.last, t.serial
	return until
}

// accountOf returns the account of a grant. If the grant is newer than the newest one known, because another process
// issued it, it becomes the newest. honoured is false if newer grants have made it invalid.
func (c *Connector) accountOf(t ticket) (a *account, honoured bool) {
	a = c.accountState(t.account)
	if t.serial > a.last {
		a.before, a.last = t.serial, t.serial
	}
	return a, t.serial >= a.before
}

// Refresh returns a new grant. secret must be that of the newest grant of the account, or of the one before.
func (c *Connector) Refresh(ctx context.Context, secret []byte) (linking.Renewal, error) {
	t, ok := openTicket(secret)
	if !ok {
		return linking.Renewal{}, &linking.GrantError{}
	}
	if t.behaviour == BehaviourStuck {
		return linking.Renewal{}, errDown
	}
	if err := c.trusted(); err != nil {
		return linking.Renewal{}, err
	}
	if !c.known(&t) {
		return linking.Renewal{}, &linking.GrantError{}
	}
	if ctx.Err() != nil {
		return linking.Renewal{}, ctx.Err()
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	a, honoured := c.accountOf(t)
	if a.revoked || !honoured || t.behaviour == BehaviourEnded {
		return linking.Renewal{}, &linking.GrantError{}
	}
	until := c.issue(&t, a, c.life)
	return linking.Renewal{Secret: t.secret(), ExpiresAt: until}, nil
}

// Revoke ends all grants of the account for the connector's OAuth client, until the next sign-in. secret is that of one
// of these grants.
func (c *Connector) Revoke(_ context.Context, secret []byte) error {
	t, ok := openTicket(secret)
	if !ok {
		return healthlab.Invalid
	}
	if err := c.trusted(); err != nil {
		return err
	}
	if !c.known(&t) {
		return errClient
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accountState(t.account).revoked = true
	return nil
}

// Revoked reports whether the grants of the account for the OAuth client were ended by Revoke or Withdraw. secret is
// that of one of these grants.
func (c *Connector) Revoked(secret []byte) bool {
	t, ok := openTicket(secret)
	c.mu.Lock()
	defer c.mu.Unlock()
	return ok && c.accountState(t.account).revoked
}

// Withdraw acts as the person who withdraws the consent at the provider. It ends the grants of the account of this name
// for all OAuth clients.
func (c *Connector) Withdraw(name string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.accountState(c.account(name)).revoked = true
	for key, a := range c.accounts {
		if strings.HasPrefix(key, c.account(name)+".") {
			a.revoked = true
		}
	}
}

// withdrawFor withdraws the consent of an account for some users, until the next sign-in to the account. Other users of
// the account are not affected.
func (c *Connector) withdrawFor(name string, users ...healthlab.UserID) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, u := range users {
		c.withdrawn[u] = c.account(name)
	}
}

// checkAccess checks that a secret allows a data request of a user. It returns the content of the secret, and how many
// requests for the resource preceded this one.
func (c *Connector) checkAccess(secret []byte, user healthlab.UserID, resource string) (t ticket, times int, err error) {
	t, ok := openTicket(secret)
	if !ok {
		return t, 0, healthlab.Unauthenticated
	}
	account, _, _ := strings.Cut(t.account, ".")
	c.mu.Lock()
	defer c.mu.Unlock()
	a, honoured := c.accountOf(t)
	switch {
	case a.revoked || t.behaviour == BehaviourWithdrawn || c.withdrawn[user] == account:
		return t, 0, &linking.GrantError{Type: healthdata.FailureDeregistered}
	case !honoured, !t.until.IsZero() && !c.now().Before(t.until):
		return t, 0, healthlab.Unauthenticated
	}
	a.asked[resource]++
	return t, a.asked[resource] - 1, nil
}

var errGarbled = errors.New("the sandbox provider returned an invalid answer")
