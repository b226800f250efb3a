package orders

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// ResendRequest selects the orders whose latest event is sent again: the given orders and those whose latest
// event is in the time window; both if both are given.
type ResendRequest struct {
	OrderIDs []OrderID       `json:"order_ids" wire:"opt"`
	StartAt  *healthlab.Time `json:"start_at"`
	// EndAt is now by default.
	EndAt *healthlab.Time `json:"end_at"`
}

// Error types of resending.
const (
	ResendSelectionMissing = "RESEND_SELECTION_MISSING"
	ResendWindowInvalid    = "RESEND_WINDOW_INVALID"
)

// maxResend is the longest time window of a resend.
const maxResend = 60 * 24 * time.Hour

// Resend sends the team the latest event of some of its orders again, with the present state of the orders, and
// returns their ids, oldest order first. Unknown ids are skipped.
func (s *Service) Resend(ctx context.Context, team healthlab.TeamID, req ResendRequest) ([]OrderID, error) {
	now := s.now()
	q, err := req.query(now)
	if err != nil {
		return nil, err
	}
	q.Team, q.Today = team, rules.UTCDay(now)
	ids := []OrderID{}
	for q.Page = 1; ; q.Page++ {
		page, err := s.store.List(ctx, q)
		if err != nil {
			return nil, fmt.Errorf("resend events: %w", err)
		}
		for _, o := range page.Orders {
			ids = append(ids, o.ID)
		}
		if len(page.Orders) < q.Size {
			break
		}
	}
	told := []OrderID{}
	for _, id := range ids {
		event := s.opts.NewID()
		_, err := s.store.Update(ctx, team, id, func(r *Record) ([]healthlab.Event, error) { return r.resend(event, now) })
		switch {
		case errors.Is(err, healthlab.NotFound): // erased meanwhile
		case err != nil:
			return nil, fmt.Errorf("resend events: %w", err)
		default:
			told = append(told, id)
		}
	}
	return told, nil
}

func (r ResendRequest) query(now time.Time) (Query, error) {
	q := Query{IDs: r.OrderIDs, Sort: SortCreatedAt, Direction: catalogue.Ascending, Size: catalogue.MaxPageSize}
	if len(r.OrderIDs) == 0 && r.StartAt == nil {
		return q, rules.Broken(ResendSelectionMissing, "order_ids or start_at is required; both may be given")
	}
	end := now
	if r.EndAt != nil {
		end = r.EndAt.Time
	}
	if r.StartAt == nil {
		if r.EndAt != nil {
			q.EventBefore = end.Add(time.Microsecond)
		}
		return q, nil
	}
	if r.StartAt.After(end) || end.Sub(r.StartAt.Time) > maxResend {
		return q, rules.Broken(ResendWindowInvalid, fmt.Sprintf("end_at must not be before start_at, nor more than %d days after it", maxResend/(24*time.Hour)))
	}
	q.EventFrom, q.EventBefore = r.StartAt.Time, end.Add(time.Microsecond)
	return q, nil
}

// resend returns the latest event of the order as a new event with the id event.
func (r *Record) resend(event uuid.UUID, at time.Time) ([]healthlab.Event, error) {
	name := EventOrderUpdated
	if len(r.Events) == 1 {
		name = EventOrderCreated
	}
	return r.NewEvent(name, event, healthlab.At(at))
}
