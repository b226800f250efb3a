package orderstest

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/conformance"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/idempotency"
	"github.com/healthlab-dev/healthlab/orders/people"
	"github.com/healthlab-dev/healthlab/orders/simulation"
	"github.com/healthlab-dev/healthlab/webhook"
)

// Process has the stores that one process uses.
type Process struct {
	Orders   orders.Store
	Reviews  exchange.ReviewStore
	Keys     idempotency.Keys
	Messages webhook.Log
}

// walkBook returns a catalogue with one lab test for each collection method, at one lab.
func walkBook() (*catalogue.StaticCatalog, error) {
	lab := 1
	all := catalogue.CollectionMethods()
	c := catalogue.StaticCatalogContents{
		Labs:    []catalogue.Lab{{ID: lab, Slug: "northlab", Name: "Northlab", CollectionMethods: all, SampleTypes: []catalogue.SampleType{catalogue.Serum}}},
		Markers: []catalogue.MarkerComplete{{Marker: catalogue.Marker{ID: 11, LabID: &lab, Name: "Iron", Slug: "iron", ProviderID: new("N1")}}},
		Accounts: []catalogue.LabAccount{{ID: catalogue.LabAccountID{UUID: conformance.Named("account")}, Lab: "northlab", Status: catalogue.LabAccountActive,
			DelegatedFlow: catalogue.NotDelegated, ProviderAccountID: "1", AllowedBilling: map[catalogue.BillingType][]string{catalogue.ClientBill: {"AZ"}}}},
	}
	for _, m := range all {
		c.Tests = append(c.Tests, catalogue.StaticTest{LabTest: catalogue.LabTest{ID: catalogue.LabTestID{UUID: conformance.Named("test " + string(m))}, Slug: string(m),
			Name: string(m), SampleType: catalogue.Serum, Method: m, Price: orderNumber("1"), Status: catalogue.LabTestActive}, LabID: lab, MarkerIDs: []int{11}})
	}
	return catalogue.NewStaticCatalog(c)
}

// walkLab is a laboratory that accepts every order, returns a timeout for every fifth submission, and sends no
// messages.
type walkLab struct {
	mu    sync.Mutex
	calls int
}

func (l *walkLab) Submit(_ context.Context, s exchange.Submission) (exchange.Accepted, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.calls++; l.calls%5 == 0 {
		return exchange.Accepted{}, context.DeadlineExceeded
	}
	return exchange.Accepted{SampleID: "S-" + s.Order.ID.String()}, nil
}

func (*walkLab) Cancel(context.Context, healthlab.TeamID, orders.OrderID) error { return nil }

func (*walkLab) Updates(context.Context, string, int) (exchange.Batch, error) {
	return exchange.Batch{}, nil
}

// walker has the services of several processes that handle the orders of one team.
type walker struct {
	services []*orders.Service
	labs     []*exchange.Service
	team     healthlab.TeamID
	mu       sync.Mutex
	ids      []uuid.UUID // every id that the services created
}

func newWalker(team healthlab.TeamID, processes ...Process) (*walker, error) {
	w := &walker{team: team}
	book, err := walkBook()
	if err != nil {
		return nil, err
	}
	lab := &walkLab{}
	users := people.UsersFunc(func(context.Context, healthlab.TeamID, healthlab.UserID) error { return nil })
	for _, p := range processes {
		s, err := orders.New(p.Orders, users, book, &orders.Options{
			Environment: healthlab.Sandbox,
			Background: orders.Background{Now: func() time.Time { return noon }, NewID: func() uuid.UUID {
				w.mu.Lock()
				defer w.mu.Unlock()
				w.ids = append(w.ids, uuid.Must(uuid.NewV7()))
				return w.ids[len(w.ids)-1]
			}},
			Settings: func(context.Context, healthlab.TeamID) (orders.Settings, error) {
				return orders.Settings{OnSiteCollection: true, PartialWebhooks: true}, nil
			},
		})
		if err != nil {
			return nil, err
		}
		labs, err := exchange.New(s, p.Orders, p.Reviews, lab, &exchange.Options{Simulator: simulation.Lab{}})
		if err != nil {
			return nil, err
		}
		w.services = append(w.services, s)
		w.labs = append(w.labs, labs)
	}
	return w, nil
}

func walkRequest(method catalogue.CollectionMethod) orders.PlaceRequest {
	return orders.PlaceRequest{
		UserID: conformance.User("ana"), OrderSet: &catalogue.OrderSet{LabTestIDs: []catalogue.LabTestID{{UUID: conformance.Named("test " + string(method))}}},
		PatientDetails: people.PatientDetailsInput{FirstName: "Ana", LastName: "Roe", DOB: birthday, Gender: people.Female, PhoneNumber: "+15550100",
			Email: "ana@example.com"},
		PatientAddress: people.PatientAddressInput{FirstLine: "7 Elm Rd", City: "Mesa", State: "AZ", Zip: "85201", Country: "US"},
	}
}

// RunTwoProcesses lets two processes handle the orders of one team concurrently, with random API calls and lab
// messages, valid and invalid. It requires that every history follows the lifecycle, the team got one event for
// each step, event ids grow, the latest event is the last one, and the status of a transaction follows from its
// orders. newProcesses returns two views of one fresh, empty store.
func RunTwoProcesses(t *testing.T, newProcesses func(t testing.TB) []Process) {
	processes := newProcesses(t)
	for range prove.Counts(2, 5, 100) {
		rapid.Check(t, func(rt *rapid.T) { walk(t, rt, processes) })
	}
}

func walk(t *testing.T, rt *rapid.T, processes []Process) {
	w, err := newWalker(healthlab.TeamID{UUID: uuid.New()}, processes...)
	require.NoError(rt, err)
	ctx := t.Context()
	var all []orders.OrderID
	for range rapid.IntRange(1, 2).Draw(rt, "orders") {
		o, err := w.services[0].Place(ctx, w.team, walkRequest(rapid.SampledFrom(catalogue.CollectionMethods()).Draw(rt, "method")))
		require.NoError(rt, err)
		all = append(all, o.ID)
	}
	// Each process runs its own random calls, concurrently with the other.
	type deed func(*orders.Service, *exchange.Service) error
	plans := make([][]deed, len(w.services))
	for p := range plans {
		for range rapid.IntRange(1, 4).Draw(rt, "deeds") {
			id := rapid.SampledFrom(all).Draw(rt, "order")
			on, n := rapid.SampledFrom(orders.Triggers()).Draw(rt, "on"), rapid.IntRange(0, 3).Draw(rt, "message")
			final := rapid.SampledFrom(orders.Statuses()).Draw(rt, "final")
			plans[p] = append(plans[p], rapid.SampledFrom([]deed{
				func(s *orders.Service, _ *exchange.Service) error { _, err := s.Cancel(ctx, w.team, id); return err },
				func(s *orders.Service, _ *exchange.Service) error {
					_, err := s.DrawCompleted(ctx, w.team, id)
					return err
				},
				func(_ *orders.Service, s *exchange.Service) error { _, err := s.SubmitDue(ctx); return err },
				func(_ *orders.Service, s *exchange.Service) error {
					_, err := s.Simulate(ctx, w.team, id, final, orders.SimulationFlags{})
					return err
				},
				func(_ *orders.Service, s *exchange.Service) error {
					return s.Receive(ctx, exchange.Message{ID: fmt.Sprint(n), Team: w.team, Order: id, On: on, At: noon})
				},
				func(s *orders.Service, _ *exchange.Service) error {
					_, err := s.Create(ctx, w.team, orders.OrderID{}, orders.CreateRequest{PlaceRequest: walkRequest(catalogue.WalkInTest), ParentID: &id})
					return err
				},
			}).Draw(rt, "deed"))
		}
	}
	var wait sync.WaitGroup
	errs := make([]error, len(plans))
	for p, plan := range plans {
		wait.Go(func() {
			for _, do := range plan {
				err := do(w.services[p], w.labs[p])
				var rule *healthlab.RuleError
				if err != nil && !errors.As(err, &rule) {
					errs[p] = errors.Join(errs[p], err)
				}
			}
		})
	}
	wait.Wait()
	require.NoError(rt, errors.Join(errs...))
	w.check(t, rt, processes[1])
}

// check requires of all orders of the team what [RunTwoProcesses] lists. p reads their events.
func (w *walker) check(t *testing.T, rt *rapid.T, p Process) {
	page, err := w.services[1].List(t.Context(), orders.Query{Team: w.team, Size: catalogue.MaxPageSize})
	require.NoError(rt, err)
	told := map[orders.OrderID]int{}
	for _, id := range w.ids {
		m, err := p.Messages.Message(t.Context(), w.team, id)
		if err != nil {
			continue
		}
		if m.Type == orders.EventOrderCreated || m.Type == orders.EventOrderUpdated {
			told[orders.OrderID{UUID: uuid.MustParse(m.Key)}]++
		}
	}
	seen := map[int64]bool{}
	for _, o := range page.Orders {
		require.Equal(rt, o.Events[len(o.Events)-1], o.LastEvent)
		require.Equal(rt, len(o.Events), told[o.ID], "told of each step once")
		facts := orders.Facts{Initial: o.Origin == orders.OriginInitial}
		for i, e := range o.Events {
			require.False(rt, seen[e.ID], "an id of an event twice")
			seen[e.ID] = true
			if i == 0 {
				require.Equal(rt, orders.Ordered, e.Status.LowLevel())
				continue
			}
			require.Greater(rt, e.ID, o.Events[i-1].ID)
			from := o.Events[i-1].Status.LowLevel()
			require.True(rt, slices.ContainsFunc(orders.Triggers(), func(on orders.Trigger) bool {
				to, ok := orders.Next(o.Method(), from, on, facts)
				return ok && to == e.Status.LowLevel()
			}), "%s to %s", from, e.Status)
		}
		members := slices.Clone(o.OrderTransaction.Orders)
		require.Equal(rt, orders.NewTransaction(o.OrderTransaction.ID, members), o.OrderTransaction)
		at := slices.IndexFunc(members, func(m orders.TransactionMember) bool { return m.ID == o.ID })
		require.Equal(rt, o.LowLevel(), *members[at].LowLevelStatus)
	}
}

// RunConcurrentCreates sends a thousand requests with one idempotency key through two processes concurrently:
// one order is placed, and all requests get the same answer, or an error after which they may retry.
func RunConcurrentCreates(t *testing.T, newProcesses func(t testing.TB) []Process) {
	const callers = 1000
	processes := newProcesses(t)
	team := healthlab.TeamID{UUID: uuid.New()}
	var wait sync.WaitGroup
	answers, errs := make([]map[string]int, len(processes)), make([]error, len(processes))
	for i, p := range processes {
		wait.Go(func() { answers[i], errs[i] = createOnce(t.Context(), p, team, callers/len(processes)) })
	}
	wait.Wait()
	require.NoError(t, errors.Join(errs...))
	requireCreatedOnce(t, processes[0].Orders, team, callers, answers...)
}

// requireCreatedOnce requires that the callers of createOnce have placed one order, and that all have the same answer.
// answers are the results of createOnce in each process.
func requireCreatedOnce(t *testing.T, s orders.Store, team healthlab.TeamID, callers int, answers ...map[string]int) {
	t.Helper()
	all := map[string]int{}
	for _, some := range answers {
		for answer, n := range some {
			all[answer] += n
		}
	}
	require.Len(t, all, 1)
	page, err := s.List(t.Context(), orders.Query{Team: team})
	require.NoError(t, err)
	require.Equal(t, 1, page.Total)
	require.Len(t, page.Orders[0].Events, 1)
	for answer, n := range all {
		require.Equal(t, callers, n)
		require.Contains(t, answer, page.Orders[0].ID.String())
	}
}

// createOnce sends concurrent requests with one idempotency key through a process. It repeats a request while its error
// is a Conflict, and returns the number of callers by answer.
func createOnce(ctx context.Context, p Process, team healthlab.TeamID, callers int) (map[string]int, error) {
	w, err := newWalker(team, p)
	if err != nil {
		return nil, err
	}
	s, requests := w.services[0], idempotency.New(p.Keys, nil)
	create := idempotency.Request{Scope: idempotency.Scope{Team: team, Endpoint: "create", Key: "one"}}
	answers := map[string]int{}
	var errs []error
	var mu sync.Mutex
	var wait sync.WaitGroup
	for range callers {
		wait.Go(func() {
			for {
				answer, err := requests.Once(ctx, create, func(ctx context.Context, id orders.OrderID) (idempotency.Outcome, error) {
					o, err := s.PlaceAs(ctx, team, id, walkRequest(catalogue.WalkInTest))
					return idempotency.Outcome{Answer: fmt.Appendf(nil, "%s by %s", o.ID, uuid.New())}, err
				})
				if errors.Is(err, healthlab.Conflict) {
					continue // the retryable answer: ask again
				}
				mu.Lock()
				defer mu.Unlock()
				answers[string(answer)]++
				errs = append(errs, err)
				return
			}
		})
	}
	wait.Wait()
	return answers, errors.Join(errs...)
}
