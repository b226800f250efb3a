package linking

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// CreateCode creates a link code for a user. A nil expires means one hour. It returns Invalid if expires is in
// the past or later than in seven days, and NotFound if the team has no such user.
func (s *Service) CreateCode(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, expires *time.Time) (IssuedCode, error) {
	at := s.now()
	until, err := codeExpiry(expires, at)
	if err == nil {
		err = s.requireUser(ctx, team, user, healthlab.NotFound)
	}
	if err != nil {
		return IssuedCode{}, fmt.Errorf("create link code: %w", err)
	}
	c := Code{Team: team, User: user, CreatedAt: at, ExpiresAt: until}
	// With a million open codes, one in 4,000 new ones is taken, so that five taken codes in a row practically
	// never occur.
	for range 5 {
		if c.Text, err = newCodeText(s.opts.Random, codePrefix(s.opts.Environment, s.opts.Region)); err != nil {
			break
		}
		if err = s.store.InsertCode(ctx, c); !errors.Is(err, healthlab.Conflict) {
			break
		}
	}
	if err != nil {
		return IssuedCode{}, fmt.Errorf("create link code: %w", err)
	}
	link := s.opts.AppScheme + "://link?code=" + c.Text
	return IssuedCode{Code: c.Text, ExchangeURL: link, ExpiresAt: healthlab.At(until)}, nil
}

// Redeem redeems a link code and returns its user. client identifies the sender of the code, preferably by its network
// address (of IPv6, the first 64 bits). The service stores client only after a wrong try, for a few hours, as a hash
// with the signing key. While many clients guess codes of the team, a client with a recent wrong try may get
// [RuleCodeInvalid] for a valid code; a new code works.
//
// Errors: [*TooManyTriesError]; a [*healthlab.RuleError] of type [RuleCodeInvalid], [RuleCodeExpired] or
// [RuleCodeConsumed].
func (s *Service) Redeem(ctx context.Context, team healthlab.TeamID, client, code string) (healthlab.UserID, error) {
	got, err := s.redeem(ctx, team, client, code)
	if err != nil {
		return healthlab.UserID{}, fmt.Errorf("redeem link code: %w", err)
	}
	return got.User, nil
}

// redeem redeems a code. A zero team matches a code of any team.
func (s *Service) redeem(ctx context.Context, team healthlab.TeamID, client, code string) (Code, error) {
	at := s.now()
	if !codeForm.MatchString(code) {
		code = "" // an empty code is never found, so the try counts as wrong
	}
	var got Code
	var verdict error
	err := s.store.TryCode(ctx, team, s.signer.clientKey(client), code, func(t *CodeAttempt) {
		got, verdict = t.Redeem(at)
	})
	if err == nil {
		err = verdict
	}
	if err == nil {
		err = s.requireUser(ctx, got.Team, got.User, errCode())
	}
	return got, err
}

// Exchange is [Service.Redeem] for a companion app without an API key of a team. It returns the team and the
// user of the code. Wrong tries are counted for all teams together. The errors are those of Redeem.
func (s *Service) Exchange(ctx context.Context, client, code string) (healthlab.TeamID, healthlab.UserID, error) {
	got, err := s.redeem(ctx, healthlab.TeamID{}, client, code)
	if err != nil {
		return healthlab.TeamID{}, healthlab.UserID{}, fmt.Errorf("exchange link code: %w", err)
	}
	return got.Team, got.User, nil
}
