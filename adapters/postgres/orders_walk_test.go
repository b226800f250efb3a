package postgres_test

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"testing"

	"github.com/google/uuid"
	"github.com/jackc/pgx/v5/pgxpool"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/postgres"
	"github.com/healthlab-dev/healthlab/internal/pgtest"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/orderstest"
)

const (
	creatingTeam    = "HEALTHLABTEST_CREATING_TEAM"
	creatingCallers = "HEALTHLABTEST_CREATING_CALLERS"
)

func init() {
	postgres.Children["creating"] = func(address string) {
		if err := createOnce(address); err != nil {
			panic(err)
		}
	}
}

func processOf(pool *pgxpool.Pool) orderstest.Process {
	s := postgres.New(pool, nil)
	return orderstest.Process{Orders: s.Orders(), Reviews: s.Reviews(), Keys: s.OrderKeys(), Messages: s.WebhookLog()}
}

// createOnce says that it is there, waits until it is told to begin, and prints the
// answers that it got.
func createOnce(address string) error {
	ctx := context.Background()
	pool, err := pgxpool.New(ctx, address+"&pool_max_conns=16")
	if err != nil {
		return err
	}
	if err := pool.Ping(ctx); err != nil {
		return err
	}
	callers, err := strconv.Atoi(os.Getenv(creatingCallers))
	if err != nil {
		return err
	}
	fmt.Println("ready")
	if _, err := io.Copy(io.Discard, os.Stdin); err != nil {
		return err
	}
	answers, err := orderstest.CreateOnce(ctx, processOf(pool), healthlab.TeamID{UUID: uuid.MustParse(os.Getenv(creatingTeam))}, callers)
	if err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(answers)
}

// A thousand requests with one idempotency key in two processes of the system make one
// order, and get one answer.
func TestCreatesOfTwoPrograms(t *testing.T) {
	t.Parallel()
	address, team := pgtest.URL(t), healthlab.TeamID{UUID: uuid.New()}
	const callers, programs = 1000, 2
	var children []*exec.Cmd
	var begin []io.Closer
	var said []*bufio.Reader
	for range programs {
		child := exec.CommandContext(t.Context(), os.Args[0])
		child.Env = append(os.Environ(), postgres.Child+"=creating", postgres.ChildAddress+"="+address,
			creatingTeam+"="+team.String(), creatingCallers+"="+strconv.Itoa(callers/programs))
		child.Stderr = os.Stderr
		in, err := child.StdinPipe()
		require.NoError(t, err)
		out, err := child.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, child.Start())
		children, begin, said = append(children, child), append(begin, in), append(said, bufio.NewReader(out))
	}
	for _, r := range said {
		line, err := r.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, "ready\n", line)
	}
	for _, in := range begin {
		require.NoError(t, in.Close())
	}
	answers := make([]map[string]int, programs)
	for i, r := range said {
		require.NoError(t, json.NewDecoder(r).Decode(&answers[i]))
		require.Len(t, answers[i], 1)
		require.NoError(t, children[i].Wait())
	}
	orderstest.RequireCreatedOnce(t, processOf(pgtest.Connect(t, address)).Orders, team, callers, answers...)
}

// twoProcesses are two stores with connections of their own to one database.
func twoProcesses(t testing.TB) []orderstest.Process {
	address := pgtest.URL(t)
	var out []orderstest.Process
	for range 2 {
		out = append(out, processOf(pgtest.Connect(t, address)))
	}
	return out
}

func TestOrderWalks(t *testing.T) {
	t.Parallel()
	orderstest.RunTwoProcesses(t, twoProcesses)
}

func TestConcurrentCreates(t *testing.T) {
	t.Parallel()
	orderstest.RunConcurrentCreates(t, twoProcesses)
}

// The check lists of the schema are the lifecycles in the code.
func TestChecksAreTheTable(t *testing.T) {
	t.Parallel()
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
	var methods []string
	for _, m := range catalogue.CollectionMethods() {
		methods = append(methods, string(m))
	}
	slices.Sort(methods)
	require.Equal(t, methods, list("orders_method"))
	require.Equal(t, []string{"abnormal", "critical", "normal", "unknown"}, list("orders_interpretation"))
	require.Equal(t, []string{"pending_customer_review", "pending_ops_review", "resolved"}, list("raw_result_status"))
}

// A status that no lifecycle has is refused; a new one needs no migration.
func TestUnknownStatusIsInvalid(t *testing.T) {
	t.Parallel()
	s := postgres.New(pgtest.Pool(t), sealed())
	u := newPerson(t, s)
	r := placeOrder(t, s, u)
	set := func(status orders.Status) error {
		_, err := s.Orders().Update(t.Context(), u.Team, r.ID, func(r *orders.Record) ([]healthlab.Event, error) {
			r.LastEvent.Status = status
			return nil, nil
		})
		return err
	}
	for _, status := range []orders.Status{"received.walk_in_test.lost_in_space", "collecting_sample.on_site_collection.draw_completed", "."} {
		require.ErrorIs(t, set(status), healthlab.Invalid, string(status))
	}
	for _, status := range append(orders.Statuses(), "") {
		require.NoError(t, set(status), string(status))
	}
}
