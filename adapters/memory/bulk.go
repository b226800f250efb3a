package memory

import (
	"context"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking/bulk"
)

// Bulk returns the connections and their credentials as a [bulk.Store].
func (s *Store) Bulk() bulk.Store { return bulkStore{s} }

type bulkStore struct{ s *Store }

func (v bulkStore) Held(ctx context.Context, q bulk.HeldQuery) ([]bulk.Held, error) {
	if err := healthlab.CheckText(q.Provider); err != nil {
		return nil, err
	}
	if err := v.s.lock(ctx); err != nil {
		return nil, err
	}
	defer v.s.mu.Unlock()
	var out []bulk.Held
	for key, c := range v.s.linking.credentials {
		row := v.s.users.find(key.team, key.user)
		if key.team != q.Team || key.provider != q.Provider || row == nil || !row.user.Live() || !attached(&row.user, q.Provider) ||
			slices.Compare(key.user.UUID[:], q.After.UUID[:]) <= 0 || q.Users != nil && !slices.Contains(q.Users, key.user) {
			continue
		}
		u := row.user.Clone() // nothing that is encrypted is read
		to := u.Connection(q.Provider)
		c.Client = to.Client
		out = append(out, bulk.Held{Credential: keepCredential(c, key), ExternalUserID: to.ExternalUserID, Scopes: to.Scopes})
	}
	slices.SortFunc(out, func(a, b bulk.Held) int { return slices.Compare(a.User.UUID[:], b.User.UUID[:]) })
	return out[:min(max(q.N, 0), len(out))], nil
}
