package orders

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Simulate walks an order to a status, in a sandbox only: along the success path of
// its method as far as that leads there, with all events, and with generated results.
// An empty final status means completed. A kit that is not registered stops where the
// patient has it.
//
// RuleErrors: SANDBOX_ONLY (NotFound) in production and without [Options].Simulator,
// STATUS_OF_OTHER_METHOD, STATUS_NOT_REACHABLE.
func (s *Service) Simulate(ctx context.Context, team healthlab.TeamID, id OrderID, final Status, flags SimulationFlags) (Order, error) {
	return s.SimulateSlowly(ctx, team, id, final, flags, 0)
}

// SimulateSlowly is [Service.Simulate] with a time between two steps: the first happens
// at once, the others in the background ([Service.Run]). An order that goes another
// way meanwhile is left alone.
func (s *Service) SimulateSlowly(ctx context.Context, team healthlab.TeamID, id OrderID, final Status, flags SimulationFlags, delay time.Duration) (Order, error) {
	if s.opts.Environment != healthlab.Sandbox || s.opts.Simulator == nil {
		return Order{}, rules.Missing(SandboxOnly, "orders are simulated in a sandbox only")
	}
	if err := flags.check(final); err != nil {
		return Order{}, err
	}
	settings, err := s.opts.Settings(ctx, team)
	if err != nil {
		return Order{}, fmt.Errorf("team settings: %w", err)
	}
	kept, err := s.store.Get(ctx, team, id)
	if err != nil {
		return Order{}, fmt.Errorf("simulate order: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	expected, err := s.catalogue.ExpectedResults(ctx, kept.LabTest.MarkerIDs())
	if err != nil {
		return Order{}, fmt.Errorf("find expected results: %w", err)
	}
	at := s.now()
	if again := StatusOf(kept.Method(), RedrawAvailable); final == again && kept.Method() == catalogue.WalkInTest {
		return s.simulateRedraw(ctx, kept, flags, expected, settings, at, delay)
	}
	steps := s.newSteps(maxSimulated, at, settings)
	s.formURLs(ctx, &kept, steps)
	r, err := s.store.Update(ctx, team, id, func(r *Record) ([]healthlab.Event, error) {
		return r.simulate(s.opts.Simulator, final, flags, expected, steps, delay)
	})
	if err != nil {
		return Order{}, fmt.Errorf("simulate order: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	return r.Order, nil
}

// simulateRedraw lets the lab of an order lose one of its results by its own fault: the
// order ends with the offer of a redraw, which is an order of its own. Before that, the
// lab has accepted it.
func (s *Service) simulateRedraw(ctx context.Context, r Record, flags SimulationFlags, expected map[int][]catalogue.ExpectedResult, settings Settings, at time.Time, delay time.Duration) (Order, error) {
	unreachable := fmt.Errorf("simulate order: %w", rules.Broken(StatusNotReachable, "the order cannot get there: team, lab or order have no redraws"))
	if !s.redraws(&r, settings) {
		return Order{}, unreachable
	}
	lost := true
	flags.HasMissingResults = &lost
	if _, ok := Next(r.Method(), r.LowLevel(), RedrawOffered, r.Facts()); !ok {
		steps := s.newSteps(maxSimulated, at, settings)
		s.formURLs(ctx, &r, steps)
		accepted, err := s.store.Update(ctx, r.TeamID, r.ID, func(r *Record) ([]healthlab.Event, error) {
			events, err := r.simulate(s.opts.Simulator, StatusOf(r.Method(), RequisitionCreated), flags, expected, steps, 0)
			if err == nil && delay > 0 {
				r.Notifications.Simulation = &Simulation{Final: StatusOf(r.Method(), RedrawAvailable), Flags: flags, Delay: delay, Next: at.Add(delay)}
				r.planMessages()
			}
			return events, err
		})
		if err != nil || delay > 0 {
			return accepted.Order, err
		}
		r = accepted
	}
	m := s.opts.Simulator.Report(&r.Order, FinalResult, at, flags, expected)
	m.ID, m.Team, m.Order = "simulated "+s.opts.NewID().String(), r.TeamID, r.ID
	child, ok := s.redraw(&r, m, settings)
	if !ok {
		return Order{}, unreachable
	}
	if err := s.offerRedraw(ctx, r.ID, child, m, s.newSteps(maxImplied+1, at, settings)); errors.Is(err, errOrderChanged) {
		return Order{}, unreachable
	} else if err != nil {
		return Order{}, fmt.Errorf("simulate order: %w", err)
	}
	return s.Get(ctx, r.TeamID, r.ID)
}

// maxSimulated bounds the steps of one simulation; the longest life has fewer.
const maxSimulated = 20

func (r *Record) simulate(lab Simulator, final Status, flags SimulationFlags, expected map[int][]catalogue.ExpectedResult, steps []Step, delay time.Duration) ([]healthlab.Event, error) {
	target := Completed
	if final != "" {
		final, _ = ParseStatus(string(final))
		if final.Method() != r.Method() {
			return nil, rules.Broken(StatusOfOtherMethod, "the status belongs to another collection method")
		}
		target = final.LowLevel()
	}
	stop := target
	path, ok := lab.Route(&r.Order, stop)
	if !ok && !patientKnown(r.Facts()) {
		stop = WithCustomer
		path, ok = lab.Route(&r.Order, stop)
	}
	if !ok {
		return nil, rules.Broken(StatusNotReachable, "the order cannot get there from where it stands")
	}
	r.Notifications.Simulation = nil
	slow := delay > 0 && len(path) > 1
	if slow {
		r.Notifications.Simulation = &Simulation{Final: StatusOf(r.Method(), target), Flags: flags, Delay: delay, Next: steps[0].At.Add(delay)}
	}
	var events []healthlab.Event
	for i := 0; len(path) > 0 && i < len(steps); i++ {
		on, st := path[0], steps[i]
		m := lab.Report(&r.Order, on, st.At, flags, expected)
		more, err := r.receive(m, []Step{st})
		if err != nil {
			return nil, err
		}
		r.planCriticalMessage(st.At)
		events = append(events, more...)
		if slow || r.LowLevel() == stop {
			break
		}
		// An appointment may have taken the order further than one step.
		path, _ = lab.Route(&r.Order, stop)
	}
	// What was simulated needs no lab any more.
	r.Lab.Kit = r.Lab.Kit || r.SampleID != nil
	r.Lab.Requisition = r.Lab.Requisition || r.Reached(RequisitionCreated)
	r.planSubmission(steps[0].At)
	return events, nil
}

// continueSimulation does the next step of a simulation. One that leads nowhere any more ends.
func (s *Service) continueSimulation(ctx context.Context, claimed Record, settings Settings, now time.Time) error {
	expected, err := s.catalogue.ExpectedResults(ctx, claimed.LabTest.MarkerIDs())
	if err != nil {
		return fmt.Errorf("find expected results: %w", err)
	}
	var rule *healthlab.RuleError
	if sim := claimed.Notifications.Simulation; sim.Final.LowLevel() == RedrawAvailable {
		_, err := s.simulateRedraw(ctx, claimed, sim.Flags, expected, settings, now, sim.Delay)
		if err != nil && !errors.As(err, &rule) {
			return fmt.Errorf("go on with simulation: %w", err)
		}
		_, err = s.store.Update(ctx, claimed.TeamID, claimed.ID, func(r *Record) ([]healthlab.Event, error) {
			r.Notifications.Simulation = nil
			r.planMessages()
			return nil, nil
		})
		return err
	}
	steps := s.newSteps(maxSimulated, now, settings)
	s.formURLs(ctx, &claimed, steps)
	_, err = s.store.Update(ctx, claimed.TeamID, claimed.ID, func(r *Record) ([]healthlab.Event, error) {
		sim := r.Notifications.Simulation
		if sim == nil || sim.Next.After(now) {
			return nil, nil
		}
		r.Notifications.Simulation = nil
		events, err := r.simulate(s.opts.Simulator, sim.Final, sim.Flags, expected, steps, sim.Delay)
		if errors.As(err, &rule) {
			r.planMessages() // the order has gone another way
			return nil, nil
		}
		return events, err
	})
	if err != nil {
		return fmt.Errorf("go on with simulation: %w", err)
	}
	return nil
}
