package continuous

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
)

// EventResultTableChanged says that the table of a continuous query has changed for a
// user. Its key is the query and the user.
const EventResultTableChanged = "continuous_query.result_table.changed"

// EventTypes lists the events that this package emits.
func EventTypes() []healthlab.EventType {
	return []healthlab.EventType{{
		Name: EventResultTableChanged, Mode: healthlab.Ordered, Data: ResultTableChange{},
		Doc: "The result table of a continuous query has new or changed rows for one user.",
	}}
}

// ResultTableChange is the data of continuous_query.result_table.changed.
type ResultTableChange struct {
	QueryID   QueryID `json:"query_id"`
	QuerySlug string  `json:"query_slug"`
	// Data has the rows that are new or changed: by the name of each column, without
	// index, a JSON array of its values; all of them are equally long. Rows are known
	// by their group keys. A change that is too large for one message comes in
	// several, which have no row in common.
	Data map[string]json.RawMessage `json:"data"`
	// Others are further queries that an older form of the message tells of. We send
	// one message for each query.
	Others []ResultTableChange `json:"-"`
}

// UnmarshalJSON reads the change of one query, or an array of them, which is the older
// form of the message.
func (c *ResultTableChange) UnmarshalJSON(data []byte) error {
	type plain ResultTableChange // without this method
	var list []plain
	if text := bytes.TrimLeft(data, " \t\r\n"); len(text) == 0 || text[0] != '[' {
		list = make([]plain, 1)
		if err := json.Unmarshal(data, &list[0]); err != nil {
			return err
		}
	} else if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*c = ResultTableChange{}
	for i, p := range list {
		if i == 0 {
			*c = ResultTableChange(p)
			continue
		}
		c.Others = append(c.Others, ResultTableChange(p))
	}
	return nil
}

func (q *Query) change(f *aggregate.Frame, rows []int) []byte {
	some := f.Pick(rows)
	some.Columns = some.Columns[1:] // without the index
	b := fmt.Appendf(nil, `{"query_id":%q,"query_slug":%q,"data":`, q.ID.String(), q.Slug)
	return append(some.AppendColumns(b), '}')
}

// mostChange is how large the data of one event may be: a message has a limit, and an
// envelope around the data.
const mostChange = 900 << 10

// changes writes the data of the events about some rows: one, or several where one
// would be too large.
func (q *Query) changes(f *aggregate.Frame, rows []int) [][]byte {
	if len(rows) == 0 {
		return nil
	}
	one := q.change(f, rows)
	if len(one) <= mostChange || len(rows) == 1 {
		return [][]byte{one}
	}
	half := len(rows) / 2
	return append(q.changes(f, rows[:half]), q.changes(f, rows[half:])...)
}
