package postgres

import (
	"context"
	"slices"

	"github.com/jackc/pgx/v5"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// A list of a common text and a filter that most orders pass is counted by what is left
// out: how many have the text, which a small index tells, less those of them that the
// filter does not pass. Both are counted in one state of the database.

// likelyOrders asks the planner how many orders match, of which it keeps a sample.
const likelyOrders = `explain (format json) select` + allOrders + ofList

// likelyOfTeam asks the same for all orders of a team.
const likelyOfTeam = `explain (format json) select` + allOrders + ` where o.team_id = $1`

// Where filters stand in the arguments of ofList.
const (
	argName, argSearchID        = 1, 5
	argStatus, argMethod        = 12, 13
	argCritical, argIsScheduled = 14, 16
	argUser                     = 18 // and the transaction, and ids
)

// mostHave returns the filters of what the filter of a list leaves out, with the list's
// texts; nil if the list is not one that is counted so.
func (l *orderList) mostHave(ctx context.Context) (rest []any, err error) {
	if !l.texts() {
		return nil, nil
	}
	rest = l.leftOut()
	if rest == nil {
		return nil, nil
	}
	passes, err := l.likely(ctx, l.filters)
	if err != nil {
		return nil, err
	}
	fails, err := l.likely(ctx, rest)
	if err != nil || 2*fails > passes {
		return nil, err
	}
	return rest, nil
}

// likely returns about how many orders pass filters, whatever their texts.
func (l *orderList) likely(ctx context.Context, filters []any) (float64, error) {
	args := slices.Clone(filters)
	none := orderArguments(&orders.Query{})
	copy(args[argName:argSearchID+1], none[argName:argSearchID+1])
	var rows float64
	b := l.x.batch()
	b.Queue(likelyOrders, args...).QueryRow(expected(&rows))
	return rows, l.x.send(ctx, b)
}

// expected reads how many rows a plan expects.
func expected(rows *float64) func(pgx.Row) error {
	return func(row pgx.Row) error {
		var plans []struct {
			Plan struct {
				Rows float64 `json:"Plan Rows"`
			}
		}
		if err := row.Scan(&plans); err != nil || len(plans) == 0 {
			return err
		}
		*rows = plans[0].Plan.Rows
		return nil
	}
}

// leftOut returns the filters of the orders that a list leaves out by the one filter that
// it has besides texts; nil if it has none, more, or one that few orders pass.
func (l *orderList) leftOut() []any {
	q, rest, yes := *l.q, slices.Clone(l.filters), true
	switch scheduled, _ := rest[argIsScheduled].(*bool); {
	case len(q.Status) > 0:
		passed := statusesOf(&q)
		rest[argStatus] = slices.DeleteFunc(allStatuses(), func(s string) bool { return slices.Contains(passed, s) })
		rest[argMethod] = []string(nil)
		q.Status, q.Methods = nil, nil
	case len(q.Methods) > 0:
		others := slices.DeleteFunc(catalogue.CollectionMethods(), func(m catalogue.CollectionMethod) bool { return slices.Contains(q.Methods, m) })
		rest[argStatus], rest[argMethod] = statusesOf(&orders.Query{Methods: others}), words(others)
		q.Methods = nil
	case q.Critical != nil && !*q.Critical:
		rest[argCritical] = &yes
		q.Critical = nil
	case scheduled != nil && !*scheduled:
		rest[argIsScheduled] = &yes
		q.Activations = nil
	default:
		return nil
	}
	x := orderList{q: &q, filters: orderArguments(&q)}
	if x.others() {
		return nil
	}
	return rest
}
