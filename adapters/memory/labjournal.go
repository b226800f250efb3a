package memory

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/labjournal"
	"github.com/healthlab-dev/healthlab/personkey"
)

// labJournal is the journal of one laboratory. Docs and messages are encrypted where the store has
// keys.
type labJournal struct {
	records map[string]labjournal.Record
	taken   map[string]*labDelivery // by key
	feed    []labjournal.Entry
	place   int64 // of the last delivery
	message int64 // of the last message
}

// labTable keeps the journals of all laboratories.
type labTable map[string]*labJournal

// labDelivery is a delivery, for an order or under review. Raw is encrypted as docs are.
type labDelivery struct {
	labjournal.Delivery
	number string // of the order; empty if it is under review, or belongs to none
	owner  personkey.Ref
}

// erase removes what laboratories reported of a user.
func (t labTable) erase(team healthlab.TeamID, user healthlab.UserID) {
	for _, j := range t {
		for number, r := range j.records {
			if r.Team == team && r.User == user {
				delete(j.records, number)
			}
		}
		for key, d := range j.taken {
			if d.owner == (personkey.Ref{Team: team, User: user}) {
				delete(j.taken, key)
			}
		}
		j.feed = slices.DeleteFunc(j.feed, func(e labjournal.Entry) bool { return e.Team == team && e.User == user })
	}
}

type labJournals struct {
	*database
	labs labTable
}

// open takes the lock and returns the journal of a laboratory; without an error, the caller
// gives the lock back.
func (v labJournals) open(ctx context.Context, lab string) (*labJournal, error) {
	if err := v.lock(ctx); err != nil {
		return nil, err
	}
	j := v.labs[lab]
	if j == nil {
		j = &labJournal{records: map[string]labjournal.Record{}, taken: map[string]*labDelivery{}}
		v.labs[lab] = j
	}
	return j, nil
}

func (v labJournals) Open(ctx context.Context, lab string, r labjournal.Record) (labjournal.Record, error) {
	if err := labjournal.CheckNames(lab, r.Number); err != nil {
		return labjournal.Record{}, err
	}
	j, err := v.open(ctx, lab)
	if err != nil {
		return labjournal.Record{}, err
	}
	defer v.mu.Unlock()
	if _, ok := j.records[r.Number]; !ok {
		if err := v.keep(ctx, j, lab, r); err != nil {
			return labjournal.Record{}, err
		}
	}
	return v.record(ctx, j, lab, r.Number)
}

// seal returns a copy of plain as the store keeps it.
func (v labJournals) seal(ctx context.Context, ref personkey.Ref, bound string, plain []byte) ([]byte, error) {
	return v.keys.Seal(ctx, ref, bound, bytes.Clone(plain))
}

// unseal undoes seal.
func (v labJournals) unseal(ctx context.Context, ref personkey.Ref, bound string, box []byte) ([]byte, error) {
	plain, err := v.keys.OpenBytes(ctx, ref, bound, box)
	return bytes.Clone(plain), err
}

// keep stores a record.
func (v labJournals) keep(ctx context.Context, j *labJournal, lab string, r labjournal.Record) (err error) {
	r.Doc, err = v.seal(ctx, personkey.Ref{Team: r.Team, User: r.User}, personkey.RowLabRecord(lab, r.Number), r.Doc)
	if err != nil {
		return err
	}
	j.records[r.Number] = r
	return nil
}

func (v labJournals) record(ctx context.Context, j *labJournal, lab, number string) (labjournal.Record, error) {
	r, ok := j.records[number]
	if !ok {
		return labjournal.Record{}, fmt.Errorf("%w: the journal has no such order", healthlab.NotFound)
	}
	var err error
	r.Doc, err = v.unseal(ctx, personkey.Ref{Team: r.Team, User: r.User}, personkey.RowLabRecord(lab, number), r.Doc)
	return r, err
}

func (v labJournals) Record(ctx context.Context, lab, number string) (labjournal.Record, error) {
	if err := labjournal.CheckNames(lab, number); err != nil {
		return labjournal.Record{}, err
	}
	j, err := v.open(ctx, lab)
	if err != nil {
		return labjournal.Record{}, err
	}
	defer v.mu.Unlock()
	return v.record(ctx, j, lab, number)
}

func (v labJournals) Take(ctx context.Context, lab string, d labjournal.Delivery, numbers []string, change labjournal.Change) (bool, error) {
	if err := labjournal.CheckNames(lab, d.Key, numbers...); err != nil {
		return false, err
	}
	j, err := v.open(ctx, lab)
	if err != nil {
		return false, err
	}
	defer v.mu.Unlock()
	if j.taken[d.Key] != nil {
		return false, nil
	}
	resolved := j.underReview(d.Resolves)
	if d.Resolves != 0 && resolved == nil {
		return false, fmt.Errorf("%w: the delivery is not under review", healthlab.NotFound)
	}
	found := map[string]*labjournal.Record{}
	for _, number := range numbers {
		r, err := v.record(ctx, j, lab, number)
		if errors.Is(err, healthlab.NotFound) {
			continue
		}
		if err != nil {
			return false, err
		}
		found[number] = &r
	}
	out, err := change(found)
	if err != nil {
		return false, err
	}
	next := &labJournal{records: map[string]labjournal.Record{}, message: j.message}
	for number, r := range found {
		kept := j.records[number]
		kept.Doc = r.Doc // who the order is for does not change
		if err := v.keep(ctx, next, lab, kept); err != nil {
			return false, err
		}
	}
	for _, m := range out.Messages {
		next.message++
		m.Doc, err = v.seal(ctx, personkey.Ref{Team: m.Team, User: m.User}, personkey.RowLabMessage(lab, next.message), m.Doc)
		if err != nil {
			return false, err
		}
		next.feed = append(next.feed, labjournal.Entry{Place: next.message, Message: m})
	}
	taken := &labDelivery{Delivery: d, owner: personkey.Ref{Team: d.Team}}
	taken.Place, taken.At, taken.Review, taken.Resolves, taken.Raw = j.place+1, instant(d.At), out.Review, 0, nil
	if owner := labjournal.Owner(found, numbers, out.Review); owner != nil {
		kept := j.records[owner.Number]
		taken.number, taken.owner = kept.Number, personkey.Ref{Team: kept.Team, User: kept.User}
	}
	if taken.number != "" || out.Review != "" {
		if taken.Raw, err = v.seal(ctx, taken.owner, personkey.RowLabDelivery(lab, d.Key), d.Raw); err != nil {
			return false, err
		}
	}
	maps.Copy(j.records, next.records)
	if resolved != nil {
		resolved.Review, resolved.Raw = "", nil
	}
	j.taken[d.Key] = taken
	j.feed = append(j.feed, next.feed...)
	j.place, j.message = taken.Place, next.message
	return true, nil
}

// underReview returns the delivery under review at a place, nil if there is none.
func (j *labJournal) underReview(place int64) *labDelivery {
	for _, d := range j.taken {
		if d.Place == place && d.Review != "" {
			return d
		}
	}
	return nil
}

// deliveries returns copies of the deliveries that fit, in the order in which they came.
func (v labJournals) deliveries(ctx context.Context, lab string, fits func(*labDelivery) bool) ([]labjournal.Delivery, error) {
	j, err := v.open(ctx, lab)
	if err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	var out []labjournal.Delivery
	for _, kept := range j.taken {
		if !fits(kept) {
			continue
		}
		d := kept.Delivery
		if d.Raw, err = v.unseal(ctx, kept.owner, personkey.RowLabDelivery(lab, d.Key), d.Raw); err != nil {
			return nil, err
		}
		out = append(out, d)
	}
	slices.SortFunc(out, func(a, b labjournal.Delivery) int { return cmp.Compare(a.Place, b.Place) })
	return out, nil
}

func (v labJournals) Deliveries(ctx context.Context, lab, number string) ([]labjournal.Delivery, error) {
	if err := labjournal.CheckNames(lab, number); err != nil {
		return nil, err
	}
	return v.deliveries(ctx, lab, func(d *labDelivery) bool { return d.number == number })
}

func (v labJournals) Review(ctx context.Context, lab string, after int64, n int) ([]labjournal.Delivery, error) {
	out, err := v.deliveries(ctx, lab, func(d *labDelivery) bool { return d.Review != "" && d.Place > after })
	if err != nil {
		return nil, err
	}
	return out[:max(0, min(n, len(out)))], nil
}

func (v labJournals) Feed(ctx context.Context, lab string, after int64, n int) ([]labjournal.Entry, error) {
	j, err := v.open(ctx, lab)
	if err != nil {
		return nil, err
	}
	defer v.mu.Unlock()
	if after > j.message {
		after = 0
	}
	j.feed = slices.DeleteFunc(j.feed, func(e labjournal.Entry) bool { return e.Place <= after && e.User.IsZero() })
	var out []labjournal.Entry
	for _, e := range j.feed {
		if e.Place <= after || len(out) >= n {
			continue
		}
		e.Doc, err = v.unseal(ctx, personkey.Ref{Team: e.Team, User: e.User}, personkey.RowLabMessage(lab, e.Place), e.Doc)
		if errors.Is(err, personkey.ErrErased) {
			continue
		}
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}
