package memory

import (
	"bytes"
	"context"
	"crypto/sha256"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
)

type orgStore struct {
	*database
	users   *userTable
	linking *linkTable
	teams   map[healthlab.TeamID][]byte
	orgs    *orgTable
}

// orgTable keeps teams, deleted ones included, and keys.
type orgTable struct {
	teams map[healthlab.TeamID]orgTeam
	keys  map[uuid.UUID]organisation.Key
}

type orgTeam struct {
	organisation.Team
	deleted bool
}

func newOrgTable() *orgTable {
	return &orgTable{map[healthlab.TeamID]orgTeam{}, map[uuid.UUID]organisation.Key{}}
}

func errNoTeam() error { return fmt.Errorf("%w: no such team", healthlab.NotFound) }

// checkIntegration fails if another live team of the organisation has the integration id.
func (t *orgTable) checkIntegration(of organisation.Team) error {
	for id, other := range t.teams {
		if id != of.ID && !other.deleted && other.Org == of.Org && of.IntegrationID != "" && other.IntegrationID == of.IntegrationID {
			return &organisation.IntegrationTakenError{Team: id}
		}
	}
	return nil
}

func normalTeam(t organisation.Team) organisation.Team {
	t.CreatedAt, t.UpdatedAt = instant(t.CreatedAt), instant(t.UpdatedAt)
	return t
}

func (v orgStore) InsertTeam(ctx context.Context, t organisation.Team) error {
	if t.ID.IsZero() || t.Org == uuid.Nil || t.Name == "" {
		return fmt.Errorf("%w: a team has an id, an organisation and a name", healthlab.Invalid)
	}
	if err := healthlab.CheckText(t.Name, t.IntegrationID); err != nil {
		return err
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	if _, ok := v.orgs.teams[t.ID]; ok {
		return fmt.Errorf("%w: the id of the team is taken", healthlab.Conflict)
	}
	if err := v.orgs.checkIntegration(t); err != nil {
		return err
	}
	v.orgs.teams[t.ID] = orgTeam{Team: normalTeam(t)}
	return nil
}

func (v orgStore) Team(ctx context.Context, id healthlab.TeamID) (organisation.Team, error) {
	if err := v.lock(ctx); err != nil {
		return organisation.Team{}, err
	}
	defer v.mu.Unlock()
	t, ok := v.orgs.teams[id]
	if !ok || t.deleted {
		return organisation.Team{}, errNoTeam()
	}
	return t.Team, nil
}

func (v orgStore) Teams(ctx context.Context, q organisation.Query) ([]organisation.Team, error) {
	if err := healthlab.CheckText(q.IntegrationID); err != nil {
		return nil, err
	}
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	var out []organisation.Team
	for id, t := range v.orgs.teams {
		if !t.deleted && t.Org == q.Org && bytes.Compare(id.UUID[:], q.After.UUID[:]) > 0 && (q.IntegrationID == "" || t.IntegrationID == q.IntegrationID) {
			out = append(out, t.Team)
		}
	}
	slices.SortFunc(out, func(a, b organisation.Team) int { return bytes.Compare(a.ID.UUID[:], b.ID.UUID[:]) })
	return out[:min(max(q.N, 0), len(out))], nil
}

func (v orgStore) UpdateTeam(ctx context.Context, org uuid.UUID, id healthlab.TeamID, change func(*organisation.Team) error) (organisation.Team, error) {
	if err := v.lock(ctx); err != nil {
		return organisation.Team{}, err
	}
	defer v.mu.Unlock()
	old, ok := v.orgs.teams[id]
	if !ok || old.deleted || old.Org != org {
		return organisation.Team{}, errNoTeam()
	}
	next := old.Team
	if err := change(&next); err != nil {
		return organisation.Team{}, err
	}
	next.ID, next.Org, next.CreatedAt = old.ID, old.Org, old.CreatedAt
	if err := healthlab.CheckText(next.Name, next.IntegrationID); err != nil {
		return organisation.Team{}, err
	}
	if err := v.orgs.checkIntegration(next); err != nil {
		return organisation.Team{}, err
	}
	next = normalTeam(next)
	v.orgs.teams[id] = orgTeam{Team: next}
	return next, nil
}

func (v orgStore) DeleteTeam(ctx context.Context, org uuid.UUID, id healthlab.TeamID, _ time.Time) error {
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	t, ok := v.orgs.teams[id]
	if !ok || t.deleted || t.Org != org {
		return errNoTeam()
	}
	users := 0
	for _, row := range v.users.of(id) {
		if row.user.Live() {
			users++
		}
	}
	if users > 0 {
		return &organisation.NotEmptyError{Users: users}
	}
	t.deleted = true
	v.orgs.teams[id] = t
	delete(v.teams, id)
	for k, key := range v.orgs.keys {
		if key.Team == id {
			delete(v.orgs.keys, k)
		}
	}
	for k := range v.linking.clients {
		if k.team == id {
			delete(v.linking.clients, k)
		}
	}
	return nil
}

func (v orgStore) InsertKey(ctx context.Context, k organisation.Key, most int) error {
	if err := checkKey(&k); err != nil {
		return err
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	return v.orgs.insertKey(k, most)
}

// checkKey returns Invalid for a key that no store takes.
func checkKey(k *organisation.Key) error {
	if k.ID == uuid.Nil || k.Team.IsZero() || k.Sum == [sha256.Size]byte{} {
		return fmt.Errorf("%w: a key has an id, a team and a sum", healthlab.Invalid)
	}
	return healthlab.CheckText(k.Label, k.Hint, k.Scopes.String())
}

func (t *orgTable) insertKey(k organisation.Key, most int) error {
	if t, ok := t.teams[k.Team]; !ok || t.deleted {
		return errNoTeam()
	}
	had := 0
	for id, other := range t.keys {
		if id == k.ID || other.Sum == k.Sum {
			return fmt.Errorf("%w: the API key exists", healthlab.Conflict)
		}
		if other.Team == k.Team {
			had++
		}
	}
	if had >= most {
		return &organisation.TooManyKeysError{Most: most}
	}
	k.Scopes = append(organisation.Scopes(nil), k.Scopes...)
	k.CreatedAt, k.ExpiresAt, k.LastUsedAt = instant(k.CreatedAt), instant(k.ExpiresAt), instant(k.LastUsedAt)
	t.keys[k.ID] = k
	return nil
}

func (v orgStore) RotateKey(ctx context.Context, id uuid.UUID, until time.Time, next organisation.Key, most int) error {
	if err := checkKey(&next); err != nil {
		return err
	}
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	old, ok := v.orgs.keys[id]
	if !ok || old.Team != next.Team {
		return fmt.Errorf("%w: no such key", healthlab.NotFound)
	}
	if err := v.orgs.insertKey(next, most); err != nil {
		return err
	}
	if until = instant(until); old.ExpiresAt.IsZero() || until.Before(old.ExpiresAt) {
		old.ExpiresAt = until
	}
	v.orgs.keys[id] = old
	return nil
}

func (v orgStore) TouchKey(ctx context.Context, team healthlab.TeamID, id uuid.UUID, at time.Time) error {
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	k, ok := v.orgs.keys[id]
	if at = instant(at); ok && k.Team == team && at.After(k.LastUsedAt) {
		k.LastUsedAt = at
		v.orgs.keys[id] = k
	}
	return nil
}

func (v orgStore) Keys(ctx context.Context, team healthlab.TeamID) ([]organisation.Key, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	var out []organisation.Key
	for _, k := range v.orgs.keys {
		if k.Team == team {
			k.Scopes = append(organisation.Scopes(nil), k.Scopes...)
			out = append(out, k)
		}
	}
	slices.SortFunc(out, func(a, b organisation.Key) int {
		if c := a.CreatedAt.Compare(b.CreatedAt); c != 0 {
			return c
		}
		return bytes.Compare(a.ID[:], b.ID[:])
	})
	return out, nil
}

func (v orgStore) Key(ctx context.Context, id uuid.UUID) (organisation.Key, error) {
	return v.find(ctx, func(k *organisation.Key) bool { return k.ID == id })
}

func (v orgStore) FindKey(ctx context.Context, sum [sha256.Size]byte) (organisation.Key, error) {
	return v.find(ctx, func(k *organisation.Key) bool { return k.Sum == sum })
}

func (v orgStore) find(ctx context.Context, is func(*organisation.Key) bool) (organisation.Key, error) {
	if err := v.lock(ctx); err != nil {
		return organisation.Key{}, err
	}
	defer v.mu.Unlock()
	for _, k := range v.orgs.keys {
		if is(&k) {
			k.Scopes = append(organisation.Scopes(nil), k.Scopes...)
			return k, nil
		}
	}
	return organisation.Key{}, fmt.Errorf("%w: no such key", healthlab.NotFound)
}

func (v orgStore) DeleteKey(ctx context.Context, team healthlab.TeamID, id uuid.UUID) error {
	if err := v.lock(ctx); err != nil {
		return err
	}
	defer v.mu.Unlock()
	if k, ok := v.orgs.keys[id]; !ok || k.Team != team {
		return fmt.Errorf("%w: no such key", healthlab.NotFound)
	}
	delete(v.orgs.keys, id)
	return nil
}
