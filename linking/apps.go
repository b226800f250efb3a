package linking

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/subtle"
	"errors"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Types of the healthlab.RuleError (Unauthenticated) that refuse an app.
const (
	// RuleInvalidSignInToken: the token is unknown, has expired or was exchanged.
	RuleInvalidSignInToken = "INVALID_SIGN_IN_TOKEN"
	// RuleInvalidRefreshToken: the refresh token does not work, so the app is signed out. It needs a new sign-in token.
	RuleInvalidRefreshToken = "INVALID_REFRESH_TOKEN"
	// RuleInvalidAccessToken: the token is unknown or has expired; refresh it.
	RuleInvalidAccessToken = "INVALID_ACCESS_TOKEN"
)

// AppSessions stores the sessions of the companion apps of users. The rules of [Store] about all methods apply here
// too. A session of a deleted user is not found. Erasing the user erases the session.
type AppSessions interface {
	// InsertApp adds a session. It returns Conflict if the id is taken, Invalid without id, team or user, and NotFound
	// if the team has no such live user. The store may delete a session a day after its ExpiresAt.
	InsertApp(ctx context.Context, a AppSession) error

	// App returns a session. It returns NotFound if the team has no session with this id.
	App(ctx context.Context, team healthlab.TeamID, id uuid.UUID) (AppSession, error)

	// UpdateApp lets change edit a session and writes it back. ID, Team, User and CreatedAt cannot be changed.
	UpdateApp(ctx context.Context, team healthlab.TeamID, id uuid.UUID, change func(*AppSession) error) (AppSession, error)

	// DeleteApps removes one session of a user, or all if id is uuid.Nil, and returns the number of removed
	// sessions.
	DeleteApps(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, id uuid.UUID) (int, error)
}

// AppSession is a companion app that was invited to act for a user, or that is signed in. It has hashes of
// tokens, not the tokens.
type AppSession struct {
	ID   uuid.UUID
	Team healthlab.TeamID
	User healthlab.UserID
	// CreatedAt is when [Apps.Invite] created the session.
	CreatedAt time.Time
	// ExpiresAt is when the sign-in token expires; zero after the sign-in, because a signed-in session does not expire.
	ExpiresAt time.Time
	// SignIn is the hash of the sign-in token; zero after the token was exchanged.
	SignIn TokenHash
	// Refresh is the hash of the current refresh token, and Previous that of the one before it. RotatedAt is the
	// time of the last rotation, and Rotations the number of rotations.
	Refresh, Previous TokenHash
	RotatedAt         time.Time
	Rotations         int64
	// Access has the access tokens that are not known to have expired, the oldest first.
	Access []AppAccessToken
}

// AppAccessToken is an access token as it is stored.
type AppAccessToken struct {
	Sum       TokenHash
	ExpiresAt time.Time
}

// IssuedSignInToken is a new sign-in token, as it is returned once to its owner.
type IssuedSignInToken struct {
	healthlab.Private

	UserID healthlab.UserID `json:"user_id"`
	// Token can be exchanged once, within 10 minutes.
	Token string `json:"sign_in_token"`
}

// UserTokens are the tokens of an app for one user.
type UserTokens struct {
	healthlab.Private

	UserID healthlab.UserID `json:"user_id"`
	// AccessToken is sent with every call, as a bearer token.
	AccessToken string `json:"access_token"`
	// TokenType is always Bearer.
	TokenType string `json:"token_type"`
	// ExpiresIn is the lifetime of the access token in seconds.
	ExpiresIn int `json:"expires_in"`
	// RefreshToken is exchanged for the next UserTokens. It replaces the previous refresh token.
	RefreshToken string `json:"refresh_token"`
}

// Apps lets companion apps act for one user each. A team's server requests a sign-in token and passes it to the
// app. The app exchanges the token once and stays signed in, across restarts:
//
//   - The access token works for an hour, and only for this user.
//   - The refresh token is exchanged for new tokens, among them the next refresh token. Two concurrent exchanges return
//     the same new refresh token. If the answer is lost, the app may use the old token until the new one is used.
//   - A refresh token of this service that is neither the current nor the previous one of its session is treated as
//     stolen: the session ends, and the app needs a new sign-in token. A token that this service never issued is
//     refused, and no session ends.
//
// Safe for concurrent use; make it with [NewApps].
type Apps struct {
	store AppSessions
	users *healthdata.Service
	key   []byte
	opts  AppOptions
}

const (
	// signInLife is how long a sign-in token can be exchanged.
	signInLife = 10 * time.Minute
	// accessLife is how long an access token works.
	accessLife = time.Hour
)

// AppOptions configures Apps. The zero value, and nil, mean the defaults.
type AppOptions struct {
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids of sessions. Default UUID version 4, which does not reveal when an app signed in.
	NewID func() uuid.UUID
	// Random is the source of tokens. Default crypto/rand.Reader.
	Random io.Reader
}

// NewApps returns Apps on a store and its users. It derives refresh tokens with the key, which must have at least 32
// random bytes, and recognizes reused tokens by it. After a change of the key, apps stay signed in. But if a token from
// before the change is reused, Refresh refuses it without ending the session. It returns Invalid if an argument is
// missing or the key is too short. It starts no goroutine.
func NewApps(store AppSessions, users *healthdata.Service, key []byte, opts *AppOptions) (*Apps, error) {
	if store == nil || users == nil || len(key) < minSigningKey {
		return nil, fmt.Errorf("%w: linking.NewApps: store and users must not be nil, and key must have at least %d bytes", healthlab.Invalid, minSigningKey)
	}
	a := &Apps{store: store, users: users, key: slices.Clone(key)}
	if opts != nil {
		a.opts = *opts
	}
	o := &a.opts
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.NewID == nil {
		o.NewID = uuid.New
	}
	if o.Random == nil {
		o.Random = rand.Reader
	}
	return a, nil
}

func (a *Apps) now() time.Time { return healthlab.At(a.opts.Now()).Time }

// Invite returns a new sign-in token for a user. It returns NotFound if the team has no such user.
func (a *Apps) Invite(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (IssuedSignInToken, error) {
	at := a.now()
	s := AppSession{ID: a.opts.NewID(), Team: team, User: user, CreatedAt: at, ExpiresAt: at.Add(signInLife)}
	token, err := a.newToken(signInPrefix, &s)
	if err == nil {
		s.SignIn = hashToken(token)
		err = a.store.InsertApp(ctx, s)
	}
	if err != nil {
		return IssuedSignInToken{}, fmt.Errorf("invite app: %w", err)
	}
	return IssuedSignInToken{UserID: user, Token: token}, nil
}

// SignIn exchanges a sign-in token, which works once. It returns a [*healthlab.RuleError] of type
// [RuleInvalidSignInToken] if the token does not work.
func (a *Apps) SignIn(ctx context.Context, token string) (UserTokens, error) {
	refused := &healthlab.RuleError{
		Kind: healthlab.Unauthenticated, Type: RuleInvalidSignInToken, Msg: "the sign-in token is unknown, has expired or was used",
	}
	at := a.now()
	t, ok := readAppToken(signInPrefix, token)
	if !ok {
		return UserTokens{}, fmt.Errorf("sign in app: %w", refused)
	}
	head := AppSession{ID: t.session, Team: t.team}
	access, err := a.newToken(accessPrefix, &head)
	if err != nil {
		return UserTokens{}, fmt.Errorf("sign in app: %w", err)
	}
	refresh, err := a.newToken(refreshPrefix, &head)
	if err != nil {
		return UserTokens{}, fmt.Errorf("sign in app: %w", err)
	}
	s, err := a.store.UpdateApp(ctx, t.team, t.session, func(s *AppSession) error {
		if !at.Before(s.ExpiresAt) || !s.SignIn.matches(token) {
			return refused
		}
		s.SignIn, s.ExpiresAt = TokenHash{}, time.Time{}
		s.Refresh, s.RotatedAt, s.Rotations = hashToken(refresh), at, 1
		s.addAccessToken(access, at, accessLife)
		return nil
	})
	if errors.Is(err, healthlab.NotFound) {
		err = refused
	}
	if err != nil {
		return UserTokens{}, fmt.Errorf("sign in app: %w", err)
	}
	return a.tokens(&s, access, refresh), nil
}

// rotationOverlap is how long after a rotation the old refresh token still returns the same new one, for
// concurrent and repeated calls of an app.
const rotationOverlap = time.Minute

// Refresh exchanges a refresh token for new tokens. It returns a [*healthlab.RuleError] of type
// [RuleInvalidRefreshToken] if the token does not work. If the service made the token, but it is neither the current
// nor the previous one of its session, Refresh ends the session, because the token may be stolen.
func (a *Apps) Refresh(ctx context.Context, token string) (UserTokens, error) {
	at := a.now()
	refused := &healthlab.RuleError{
		Kind: healthlab.Unauthenticated, Type: RuleInvalidRefreshToken, Msg: "invalid refresh token: the app is signed out; create a new sign-in token for the user",
	}
	t, ok := readAppToken(refreshPrefix, token)
	if !ok {
		return UserTokens{}, fmt.Errorf("refresh app: %w", refused)
	}
	access, err := a.newToken(accessPrefix, &AppSession{ID: t.session, Team: t.team})
	if err != nil {
		return UserTokens{}, fmt.Errorf("refresh app: %w", err)
	}
	var next string
	var stolen healthlab.UserID
	s, err := a.store.UpdateApp(ctx, t.team, t.session, func(s *AppSession) error {
		stolen = healthlab.UserID{}
		switch {
		case s.Refresh.matches(token):
			s.Previous = s.Refresh
			s.Rotations++
			s.RotatedAt = at
		case s.Previous.matches(token) && at.Sub(s.RotatedAt) > rotationOverlap:
			// The previous answer was lost, so its unused token is dropped.
			s.Rotations++
			s.RotatedAt = at
		case s.Previous.matches(token):
		case hmac.Equal(t.secret[tokenRandom/2:], t.seal(a.key)):
			stolen = s.User
			return refused
		default: // an unknown token without the seal of the service: an attacker can forge one, so the session stays
			return refused
		}
		next = a.derive(t, s.Rotations)
		s.Refresh = hashToken(next)
		s.addAccessToken(access, at, accessLife)
		return nil
	})
	if !stolen.IsZero() {
		if _, gone := a.store.DeleteApps(ctx, t.team, stolen, t.session); gone != nil {
			err = gone
		}
	}
	if errors.Is(err, healthlab.NotFound) {
		err = refused
	}
	if err != nil {
		return UserTokens{}, fmt.Errorf("refresh app: %w", err)
	}
	return a.tokens(&s, access, next), nil
}

// Authenticate returns the team and the user of an access token. It returns a [*healthlab.RuleError] of type
// [RuleInvalidAccessToken] if the token does not work.
func (a *Apps) Authenticate(ctx context.Context, token string) (healthlab.TeamID, healthlab.UserID, error) {
	at := a.now()
	err := error(&healthlab.RuleError{
		Kind: healthlab.Unauthenticated, Type: RuleInvalidAccessToken, Msg: "the access token is unknown or has expired",
	})
	t, ok := readAppToken(accessPrefix, token)
	if ok {
		s, missing := a.store.App(ctx, t.team, t.session)
		switch {
		case missing == nil && s.hasAccessToken(token, at):
			return s.Team, s.User, nil
		case missing != nil && !errors.Is(missing, healthlab.NotFound):
			err = missing
		}
	}
	return healthlab.TeamID{}, healthlab.UserID{}, fmt.Errorf("access of app: %w", err)
}

// SignOut ends the session of a refresh token, which may be the current or the previous one of the session. For any
// other token it does nothing and returns nil.
func (a *Apps) SignOut(ctx context.Context, token string) error {
	t, ok := readAppToken(refreshPrefix, token)
	if !ok {
		return nil
	}
	s, err := a.store.App(ctx, t.team, t.session)
	if err == nil && (s.Refresh.matches(token) || s.Previous.matches(token)) {
		_, err = a.store.DeleteApps(ctx, t.team, s.User, s.ID)
	}
	if err != nil && !errors.Is(err, healthlab.NotFound) {
		return fmt.Errorf("sign out app: %w", err)
	}
	return nil
}

// SignOutUser ends all sessions of a user, including open invitations, and returns their number. It returns
// NotFound if the team has no such user.
func (a *Apps) SignOutUser(ctx context.Context, team healthlab.TeamID, user healthlab.UserID) (int, error) {
	ok, err := a.users.HasUser(ctx, team, user)
	if err == nil && !ok {
		err = healthlab.NotFound
	}
	n := 0
	if err == nil {
		n, err = a.store.DeleteApps(ctx, team, user, uuid.Nil)
	}
	if err != nil {
		return 0, fmt.Errorf("sign out user: %w", err)
	}
	return n, nil
}

func (a *Apps) tokens(s *AppSession, access, refresh string) UserTokens {
	return UserTokens{
		UserID: s.User, AccessToken: access, TokenType: "Bearer", ExpiresIn: int(accessLife / time.Second), RefreshToken: refresh,
	}
}

// maxAccess is the greatest number of valid access tokens of a session. More make the oldest invalid.
const maxAccess = 8

// addAccessToken adds an access token that is valid for life from the instant at, and removes expired ones.
func (s *AppSession) addAccessToken(token string, at time.Time, life time.Duration) {
	s.Access = slices.DeleteFunc(slices.Clone(s.Access), func(x AppAccessToken) bool { return !at.Before(x.ExpiresAt) })
	s.Access = append(s.Access, AppAccessToken{Sum: hashToken(token), ExpiresAt: at.Add(life)})
	if n := len(s.Access); n > maxAccess {
		s.Access = s.Access[n-maxAccess:]
	}
}

func (s *AppSession) hasAccessToken(token string, at time.Time) bool {
	return slices.ContainsFunc(s.Access, func(x AppAccessToken) bool { return at.Before(x.ExpiresAt) && x.Sum.matches(token) })
}

func (h TokenHash) matches(token string) bool {
	sum := hashToken(token)
	return h != TokenHash{} && subtle.ConstantTimeCompare(h[:], sum[:]) == 1
}

func (a *Apps) derive(t appToken, rotation int64) string {
	copy(t.secret[:tokenRandom/2], hmacSHA256(a.key, "refresh "+strconv.FormatInt(rotation, 10)+" "+string(t.secret[:])))
	copy(t.secret[tokenRandom/2:], t.seal(a.key))
	return t.text(refreshPrefix)
}

// newToken returns a new random token with this prefix, which selects the kind of token, for a session.
func (a *Apps) newToken(prefix string, s *AppSession) (string, error) {
	t := appToken{team: s.Team, session: s.ID}
	if _, err := io.ReadFull(a.opts.Random, t.secret[:]); err != nil {
		return "", fmt.Errorf("draw token: %w", err)
	}
	if prefix == refreshPrefix {
		copy(t.secret[tokenRandom/2:], t.seal(a.key))
	}
	return t.text(prefix), nil
}
