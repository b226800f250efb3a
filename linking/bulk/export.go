package bulk

import (
	"context"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

// PauseResult says what became of a pause.
type PauseResult struct {
	// Users are those whose connection is closed now, as it may have been before, and
	// Missing those who have none; both in the order of the call, each once, and never nil.
	Users   []healthlab.UserID `json:"user_ids_paused"`
	Missing []healthlab.UserID `json:"user_ids_failed"`
}

// Pause closes connections until the people link again: nothing is fetched, and no token is
// renewed. A renewal that is under way is kept. What they were fetched with stays, for
// [Service.Export], and the provider is not told. A call that was cut off may be made again.
//
// Errors: Invalid (the provider is not configured), Forbidden ([RuleNotEnabled]).
func (s *Service) Pause(ctx context.Context, team healthlab.TeamID, provider string, users []healthlab.UserID) (PauseResult, error) {
	out := PauseResult{Users: []healthlab.UserID{}, Missing: []healthlab.UserID{}}
	if _, err := s.enabled(ctx, team); err != nil {
		return out, fmt.Errorf("pause connections: %w", err)
	}
	if _, err := s.provider(provider); err != nil {
		return out, fmt.Errorf("pause connections: %w", err)
	}
	for _, u := range once(users) {
		switch err := s.users.Pause(ctx, team, u, provider); {
		case err == nil:
			out.Users = append(out.Users, u)
		case errors.Is(err, healthlab.NotFound):
			out.Missing = append(out.Missing, u)
		default:
			return out, fmt.Errorf("pause connections: %w", err)
		}
	}
	return out, nil
}

// once returns each user once, in their order.
func once(users []healthlab.UserID) []healthlab.UserID {
	seen := map[healthlab.UserID]bool{}
	return slices.DeleteFunc(slices.Clone(users), func(u healthlab.UserID) bool {
		was := seen[u]
		seen[u] = true
		return was
	})
}

// ConnectionTokens is what a connection can be made of again, elsewhere.
type ConnectionTokens struct {
	healthlab.Private

	UserID healthlab.UserID `json:"user_id"`
	// AccessToken and RefreshToken are the latest; of OAuth 1 the token and its secret.
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	// ProviderID is the provider's own name for the person; empty if it has none.
	ProviderID string `json:"provider_id"`
	// ExpiresAt is when the access token ends, in Unix seconds; [NeverExpires] where it
	// does not, or it is not known, and for OAuth 1.
	ExpiresAt int64 `json:"expires_at"`
	// Scopes were granted; null if they are not known, and for OAuth 1.
	Scopes *[]string `json:"oauth_scopes"`
}

// NeverExpires is the ExpiresAt of a token that does not end.
const NeverExpires = 2147483647

// exportPage is how many connections are exported at a time.
const exportPage = 100

// Export is a page of connections, by user id.
type Export struct {
	// Data is never nil.
	Data []ConnectionTokens `json:"data"`
	// Next is for the next page; nil on the last one.
	Next *string `json:"next_token"`
}

// ExportQuery says what to export.
type ExportQuery struct {
	Team     healthlab.TeamID
	Provider string
	// Users are the only ones; nil means all. Those who have no connection are left out.
	Users []healthlab.UserID
	// Token is empty for the first page, then what the page before said.
	Token string
}

// Export hands out what connections to a provider are made of, working, failed or paused.
// Those that are bound to credentials that are not the team's are left out, so a page may be
// shorter than others, or empty, and have a next one.
// Tokens of a connection that works may be renewed at any time, and are old then: pause it
// first.
//
// Errors: Invalid (the provider is not configured, or the token is another query's),
// Forbidden ([RuleNotEnabled]), Precondition ([RuleOtherCredentials]).
func (s *Service) Export(ctx context.Context, q ExportQuery) (Export, error) {
	out, err := s.export(ctx, q)
	if err != nil {
		return Export{}, fmt.Errorf("export connections: %w", err)
	}
	return out, nil
}

func (s *Service) export(ctx context.Context, q ExportQuery) (Export, error) {
	out := Export{Data: []ConnectionTokens{}}
	m, err := s.movable(ctx, q.Team, q.Provider)
	if err != nil {
		return out, err
	}
	after, ok := q.after()
	if !ok {
		var bad healthlab.Problems
		bad.Add("cursor", "damaged, or of another query", "next_token")
		return out, bad.Err()
	}
	list, err := s.store.Connections(ctx, ConnectionQuery{Team: q.Team, Provider: q.Provider, Users: q.Users, After: after, N: exportPage + 1})
	if err != nil {
		return out, err
	}
	if len(list) > exportPage {
		list = list[:exportPage]
		next := q.token(list[exportPage-1].User)
		out.Next = &next
	}
	for i := range list {
		h := &list[i]
		if !m.settings.Owns(q.Provider, h.Client) { // it is bound to credentials of the deployment
			continue
		}
		secret, err := s.links.OpenCredential(ctx, h.Credential)
		if err != nil {
			return out, err
		}
		tokens, err := m.Decode(secret)
		if err != nil {
			return out, err
		}
		r := ConnectionTokens{UserID: h.User, AccessToken: tokens.Access, RefreshToken: tokens.Refresh, ExpiresAt: NeverExpires}
		if h.ExternalUserID != nil {
			r.ProviderID = *h.ExternalUserID
		}
		if m.provider.OAuthVersion != 1 {
			if h.Scopes != nil {
				r.Scopes = &h.Scopes
			}
			if !h.ExpiresAt.IsZero() {
				r.ExpiresAt = h.ExpiresAt.Unix()
			}
		}
		out.Data = append(out.Data, r)
	}
	return out, nil
}

// token names the place after a user, for this query alone.
func (q *ExportQuery) token(after healthlab.UserID) string {
	sum := sha256.New()
	sum.Write(fmt.Appendf(nil, "export %s %d %s %t %s", q.Team, len(q.Provider), q.Provider, q.Users == nil, after))
	for _, u := range q.Users {
		sum.Write(u.UUID[:])
	}
	return base64.RawURLEncoding.EncodeToString(sum.Sum(slices.Clone(after.UUID[:]))[:24])
}

// after reads a token.
func (q *ExportQuery) after() (healthlab.UserID, bool) {
	if q.Token == "" {
		return healthlab.UserID{}, true
	}
	b, err := base64.RawURLEncoding.DecodeString(q.Token)
	if err != nil || len(b) != 24 {
		return healthlab.UserID{}, false
	}
	after := healthlab.UserID{UUID: uuid.UUID(b[:16])}
	return after, q.token(after) == q.Token
}
