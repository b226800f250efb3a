package outbox

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/webhook"
)

// recoverPage is how many messages recovering looks at, unless told otherwise.
const recoverPage = 500

const (
	isRouted = `not exists (select from healthlab.webhook_pending p where p.team_id = e.team_id and p.event_id = e.id)`

	// Not while another transaction changes or deletes it.
	shareEndpoint = selectEndpoint + ` for share of e`

	selectSent = `
select ` + eventColumns + `, ` + isRouted + ` from healthlab.webhook_event e where e.team_id = $1 and e.id = $2`

	// The messages of some keys, each key from a number on.
	selectSince = `
select ` + eventColumns + `, e.key_hash from unnest($2::uuid[], $3::bigint[]) x (key_hash, seq)
join healthlab.webhook_event e on e.team_id = $1 and e.key_hash = x.key_hash and e.seq >= x.seq
where ` + isRouted + ` order by e.key_hash, e.seq`

	// A page of messages that the endpoint takes, each with: is a delivery of it
	// unfinished, and has an earlier one ended for good. The last ending counts.
	selectWritten = `
select ` + eventColumns + `, exists (select from healthlab.webhook_delivery d where d.event_id = e.id and d.endpoint_id = $2),
	coalesce((select a.state = 'succeeded' or a.reason = 'superseded' from healthlab.webhook_attempt a
		where a.event_id = e.id and a.endpoint_id = $2 and a.state in ('succeeded', 'failed', 'cancelled') order by a.id desc limit 1), false)
from healthlab.webhook_event e
where e.team_id = $1 and e.created_at >= $3 and (e.created_at, e.id) > ($4, $5::uuid)
	and ($8::timestamptz is null or e.created_at < $8)
	and ($6::text[] is null or e.type = any ($6)) and e.key <> $2::text and ` + isRouted + `
order by e.created_at, e.id limit $7`

	// The lanes in which messages wait: not always those that a new message would come into.
	selectLanes = `
select distinct d.team_id, d.endpoint_id, d.lane from healthlab.webhook_delivery d where d.event_id = any ($1) and d.endpoint_id = $2`
)

func (d deliveries) Replay(ctx context.Context, r webhook.Replay) (webhook.Replayed, error) {
	after, err := parsePlace(r.After)
	if err != nil {
		return webhook.Replayed{}, err
	}
	var done webhook.Replayed
	err = d.s.db.Do(ctx, r.Team, db.Writing, func(u *db.Tx) error {
		p := &replaying{u: u, Replay: r}
		b := u.Batch()
		u.Tune(b, tuneQueue)
		b.Queue(holdRouting, int64(Routing))
		queueEndpoint(b, shareEndpoint, r.Team, r.Endpoint, &p.to)
		if err := u.Send(ctx, b); err != nil {
			return noEndpoint(err)
		}
		if p.to.Disabled {
			return fmt.Errorf("replay: %w: the endpoint is disabled", healthlab.Precondition)
		}
		b = u.Batch()
		var err error
		if r.Event != uuid.Nil {
			done, err = p.retry(ctx, b)
		} else {
			done, err = p.recover(ctx, b, after)
		}
		if err != nil {
			return err
		}
		return u.Commit(ctx, b)
	})
	if err != nil {
		return webhook.Replayed{}, err
	}
	return done, nil
}

// replaying is one transaction that resends messages.
type replaying struct {
	webhook.Replay
	u  *db.Tx
	to webhook.Endpoint
	*lanes
}

// lead is a message and those that its mode wants to be sent after it.
type lead struct {
	events []*written
	mode   healthlab.Mode
}

// emptied reports whether the body of one of the messages is deleted.
func (l *lead) emptied() bool {
	return slices.ContainsFunc(l.events, func(e *written) bool { return e.emptied })
}

// retry resends one message, as the mode of its type allows.
func (p *replaying) retry(ctx context.Context, b *pgx.Batch) (webhook.Replayed, error) {
	var e *written
	routed := false
	look := p.u.Batch()
	look.Queue(selectSent, p.Team.UUID, p.Event).QueryRow(func(row pgx.Row) (err error) {
		e, err = scanWritten(row, &routed)
		return err
	})
	err := p.u.Send(ctx, look)
	switch {
	case errors.Is(err, pgx.ErrNoRows):
		return webhook.Replayed{}, fmt.Errorf("replay message: %w", healthlab.NotFound)
	case err != nil:
		return webhook.Replayed{}, err
	case !p.to.Matches(e.Event):
		return webhook.Replayed{}, fmt.Errorf("replay: %w: the endpoint does not take this type", healthlab.Precondition)
	case !routed:
		return webhook.Replayed{}, fmt.Errorf("replay: %w: the message was never sent", healthlab.Precondition)
	}
	leads, err := p.follow(ctx, []*written{e})
	if err != nil {
		return webhook.Replayed{}, err
	}
	again := leads[0]
	if n := len(again.events); again.mode == healthlab.Latest && n > 1 {
		return webhook.Replayed{}, fmt.Errorf("replay: %w: the newer message %s of its key exists",
			healthlab.Precondition, webhook.MessageID(again.events[n-1].ID))
	}
	if again.emptied() {
		return webhook.Replayed{}, webhook.BodyDeleted()
	}
	if err := p.load(ctx, leads); err != nil {
		return webhook.Replayed{}, err
	}
	for _, r := range p.unfinished(again.events) {
		if r.leased(p.now) {
			return webhook.Replayed{}, fmt.Errorf("replay: %w: a delivery is being sent", healthlab.Precondition)
		}
	}
	p.rewind(again, webhook.TriggerRetry)
	p.write(b)
	return webhook.Replayed{Queued: len(again.events)}, nil
}

// recover resends what went wrong since a time, one page of messages a call.
func (p *replaying) recover(ctx context.Context, b *pgx.Batch, after place) (webhook.Replayed, error) {
	most := p.Max
	if most <= 0 {
		most = recoverPage
	}
	since := db.Instant(p.Since)
	if p.to.CreatedAt.After(since) {
		since = p.to.CreatedAt
	}
	var until *time.Time
	if !p.Until.IsZero() {
		t := db.Instant(p.Until)
		until = &t
	}
	var page, lost []*written
	look := p.u.Batch()
	look.Queue(selectWritten, p.Team.UUID, p.Endpoint.UUID, since, after.at, after.id, p.to.FilterTypes, most+1, until).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var open, ended bool
			e, err := scanWritten(rows, &open, &ended)
			if err != nil {
				return err
			}
			if page = append(page, e); len(page) <= most && !open && !ended {
				lost = append(lost, e)
			}
		}
		return rows.Err()
	})
	if err := p.u.Send(ctx, look); err != nil {
		return webhook.Replayed{}, err
	}
	var done webhook.Replayed
	if len(page) > most {
		last := page[most-1]
		done.Next = place{last.at, last.ID}.String()
	}
	leads, err := p.follow(ctx, lost)
	if err != nil || len(lost) == 0 {
		return done, err
	}
	if err := p.load(ctx, leads); err != nil {
		return webhook.Replayed{}, err
	}
	for _, again := range leads {
		if again.mode == healthlab.Latest && len(again.events) > 1 || again.emptied() || len(p.unfinished(again.events[:1])) > 0 {
			continue // the newest of the key speaks for it; there is nothing to send; or one before it has brought it along
		}
		p.rewind(again, webhook.TriggerRecover)
		done.Queued += len(again.events)
	}
	p.write(b)
	return done, nil
}

// follow finds for each message those of its key that come after it, that were routed,
// and that the endpoint takes, as far as its mode asks for them.
func (p *replaying) follow(ctx context.Context, events []*written) ([]lead, error) {
	leads := make([]lead, len(events))
	var keys []uuid.UUID
	var seqs []int64
	first := map[uuid.UUID]int{}
	for i, e := range events {
		leads[i] = lead{[]*written{e}, webhook.ModeOf(p.Modes, e.Type)}
		if e.Key == "" || leads[i].mode == healthlab.Independent {
			continue
		}
		key := keyOf(e.Key)
		if j, ok := first[key]; ok {
			seqs[j] = min(seqs[j], e.Seq)
			continue
		}
		first[key] = len(keys)
		keys, seqs = append(keys, key), append(seqs, e.Seq)
	}
	if len(keys) == 0 {
		return leads, nil
	}
	later := map[string][]*written{}
	b := p.u.Batch()
	b.Queue(selectSince, p.Team.UUID, keys, seqs).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var hash uuid.UUID
			e, err := scanWritten(rows, &hash)
			if err != nil {
				return err
			}
			if p.to.Matches(e.Event) {
				later[e.Key] = append(later[e.Key], e)
			}
		}
		return rows.Err()
	})
	if err := p.u.Send(ctx, b); err != nil {
		return nil, err
	}
	for i, e := range events {
		if e.Key == "" || leads[i].mode == healthlab.Independent {
			continue
		}
		for _, l := range later[e.Key] {
			if l.Seq > e.Seq {
				leads[i].events = append(leads[i].events, l)
			}
		}
	}
	return leads, nil
}

// load locks and reads the lanes in which the messages are, and into which they come.
func (p *replaying) load(ctx context.Context, leads []lead) error {
	var names []laneName
	var ids []uuid.UUID
	for _, l := range leads {
		for _, e := range l.events {
			names, ids = append(names, arrivalOf(&p.to, e, l.mode).name), append(ids, e.ID)
		}
	}
	b := p.u.Batch()
	b.Queue(selectLanes, ids, p.Endpoint.UUID).Query(func(rows pgx.Rows) error {
		for rows.Next() {
			var n laneName
			if err := rows.Scan(&n.team, &n.endpoint, &n.lane); err != nil {
				return err
			}
			names = append(names, n)
		}
		return rows.Err()
	})
	if err := p.u.Send(ctx, b); err != nil {
		return err
	}
	var err error
	p.lanes, err = loadWhole(ctx, p.u, names)
	return err
}

// unfinished returns the deliveries of messages that have not ended.
func (p *replaying) unfinished(events []*written) []*laneRow {
	which := make(map[uuid.UUID]bool, len(events))
	for _, e := range events {
		which[e.ID] = true
	}
	var out []*laneRow
	for _, at := range p.all {
		for _, r := range at.rows {
			if which[r.event] {
				out = append(out, r)
			}
		}
	}
	return out
}

// rewind puts the messages at the end of their lane, in order. Those of them that wait
// there already leave their place; one that is being sent stays, and is sent twice.
func (p *replaying) rewind(again lead, by webhook.Trigger) {
	var quiet *time.Time
	for _, r := range p.unfinished(again.events) {
		if r.leased(p.now) {
			continue
		}
		if r.quiet != nil && (quiet == nil || r.quiet.After(*quiet)) {
			quiet = r.quiet
		}
		p.remove(r)
	}
	for _, e := range again.events {
		p.arrive(arrivalOf(&p.to, e, again.mode), by)
	}
	if to := p.of(arrivalOf(&p.to, again.events[0], again.mode).name); len(to.rows) > 0 {
		to.rows[0].hush(quiet)
	}
}

// place is where recovering has come to: a message, in the order of writing.
type place struct {
	at time.Time
	id uuid.UUID
}

func (p place) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.at.UTC().Format(time.RFC3339Nano) + " " + p.id.String()))
}

func parsePlace(text string) (place, error) {
	if text == "" {
		return place{}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	at, id, ok := strings.Cut(string(b), " ")
	t, err1 := time.Parse(time.RFC3339Nano, at)
	u, err2 := uuid.Parse(id)
	if !ok || err != nil || err1 != nil || err2 != nil {
		return place{}, db.BadCursor()
	}
	return place{t, u}, nil
}
