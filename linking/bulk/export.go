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

// PauseResult is the result of a pause.
type PauseResult struct {
	// Users are the users whose connection is now paused, was paused before or has failed. Missing are
	// the users without a connection. Both are in the order of the call, without duplicates, and never nil.
	Users   []healthlab.UserID `json:"user_ids_paused"`
	Missing []healthlab.UserID `json:"user_ids_failed"`
}

// Pause pauses connections until the people link again: no data is fetched, and no token is refreshed. If a refresh is
// running, its result is still stored. The credentials stay, for [Service.Export], and the provider is not called. A
// repeated call changes nothing.
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
	for _, u := range uniqueUsers(users) {
		switch err := s.users.Connections().Pause(ctx, team, u, provider); {
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

// uniqueUsers returns the users without duplicates, in their order.
func uniqueUsers(users []healthlab.UserID) []healthlab.UserID {
	seen := map[healthlab.UserID]bool{}
	return slices.DeleteFunc(slices.Clone(users), func(u healthlab.UserID) bool {
		was := seen[u]
		seen[u] = true
		return was
	})
}

// ConnectionTokens are the tokens and fields of a connection, for moving it to another service.
type ConnectionTokens struct {
	healthlab.Private

	UserID healthlab.UserID `json:"user_id"`
	// AccessToken and RefreshToken are the latest tokens, or the token and its secret of OAuth 1.
	AccessToken  string `json:"access_token"`
	RefreshToken string `json:"refresh_token"`
	// ProviderID is the provider's own name for the person; empty if the provider has none.
	ProviderID string `json:"provider_id"`
	// ExpiresAt is when the access token expires, in Unix seconds. It is [NeverExpires] if the token does not
	// expire, if the time is not known, and for OAuth 1.
	ExpiresAt int64 `json:"expires_at"`
	// Scopes are the granted scopes; null if they are not known, and for OAuth 1.
	Scopes *[]string `json:"oauth_scopes"`
}

// NeverExpires is the ExpiresAt of a token that does not expire.
const NeverExpires = 2147483647

// exportPage is the greatest number of connections in an [Export].
const exportPage = 100

// Export is a page of connections, by user id.
type Export struct {
	// Data are the connections; never nil.
	Data []ConnectionTokens `json:"data"`
	// Next is the [ExportQuery].Token of the next page; nil on the last one.
	Next *string `json:"next_token"`
}

// ExportQuery selects connections to export.
type ExportQuery struct {
	Team     healthlab.TeamID
	Provider string
	// Users are the users whose connections are exported; nil means all users. Users without a connection are left out.
	Users []healthlab.UserID
	// Token is empty for the first page, then the Next of the previous page.
	Token string
}

// Export returns the tokens of connections to a provider, also of failed and paused ones. It leaves out connections
// whose tokens are bound to the deployment's OAuth client and not to the team's own, so a page may be empty although a
// next page follows. Pause a connection first, because its tokens may otherwise be refreshed at any time.
//
// Errors: Invalid (the provider is not configured, or the token is of another query), Forbidden ([RuleNotEnabled]),
// Precondition ([RuleOtherCredentials]).
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
		bad.Add("cursor", "must be the cursor of an earlier page of the same query", "next_token")
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

// token returns the token of the page that begins after a user. It is valid only for an equal query.
func (q *ExportQuery) token(after healthlab.UserID) string {
	sum := sha256.New()
	sum.Write(fmt.Appendf(nil, "export %s %d %s %t %s", q.Team, len(q.Provider), q.Provider, q.Users == nil, after))
	for _, u := range q.Users {
		sum.Write(u.UUID[:])
	}
	return base64.RawURLEncoding.EncodeToString(sum.Sum(slices.Clone(after.UUID[:]))[:24])
}

// after returns the user id after which the page of q.Token begins; zero for the first page. It returns false if the
// token is not one of this query.
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
