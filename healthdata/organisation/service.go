package organisation

import (
	"bytes"
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/internal/check"
	"github.com/healthlab-dev/healthlab/internal/work"
)

// Types of the healthlab.RuleError of this package.
const (
	// RuleTeamIDTaken: the requested id belongs to another team or to a deleted one.
	RuleTeamIDTaken = "TEAM_ID_TAKEN"
	// RuleTeamNotEmpty: a team with users cannot be deleted.
	RuleTeamNotEmpty = "TEAM_NOT_EMPTY"
	// RuleTooManyKeys: the team has [MaxKeys] keys.
	RuleTooManyKeys = "TOO_MANY_API_KEYS"
	// RuleKeyExpired: an expired key cannot be rotated.
	RuleKeyExpired = "API_KEY_EXPIRED"
)

// MaxKeys is the greatest number of keys of a team.
const MaxKeys = 50

// Service manages teams and API keys of organisations. It does not check permissions: the host checks them
// before a call. It is safe for concurrent use.
type Service struct {
	store Store
	opts  Options
	find  *work.Batch[[sha256.Size]byte, Key]
}

// Options configures a Service. NewKey is required; a zero value of another field means its default.
type Options struct {
	// NewKey returns a new key, and a hint: a part of the key by which people recognize it later. NewKey must never
	// return the same key twice.
	NewKey func() (key, hint string, err error)
	// CheckKey returns an error if a key does not have the form of the keys of NewKey. The error names the
	// expected form and does not contain the key. Default: [Service.AdmitKey] admits no key.
	CheckKey func(key string) error
	// Now is the clock. Default time.Now.
	Now func() time.Time
	// NewID makes ids of teams and keys. Default UUID version 4, which does not reveal when a customer was
	// added.
	NewID func() uuid.UUID
}

// New returns a Service. It returns Invalid if a required argument is missing. It starts no goroutine.
func New(store Store, opts *Options) (*Service, error) {
	if store == nil || opts == nil || opts.NewKey == nil {
		return nil, fmt.Errorf("%w: organisations need a store and a way to make keys", healthlab.Invalid)
	}
	s := &Service{store: store, opts: *opts}
	if s.opts.Now == nil {
		s.opts.Now = time.Now
	}
	if s.opts.NewID == nil {
		s.opts.NewID = uuid.New
	}
	if s.opts.CheckKey == nil {
		s.opts.CheckKey = func(string) error {
			return fmt.Errorf("%w: Options.CheckKey is required to admit keys", healthlab.Invalid)
		}
	}
	s.find = work.NewBatch(findTime, s.findKeys)
	return s, nil
}

func (s *Service) now() time.Time { return healthlab.At(s.opts.Now()).Time }

// NewTeam describes the team that [Service.CreateTeam] creates.
type NewTeam struct {
	// ID is the id of the new team; zero for a new id. Set it to give a team the same id in two environments.
	ID            healthlab.TeamID
	Name          string
	IntegrationID string
}

// CreateTeam creates a team.
//
// It returns Invalid with every invalid field, or Conflict: an [*IntegrationTakenError], or a
// [*healthlab.RuleError] of type [RuleTeamIDTaken].
func (s *Service) CreateTeam(ctx context.Context, org uuid.UUID, n NewTeam) (Team, error) {
	at := s.now()
	t := Team{ID: n.ID, Org: org, Name: n.Name, IntegrationID: n.IntegrationID, CreatedAt: at, UpdatedAt: at}
	if t.ID.IsZero() {
		t.ID = healthlab.TeamID{UUID: s.opts.NewID()}
	}
	err := t.check()
	if err == nil {
		err = s.store.InsertTeam(ctx, t)
	}
	var taken *IntegrationTakenError
	if errors.Is(err, healthlab.Conflict) && !errors.As(err, &taken) {
		err = &healthlab.RuleError{Kind: healthlab.Conflict, Type: RuleTeamIDTaken, Msg: "another team has this id, or had it before it was deleted; leave the id out to get a new one"}
	}
	if err != nil {
		return Team{}, fmt.Errorf("create team: %w", err)
	}
	return t, nil
}

// Team returns a team of an organisation; NotFound if it has no such team.
func (s *Service) Team(ctx context.Context, org uuid.UUID, id healthlab.TeamID) (Team, error) {
	t, err := s.store.Team(ctx, id)
	if err == nil && t.Org != org {
		err = errNoTeam()
	}
	if err != nil {
		return Team{}, fmt.Errorf("read team: %w", err)
	}
	return t, nil
}

// EnsureTeam returns the team with an id, and creates it if there is none. A host with one team calls it at
// every start with the same ids. It never changes a team. n.ID is required. The errors are those of
// [Service.CreateTeam], and Conflict if the team is of another organisation or was deleted.
func (s *Service) EnsureTeam(ctx context.Context, org uuid.UUID, n NewTeam) (Team, error) {
	if n.ID.IsZero() {
		var p healthlab.Problems
		p.Add("missing", "must be set: the id that the team has at every start of the host", "id")
		return Team{}, fmt.Errorf("ensure team: %w", p.Err())
	}
	t, err := s.Team(ctx, org, n.ID)
	if !errors.Is(err, healthlab.NotFound) {
		return t, err
	}
	t, err = s.CreateTeam(ctx, org, n)
	if errors.Is(err, healthlab.Conflict) { // another process may have created it
		if there, readErr := s.Team(ctx, org, n.ID); readErr == nil {
			return there, nil
		}
	}
	return t, err
}

// RuleTeamNotFound is the type of the error of [Service.Find].
const RuleTeamNotFound = "TEAM_NOT_FOUND"

// Find returns a team of any organisation, for callers who are already authenticated for the team. If there is
// no such team, the error is NotFound: a [*healthlab.RuleError] of type [RuleTeamNotFound].
func (s *Service) Find(ctx context.Context, id healthlab.TeamID) (Team, error) {
	t, err := s.store.Team(ctx, id)
	if errors.Is(err, healthlab.NotFound) {
		err = &healthlab.RuleError{Kind: healthlab.NotFound, Type: RuleTeamNotFound, Msg: "the team of the caller does not exist; create it with Organisations.EnsureTeam or POST /v1/org/{org_id}/team"}
	}
	if err != nil {
		return Team{}, fmt.Errorf("find team: %w", err)
	}
	return t, nil
}

// Teams returns the teams that q selects, ascending by id.
func (s *Service) Teams(ctx context.Context, q Query) ([]Team, error) {
	list, err := s.store.Teams(ctx, q)
	if err != nil {
		return nil, fmt.Errorf("list teams: %w", err)
	}
	return list, nil
}

// TeamChange lists the changes of a team. A nil field is not changed.
type TeamChange struct {
	Name *string
	// IntegrationID is removed by an empty text.
	IntegrationID *string
}

// ChangeTeam changes a team. The errors are those of [Service.CreateTeam], and NotFound.
func (s *Service) ChangeTeam(ctx context.Context, org uuid.UUID, id healthlab.TeamID, c TeamChange) (Team, error) {
	at := s.now()
	t, err := s.store.UpdateTeam(ctx, org, id, func(t *Team) error {
		if c.Name != nil {
			t.Name = *c.Name
		}
		if c.IntegrationID != nil {
			t.IntegrationID = *c.IntegrationID
		}
		if c.Name != nil || c.IntegrationID != nil {
			t.UpdatedAt = at
		}
		return t.check()
	})
	if err != nil {
		return Team{}, fmt.Errorf("change team: %w", err)
	}
	return t, nil
}

// DeleteTeam deletes a team permanently, with its keys, settings and credentials. The team must have no users:
// people are deleted one by one, so that each deletion can be undone. The errors are NotFound and a
// [*healthlab.RuleError] of type [RuleTeamNotEmpty].
func (s *Service) DeleteTeam(ctx context.Context, org uuid.UUID, id healthlab.TeamID) error {
	err := s.store.DeleteTeam(ctx, org, id)
	var full *NotEmptyError
	if errors.As(err, &full) {
		err = &healthlab.RuleError{Type: RuleTeamNotEmpty, Msg: full.Error() + "; delete them first"}
	}
	if err != nil {
		return fmt.Errorf("delete team: %w", err)
	}
	return nil
}

// NewKey describes the key that [Service.CreateKey] creates.
type NewKey struct {
	// Label is the name of the key.
	Label string
	// Scopes are the permissions of the key; empty means all.
	Scopes Scopes
	// ExpiresAt is when the key stops working; zero means never.
	ExpiresAt time.Time
}

// CreateKey creates a key of a team. It returns the key in its stored form and the secret key itself. The secret is
// returned only this once and not stored. The errors are Invalid, NotFound and a [*healthlab.RuleError] of type
// [RuleTooManyKeys].
func (s *Service) CreateKey(ctx context.Context, org uuid.UUID, team healthlab.TeamID, n NewKey) (k Key, key string, err error) {
	now := s.now()
	if err = n.check(now); err == nil {
		_, err = s.Team(ctx, org, team)
	}
	if err == nil {
		k, key, err = s.newKey(team, n, now)
	}
	if err == nil {
		err = s.insertKey(ctx, k)
	}
	if err != nil {
		return Key{}, "", fmt.Errorf("create API key: %w", err)
	}
	return k, key, nil
}

// newKey returns a new key in its stored form, and the secret key itself. It stores nothing.
func (s *Service) newKey(team healthlab.TeamID, n NewKey, now time.Time) (Key, string, error) {
	key, hint, err := s.opts.NewKey()
	if err != nil {
		return Key{}, "", err
	}
	return Key{
		ID: s.opts.NewID(), Team: team, Label: n.Label, Hint: hint, Sum: sha256.Sum256([]byte(key)), Scopes: n.Scopes, CreatedAt: now, ExpiresAt: n.ExpiresAt,
	}, key, nil
}

// MaxOverlap is the longest time for which the old key still works after a rotation.
const MaxOverlap = 30 * 24 * time.Hour

// RotateKey creates a successor of the key id with the same label, scopes and lifetime, and returns it as
// [Service.CreateKey] does. The old key works for overlap, 0 to [MaxOverlap]. The errors are those of CreateKey,
// and Invalid for another overlap or an expired key.
func (s *Service) RotateKey(ctx context.Context, org uuid.UUID, id uuid.UUID, overlap time.Duration) (k Key, key string, err error) {
	if k, key, err = s.rotateKey(ctx, org, id, overlap); err != nil {
		return Key{}, "", fmt.Errorf("rotate API key: %w", err)
	}
	return k, key, nil
}

func (s *Service) rotateKey(ctx context.Context, org uuid.UUID, id uuid.UUID, overlap time.Duration) (Key, string, error) {
	var p healthlab.Problems
	if overlap < 0 || overlap > MaxOverlap {
		p.Add("range", "must be between 0 and 720 hours", "overlap_hours")
	}
	if err := p.Err(); err != nil {
		return Key{}, "", err
	}
	old, err := s.Key(ctx, org, id)
	if err != nil {
		return Key{}, "", err
	}
	now := s.now()
	n := NewKey{Label: old.Label, Scopes: old.Scopes}
	if !old.ExpiresAt.IsZero() {
		if !now.Before(old.ExpiresAt) {
			return Key{}, "", &healthlab.RuleError{Type: RuleKeyExpired, Msg: "the key has expired; create a new one"}
		}
		n.ExpiresAt = now.Add(old.ExpiresAt.Sub(old.CreatedAt))
	}
	k, key, err := s.newKey(old.Team, n, now)
	if err != nil {
		return Key{}, "", err
	}
	return k, key, tooManyKeys(s.store.RotateKey(ctx, id, now.Add(overlap), k, MaxKeys))
}

func (s *Service) insertKey(ctx context.Context, k Key) error {
	return tooManyKeys(s.store.InsertKey(ctx, k, MaxKeys))
}

func tooManyKeys(err error) error {
	var full *TooManyKeysError
	if errors.As(err, &full) {
		return &healthlab.RuleError{Type: RuleTooManyKeys, Msg: full.Error() + "; delete one first"}
	}
	return err
}

// AdmitKey adds a key that Options.NewKey did not make, such as one from a configuration file. The SHA-256 of the key
// identifies it, so the call may be repeated. The errors are those of [Service.CreateKey], Invalid if Options.CheckKey
// refuses the key, and Conflict if the key belongs to another team.
func (s *Service) AdmitKey(ctx context.Context, team healthlab.TeamID, label, key, hint string) error {
	err := (&NewKey{Label: label}).check(s.now())
	if err == nil {
		err = s.opts.CheckKey(key)
	}
	if err == nil {
		sum := sha256.Sum256([]byte(key))
		err = s.insertKey(ctx, Key{ID: s.opts.NewID(), Team: team, Label: label, Hint: hint, Sum: sum, CreatedAt: s.now()})
		if errors.Is(err, healthlab.Conflict) {
			if known, failed := s.store.FindKeys(ctx, [][sha256.Size]byte{sum}); failed == nil && known[sum].Team == team {
				err = nil
			}
		}
	}
	if err != nil {
		return fmt.Errorf("admit API key: %w", err)
	}
	return nil
}

// Keys returns the keys of a team, the oldest first.
func (s *Service) Keys(ctx context.Context, team healthlab.TeamID) ([]Key, error) {
	list, err := s.store.Keys(ctx, team)
	if err != nil {
		return nil, fmt.Errorf("list API keys: %w", err)
	}
	return list, nil
}

// Key returns a key of a team of an organisation.
func (s *Service) Key(ctx context.Context, org uuid.UUID, id uuid.UUID) (Key, error) {
	k, err := s.store.Key(ctx, id)
	if err == nil {
		_, err = s.Team(ctx, org, k.Team)
	}
	if err != nil {
		return Key{}, fmt.Errorf("read API key: %w", err)
	}
	return k, nil
}

// UseInterval is the precision of [Key.LastUsedAt].
const UseInterval = 10 * time.Minute

// findTime is the timeout of a read of the store for FindKey.
const findTime = 10 * time.Second

// FindKey returns the key with the SHA-256 sum. It records the use if the last recorded use is [UseInterval] or longer
// ago. It returns NotFound if there is no such key, or if the key has expired. Concurrent calls share one read of the
// store, which begins after all of them and not in a transaction of ctx.
func (s *Service) FindKey(ctx context.Context, sum [sha256.Size]byte) (Key, error) {
	k, err := s.find.Do(ctx, sum)
	now := s.now()
	switch {
	case err != nil:
	case k.Team.IsZero():
		err = errNoKey()
	case !k.ExpiresAt.IsZero() && !now.Before(k.ExpiresAt):
		err = fmt.Errorf("%w: the key has expired", healthlab.NotFound)
	}
	if err == nil && now.Sub(k.LastUsedAt) >= UseInterval {
		err = s.store.TouchKey(ctx, k.Team, k.ID, now)
		k.LastUsedAt = now
	}
	if err != nil {
		return Key{}, fmt.Errorf("find API key: %w", err)
	}
	return k, nil
}

// findKeys returns the keys with the hashes sums, in that order; the zero Key for an unknown hash.
func (s *Service) findKeys(ctx context.Context, sums [][sha256.Size]byte) ([]Key, error) {
	different := slices.Clone(sums)
	slices.SortFunc(different, func(a, b [sha256.Size]byte) int { return bytes.Compare(a[:], b[:]) })
	known, err := s.store.FindKeys(ctx, slices.Compact(different))
	out := make([]Key, len(sums))
	for i, sum := range sums {
		out[i] = known[sum]
	}
	return out, err
}

// DeleteKey deletes a key of a team. The key stops working with the next call. It returns NotFound if there is
// no such key.
func (s *Service) DeleteKey(ctx context.Context, team healthlab.TeamID, id uuid.UUID) error {
	if err := s.store.DeleteKey(ctx, team, id); err != nil {
		return fmt.Errorf("delete API key: %w", err)
	}
	return nil
}

const (
	maxName        = 80
	maxIntegration = 256
	maxLabel       = 80
)

// nameSigns are the characters that a name may have besides Latin letters, digits and spaces.
const nameSigns = "(),/:'‘’|&_-"

// check returns the invalid fields of a team.
func (t *Team) check() error {
	var p healthlab.Problems
	bad := func(r rune) bool {
		accent := r >= 0x300 && r <= 0x36f
		return !(unicode.Is(unicode.Latin, r) && unicode.IsLetter(r) || accent || r >= '0' && r <= '9' || r == ' ' || strings.ContainsRune(nameSigns, r))
	}
	if strings.TrimSpace(t.Name) == "" || !utf8.ValidString(t.Name) || utf8.RuneCountInString(t.Name) > maxName || strings.ContainsFunc(t.Name, bad) {
		p.Add("name", "must have 1 to 80 characters, not only spaces: Latin letters, digits, spaces and ( ) , / : ' | & _ -", "name")
	}
	id := t.IntegrationID
	if id != "" && !check.Line(id, maxIntegration) {
		p.Add("integration_team_id", check.LineText(maxIntegration), "integration_team_id")
	}
	return p.Err()
}

// check returns the invalid fields of a new key, and normalizes its scopes and expiry.
func (n *NewKey) check(now time.Time) error {
	var p healthlab.Problems
	if !check.Line(n.Label, maxLabel) {
		p.Add("label", check.LineText(maxLabel), "label")
	}
	n.Scopes = n.Scopes.normalized(&p)
	if !n.ExpiresAt.IsZero() {
		if n.ExpiresAt = healthlab.At(n.ExpiresAt).Time; !n.ExpiresAt.After(now) {
			p.Add("expires_at", "must be in the future", "expires_at")
		}
	}
	return p.Err()
}
