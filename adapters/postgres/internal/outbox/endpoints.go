package outbox

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Endpoints returns the store as a [webhook.Endpoints].
func (s *Store) Endpoints() webhook.Endpoints { return endpoints{s} }

type endpoints struct{ s *Store }

const (
	endpointColumns = `
e.id, e.team_id, e.url, e.description, e.rate_limit, e.filter_types, e.order_scope, e.disabled, e.disabled_reason,
e.first_failed_at, e.last_failed_at, e.armed_at, e.paused_until, e.pause_step, e.secrets, e.headers, e.revision,
e.created_at, e.updated_at`

	selectEndpoint = `select ` + endpointColumns + ` from healthlab.webhook_endpoint e where e.team_id = $1 and e.id = $2`

	lockEndpoint = selectEndpoint + ` for no key update of e`

	insertEndpoint = `
insert into healthlab.webhook_endpoint (id, team_id, url, description, rate_limit, filter_types, order_scope, disabled,
	disabled_reason, first_failed_at, last_failed_at, armed_at, paused_until, pause_step, secrets, headers, revision,
	created_at, updated_at)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10, $11, $12, $13, $14, $15, $16, $17, $18, $19)
on conflict (id) do nothing`

	updateEndpoint = `
update healthlab.webhook_endpoint set url = $3, description = $4, rate_limit = $5, filter_types = $6, order_scope = $7,
	disabled = $8, disabled_reason = $9, first_failed_at = $10, last_failed_at = $11, armed_at = $12, paused_until = $13,
	pause_step = $14, secrets = $15, headers = $16, revision = $17, created_at = $18, updated_at = $19
where id = $1 and team_id = $2`

	deleteEndpoint = `delete from healthlab.webhook_endpoint where team_id = $1 and id = $2`

	countEndpoints = `select count(*) from (select from healthlab.webhook_endpoint where team_id = $1 limit $2) n`

	// The created_at of the cursor is null on the first page.
	listEndpoints = `
select ` + endpointColumns + ` from healthlab.webhook_endpoint e
where e.team_id = $1 and ($2::timestamptz is null or (e.created_at, e.id) < ($2, $3::uuid))
order by e.created_at desc, e.id desc limit $4`

	armedEndpoints = `
select ` + endpointColumns + ` from healthlab.webhook_endpoint e where not e.disabled and e.armed_at <= $1`

	// In the order in which all writers lock lanes: the head first.
	lockDeliveries = `
select count(*) from (
	select from healthlab.webhook_delivery where team_id = $1 and endpoint_id = $2 order by lane, id for update) locked`

	cancelDeliveries = `
with gone as (delete from healthlab.webhook_delivery where team_id = $1 and endpoint_id = $2 returning *)
insert into healthlab.webhook_attempt (team_id, at, endpoint_id, event_id, delivery_id, n, cause, status, class, duration, state, reason)
select g.team_id, healthlab.clock(), g.endpoint_id, g.event_id, g.id, g.attempts, g.cause, 0, '', 0, 'cancelled', $3
from gone g order by g.id`

	resumeHeads = `
update healthlab.webhook_delivery set due_at = greatest(healthlab.clock(), quiet_until)
where team_id = $1 and endpoint_id = $2 and head and due_at > healthlab.clock()`
)

// keptSecret and keptHeader are secrets and headers as they are stored.
type keptSecret struct {
	ID      uuid.UUID  `json:"id"`
	Key     string     `json:"key"`
	Box     []byte     `json:"box"`
	Created time.Time  `json:"created"`
	Expires *time.Time `json:"expires,omitempty"`
}

type keptHeader struct {
	Name string `json:"name"`
	Key  string `json:"key"`
	Box  []byte `json:"box"`
}

// endpointValues are the arguments of insertEndpoint and updateEndpoint.
func endpointValues(e *webhook.Endpoint) ([]any, error) {
	secrets, headers := []keptSecret{}, []keptHeader{}
	text := []string{e.URL, e.Description}
	for _, s := range e.Secrets {
		secrets = append(secrets, keptSecret{s.ID, s.Sealed.KeyID, s.Sealed.Box, db.Instant(s.CreatedAt), db.Nullable(db.Instant(s.ExpiresAt))})
		text = append(text, s.Sealed.KeyID)
	}
	for _, h := range e.Headers {
		headers = append(headers, keptHeader{h.Name, h.Sealed.KeyID, h.Sealed.Box})
		text = append(text, h.Name, h.Sealed.KeyID)
	}
	if err := healthlab.CheckText(append(text, e.FilterTypes...)...); err != nil {
		return nil, err
	}
	sealed, err := json.Marshal(secrets)
	if err != nil {
		return nil, fmt.Errorf("encode secrets: %w", err)
	}
	named, err := json.Marshal(headers)
	if err != nil {
		return nil, fmt.Errorf("encode headers: %w", err)
	}
	h := &e.Health
	return []any{
		e.ID.UUID, e.Team.UUID, e.URL, e.Description, e.RateLimit, e.FilterTypes, string(e.OrderScope), e.Disabled,
		string(e.DisabledReason), db.Nullable(db.Instant(h.FirstFailedAt)), db.Nullable(db.Instant(h.LastFailedAt)),
		db.Nullable(db.Instant(h.ArmedAt)), db.Nullable(db.Instant(h.PausedUntil)), h.PauseStep, sealed, named, e.Revision,
		db.Instant(e.CreatedAt), db.Instant(e.UpdatedAt),
	}, nil
}

func scanEndpoint(row pgx.Row, out *webhook.Endpoint) error {
	var e webhook.Endpoint
	var first, last, armed, paused *time.Time
	var sealed, named []byte
	err := row.Scan(&e.ID.UUID, &e.Team.UUID, &e.URL, &e.Description, &e.RateLimit, &e.FilterTypes, (*string)(&e.OrderScope),
		&e.Disabled, (*string)(&e.DisabledReason), &first, &last, &armed, &paused, &e.Health.PauseStep, &sealed, &named,
		&e.Revision, &e.CreatedAt, &e.UpdatedAt)
	if err != nil {
		return err
	}
	var secrets []keptSecret
	var headers []keptHeader
	if err := errors.Join(json.Unmarshal(sealed, &secrets), json.Unmarshal(named, &headers)); err != nil {
		return fmt.Errorf("decode endpoint: %w", err)
	}
	e.CreatedAt, e.UpdatedAt = e.CreatedAt.UTC(), e.UpdatedAt.UTC()
	e.Health.FirstFailedAt, e.Health.LastFailedAt = db.TimeOrZero(first), db.TimeOrZero(last)
	e.Health.ArmedAt, e.Health.PausedUntil = db.TimeOrZero(armed), db.TimeOrZero(paused)
	for _, s := range secrets {
		e.Secrets = append(e.Secrets, webhook.SealedSecret{
			ID: s.ID, Sealed: healthlab.Sealed{KeyID: s.Key, Box: s.Box}, CreatedAt: s.Created, ExpiresAt: db.TimeOrZero(s.Expires),
		})
	}
	for _, h := range headers {
		e.Headers = append(e.Headers, webhook.SealedHeader{Name: h.Name, Sealed: healthlab.Sealed{KeyID: h.Key, Box: h.Box}})
	}
	*out = e
	return nil
}

func queueEndpoint(b *pgx.Batch, sql string, team healthlab.TeamID, id webhook.EndpointID, e *webhook.Endpoint) {
	b.Queue(sql, team.UUID, id.UUID).QueryRow(func(row pgx.Row) error { return scanEndpoint(row, e) })
}

func noEndpoint(err error) error {
	if errors.Is(err, pgx.ErrNoRows) {
		return fmt.Errorf("endpoint: %w", healthlab.NotFound)
	}
	return err
}

func (p endpoints) Insert(ctx context.Context, e webhook.Endpoint, most int) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	e.Revision = 1
	values, err := endpointValues(&e)
	if err != nil {
		return err
	}
	return p.s.db.Do(ctx, e.Team, db.Writing, func(x *db.Tx) error {
		var added pgconn.CommandTag
		var n int
		b := x.Batch()
		db.LockTeam(b, e.Team)
		db.KeepTag(b.Queue(insertEndpoint, values...), &added)
		b.Queue(countEndpoints, e.Team.UUID, most+1).QueryRow(func(row pgx.Row) error { return row.Scan(&n) })
		if err := x.Send(ctx, b); err != nil {
			return err
		}
		switch {
		case added.RowsAffected() == 0:
			return fmt.Errorf("insert endpoint: %w", healthlab.Conflict)
		case n > most:
			return fmt.Errorf("insert endpoint: %w: a team has at most %d", healthlab.Exhausted, most)
		}
		return x.Commit(ctx, x.Batch())
	})
}

func (p endpoints) Get(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID) (webhook.Endpoint, error) {
	var e webhook.Endpoint
	if err := p.s.db.Read(ctx, team, func(b *pgx.Batch) { queueEndpoint(b, selectEndpoint, team, id, &e) }); err != nil {
		return webhook.Endpoint{}, noEndpoint(err)
	}
	return e, nil
}

func (p endpoints) Update(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID,
	change func(*webhook.Endpoint) ([]healthlab.Event, error),
) (webhook.Endpoint, error) {
	var kept webhook.Endpoint
	err := p.s.db.Do(ctx, team, db.Writing, func(x *db.Tx) error {
		var was webhook.Endpoint
		b := x.Batch()
		queueEndpoint(b, lockEndpoint, team, id, &was)
		if err := x.Send(ctx, b); err != nil {
			return noEndpoint(err)
		}
		e := was.Clone()
		events, err := change(&e)
		if err != nil {
			return db.Answer(err)
		}
		e.ID, e.Team, e.CreatedAt, e.Revision = was.ID, was.Team, was.CreatedAt, was.Revision+1
		values, err := endpointValues(&e)
		if err != nil {
			return db.Answer(err)
		}
		b = x.Batch()
		b.Queue(updateEndpoint, values...)
		if e.Disabled && !was.Disabled {
			queueCancel(b, team, id, webhook.ReasonDisabled)
		}
		if e.Health.PauseStep == 0 && was.Health.PauseStep > 0 {
			b.Queue(resumeHeads, team.UUID, id.UUID)
		}
		if err := p.s.Emit(ctx, x, b, events, Names{}); err != nil {
			return err
		}
		queueEndpoint(b, selectEndpoint, team, id, &kept)
		return x.Commit(ctx, b)
	})
	if err != nil {
		return webhook.Endpoint{}, err
	}
	return kept, nil
}

// queueCancel ends all unfinished deliveries of an endpoint, whose row is locked.
func queueCancel(b *pgx.Batch, team healthlab.TeamID, id webhook.EndpointID, why webhook.Reason) {
	b.Queue(lockDeliveries, team.UUID, id.UUID)
	b.Queue(cancelDeliveries, team.UUID, id.UUID, string(why))
}

func (p endpoints) Delete(ctx context.Context, team healthlab.TeamID, id webhook.EndpointID) error {
	return p.s.db.Do(ctx, team, db.Writing, func(x *db.Tx) error {
		var was webhook.Endpoint
		b := x.Batch()
		queueEndpoint(b, lockEndpoint, team, id, &was)
		if err := x.Send(ctx, b); err != nil {
			return noEndpoint(err)
		}
		b = x.Batch()
		queueCancel(b, team, id, webhook.ReasonDeleted)
		b.Queue(deleteEndpoint, team.UUID, id.UUID)
		return x.Commit(ctx, b)
	})
}

func (p endpoints) List(ctx context.Context, q webhook.EndpointQuery) (webhook.EndpointPage, error) {
	if q.Size <= 0 {
		q.Size = logPage
	}
	after, err := parsePlace(q.Cursor)
	if err != nil {
		return webhook.EndpointPage{}, err
	}
	var page webhook.EndpointPage
	err = p.s.db.Read(ctx, q.Team, func(b *pgx.Batch) {
		page = webhook.EndpointPage{}
		b.Queue(listEndpoints, q.Team.UUID, db.Nullable(after.at), after.id, q.Size+1).Query(func(rows pgx.Rows) error { return scanEndpoints(rows, &page.Endpoints) })
	})
	if err != nil {
		return webhook.EndpointPage{}, err
	}
	if len(page.Endpoints) > q.Size {
		page.Endpoints = page.Endpoints[:q.Size]
		last := page.Endpoints[q.Size-1]
		page.Next = place{last.CreatedAt, last.ID.UUID}.String()
	}
	return page, nil
}

func scanEndpoints(rows pgx.Rows, out *[]webhook.Endpoint) error {
	for rows.Next() {
		var e webhook.Endpoint
		if err := scanEndpoint(rows, &e); err != nil {
			return err
		}
		*out = append(*out, e)
	}
	return rows.Err()
}

func (p endpoints) Armed(ctx context.Context, until time.Time) ([]webhook.Endpoint, error) {
	var out []webhook.Endpoint
	err := p.s.db.Read(ctx, db.AllTeams, func(b *pgx.Batch) {
		out = nil
		b.Queue(armedEndpoints, until.UTC()).Query(func(rows pgx.Rows) error { return scanEndpoints(rows, &out) })
	})
	return out, err
}
