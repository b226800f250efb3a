package exchange

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// Simulate moves an order to the status final, in a sandbox only; an empty status means completed. The order has all
// statuses on the way, with their events and generated results. If the kit of the order is not registered, the
// simulation stops once the patient has the kit.
//
// RuleErrors: SANDBOX_ONLY (NotFound) in production and without [Options].Simulator, STATUS_OF_OTHER_METHOD,
// STATUS_NOT_REACHABLE.
func (s *Service) Simulate(ctx context.Context, team healthlab.TeamID, id orders.OrderID, final orders.Status, flags orders.SimulationFlags) (orders.Order, error) {
	return s.SimulateSlowly(ctx, team, id, final, flags, 0)
}

// SimulateSlowly is [Service.Simulate] with a delay between two steps: it makes the first step at once; [Service.Run]
// makes the others. The simulation ends early if another change of the order makes final unreachable.
func (s *Service) SimulateSlowly(ctx context.Context, team healthlab.TeamID, id orders.OrderID, final orders.Status, flags orders.SimulationFlags, delay time.Duration) (orders.Order, error) {
	if s.orders.Environment() != healthlab.Sandbox || s.opts.Simulator == nil {
		return orders.Order{}, rules.Missing(orders.SandboxOnly, "orders can be simulated in the environment sandbox only")
	}
	if err := checkFlags(flags, final); err != nil {
		return orders.Order{}, err
	}
	settings, err := s.orders.Settings(ctx, team)
	if err != nil {
		return orders.Order{}, err
	}
	kept, err := s.store.Get(ctx, team, id)
	if err != nil {
		return orders.Order{}, fmt.Errorf("simulate order: %w", rules.NotFound(err, orders.OrderNotFound, "the team has no such order"))
	}
	expected, err := s.catalogue.ExpectedResults(ctx, kept.LabTest.MarkerIDs())
	if err != nil {
		return orders.Order{}, fmt.Errorf("find expected results: %w", err)
	}
	at := s.now()
	if again := orders.StatusOf(kept.Method(), orders.RedrawAvailable); final == again && kept.Method() == catalogue.WalkInTest {
		return s.simulateRedraw(ctx, kept, flags, expected, settings, at, delay)
	}
	steps := s.newSteps(maxSimulated, at, settings)
	s.formURLs(ctx, &kept, steps)
	r, err := s.store.Update(ctx, team, id, func(r *orders.Record) ([]healthlab.Event, error) {
		return simulateSteps(r, s.opts.Simulator, final, flags, expected, steps, delay)
	})
	if err != nil {
		return orders.Order{}, fmt.Errorf("simulate order: %w", rules.NotFound(err, orders.OrderNotFound, "the team has no such order"))
	}
	return r.Order, nil
}

// simulateRedraw simulates that the lab of an order loses a result by its own fault: the order ends with the status
// redraw_available, and a new order for the redraw is created. An order that the lab has not accepted is accepted
// first.
func (s *Service) simulateRedraw(ctx context.Context, r orders.Record, flags orders.SimulationFlags, expected map[int][]catalogue.ExpectedResult, settings orders.Settings, at time.Time, delay time.Duration) (orders.Order, error) {
	unreachable := fmt.Errorf("simulate order: %w", rules.Broken(orders.StatusNotReachable, "final_status: must be reachable for the order; redraws are off for its team or lab, or the order has had one"))
	if !s.redraws(&r, settings) {
		return orders.Order{}, unreachable
	}
	lost := true
	flags.HasMissingResults = &lost
	if _, ok := orders.Next(r.Method(), r.LowLevel(), orders.RedrawOffered, r.Facts()); !ok {
		steps := s.newSteps(maxSimulated, at, settings)
		s.formURLs(ctx, &r, steps)
		accepted, err := s.store.Update(ctx, r.TeamID, r.ID, func(r *orders.Record) ([]healthlab.Event, error) {
			events, err := simulateSteps(r, s.opts.Simulator, orders.StatusOf(r.Method(), orders.RequisitionCreated), flags, expected, steps, 0)
			if err == nil && delay > 0 {
				planSimulation(r, &orders.Simulation{Final: orders.StatusOf(r.Method(), orders.RedrawAvailable), Flags: flags, Delay: delay, Next: at.Add(delay)})
			}
			return events, err
		})
		if err != nil || delay > 0 {
			return accepted.Order, err
		}
		r = accepted
	}
	m := s.opts.Simulator.Report(&r.Order, orders.FinalResult, at, flags, expected)
	m.ID, m.Team, m.Order = "simulated "+s.shared.NewID().String(), r.TeamID, r.ID
	child, ok := s.redraw(&r, m, nil, settings)
	if !ok {
		return orders.Order{}, unreachable
	}
	if err := s.offerRedraw(ctx, r.ID, child, m, nil, s.newSteps(orders.MaxImplied+1, at, settings)); errors.Is(err, errOrderChanged) {
		return orders.Order{}, unreachable
	} else if err != nil {
		return orders.Order{}, fmt.Errorf("simulate order: %w", err)
	}
	return s.orders.Get(ctx, r.TeamID, r.ID)
}

// maxSimulated is the highest number of steps of one simulation; the longest lifecycle has fewer.
const maxSimulated = 20

func simulateSteps(r *orders.Record, lab Simulator, final orders.Status, flags orders.SimulationFlags, expected map[int][]catalogue.ExpectedResult, steps []orders.Step, delay time.Duration) ([]healthlab.Event, error) {
	target := orders.Completed
	if final != "" {
		final, _ = orders.ParseStatus(string(final))
		if final.Method() != r.Method() {
			return nil, rules.Broken(orders.StatusOfOtherMethod, "final_status: must be a status of the order's collection method")
		}
		target = final.LowLevel()
	}
	stop := target
	path, ok := lab.Route(&r.Order, stop)
	if !ok && !r.Facts().PatientKnown() {
		stop = orders.WithCustomer
		path, ok = lab.Route(&r.Order, stop)
	}
	if !ok {
		return nil, rules.Broken(orders.StatusNotReachable, "final_status: must be reachable from the order's present status")
	}
	slow := delay > 0 && len(path) > 1
	var later *orders.Simulation
	if slow {
		later = &orders.Simulation{Final: orders.StatusOf(r.Method(), target), Flags: flags, Delay: delay, Next: steps[0].At.Add(delay)}
	}
	planSimulation(r, later)
	var events []healthlab.Event
	for i := 0; len(path) > 0 && i < len(steps); i++ {
		on, st := path[0], steps[i]
		m := lab.Report(&r.Order, on, st.At, flags, expected)
		more, err := applyMessage(r, m, nil, []orders.Step{st})
		if err != nil {
			return nil, err
		}
		planCriticalMessage(r, st.At)
		events = append(events, more...)
		if slow || r.LowLevel() == stop {
			break
		}
		// A step of an appointment may have changed the order's status more than once.
		path, _ = lab.Route(&r.Order, stop)
	}
	// The simulation replaces the submissions of kit and requisition, so they are not due any more.
	r.Lab.Kit = r.Lab.Kit || r.SampleID != nil
	r.Lab.Requisition = r.Lab.Requisition || r.Reached(orders.RequisitionCreated)
	r.PlanSubmission(steps[0].At)
	return events, nil
}

func planSimulation(r *orders.Record, next *orders.Simulation) {
	r.Simulation, r.SimulationWork = next, orders.Work{}
	if next != nil {
		r.SimulationWork.Due = next.Next
	}
}

// ContinueSimulations makes the due steps of simulations, and returns the number of processed orders. Hosts with a
// scheduler of their own call it in place of [Service.Run].
func (s *Service) ContinueSimulations(ctx context.Context) (int, error) {
	return s.simulationLoop().Once(ctx, batchSize)
}

func (s *Service) simulationLoop() *work.Loop[orders.Record] {
	return s.loop("simulations", s.store.ClaimSimulations, s.continueSimulation)
}

// continueSimulation makes the next step of a claimed order's simulation. It ends the simulation if the order can no
// longer reach the requested status.
func (s *Service) continueSimulation(ctx context.Context, claimed orders.Record) error {
	sim, now := claimed.Simulation, s.now()
	if sim == nil {
		return nil
	}
	settings, err := s.orders.Settings(ctx, claimed.TeamID)
	if err != nil {
		return err
	}
	expected, err := s.catalogue.ExpectedResults(ctx, claimed.LabTest.MarkerIDs())
	if err != nil {
		return fmt.Errorf("find expected results: %w", err)
	}
	var rule *healthlab.RuleError
	var step orders.Change
	if sim.Final.LowLevel() == orders.RedrawAvailable {
		_, err := s.simulateRedraw(ctx, claimed, sim.Flags, expected, settings, now, sim.Delay)
		if err != nil && !errors.As(err, &rule) {
			return fmt.Errorf("go on with simulation: %w", err)
		}
		step = func(r *orders.Record) ([]healthlab.Event, error) {
			planSimulation(r, nil)
			return nil, nil
		}
	} else {
		steps := s.newSteps(maxSimulated, now, settings)
		s.formURLs(ctx, &claimed, steps)
		step = func(r *orders.Record) ([]healthlab.Event, error) {
			sim := r.Simulation
			if sim == nil || sim.Next.After(now) {
				planSimulation(r, sim)
				return nil, nil
			}
			planSimulation(r, nil)
			events, err := simulateSteps(r, s.opts.Simulator, sim.Final, sim.Flags, expected, steps, sim.Delay)
			if errors.As(err, &rule) {
				return nil, nil // the order can no longer reach the status, so the simulation ends
			}
			return events, err
		}
	}
	if _, err := s.store.Update(ctx, claimed.TeamID, claimed.ID, step); err != nil {
		return fmt.Errorf("go on with simulation: %w", err)
	}
	return nil
}

// checkFlags returns Invalid with every problem of the flags and the requested status.
func checkFlags(f orders.SimulationFlags, final orders.Status) error {
	var p healthlab.Problems
	if final != "" {
		if _, ok := orders.ParseStatus(string(final)); !ok {
			rules.OneOf(&p, final, orders.Statuses(), "final_status")
		}
	}
	if f.Interpretation != "" {
		rules.OneOf(&p, f.Interpretation, labresult.Interpretations(), "interpretation")
	}
	for i, t := range f.ResultTypes {
		rules.OneOf(&p, t, []labresult.Type{labresult.Numeric, labresult.Range, labresult.Comment, labresult.CodedValue}, "result_types", i)
	}
	return p.Err()
}
