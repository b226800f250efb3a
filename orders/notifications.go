package orders

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/internal/work"
	"github.com/healthlab-dev/healthlab/orders/internal/rules"
)

// CommunicationSettings are the channels of messages to the patient of an order.
type CommunicationSettings struct {
	OrderID    OrderID `json:"order_id"`
	SMSEnabled bool    `json:"sms_enabled"`
}

// Communication returns the channels of messages to the patient of an order. NotFound if the team
// has no such order.
func (s *Service) Communication(ctx context.Context, team healthlab.TeamID, id OrderID) (CommunicationSettings, error) {
	settings, err := s.opts.Settings(ctx, team)
	if err != nil {
		return CommunicationSettings{}, fmt.Errorf("team settings: %w", err)
	}
	r, err := s.store.Get(ctx, team, id)
	if err != nil {
		return CommunicationSettings{}, fmt.Errorf("get communication settings: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	return CommunicationSettings{r.ID, r.allowsSMS(settings)}, nil
}

// SetCommunication says whether the patient of an order may get an SMS, whatever holds
// for the team. NotFound if the team has no such order.
func (s *Service) SetCommunication(ctx context.Context, team healthlab.TeamID, id OrderID, sms bool) (CommunicationSettings, error) {
	r, err := s.store.Update(ctx, team, id, func(r *Record) ([]healthlab.Event, error) {
		r.SMSEnabled = &sms
		return nil, nil
	})
	if err != nil {
		return CommunicationSettings{}, fmt.Errorf("set communication settings: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	return CommunicationSettings{r.ID, sms}, nil
}

// SendDueNotifications does what is due now, and returns how many orders it looked at: for hosts that
// bring their own scheduler.
func (s *Service) SendDueNotifications(ctx context.Context) (int, error) {
	return s.notificationLoop().Once(ctx, batchSize)
}

func (s *Service) notificationLoop() *work.Loop[Record] {
	return newLoop(s, "patient messages", s.store.ClaimNotifications, s.sendNotifications)
}

func (s *Service) sendNotifications(ctx context.Context, r Record) error {
	settings, err := s.opts.Settings(ctx, r.TeamID)
	if err != nil {
		return fmt.Errorf("team settings: %w", err)
	}
	now, lease := s.now(), r.Notifications.Lease
	var done []uuid.UUID
	var again time.Time
	for _, n := range r.notices() {
		if n.due.After(now) {
			continue
		}
		if n.team {
			n.To = settings.CriticalEmail
		}
		if late := !n.until.IsZero() && !n.until.After(now); s.opts.Messenger != nil && !late && n.shouldSend(&r, settings) {
			call, cancel := context.WithTimeout(ctx, s.opts.LabTimeout)
			err := s.opts.Messenger.Send(call, n.PatientMessage)
			cancel()
			if ctx.Err() != nil {
				return ctx.Err() // stopping; the lease brings the order back
			}
			if err != nil && healthlab.KindOf(err) != healthlab.Invalid {
				s.opts.Log.Warn("a message was not sent", "order", r.ID.String(), "kind", healthlab.KindOf(err).Error())
				again = now.Add(s.opts.Retry(1))
				continue
			}
		}
		done = append(done, n.ID)
	}
	if sim := r.Notifications.Simulation; sim != nil && !sim.Next.After(now) {
		if err := s.continueSimulation(ctx, r, settings, now); err != nil {
			return err
		}
	}
	_, err = s.store.Update(ctx, r.TeamID, r.ID, func(r *Record) ([]healthlab.Event, error) {
		if r.Notifications.Lease.Equal(lease) {
			r.Notifications.Lease = time.Time{}
		}
		r.Notifications.Sent = append(slices.Clone(r.Notifications.Sent), done...)
		r.planMessages()
		if !again.IsZero() && r.Notifications.Due.Before(again) {
			r.Notifications.Due = again
		}
		return nil, nil
	})
	if err != nil {
		return fmt.Errorf("record messages: %w", err)
	}
	return nil
}
