package postgres_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/adapters/storetest"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/orders"
)

// twoProcesses are two stores with connections of their own to one database.
func twoProcesses(t testing.TB) []storetest.Process {
	address := pgtest.URL(t)
	var out []storetest.Process
	for range 2 {
		s := postgres.New(pgtest.Connect(t, address), nil)
		out = append(out, storetest.Process{Orders: s.Orders(), Keys: s.OrderKeys(), Messages: s.WebhookLog()})
	}
	return out
}

func TestOrderWalks(t *testing.T) { storetest.RunOrderWalks(t, twoProcesses) }

func TestConcurrentCreates(t *testing.T) { storetest.RunConcurrentCreates(t, twoProcesses) }

// The check lists of the schema are the lifecycles in the code.
func TestChecksAreTheTable(t *testing.T) {
	pool := pgtest.Pool(t)
	list := func(constraint string) []string {
		text := texts(t, pool, `select pg_get_constraintdef(oid) from pg_constraint where conname = $1`, constraint)[0]
		var out []string
		for _, m := range regexp.MustCompile(`'([a-z_.]*)'`).FindAllStringSubmatch(text, -1) {
			out = append(out, m[1])
		}
		slices.Sort(out)
		return slices.Compact(out)
	}
	statuses := []string{""}
	for _, s := range orders.Statuses() {
		statuses = append(statuses, string(s))
	}
	slices.Sort(statuses)
	require.Equal(t, statuses, list("orders_status"))
	var methods []string
	for _, m := range orders.CollectionMethods() {
		methods = append(methods, string(m))
	}
	slices.Sort(methods)
	require.Equal(t, methods, list("orders_method"))
	require.Equal(t, []string{"abnormal", "critical", "normal", "unknown"}, list("orders_interpretation"))
	require.Equal(t, []string{"pending_customer_review", "pending_ops_review", "resolved"}, list("raw_result_status"))
}
