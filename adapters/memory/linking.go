package memory

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/linking"
)

// linkTable keeps codes, sessions and credentials of all teams.
type linkTable struct {
	codes       map[string]*keptCode
	windows     map[codeClient]window
	tries       map[healthlab.TeamID]wrongTries
	sessions    map[linking.SessionID]*linking.Session
	credentials map[account]linking.Credential
	apps        map[uuid.UUID]linking.AppSession
	clients     map[clientKey]linking.TeamClient
	swept       time.Time
}

type clientKey struct {
	team             healthlab.TeamID
	provider, client string
}

// keptCode is a code, and the wrong tries without a team that there were when it was made.
type keptCode struct {
	linking.Code
	open wrongTries
}

type codeClient struct {
	team   healthlab.TeamID
	client [32]byte
}

type window struct {
	since time.Time
	wrong int
}

// wrongTries are those of a team; first counts those that were the first in their
// client's window.
type wrongTries struct{ all, first int64 }

type account struct {
	team     healthlab.TeamID
	user     healthlab.UserID
	provider string
}

func newLinkTable() *linkTable {
	return &linkTable{
		codes:       map[string]*keptCode{},
		windows:     map[codeClient]window{},
		tries:       map[healthlab.TeamID]wrongTries{},
		sessions:    map[linking.SessionID]*linking.Session{},
		credentials: map[account]linking.Credential{},
		apps:        map[uuid.UUID]linking.AppSession{},
		clients:     map[clientKey]linking.TeamClient{},
	}
}

type linkStore struct {
	*database
	users     *userTable
	linking   *linkTable
	userStore userStore
}

func (v linkStore) InsertCode(ctx context.Context, c linking.Code) error {
	if err := healthlab.CheckText(c.Text); err != nil {
		return err
	}
	if c.Team.IsZero() || c.User.IsZero() || c.Text == "" {
		return fmt.Errorf("%w: a link code needs a team, a user and a text", healthlab.Invalid)
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	t := v.linking
	t.sweep(v.clock())
	c.CreatedAt, c.ExpiresAt, c.UsedAt = instant(c.CreatedAt), instant(c.ExpiresAt), instant(c.UsedAt)
	if old := t.codes[c.Text]; old != nil && c.CreatedAt.Before(old.ExpiresAt) {
		return fmt.Errorf("%w: the link code is taken", healthlab.Conflict)
	}
	c.WrongBefore, c.FirstBefore = t.tries[c.Team].all, t.tries[c.Team].first
	t.codes[c.Text] = &keptCode{Code: c, open: t.tries[healthlab.TeamID{}]}
	return nil
}

func (v linkStore) TryCode(ctx context.Context, team healthlab.TeamID, client [32]byte, text string, change func(*linking.CodeAttempt)) error {
	if err := healthlab.CheckText(text); err != nil {
		return err
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	t := v.linking
	t.sweep(v.clock())
	who := codeClient{team, client}
	w := t.windows[who]
	try := linking.CodeAttempt{Since: w.since, Wrong: w.wrong, TeamWrong: t.tries[team].all, TeamFirst: t.tries[team].first}
	kept := t.codes[text]
	mine := kept != nil && (kept.Team == team || team.IsZero())
	if mine {
		c := kept.Code
		if team.IsZero() {
			c.WrongBefore, c.FirstBefore = kept.open.all, kept.open.first
		}
		try.Code = &c
	}
	change(&try)
	if try.Wrong == 0 {
		delete(t.windows, who)
	} else {
		t.windows[who] = window{instant(try.Since), try.Wrong}
	}
	t.tries[team] = wrongTries{try.TeamWrong, try.TeamFirst}
	if mine && try.Code != nil {
		kept.UsedAt = instant(try.Code.UsedAt)
	}
	return nil
}

func (v linkStore) InsertSession(ctx context.Context, x linking.Session) error {
	x, err := normalSession(x)
	if err != nil {
		return err
	}
	if x.ID.UUID == uuid.Nil || x.Team.IsZero() || x.User.IsZero() {
		return fmt.Errorf("%w: a link session needs an id, a team and a user", healthlab.Invalid)
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	t := v.linking
	t.sweep(v.clock())
	if t.sessions[x.ID] != nil {
		return fmt.Errorf("%w: the link session's id is taken", healthlab.Conflict)
	}
	x.Revision = 1
	t.sessions[x.ID] = &x
	return nil
}

func (v linkStore) Session(ctx context.Context, team healthlab.TeamID, id linking.SessionID) (linking.Session, error) {
	if err := v.lock(ctx); err != nil {
		return linking.Session{}, err
	}
	defer v.mu.Unlock()
	x, err := v.linking.find(team, id)
	if err != nil {
		return linking.Session{}, err
	}
	return cloneSession(*x), nil
}

func (v linkStore) UpdateSession(ctx context.Context, team healthlab.TeamID, id linking.SessionID, change func(*linking.Session) error) (linking.Session, error) {
	if err := v.lock(ctx); err != nil {
		return linking.Session{}, err
	}
	defer v.mu.Unlock()
	old, err := v.linking.find(team, id)
	if err != nil {
		return linking.Session{}, err
	}
	next := cloneSession(*old)
	if err := change(&next); err != nil {
		return linking.Session{}, err
	}
	if next, err = normalUpdate(*old, next); err != nil {
		return linking.Session{}, err
	}
	*old = next
	return cloneSession(next), nil
}

func (v linkStore) Complete(ctx context.Context, c linking.Completion) (linking.Session, error) {
	if err := v.lock(ctx); err != nil {
		return linking.Session{}, err
	}
	defer v.mu.Unlock()
	t := v.linking
	old, err := t.find(c.Team, c.Session)
	if err != nil {
		return linking.Session{}, err
	}
	next := cloneSession(*old)
	provider := c.Credential.Provider
	_, err = v.userStore.update(ctx, c.Team, old.User, func(u *healthdata.User) ([]healthlab.Event, error) {
		events, err := c.Change(&next, u)
		if err != nil {
			return nil, err
		}
		if c.Sole != nil && v.users.accountTaken(c.Team, old.User, provider, *c.Sole) {
			return nil, &linking.AccountTakenError{}
		}
		next, err = normalUpdate(*old, next)
		return events, err
	})
	if err != nil {
		return linking.Session{}, err
	}
	*old = next
	t.put(c.Credential, account{c.Team, old.User, provider})
	return cloneSession(next), nil
}

// put replaces a credential. One without a Box is removed.
func (t *linkTable) put(c linking.Credential, key account) {
	delete(t.credentials, key)
	if c.Secret.Box != nil {
		t.credentials[key] = normalCredential(c, key)
	}
}

func (v linkStore) Credential(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string) (linking.Credential, error) {
	if err := v.lock(ctx); err != nil {
		return linking.Credential{}, err
	}
	defer v.mu.Unlock()
	key := account{team, user, provider}
	c, ok := v.linking.credentials[key]
	row := v.users.find(team, user)
	if !ok || row == nil || !row.user.Live() || !isConnected(&row.user, provider) {
		return linking.Credential{}, fmt.Errorf("%w: no credential", healthlab.NotFound)
	}
	c.Client = row.user.Connection(provider).Client
	return normalCredential(c, key), nil
}

func (v linkStore) UpdateCredential(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string,
	change func(*linking.Credential, *healthdata.User) ([]healthlab.Event, error),
) (linking.Credential, error) {
	if err := v.lock(ctx); err != nil {
		return linking.Credential{}, err
	}
	defer v.mu.Unlock()
	key := account{team, user, provider}
	old, ok := v.linking.credentials[key]
	row := v.users.find(team, user)
	if !ok || row == nil || !row.user.Live() || !isConnected(&row.user, provider) {
		return linking.Credential{}, fmt.Errorf("%w: no credential", healthlab.NotFound)
	}
	old.Client = row.user.Connection(provider).Client
	u, err := v.users.open(ctx, row)
	if err != nil {
		return linking.Credential{}, err
	}
	next := normalCredential(old, key)
	next.StoreTime = v.clock()
	events, err := change(&next, &u)
	if err != nil {
		return linking.Credential{}, err
	}
	next.ID, next.Client, next.CreatedAt = old.ID, old.Client, old.CreatedAt
	next = normalCredential(next, key)
	if err := healthlab.CheckText(next.Secret.KeyID, next.Previous.KeyID); err != nil {
		return linking.Credential{}, err
	}
	if len(events) > 0 {
		if _, err := v.userStore.update(ctx, team, user, func(to *healthdata.User) ([]healthlab.Event, error) {
			*to = u
			return events, nil
		}); err != nil {
			return linking.Credential{}, err
		}
	}
	v.linking.credentials[key] = next
	return normalCredential(next, key), nil
}

func (v linkStore) Disconnect(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, provider string, change func(*healthdata.User) ([]healthlab.Event, error)) (linking.Credential, error) {
	if err := v.lock(ctx); err != nil {
		return linking.Credential{}, err
	}
	defer v.mu.Unlock()
	client := ""
	_, err := v.userStore.update(ctx, team, user, func(u *healthdata.User) ([]healthlab.Event, error) {
		if to := u.Connection(provider); to != nil {
			client = to.Client
		}
		return change(u)
	})
	if err != nil {
		return linking.Credential{}, err
	}
	key := account{team, user, provider}
	c, ok := v.linking.credentials[key]
	delete(v.linking.credentials, key)
	if ok {
		c.Client = client
	}
	return c, nil
}

func isConnected(u *healthdata.User, provider string) bool {
	c := u.Connection(provider)
	return c != nil && c.Status != healthdata.Deregistered
}

func (t *linkTable) find(team healthlab.TeamID, id linking.SessionID) (*linking.Session, error) {
	if x := t.sessions[id]; x != nil && x.Team == team {
		return x, nil
	}
	return nil, fmt.Errorf("%w: the team has no such link session", healthlab.NotFound)
}

// sweep forgets, at most once an hour, what expired more than a day ago, and the windows
// of clients that are over.
func (t *linkTable) sweep(now time.Time) {
	if now.Sub(t.swept) < time.Hour {
		return
	}
	t.swept = now
	limit := now.Add(-24 * time.Hour)
	for k, c := range t.codes {
		if c.ExpiresAt.Before(limit) {
			delete(t.codes, k)
		}
	}
	for k, x := range t.sessions {
		if x.ExpiresAt.Before(limit) {
			delete(t.sessions, k)
		}
	}
	for k, a := range t.apps {
		if !a.ExpiresAt.IsZero() && a.ExpiresAt.Before(limit) {
			delete(t.apps, k)
		}
	}
	for k, w := range t.windows {
		if w.since.Add(2 * linking.GuessWindow).Before(now) {
			delete(t.windows, k)
		}
	}
}

// erase removes what is kept about a user.
func (t *linkTable) erase(team healthlab.TeamID, user healthlab.UserID) {
	for k, c := range t.codes {
		if c.Team == team && c.User == user {
			delete(t.codes, k)
		}
	}
	for k, x := range t.sessions {
		if x.Team == team && x.User == user {
			delete(t.sessions, k)
		}
	}
	for k := range t.credentials {
		if k.team == team && k.user == user {
			delete(t.credentials, k)
		}
	}
	for k, a := range t.apps {
		if a.Team == team && a.User == user {
			delete(t.apps, k)
		}
	}
}

// normalUpdate puts back what change must not touch, and counts the write.
func normalUpdate(old, next linking.Session) (linking.Session, error) {
	next.ID, next.Team, next.User, next.Token = old.ID, old.Team, old.User, old.Token
	next.CreatedAt, next.ExpiresAt, next.Revision = old.CreatedAt, old.ExpiresAt, old.Revision+1
	return normalSession(next)
}

// normalSession returns a copy of a session in the form in which it is kept.
func normalSession(x linking.Session) (linking.Session, error) {
	x = cloneSession(x)
	x.CreatedAt, x.ExpiresAt = instant(x.CreatedAt), instant(x.ExpiresAt)
	o := x.Options
	text := []string{string(x.State), x.Provider, o.Provider, o.RedirectURL, o.OnError, o.OnClose, x.Pending.KeyID,
		x.Challenge.Method, x.Challenge.Hint, string(x.LastError)}
	text = append(text, o.FilterOnProviders...)
	for i := range x.Attempts {
		a := &x.Attempts[i]
		a.At = instant(a.At)
		text = append(text, a.Provider, string(a.Error))
	}
	return x, healthlab.CheckText(text...)
}

func cloneSession(x linking.Session) linking.Session {
	x.Options.FilterOnProviders = slices.Clone(x.Options.FilterOnProviders)
	x.Pending.Box = slices.Clone(x.Pending.Box)
	x.Attempts = slices.Clone(x.Attempts)
	if len(x.Attempts) == 0 {
		x.Attempts = nil
	}
	return x
}

func normalCredential(c linking.Credential, key account) linking.Credential {
	c.Team, c.User, c.Provider = key.team, key.user, key.provider
	c.Secret.Box, c.Previous.Box = slices.Clone(c.Secret.Box), slices.Clone(c.Previous.Box)
	c.ExpiresAt, c.CreatedAt = instant(c.ExpiresAt), instant(c.CreatedAt)
	c.Lease, c.RetryAt, c.StoreTime = instant(c.Lease), instant(c.RetryAt), time.Time{}
	return c
}
