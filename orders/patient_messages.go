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

// PatientMessages sends messages about orders to patients, and about critical results to teams, through
// [Options].Messenger. Without a Messenger nothing is sent, and due messages count as sent. It is safe for
// concurrent use.
type PatientMessages struct {
	orders    Store // orders of deleted users are hidden
	settings  func(ctx context.Context, team healthlab.TeamID) (Settings, error)
	messenger Messenger // nil for none
	shared    Background
}

// CommunicationSettings are the channels of messages to the patient of an order.
type CommunicationSettings struct {
	OrderID    OrderID `json:"order_id"`
	SMSEnabled bool    `json:"sms_enabled"`
}

// Settings returns the channels of messages to the patient of an order. NotFound if the team has no such order.
func (p *PatientMessages) Settings(ctx context.Context, team healthlab.TeamID, id OrderID) (CommunicationSettings, error) {
	settings, err := p.settings(ctx, team)
	if err != nil {
		return CommunicationSettings{}, err
	}
	r, err := p.orders.Get(ctx, team, id)
	if err != nil {
		return CommunicationSettings{}, fmt.Errorf("get communication settings: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	return CommunicationSettings{r.ID, r.allowsSMS(settings)}, nil
}

// SetSMS enables or disables SMS to the patient of an order; it overrides the team's setting. NotFound if the
// team has no such order.
func (p *PatientMessages) SetSMS(ctx context.Context, team healthlab.TeamID, id OrderID, sms bool) (CommunicationSettings, error) {
	r, err := p.orders.Update(ctx, team, id, func(r *Record) ([]healthlab.Event, error) {
		r.SMSEnabled = &sms
		return nil, nil
	})
	if err != nil {
		return CommunicationSettings{}, fmt.Errorf("set communication settings: %w", rules.NotFound(err, OrderNotFound, "the team has no such order"))
	}
	return CommunicationSettings{r.ID, sms}, nil
}

// Run sends due messages until ctx ends. Then it waits for running work, and returns nil. Any number of
// processes may run it: a lease gives each order to one process.
func (p *PatientMessages) Run(ctx context.Context) error { return p.loop().Run(ctx) }

// batchSize is the highest number of orders that one call of SendDue processes.
const batchSize = 100

// SendDue sends due messages of at most 100 orders, and returns the number of processed orders. Hosts with a
// scheduler of their own call it in place of Run.
func (p *PatientMessages) SendDue(ctx context.Context) (int, error) {
	return p.loop().Once(ctx, batchSize)
}

// loop claims orders with due messages for the time of a lease, and sends the messages.
func (p *PatientMessages) loop() *work.Loop[Record] {
	return &work.Loop[Record]{
		Name: "patient messages", Workers: p.shared.Workers, Idle: p.shared.Idle, Log: p.shared.Log, Do: p.send,
		Claim: func(ctx context.Context, n int) ([]Record, error) {
			return p.orders.ClaimNotifications(ctx, n, p.shared.now(), p.shared.Lease)
		},
	}
}

// send sends the due messages of a claimed order, and records them as sent: also those that are late, that the settings
// forbid, or that the Messenger refuses as Invalid. After another error, a message is due again.
func (p *PatientMessages) send(ctx context.Context, r Record) error {
	settings, err := p.settings(ctx, r.TeamID)
	if err != nil {
		return err
	}
	now, lease := p.shared.now(), r.Notifications.Lease
	var done []uuid.UUID
	var again time.Time
	for _, n := range r.notices() {
		if n.due.After(now) {
			continue
		}
		if n.team {
			n.To = settings.CriticalEmail
		}
		if late := !n.until.IsZero() && !n.until.After(now); p.messenger != nil && !late && n.shouldSend(&r, settings) {
			call, cancel := context.WithTimeout(ctx, p.shared.LabTimeout)
			err := p.messenger.Send(call, n.PatientMessage)
			cancel()
			if ctx.Err() != nil {
				return ctx.Err() // the process stops; after the lease another one sends the messages
			}
			if err != nil && healthlab.KindOf(err) != healthlab.Invalid {
				p.shared.Log.Warn("a message was not sent", "order", r.ID.String(), "kind", healthlab.KindOf(err).Error(), "cause", work.Cause(err))
				again = now.Add(p.shared.Retry(1))
				continue
			}
		}
		done = append(done, n.ID)
	}
	_, err = p.orders.Update(ctx, r.TeamID, r.ID, func(r *Record) ([]healthlab.Event, error) {
		if r.Notifications.Lease.Equal(lease) {
			r.Notifications.Lease = time.Time{}
		}
		r.Notifications.Sent = append(slices.Clone(r.Notifications.Sent), done...)
		r.PlanMessages()
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
