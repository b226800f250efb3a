package healthdata

import (
	"bytes"
	"cmp"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/store"
)

// sessionMargin is how far the Index of an overlapping session can be from the times of a session: the longest
// session and a day.
const sessionMargin = 8 * 24 * time.Hour

// sessionTeller identifies the source whose sessions are compared with each other.
type sessionTeller struct {
	provider   string
	sourceType SourceType
	origin     Origin
}

func (r *Record) teller() sessionTeller { return sessionTeller{r.Provider, r.SourceType, r.Origin} }

func (r *Record) isSession() bool { return r.Session.From < r.Session.To }

func sameSession(a, b series.Range) bool {
	common := min(a.To, b.To) - max(a.From, b.From)
	return 2*common > min(a.To-a.From, b.To-b.From)
}

// covering returns, by id, the session that covers each session of one source; the zero id if there is none. Of two
// sessions that share more than half of the shorter one, the longer covers the other. Of equally long sessions the one
// that changed last covers the other.
func covering(list []*Record) map[uuid.UUID]uuid.UUID {
	list = slices.SortedFunc(slices.Values(list), func(a, b *Record) int {
		return cmp.Or(cmp.Compare(b.Session.To-b.Session.From, a.Session.To-a.Session.From),
			b.UpdatedAt.Compare(a.UpdatedAt), bytes.Compare(a.ID[:], b.ID[:]))
	})
	out := map[uuid.UUID]uuid.UUID{}
	var used []*Record
	for _, r := range list {
		k := slices.IndexFunc(used, func(o *Record) bool { return sameSession(o.Session, r.Session) })
		if k >= 0 {
			out[r.ID] = used[k].ID
		} else {
			out[r.ID], used = uuid.Nil, append(used, r)
		}
	}
	return out
}

// sessions has the changed periods of sessions by source.
type sessions map[sessionTeller][]series.Range

func (s sessions) add(r *Record) { s[r.teller()] = append(s[r.teller()], r.Session) }

// sessionQuery returns the query for records whose sessions can overlap some periods. times must not be empty.
func (o owner) sessionQuery(resource string, times []series.Range) store.Query {
	all := times[0]
	for _, t := range times {
		all = series.Range{From: min(all.From, t.From), To: max(all.To, t.To)}
	}
	prefix := resourceID(o.user, resource)
	margin := sessionMargin.Microseconds()
	return store.Query{
		Key: recordTable.Key(o.key("")), By: store.ByFirst, From: prefix + store.Int(all.From-margin), To: prefix + store.Int(all.To+margin), Lock: store.Held,
	}
}

// coverSessions sets CoveredBy of the sessions that overlap the changed ones, directly or through other sessions. It
// returns the records that became covered or are no longer covered, by ID.
func (o owner) coverSessions(tx store.Tx, resource string, changed sessions, spans changedSpans) ([]*Record, error) {
	var out []*Record
	for teller, times := range changed {
		got, err := tx.Read(o.sessionQuery(resource, times))
		if err != nil {
			return nil, err
		}
		entries, err := recordTable.Decoded(got[0])
		if err != nil {
			return nil, err
		}
		entries = slices.DeleteFunc(entries, func(e *store.Entry[recordRow]) bool {
			return !e.Value.isSession() || e.Value.teller() != teller
		})
		entries = connectedSessions(entries, times)
		list := make([]*Record, len(entries))
		for i, e := range entries {
			list[i] = &e.Value.Record
		}
		by := covering(list)
		for _, e := range entries {
			r := &e.Value.Record
			if by[r.ID] == r.CoveredBy {
				continue
			}
			was := r.CoveredBy
			r.CoveredBy = by[r.ID]
			if err := recordTable.Put(tx, e); err != nil {
				return nil, err
			}
			if (was == uuid.Nil) != (r.CoveredBy == uuid.Nil) {
				spans.add(resource, r.Index.UnixMicro(), r.Index.UnixMicro())
				out = append(out, r)
			}
		}
	}
	slices.SortFunc(out, func(a, b *Record) int { return bytes.Compare(a.ID[:], b.ID[:]) })
	return out, nil
}

// connectedSessions returns the records whose sessions overlap some times, directly or through other sessions.
func connectedSessions(entries []*store.Entry[recordRow], times []series.Range) []*store.Entry[recordRow] {
	reached := slices.Clone(times)
	var out []*store.Entry[recordRow]
	for again := true; again; {
		again = false
		entries = slices.DeleteFunc(entries, func(e *store.Entry[recordRow]) bool {
			s := e.Value.Session
			if !slices.ContainsFunc(reached, func(r series.Range) bool { return s.From < r.To && r.From < s.To }) {
				return false
			}
			reached, out, again = append(reached, s), append(out, e), true
			return true
		})
	}
	return out
}
