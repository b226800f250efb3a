package orderstore

import (
	"context"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres/internal/db"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/personkey"
)

// LabJournal returns the store as a [labjournal.Store].
func (s *Store) LabJournal() labjournal.Store { return labJournals{s} }

type labJournals struct{ s *Store }

const (
	insertLabRecord = `
insert into healthlab.lab_record (team_id, user_id, lab, number, doc) values ($1, $2, $3, $4, $5)
on conflict (lab, number) do nothing`

	selectLabRecords = `select number, team_id, user_id, doc from healthlab.lab_record where lab = $1 and number = any ($2)`

	updateLabRecord = `update healthlab.lab_record set doc = $3 where lab = $1 and number = $2`

	// Deliveries of a laboratory are kept one after another, so that places are in the
	// order of the commits.
	lockLabJournal = `
insert into healthlab.lab_journal (team_id, lab) values ('00000000-0000-0000-0000-000000000000', $1)
on conflict (team_id, lab) do update set lab = excluded.lab returning deliveries, messages`

	advanceLabJournal = `
update healthlab.lab_journal set deliveries = $2, messages = $3
where team_id = '00000000-0000-0000-0000-000000000000' and lab = $1`

	hasLabDelivery = `select exists (select from healthlab.lab_delivery where lab = $1 and key = $2)`

	insertLabDelivery = `
insert into healthlab.lab_delivery (team_id, user_id, lab, key, number, place, at, review, raw)
values ($1, $2, $3, $4, $5, $6, $7, $8, $9)`

	settleLabDelivery = `
update healthlab.lab_delivery set review = '', raw = '' where lab = $1 and place = $2 and review <> ''`

	insertLabMessage = `
insert into healthlab.lab_message (team_id, user_id, lab, place, doc) values ($1, $2, $3, $4, $5)`

	// A reader that asks for what comes after a place has stored what is before it.
	forgetLabMessages = `
delete from healthlab.lab_message m using healthlab.lab_journal j
where m.lab = $1 and m.place <= $2 and m.user_id = '00000000-0000-0000-0000-000000000000'
	and j.team_id = '00000000-0000-0000-0000-000000000000' and j.lab = $1 and $2 <= j.messages`

	// A place beyond the last one is of a journal that was lost.
	selectLabFeed = `
select m.place, m.team_id, m.user_id, m.doc from healthlab.lab_message m
where m.lab = $1 and m.place > case when $2 > coalesce((select messages from healthlab.lab_journal
	where team_id = '00000000-0000-0000-0000-000000000000' and lab = $1), 0) then 0 else $2 end
order by m.place limit $3`

	labDeliveryColumns = `select place, key, at, team_id, user_id, review, raw from healthlab.lab_delivery `

	selectLabDeliveries = labDeliveryColumns + `where lab = $1 and number = $2 order by place`

	selectLabReview = labDeliveryColumns + `where lab = $1 and place > $2 and review <> '' order by place limit $3`

	deleteLabRecordsOfUser = `
delete from healthlab.lab_record r using healthlab.users u where r.user_id = $1 and u.user_id = $1 and r.team_id = u.team_id`

	deleteLabDeliveriesOfUser = `
delete from healthlab.lab_delivery d using healthlab.users u where d.user_id = $1 and u.user_id = $1 and d.team_id = u.team_id`

	deleteLabMessagesOfUser = `
delete from healthlab.lab_message m using healthlab.users u where m.user_id = $1 and u.user_id = $1 and m.team_id = u.team_id`
)

func (v labJournals) Open(ctx context.Context, lab string, r labjournal.Record) (labjournal.Record, error) {
	if err := labjournal.CheckNames(lab, r.Number); err != nil {
		return labjournal.Record{}, err
	}
	if err := ctx.Err(); err != nil {
		return labjournal.Record{}, err
	}
	doc, err := v.s.db.Keys.Seal(ctx, personkey.Ref{Team: r.Team, User: r.User}, personkey.RowLabRecord(lab, r.Number), r.Doc)
	if err != nil {
		return labjournal.Record{}, err
	}
	err = v.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		return u.Alone(ctx, func(b *pgx.Batch) { b.Queue(insertLabRecord, r.Team.UUID, r.User.UUID, lab, r.Number, doc) })
	})
	if err != nil {
		return labjournal.Record{}, err
	}
	return v.Record(ctx, lab, r.Number)
}

func (v labJournals) Record(ctx context.Context, lab, number string) (labjournal.Record, error) {
	if err := labjournal.CheckNames(lab, number); err != nil {
		return labjournal.Record{}, err
	}
	found := map[string]*labjournal.Record{}
	err := v.s.db.Read(ctx, db.AllTeams, func(b *pgx.Batch) { v.queueRecords(ctx, b, lab, []string{number}, found) })
	if err != nil {
		return labjournal.Record{}, err
	}
	if found[number] == nil {
		return labjournal.Record{}, fmt.Errorf("%w: the journal has no such order", healthlab.NotFound)
	}
	return *found[number], nil
}

// queueRecords reads those of the numbers that the journal has into found.
func (v labJournals) queueRecords(ctx context.Context, b *pgx.Batch, lab string, numbers []string, found map[string]*labjournal.Record) {
	b.Queue(selectLabRecords, lab, numbers).Query(func(rows pgx.Rows) error {
		list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r labjournal.Record, err error) {
			return r, row.Scan(&r.Number, &r.Team.UUID, &r.User.UUID, &r.Doc)
		})
		if err != nil {
			return err
		}
		for _, r := range list {
			r.Doc, err = v.s.db.Keys.OpenBytes(ctx, personkey.Ref{Team: r.Team, User: r.User}, personkey.RowLabRecord(lab, r.Number), r.Doc)
			if errors.Is(err, personkey.ErrErased) {
				continue
			}
			if err != nil {
				return err
			}
			found[r.Number] = &r
		}
		return nil
	})
}

func (v labJournals) Take(ctx context.Context, lab string, d labjournal.Delivery, numbers []string, change labjournal.Change) (bool, error) {
	if err := labjournal.CheckNames(lab, d.Key, numbers...); err != nil {
		return false, err
	}
	fresh := false
	err := v.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		var deliveries, messages int64
		known, settled := false, d.Resolves == 0
		found := map[string]*labjournal.Record{}
		b := u.Batch()
		b.Queue(lockLabJournal, lab).QueryRow(func(row pgx.Row) error { return row.Scan(&deliveries, &messages) })
		b.Queue(hasLabDelivery, lab, d.Key).QueryRow(func(row pgx.Row) error { return row.Scan(&known) })
		v.queueRecords(ctx, b, lab, numbers, found)
		if !settled {
			b.Queue(settleLabDelivery, lab, d.Resolves).Exec(func(tag pgconn.CommandTag) error {
				settled = tag.RowsAffected() == 1
				return nil
			})
		}
		if err := u.Send(ctx, b); err != nil {
			return err
		}
		switch fresh = !known; {
		case known:
			return nil // undoes the rest
		case !settled:
			return db.Answer(fmt.Errorf("%w: the delivery is not under review", healthlab.NotFound))
		}
		edited := map[string]*labjournal.Record{} // of these the docs alone are taken
		for number, r := range found {
			edited[number] = &labjournal.Record{Number: r.Number, Team: r.Team, User: r.User, Doc: r.Doc}
		}
		out, err := change(edited)
		if err != nil {
			return db.Answer(err)
		}
		b = u.Batch()
		deliveries++
		if err := v.queueDelivery(ctx, b, lab, labDelivery{d, deliveries, out.Review, labjournal.Owner(found, numbers, out.Review)}); err != nil {
			return err
		}
		for number, r := range found {
			if edited[number] == nil {
				continue
			}
			doc, err := v.s.db.Keys.Seal(ctx, personkey.Ref{Team: r.Team, User: r.User}, personkey.RowLabRecord(lab, r.Number), edited[number].Doc)
			if err != nil {
				return err
			}
			b.Queue(updateLabRecord, lab, r.Number, doc)
		}
		for _, m := range out.Messages {
			messages++
			doc, err := v.s.db.Keys.Seal(ctx, personkey.Ref{Team: m.Team, User: m.User}, personkey.RowLabMessage(lab, messages), m.Doc)
			if err != nil {
				return err
			}
			b.Queue(insertLabMessage, m.Team.UUID, m.User.UUID, lab, messages, doc)
		}
		b.Queue(advanceLabJournal, lab, deliveries, messages)
		return u.Commit(ctx, b)
	})
	if err != nil {
		return false, err
	}
	return fresh, nil
}

// labDelivery is a delivery as it is kept.
type labDelivery struct {
	labjournal.Delivery
	place  int64
	review string
	record *labjournal.Record // of the order that it belongs to; nil for none
}

// queueDelivery keeps a delivery.
func (v labJournals) queueDelivery(ctx context.Context, b *pgx.Batch, lab string, d labDelivery) error {
	owner, number := personkey.Ref{Team: d.Team}, ""
	if d.record != nil {
		owner, number = personkey.Ref{Team: d.record.Team, User: d.record.User}, d.record.Number
	}
	raw := []byte{}
	if number != "" || d.review != "" {
		var err error
		if raw, err = v.s.db.Keys.Seal(ctx, owner, personkey.RowLabDelivery(lab, d.Key), d.Raw); err != nil {
			return err
		}
	}
	b.Queue(insertLabDelivery, owner.Team.UUID, owner.User.UUID, lab, d.Key, number, d.place, db.Instant(d.At), d.review, raw)
	return nil
}

func (v labJournals) Feed(ctx context.Context, lab string, after int64, n int) ([]labjournal.Entry, error) {
	var out []labjournal.Entry
	for place := after; ; {
		most := max(n, 0) - len(out)
		page, err := v.feedPage(ctx, lab, after, place, most)
		if err != nil {
			return nil, err
		}
		for _, e := range page {
			place = e.Place
			e.Doc, err = v.s.db.Keys.OpenBytes(ctx, personkey.Ref{Team: e.Team, User: e.User}, personkey.RowLabMessage(lab, e.Place), e.Doc)
			if errors.Is(err, personkey.ErrErased) {
				continue
			}
			if err != nil {
				return nil, err
			}
			out = append(out, e)
		}
		if len(page) < most || len(out) == max(n, 0) {
			return out, nil
		}
	}
}

// feedPage reads what stands after a place as it is kept, and loads the keys that it needs. It
// deletes the messages that a reader has passed.
func (v labJournals) feedPage(ctx context.Context, lab string, passed, place int64, n int) ([]labjournal.Entry, error) {
	var page []labjournal.Entry
	err := v.s.db.Do(ctx, db.AllTeams, db.Writing, func(u *db.Tx) error {
		return u.Alone(ctx, func(b *pgx.Batch) {
			b.Queue(forgetLabMessages, lab, passed)
			b.Queue(selectLabFeed, lab, place, n).Query(func(rows pgx.Rows) (err error) {
				page, err = pgx.CollectRows(rows, func(row pgx.CollectableRow) (e labjournal.Entry, err error) {
					return e, row.Scan(&e.Place, &e.Team.UUID, &e.User.UUID, &e.Doc)
				})
				return err
			})
		})
	})
	if err != nil {
		return nil, err
	}
	refs := make([]personkey.Ref, len(page))
	for i, e := range page {
		refs[i] = personkey.Ref{Team: e.Team, User: e.User}
	}
	return page, v.s.db.Keys.Load(ctx, refs)
}

func (v labJournals) Deliveries(ctx context.Context, lab, number string) ([]labjournal.Delivery, error) {
	if err := labjournal.CheckNames(lab, number); err != nil {
		return nil, err
	}
	return v.deliveries(ctx, lab, selectLabDeliveries, lab, number)
}

func (v labJournals) Review(ctx context.Context, lab string, after int64, n int) ([]labjournal.Delivery, error) {
	return v.deliveries(ctx, lab, selectLabReview, lab, after, max(n, 0))
}

// deliveries returns those that a statement selects.
func (v labJournals) deliveries(ctx context.Context, lab, sql string, args ...any) ([]labjournal.Delivery, error) {
	var owners []personkey.Ref
	var out []labjournal.Delivery
	err := v.s.db.Read(ctx, db.AllTeams, func(b *pgx.Batch) {
		b.Queue(sql, args...).Query(func(rows pgx.Rows) error {
			owners, out = nil, nil
			var d labjournal.Delivery
			var owner personkey.Ref
			_, err := pgx.ForEachRow(rows, []any{&d.Place, &d.Key, &d.At, &owner.Team.UUID, &owner.User.UUID, &d.Review, &d.Raw}, func() error {
				d.At, d.Team = d.At.UTC(), owner.Team
				owners, out = append(owners, owner), append(out, d)
				d.Raw = nil
				return nil
			})
			return err
		})
	})
	if err != nil {
		return nil, err
	}
	for i := range out {
		d := &out[i]
		if d.Raw, err = v.s.db.Keys.OpenBytes(ctx, owners[i], personkey.RowLabDelivery(lab, d.Key), d.Raw); err != nil {
			return nil, err
		}
	}
	return out, nil
}
