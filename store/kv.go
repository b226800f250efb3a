package store

import (
	"slices"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// KV is what [ReadKV] and [WriteKV] need of a key-value database: an ordered map of rows by key, and an ordered map of
// marks. A mark is an encoded index value and leads to the key of its row. A KV is used either for one transaction or
// for reads of one snapshot. Transactions must run one after another.
type KV interface {
	// Get returns the row with this key. False if there is none.
	Get(key string) (Row, bool, error)
	Set(key string, r Row) error
	Remove(key string) error
	// Mark stores a mark, an encoded index value, with the key of its row.
	Mark(mark, key string) error
	Unmark(mark string) error
	// Walk calls each with the rows whose key is in from <= key < to, ascending or (desc) descending, until each
	// returns false. An empty to means no limit.
	Walk(from, to string, desc bool, each func(Row) bool) error
	// WalkMarks is Walk over marks. each gets a mark and the key of its row.
	WalkMarks(from, to string, desc bool, each func(mark, key string) bool) error
}

func rowKey(table string, team healthlab.TeamID, id string) string {
	return Text(table) + UUID(team.UUID) + id
}

// Prefixes of marks (encoded index values, see [KV]), one for each kind of index.
const (
	markDue    = "\x01"
	markUser   = "\x02"
	markFirst  = "\x03"
	markSecond = "\x04"
)

func dueMark(table string, due time.Time) string { return markDue + Text(table) + Time(due) }

// marks returns the encoded index values of a row (see [KV]), and for each whether no other row may have it.
func marks(r *Row, def Definition) (out []string, unique []bool) {
	add := func(mark string, one bool) { out, unique = append(out, mark), append(unique, one) }
	if !r.Due.IsZero() {
		add(dueMark(r.Table, r.Due)+UUID(r.Team.UUID)+r.ID, false)
	}
	if !r.User.IsZero() {
		add(markUser+UUID(r.User.UUID)+rowKey(r.Table, r.Team, r.ID), false)
	}
	for i, begin := range []string{markFirst, markSecond} {
		if v := r.Index[i]; v != "" {
			mark := begin + rowKey(r.Table, r.Team, Text(v))
			if !def.Unique[i] {
				mark += r.ID
			}
			add(mark, def.Unique[i])
		}
	}
	return out, unique
}

// ReadKV answers queries from the rows and marks of kv, in the order of the queries.
func ReadKV(kv KV, qs []Query) ([][]Row, error) {
	out := make([][]Row, len(qs))
	for i := range qs {
		var err error
		if out[i], err = readKV(kv, &qs[i]); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func readKV(kv KV, q *Query) (rows []Row, err error) {
	add := func(r Row) bool {
		if q.Bare {
			r.Doc = nil
		}
		rows = append(rows, r)
		return q.Limit == 0 || len(rows) < q.Limit
	}
	switch q.By {
	case ByKey:
		r, ok, err := kv.Get(rowKey(q.Table, q.Team, q.ID))
		if err != nil || !ok {
			return nil, err
		}
		add(r)
		return rows, nil
	case ByID:
		from, to := bounds(rowKey(q.Table, q.Team, ""), q.From, q.To)
		return rows, kv.Walk(from, to, q.Desc, add)
	}
	from, to := markRange(q)
	var keys []string
	n := 0
	if err := kv.WalkMarks(from, to, q.Desc, func(_, key string) bool {
		if q.By == ByUser && q.From+q.To != "" && !idWithin(key, q) {
			return true
		}
		keys = append(keys, key)
		n++
		return q.Limit == 0 || n < q.Limit
	}); err != nil {
		return nil, err
	}
	for _, key := range keys {
		r, ok, err := kv.Get(key)
		if err != nil {
			return nil, err
		}
		if ok {
			add(r)
		}
	}
	return rows, nil
}

func bounds(prefix, from, to string) (string, string) {
	if to == "" {
		return prefix + from, End(prefix)
	}
	return prefix + from, prefix + to
}

// markRange returns the first mark and the end (exclusive) of the marks that a query must walk; "" for a query by
// key or id.
func markRange(q *Query) (from, to string) {
	switch q.By {
	case ByDue:
		return markDue + Text(q.Table), dueMark(q.Table, q.Until.Add(time.Microsecond))
	case ByUser:
		prefix := markUser + UUID(q.User.UUID)
		if q.Table != "" {
			prefix += Text(q.Table)
		}
		return prefix, End(prefix)
	case ByFirst, BySecond:
		begin := markFirst
		if q.By == BySecond {
			begin = markSecond
		}
		prefix := begin + rowKey(q.Table, q.Team, "")
		// A mark contains its index value as Text encodes it. The bounds omit the end mark 00 01 of Text, which
		// would change their order.
		return bounds(prefix, open(q.From), open(q.To))
	default:
		return "", ""
	}
}

func open(s string) string { return strings.TrimSuffix(Text(s), "\x00\x01") }

// idWithin reports whether the id at the end of a row's key is in the range of a query.
func idWithin(key string, q *Query) bool {
	_, rest, ok := CutText(key)
	if !ok || len(rest) < 16 {
		return false
	}
	id := rest[16:]
	return q.From <= id && (q.To == "" || id < q.To)
}

// WriteKV writes the rows and marks of a commit to kv. After an error the caller must roll back.
func WriteKV(kv KV, defs map[string]Definition, writes []Write) error {
	set := make([]Write, 0, len(writes))
	for _, w := range writes { // first remove outdated marks, so that a unique value can move from one row to another
		def, ok := defs[w.Table]
		if !ok {
			return rule(w.Table, "must be one of the tables that the store was made with")
		}
		key := rowKey(w.Table, w.Team, w.ID)
		old, exists, err := kv.Get(key)
		switch {
		case err != nil:
			return err
		case !w.Gone && w.Was == 0 && exists:
			return &TakenError{Table: w.Table, Index: -1}
		case !w.Gone && old.Revision != w.Was:
			return ErrStale
		}
		if exists {
			was, _ := marks(&old, def)
			var now []string
			if !w.Gone {
				now, _ = marks(&w.Row, def)
			}
			for _, m := range was {
				if slices.Contains(now, m) {
					continue
				}
				if err := kv.Unmark(m); err != nil {
					return err
				}
			}
		}
		if !w.Gone {
			set = append(set, w)
		} else if exists {
			if err := kv.Remove(key); err != nil {
				return err
			}
		}
	}
	for _, w := range set {
		if err := setKV(kv, defs[w.Table], w.Row); err != nil {
			return err
		}
	}
	return nil
}

func setKV(kv KV, def Definition, r Row) error {
	key := rowKey(r.Table, r.Team, r.ID)
	list, unique := marks(&r, def)
	for i, m := range list {
		if unique[i] {
			other := ""
			if err := kv.WalkMarks(m, m+"\x00", false, func(_, key string) bool { other = key; return false }); err != nil {
				return err
			}
			if other != "" && other != key {
				index := 0
				if strings.HasPrefix(m, markSecond) {
					index = 1
				}
				return &TakenError{Table: r.Table, Index: index}
			}
		}
		if err := kv.Mark(m, key); err != nil {
			return err
		}
	}
	return kv.Set(key, r)
}

// Definitions returns a map of the definitions by name. It fails if a name is empty or occurs twice.
func Definitions(defs []Definition) (map[string]Definition, error) {
	out := make(map[string]Definition, len(defs))
	for _, d := range defs {
		if _, ok := out[d.Name]; ok || d.Name == "" {
			return nil, rule(d.Name, "the name of a table must not be empty, and must be declared once")
		}
		out[d.Name] = d
	}
	return out, nil
}
