package bulk

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
)

// ImportResult is the state of an import of connections, and after its end which users were connected.
type ImportResult struct {
	Op Op
	// Users are the users whose connection was made, and Failed the others, in the order of the call and
	// without erased users. Both are empty while the import is in progress.
	Users  []healthlab.UserID
	Failed []FailedImport
}

// FailedImport is a connection that could not be made.
type FailedImport struct {
	User healthlab.UserID
	// Outcome is the reason; empty if the operation was aborted before the connection was tried.
	Outcome Outcome
}

// Import makes connections from the tokens of another service, or replaces existing ones, as if the people had linked:
// events are sent, and the history is fetched. The operation is stored at once with sealed tokens, and runs in the
// background in the order of tokens. Operations of one team at one provider run one after another.
//
// Import does not call the provider. If a token is invalid, the first fetch of data fails. The tokens are bound to the
// team's own OAuth client at the time of the call. If the granted scopes are not given, the scopes that the team
// requests count as granted.
//
// With wait, Import returns when the operation has ended, or after [Options].Wait with the operation in progress.
//
// Errors: Invalid (the provider is not configured; tokens that the connector does not accept; two entries for one
// user), Forbidden ([RuleNotEnabled]), Precondition ([RuleOtherCredentials]).
func (s *Service) Import(ctx context.Context, team healthlab.TeamID, provider string, tokens []ConnectionTokens, wait bool) (ImportResult, error) {
	op, err := s.startImport(ctx, team, provider, tokens)
	if err == nil && wait {
		op, err = s.await(ctx, op)
	}
	out := ImportResult{Op: op}
	if err == nil && op.Status != InProgress {
		out, err = s.importResult(ctx, op)
	}
	if err != nil {
		return ImportResult{}, fmt.Errorf("import connections: %w", err)
	}
	return out, nil
}

// ImportResult returns the result of an import. It returns NotFound if the team has no such operation.
func (s *Service) ImportResult(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (ImportResult, error) {
	op, err := s.store.Op(ctx, team, id)
	out := ImportResult{Op: op}
	if err == nil && op.Status != InProgress {
		out, err = s.importResult(ctx, op)
	}
	if err != nil {
		return ImportResult{}, fmt.Errorf("read import: %w", err)
	}
	return out, nil
}

func (s *Service) importResult(ctx context.Context, op Op) (ImportResult, error) {
	const page = 1000
	out := ImportResult{Op: op}
	for next := 0; ; {
		items, err := s.store.Items(ctx, op.Team, op.ID, next, page)
		if err != nil {
			return out, err
		}
		for _, it := range items {
			next = it.N + 1
			if it.Outcome == Connected {
				out.Users = append(out.Users, it.User)
			} else {
				out.Failed = append(out.Failed, FailedImport{it.User, it.Outcome})
			}
		}
		if len(items) < page {
			return out, nil
		}
	}
}

// load is the content of an item's Grant, before it is encrypted.
type load struct {
	Packed         []byte
	ExpiresAt      time.Time
	ExternalUserID string
	Scopes         []string
	// Client is the team's own OAuth client at the time of the call of Import; empty for the deployment's client.
	Client string `json:",omitempty"`
}

func loadPlace(op *Op, user healthlab.UserID) []byte {
	return fmt.Appendf(nil, "bulk import %s %s %s %s", op.Team, op.ID, user, op.Provider)
}

func (s *Service) startImport(ctx context.Context, team healthlab.TeamID, provider string, tokens []ConnectionTokens) (Op, error) {
	m, err := s.movable(ctx, team, provider)
	if err != nil {
		return Op{}, err
	}
	op := s.op(team, ConnectionImport, provider, len(tokens))
	items := make([]Item, len(tokens))
	seen := map[healthlab.UserID]bool{}
	var bad healthlab.Problems
	for i := range tokens {
		r := &tokens[i]
		part := r.problems()
		if seen[r.UserID] {
			part.Add("duplicate", "must be unique; an earlier connection of the request has the same user_id", "user_id")
		}
		seen[r.UserID] = true
		l := load{ExternalUserID: r.ProviderID, Client: m.settings.OwnClient(provider)}
		if l.Packed, err = m.Encode(linking.Tokens{Access: r.AccessToken, Refresh: r.RefreshToken}); err != nil && len(part) == 0 {
			part.Add("tokens", "must have an access_token or a refresh_token that the provider's connector accepts")
		}
		if len(part) > 0 {
			if bad.Under(part, "connections", i); len(bad) > maxProblems {
				break
			}
			continue
		}
		if m.provider.OAuthVersion != 1 {
			if r.ExpiresAt != NeverExpires {
				l.ExpiresAt = time.Unix(r.ExpiresAt, 0).UTC()
			}
			if r.Scopes != nil {
				l.Scopes = append([]string{}, *r.Scopes...)
			}
		}
		items[i].User = r.UserID
		if items[i].Grant, err = s.sealed(ctx, &op, r.UserID, &l); err != nil {
			return Op{}, err
		}
	}
	if err := bad.Err(); err != nil {
		return Op{}, err
	}
	return op, s.submit(ctx, op, items)
}

const (
	// maxProblems is the greatest number of reported problems of one call.
	maxProblems = 1000
	// maxToken is the greatest length of a token, and maxText that of other texts, in bytes.
	maxToken  = 16 << 10
	maxText   = 512
	maxScopes = 200
	// maxExpiry is the last second of the year 9999.
	maxExpiry = 253402300799
)

// problems returns the invalid fields of the tokens.
func (r *ConnectionTokens) problems() (p healthlab.Problems) {
	text := func(s string, most int, path ...any) {
		if len(s) > most || !utf8.ValidString(s) || strings.Contains(s, "\x00") {
			p.Add("text", fmt.Sprintf("must have at most %d bytes of UTF-8 without NUL", most), path...)
		}
	}
	if r.UserID.IsZero() {
		p.Add("missing", "is required", "user_id")
	}
	text(r.AccessToken, maxToken, "access_token")
	text(r.RefreshToken, maxToken, "refresh_token")
	text(r.ProviderID, maxText, "provider_id")
	if r.ExpiresAt < 0 || r.ExpiresAt > maxExpiry {
		p.Add("range", fmt.Sprintf("must be a time in Unix seconds from 0 to %d", int64(maxExpiry)), "expires_at")
	}
	if r.Scopes == nil {
		return p
	}
	if len(*r.Scopes) > maxScopes {
		p.Add("too_long", fmt.Sprintf("must have at most %d scopes", maxScopes), "oauth_scopes")
		return p
	}
	for i, scope := range *r.Scopes {
		text(scope, maxText, "oauth_scopes", i)
	}
	return p
}

func (s *Service) sealed(ctx context.Context, op *Op, user healthlab.UserID, l *load) (healthlab.Sealed, error) {
	doc, err := json.Marshal(l)
	if err != nil {
		return healthlab.Sealed{}, err
	}
	return s.seal.Seal(ctx, doc, loadPlace(op, user))
}

// importNext makes the next connections of an import, at most turn, and returns op with its progress.
func (s *Service) importNext(ctx context.Context, op Op) (Op, error) {
	if _, err := s.movable(ctx, op.Team, op.Provider); forGood(err) {
		return op.ended(Aborted, s.now()), nil
	} else if err != nil {
		return op, err
	}
	items, err := s.store.Items(ctx, op.Team, op.ID, op.Next, turn)
	if err != nil {
		return op, err
	}
	for _, it := range items {
		was := it.Outcome
		if was == "" {
			was, err = s.importItem(ctx, &op, &it)
		}
		switch {
		case errors.Is(err, healthlab.NotFound): // the user was erased with the item
		case err != nil:
			return op, err
		case was == "": // the operation has ended
			return op, errLost
		case was != Connected:
			op.Failed++
		}
		op.Next = it.N + 1
	}
	if len(items) < turn {
		op.Next = op.Total
		return s.finish(op), nil
	}
	op.Due = s.now()
	return op, nil
}

// importItem makes the connection of an item, unless it was made before, and returns the item's outcome. An empty
// outcome means that the item has none and no Grant, because the operation has ended.
func (s *Service) importItem(ctx context.Context, op *Op, it *Item) (Outcome, error) {
	if it.Grant.Box == nil {
		return "", nil
	}
	out, err := s.makeConnection(ctx, op, it)
	if why := outcomeOf(err); why != "" {
		return s.store.Reject(ctx, op.Team, op.ID, it.N, why)
	}
	return out, err
}

func (s *Service) makeConnection(ctx context.Context, op *Op, it *Item) (Outcome, error) {
	doc, err := s.seal.Open(ctx, it.Grant, loadPlace(op, it.User))
	if err != nil {
		return "", err
	}
	var l load
	if err := json.Unmarshal(doc, &l); err != nil {
		return "", fmt.Errorf("%w: the stored tokens of an import cannot be decoded", healthlab.Invalid)
	}
	n, err := s.links.PrepareConnection(ctx, op.Team, it.User, op.Provider, linking.Grant{
		ExternalUserID: l.ExternalUserID, Scopes: l.Scopes, Secret: l.Packed, ExpiresAt: l.ExpiresAt, Client: l.Client,
	})
	if err != nil {
		return "", err
	}
	return s.store.Import(ctx, Import{Team: op.Team, Op: op.ID, N: it.N, Credential: n.Credential, Sole: n.Sole, Change: n.Change})
}

// outcomeOf returns the Outcome for an error; empty for nil and for a temporary error.
func outcomeOf(err error) Outcome {
	var taken *linking.AccountTakenError
	var link *linking.Error
	switch {
	case errors.As(err, &taken):
		return AccountTaken
	case errors.As(err, &link) && link.Type == linking.RequiredScopesNotGranted:
		return ScopesMissing
	case errors.Is(err, healthlab.NotFound):
		return NoUser
	case link != nil || forGood(err):
		return Refused
	}
	return ""
}

func forGood(err error) bool {
	return errors.Is(err, healthlab.Invalid) || errors.Is(err, healthlab.Forbidden) || errors.Is(err, healthlab.Precondition)
}
