package userstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/personkey"
)

// Columns are what [Store.Scan] reads, of a row u of users.
const Columns = `
u.user_id, u.team_id, u.client_user_id, u.created_on, u.zone_id, u.zone_source, u.zone_updated_at,
u.birth_date, u.birth_source, u.birth_updated_at, u.ingestion_start, u.ingestion_end, u.deleted_at, u.revision, u.consents,
(select json_agg(json_build_object('p', c.provider, 's', c.status, 'c', (extract(epoch from c.created_on) * 1000000)::bigint,
	'e', c.external_user_id, 'g', c.scopes, 'd', c.demo, 'o', c.client,
	'l', (extract(epoch from c.linked_at) * 1000000)::bigint, 'n', (extract(epoch from c.due_at) * 1000000)::bigint,
	'f', c.failure_type, 'm', c.failure_message, 'x', c.failure_details, 'a', (extract(epoch from c.failed_at) * 1000000)::bigint) order by c.created_on, c.provider)
	from healthlab.connection c where c.user_id = u.user_id)`

// connectionRow is a row of connection as Columns has it.
type connectionRow struct {
	Provider string   `json:"p"`
	Status   string   `json:"s"`
	Created  int64    `json:"c"`
	External *string  `json:"e"`
	Scopes   []string `json:"g"`
	Demo     bool     `json:"d"`
	Client   *string  `json:"o"`
	Linked   *int64   `json:"l"`
	Due      *int64   `json:"n"`
	Failure  *string  `json:"f"`
	Message  *string  `json:"m"`
	Details  *string  `json:"x"`
	Failed   *int64   `json:"a"`
}

func (c *connectionRow) connection() healthdata.Connection {
	out := healthdata.Connection{
		Provider: c.Provider, Status: healthdata.ConnectionStatus(c.Status), CreatedOn: time.UnixMicro(c.Created).UTC(),
		ExternalUserID: c.External, Scopes: c.Scopes, Demo: c.Demo, LinkedAt: micros(c.Linked), Due: micros(c.Due),
	}
	if c.Client != nil {
		out.Client = *c.Client
	}
	if c.Failure != nil {
		out.Failure = &healthdata.ConnectionFailure{Type: *c.Failure, Message: *c.Message, Details: *c.Details, At: micros(c.Failed)}
	}
	return out
}

// micros returns an instant of the database, the zero time for null.
func micros(us *int64) time.Time {
	if us == nil {
		return time.Time{}
	}
	return time.UnixMicro(*us).UTC()
}

// Scan reads Columns.
func (v *Store) Scan(ctx context.Context, row pgx.Row) (healthdata.User, error) {
	var u healthdata.User
	var start, end, birthAt, deleted *time.Time
	var birth []byte
	var birthSource *string
	var connections, consents []byte
	z := &u.FallbackTimeZone
	err := row.Scan(&u.ID.UUID, &u.Team.UUID, &u.ClientUserID, &u.CreatedOn.Time, &z.ID, &z.SourceSlug, &z.UpdatedAt.Time,
		&birth, &birthSource, &birthAt, &start, &end, &deleted, &u.Revision, &consents, &connections)
	if err != nil {
		return healthdata.User{}, err
	}
	u.CreatedOn, z.UpdatedAt = healthlab.At(u.CreatedOn.Time), healthlab.At(z.UpdatedAt.Time)
	if birth != nil {
		day, err := v.openDate(ctx, &u, birth)
		if err == nil {
			u.FallbackBirthDate = &healthdata.FallbackBirthDate{Value: day, SourceSlug: *birthSource, UpdatedAt: healthlab.At(*birthAt)}
		} else if !errors.Is(err, personkey.ErrErased) { // the user of a restored backup is read to be erased
			return healthdata.User{}, fmt.Errorf("birth date: %w", err)
		}
	}
	u.IngestionStart, u.IngestionEnd = dateOf(start), dateOf(end)
	if deleted != nil {
		u.DeletedAt = deleted.UTC()
	}
	if consents != nil {
		if err := json.Unmarshal(consents, &u.Consents); err != nil {
			return healthdata.User{}, fmt.Errorf("consents: %w", err)
		}
	}
	if connections == nil {
		return u, nil
	}
	var list []connectionRow
	if err := json.Unmarshal(connections, &list); err != nil {
		return healthdata.User{}, fmt.Errorf("connections: %w", err)
	}
	for _, c := range list {
		u.Connections = append(u.Connections, c.connection())
	}
	return u, nil
}

// openDate decrypts the birth date of a user, which is YYYY-MM-DD.
func (v *Store) openDate(ctx context.Context, u *healthdata.User, box []byte) (healthlab.Date, error) {
	text, err := v.db.Keys.Open(ctx, personkey.Ref{Team: u.Team, User: u.ID}, personkey.RowBirthDate, box)
	if err != nil {
		return healthlab.Date{}, err
	}
	return healthlab.ParseDate(string(text))
}

func dateOf(t *time.Time) *healthlab.Date {
	if t == nil {
		return nil
	}
	d := healthlab.DateOf(*t)
	return &d
}

const (
	insertUser = `
insert into healthlab.users (user_id, team_id, client_user_id, created_on, zone_id, zone_source, zone_updated_at,
	birth_date, birth_source, birth_updated_at, ingestion_start, ingestion_end, deleted_at, revision, consents)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)
on conflict (user_id) do nothing`

	updateUser = `
update healthlab.users set client_user_id = $3, created_on = $4, zone_id = $5, zone_source = $6, zone_updated_at = $7,
	birth_date = $8, birth_source = $9, birth_updated_at = $10, ingestion_start = $11, ingestion_end = $12,
	deleted_at = $13, revision = $14, consents = $15
where user_id = $1 and team_id = $2`

	deleteConnections = `delete from healthlab.connection where user_id = $1`

	insertConnection = `
insert into healthlab.connection (user_id, provider, team_id, status, created_on, external_user_id, scopes, demo,
	linked_at, due_at, failure_type, failure_message, failure_details, failed_at, client)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15)`
)

// userValues are the arguments of insertUser and updateUser.
func (v *Store) userValues(ctx context.Context, u *healthdata.User) ([]any, error) {
	var birth []byte
	var birthAt *time.Time
	var birthSource *string
	if b := u.FallbackBirthDate; b != nil {
		var err error
		if birth, err = v.db.Keys.Seal(ctx, personkey.Ref{Team: u.Team, User: u.ID}, personkey.RowBirthDate, []byte(b.Value.String())); err != nil {
			return nil, err
		}
		birthSource, birthAt = &b.SourceSlug, &b.UpdatedAt.Time
	}
	z := &u.FallbackTimeZone
	return []any{
		u.ID.UUID, u.Team.UUID, u.ClientUserID, u.CreatedOn.Time, z.ID, z.SourceSlug, z.UpdatedAt.Time,
		birth, birthSource, birthAt, db.TimeOf(u.IngestionStart), db.TimeOf(u.IngestionEnd), db.Nullable(u.DeletedAt), u.Revision, consentsOf(u),
	}, nil
}

// consentsOf returns the consents of a user as JSON, nil for none.
func consentsOf(u *healthdata.User) any {
	if len(u.Consents) == 0 {
		return nil
	}
	return u.Consents
}

func insertConnections(b *pgx.Batch, u *healthdata.User) {
	for _, c := range u.Connections {
		var what, message, details *string
		var failed *time.Time
		if f := c.Failure; f != nil {
			what, message, details, failed = &f.Type, &f.Message, &f.Details, db.Nullable(f.At)
		}
		b.Queue(insertConnection, u.ID.UUID, c.Provider, u.Team.UUID, string(c.Status), c.CreatedOn, c.ExternalUserID, c.Scopes, c.Demo,
			db.Nullable(c.LinkedAt), db.Nullable(c.Due), what, message, details, failed, db.NullText(c.Client))
	}
}
