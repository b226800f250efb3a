package outbox

import (
	"slices"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/webhook"
)

// attemptRows are columns of webhook_attempt.
type attemptRows struct {
	teams, endpoints, events []uuid.UUID
	at                       time.Time // of all of them
	deliveries               []int64
	tokens                   []*int64
	ns                       []int
	causes                   []string
	statuses                 []int
	classes                  []string
	durations                []int64
	states, reasons          []string
	heads, responses         [][]byte
}

// grow makes room for so many lines.
func (a *attemptRows) grow(n int) {
	a.teams, a.endpoints, a.events = slices.Grow(a.teams, n), slices.Grow(a.endpoints, n), slices.Grow(a.events, n)
	a.deliveries, a.tokens, a.ns = slices.Grow(a.deliveries, n), slices.Grow(a.tokens, n), slices.Grow(a.ns, n)
	a.causes, a.statuses = slices.Grow(a.causes, n), slices.Grow(a.statuses, n)
	a.classes, a.durations = slices.Grow(a.classes, n), slices.Grow(a.durations, n)
	a.states, a.reasons = slices.Grow(a.states, n), slices.Grow(a.reasons, n)
	a.heads, a.responses = slices.Grow(a.heads, n), slices.Grow(a.responses, n)
}

// add adds the line of a row that was not recorded, or of one that was with the outcome
// as it was applied.
func (a *attemptRows) add(r *laneRow, at time.Time, o *webhook.Outcome) {
	a.line(r.team, r.endpoint, r.event, r.id, r.attempts, r.cause, at, o)
}

func (a *attemptRows) line(team, endpoint, event uuid.UUID, delivery int64, n int, cause string, at time.Time, o *webhook.Outcome) {
	var token *int64
	if o.Delivery.Token != 0 {
		token = &o.Delivery.Token
	}
	a.at = at
	a.teams, a.endpoints, a.events = append(a.teams, team), append(a.endpoints, endpoint), append(a.events, event)
	a.deliveries, a.tokens, a.ns = append(a.deliveries, delivery), append(a.tokens, token), append(a.ns, n)
	a.causes, a.statuses = append(a.causes, cause), append(a.statuses, o.Status)
	a.classes, a.durations = append(a.classes, string(o.Class)), append(a.durations, int64(o.Duration))
	a.states, a.reasons = append(a.states, string(o.State)), append(a.reasons, string(o.Reason))
	a.heads, a.responses = append(a.heads, o.Head), append(a.responses, o.Response)
}

const (
	// In the order of the arrays, as insertDeliveries.
	insertAttempts = `
insert into healthlab.webhook_attempt (team_id, at, endpoint_id, event_id, delivery_id, lease_token, n, cause, status, class, duration, state,
	reason, head, response)
select x.team_id, $4, x.endpoint_id, x.event_id, x.delivery_id, x.lease_token, x.n, x.cause, x.status, x.class, x.duration, x.state,
	x.reason, x.head, x.response
from (select unnest($1::uuid[]) as team_id, unnest($2::uuid[]) as endpoint_id, unnest($3::uuid[]) as event_id, unnest($5::bigint[]) as delivery_id,
	unnest($6::bigint[]) as lease_token, unnest($7::integer[]) as n, unnest($8::text[]) as cause, unnest($9::integer[]) as status,
	unnest($10::text[]) as class, unnest($11::bigint[]) as duration, unnest($12::text[]) as state, unnest($13::text[]) as reason,
	unnest($14::bytea[]) as head, unnest($15::bytea[]) as response) x`

	// The outcome of a lease that is gone: not about a message that is gone too, or that
	// a process is erasing, and not a second time.
	insertLost = insertAttempts + `
join healthlab.webhook_event e on e.team_id = x.team_id and e.id = x.event_id
where not exists (select from healthlab.webhook_attempt a
	where a.event_id = x.event_id and a.delivery_id = x.delivery_id and a.lease_token = x.lease_token)
for key share of e`
)

// insert adds to a batch what writes the lines.
func (a *attemptRows) insert(b *pgx.Batch) { a.queue(b, insertAttempts) }

func (a *attemptRows) insertLost(b *pgx.Batch) { a.queue(b, insertLost) }

func (a *attemptRows) queue(b *pgx.Batch, sql string) {
	if len(a.teams) == 0 {
		return
	}
	b.Queue(sql, a.teams, a.endpoints, a.events, a.at, a.deliveries, a.tokens, a.ns, a.causes, a.statuses, a.classes, a.durations,
		a.states, a.reasons, a.heads, a.responses)
}
