package continuous

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
)

// EventResultTableChanged is the event type for a change of the result table of a continuous query for a user.
// The event key is the query and the user.
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
	// Data has the new and changed rows: a JSON array of values by column name, without the index; all arrays
	// have the same length. Group keys identify a row. A change that is too large for one message is split into
	// several messages that share no row.
	Data map[string]json.RawMessage `json:"data"`
	// Others are further queries in the older form of the message. This service sends one message for each
	// query.
	Others []ResultTableChange `json:"-"`
}

// UnmarshalJSON reads the change of one query, or an array of changes, which is the older form of the message.
func (c *ResultTableChange) UnmarshalJSON(data []byte) error {
	type plain ResultTableChange // a type without this method, so that it is not called again
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

// mostChange is the highest number of bytes of one event's data, so that the event with its envelope fits into
// a message.
const mostChange = 900 << 10

// changes returns the data of the events about the rows of f with these numbers: one event, or several if one would be
// too large.
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
