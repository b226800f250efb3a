package linkstore

import (
	"context"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/linking"
	"github.com/healthlab-dev/healthlab/linking/bulk"
)

// Bulk returns the connections and their credentials as a [bulk.Store].
func Bulk(s *Store) bulk.Store { return bulkStore{s} }

type bulkStore struct{ s *Store }

const selectHeldConnections = `
select k.user_id, c.external_user_id, c.scopes, ` + credentialColumns + clientColumn + `
from healthlab.link_credential k
join healthlab.users u on u.user_id = k.user_id and u.team_id = k.team_id
join healthlab.connection c on c.user_id = k.user_id and c.provider = k.provider
where u.team_id = $1 and k.provider = $2 and k.user_id > $3 and ($4::uuid[] is null or k.user_id = any($4))
	and u.deleted_at is null and c.status <> 'deregistered'
order by k.user_id limit $5`

func (v bulkStore) Connections(ctx context.Context, q bulk.ConnectionQuery) ([]bulk.Connection, error) {
	if err := healthlab.CheckText(q.Provider); err != nil {
		return nil, err
	}
	var users []uuid.UUID
	if q.Users != nil {
		users = []uuid.UUID{}
	}
	for _, u := range q.Users {
		users = append(users, u.UUID)
	}
	var out []bulk.Connection
	err := v.s.db.Read(ctx, q.Team, func(b *pgx.Batch) {
		b.Queue(selectHeldConnections, q.Team.UUID, q.Provider, q.After.UUID, users, max(q.N, 0)).Query(func(rows pgx.Rows) error {
			out = nil
			for rows.Next() {
				h := bulk.Connection{Credential: linking.Credential{Team: q.Team, Provider: q.Provider}}
				if err := scanClient(heldRow{&h, rows}, &h.Credential); err != nil {
					return err
				}
				out = append(out, h)
			}
			return rows.Err()
		})
	})
	return out, err
}

// heldRow reads what stands before a credential.
type heldRow struct {
	held *bulk.Connection
	row  pgx.Row
}

// Scan reads the whole row.
func (r heldRow) Scan(credential ...any) error {
	return r.row.Scan(append([]any{&r.held.User.UUID, &r.held.ExternalUserID, &r.held.Scopes}, credential...)...)
}
