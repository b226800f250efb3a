package orders

import (
	"context"
	"fmt"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// Cancel cancels an order. RuleError CANCEL_NOT_ALLOWED where its status does not
// allow it, cancelled included. The lab is called in the background.
func (s *Service) Cancel(ctx context.Context, team healthlab.TeamID, id OrderID) (Order, error) {
	o, err := s.changeOrder(ctx, team, id, CancelRequested, func(r *Record) error {
		if !r.Cancellable() {
			return rules.Broken(CancelNotAllowed, "an order that is "+string(r.LastEvent.Status)+" cannot be cancelled")
		}
		return nil
	})
	if err != nil {
		return Order{}, fmt.Errorf("cancel order: %w", err)
	}
	return o, nil
}

// DrawCompleted notes that the team has drawn the sample of an order for on-site
// collection. Forbidden unless the team has that switched on.
func (s *Service) DrawCompleted(ctx context.Context, team healthlab.TeamID, id OrderID) (Order, error) {
	if err := s.allowed(ctx, team, func(have Settings) bool { return have.OnSiteCollection }); err != nil {
		return Order{}, fmt.Errorf("complete draw: %w", err)
	}
	o, err := s.changeOrder(ctx, team, id, SampleDrawn, func(r *Record) error {
		if r.Method() != catalogue.OnSiteCollection {
			return rules.Broken(catalogue.MethodNotSupported, "only on-site collection reports the draw")
		}
		return nil
	})
	if err != nil {
		return Order{}, fmt.Errorf("complete draw: %w", err)
	}
	return o, nil
}

// SetActivation moves the day on which a scheduled order goes to the lab; nil hands
// it over at once. RuleErrors: ORDER_NOT_MODIFIABLE once it was handed over,
// ORDER_NOT_SCHEDULED if it was not created with a day, ACTIVATE_BY_IN_PAST.
func (s *Service) SetActivation(ctx context.Context, team healthlab.TeamID, id OrderID, day *healthlab.Date) (Order, error) {
	at := s.now()
	if day != nil {
		var p healthlab.Problems
		if checkActivation(&p, *day, rules.UTCDay(at)); p.Err() != nil {
			return Order{}, p.Err()
		}
	}
	r, err := s.store.Update(ctx, team, id, func(r *Record) ([]healthlab.Event, error) {
		switch low := r.LowLevel(); {
		case low != Ordered && low != AwaitingRegistration:
			return nil, rules.Broken(OrderNotModifiable, "the order was handed over")
		case !r.Scheduled:
			return nil, rules.Broken(OrderNotScheduled, "the order was not created with a day of activation")
		case day != nil && day.Before(rules.UTCDay(at)):
			return nil, rules.Broken(ActivateByInPast, "the day of activation is today or later")
		}
		r.ActivateBy, r.UpdatedAt = day, healthlab.At(at)
		r.refreshTransaction()
		r.planSubmission(at)
		return nil, nil
	})
	if err != nil {
		return Order{}, fmt.Errorf("set activation: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	return r.Order, nil
}

// changeOrder lets one thing happen to an order, if allowed finds nothing against it.
func (s *Service) changeOrder(ctx context.Context, team healthlab.TeamID, id OrderID, on Trigger, allowed func(*Record) error) (Order, error) {
	settings, err := s.opts.Settings(ctx, team)
	if err != nil {
		return Order{}, fmt.Errorf("team settings: %w", err)
	}
	st := Step{On: on, At: s.now(), EventID: s.opts.NewID(), NotifyPartial: settings.PartialWebhooks}
	r, err := s.store.Update(ctx, team, id, func(r *Record) ([]healthlab.Event, error) {
		if err := allowed(r); err != nil {
			return nil, err
		}
		return r.apply(st)
	})
	return r.Order, rules.NotFound(err, OrderNotFound, "the team has no such order")
}
