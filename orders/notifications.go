package orders

import (
	"fmt"
	"slices"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab/orders/appointment"
	"github.com/healthlab-dev/healthlab/orders/catalogue"
)

// moment is an occasion for a message to a patient, with its channels and delay.
type moment struct {
	low      LowLevel
	as       Moment
	after    time.Duration
	channels []Channel
}

// moments are the occasions of each collection method. Partial results, sample errors and bypassed requisitions
// have no message.
var moments = func() map[catalogue.CollectionMethod][]moment {
	const days = 24 * time.Hour
	both, sms, mail := []Channel{SMS, Email}, []Channel{SMS}, []Channel{Email}
	at := func(channels []Channel, lows ...LowLevel) []moment {
		var out []moment
		for _, l := range lows {
			out = append(out, moment{l, Moment(l), 0, channels})
		}
		return out
	}
	return map[catalogue.CollectionMethod][]moment{
		catalogue.Testkit: append(at(sms, Ordered, TransitCustomer, OutForDelivery, DeliveredToLab, Completed, Cancelled),
			moment{WithCustomer, RemindKit, 2 * days, sms}, moment{WithCustomer, RemindKit, 7 * days, sms}),
		// Messages about visits at home go by e-mail; by SMS if the patient has no e-mail address or e-mail is off.
		catalogue.AtHomePhlebotomy: append(at(both, Ordered, RequisitionCreated, DrawCompleted, Completed, Cancelled),
			at(mail, AppointmentPending, AppointmentScheduled, AppointmentCancelled)...),
		catalogue.WalkInTest: append(append(at(both, Ordered, RequisitionCreated, RedrawAvailable, Completed, Cancelled),
			at(sms, AppointmentScheduled, AppointmentCancelled)...),
			moment{RequisitionCreated, RemindVisit, 1 * days, both}, moment{RequisitionCreated, RemindVisit, 3 * days, both},
			moment{RequisitionCreated, RemindVisit, 7 * days, both}),
		catalogue.OnSiteCollection: at(both, Ordered, RequisitionCreated, DrawCompleted, Completed, Cancelled),
	}
}()

// beforeVisit are the times before an appointment at which patients get a reminder.
var beforeVisit = map[catalogue.CollectionMethod][]time.Duration{catalogue.WalkInTest: {24 * time.Hour, 2 * time.Hour}}

// notice is a message that is due because of an event in an order's history.
type notice struct {
	PatientMessage
	due      time.Time
	until    time.Time // time from which on the message is not sent; zero for no limit
	reminder bool
	fallback bool // the message is sent only if the patient cannot get e-mail
	team     bool // the message is to the team, whose address is read when it is sent
}

// notices returns the unsent messages that the order's history and its appointment require, to the patient and to the
// team. A reminder is among them only while the order has the status that it is for.
func (r *Record) notices() []notice {
	out := r.patientNotices()
	if at := r.Notifications.Alarmed; !at.IsZero() {
		out = append(out, notice{due: at, team: true, PatientMessage: PatientMessage{
			ID: uuid.NewSHA1(r.ID.UUID, []byte(AlertTeam)), Team: r.TeamID, Order: r.ID, User: r.UserID, Channel: Email,
			Moment: AlertTeam, Method: r.Method(), At: at,
		}})
	}
	return slices.DeleteFunc(out, func(n notice) bool { return n.To == "" && !n.team || slices.Contains(r.Notifications.Sent, n.ID) })
}

// patientNotices returns the messages to the patient, including those that were sent.
func (r *Record) patientNotices() []notice {
	if !r.Notifications.Notify {
		return nil
	}
	imported := r.Reached(RequisitionBypassed)
	var out []notice
	for _, e := range r.Events {
		low := e.Status.LowLevel()
		for _, m := range moments[r.Method()] {
			if m.low != low || imported && low == Ordered || m.after > 0 && r.LowLevel() != low {
				continue
			}
			channels, mailed := m.channels, r.Method() == catalogue.AtHomePhlebotomy && len(m.channels) == 1
			if mailed {
				channels = []Channel{Email, SMS}
			}
			for _, c := range channels {
				out = append(out, notice{due: e.CreatedAt.Add(m.after), reminder: m.after > 0, fallback: mailed && c == SMS,
					PatientMessage: r.message(c, m.as, e.CreatedAt.Time, fmt.Appendf(nil, "%d %s %s %d", e.ID, m.as, c, m.after))})
			}
		}
	}
	return append(out, r.visitNotices()...)
}

func (r *Record) hasAppointment() bool {
	i := r.ActiveVisit()
	return i >= 0 && r.Visits[i].Status.Published()
}

// visitNotices returns the reminders of the patient's appointment. A reminder that was due before the order's latest
// event is left out.
func (r *Record) visitNotices() []notice {
	i := r.ActiveVisit()
	if i < 0 || r.LowLevel() != AppointmentScheduled || r.Visits[i].Status != appointment.VisitConfirmed || r.Visits[i].StartAt == nil {
		return nil
	}
	v := &r.Visits[i]
	var out []notice
	for _, before := range beforeVisit[r.Method()] {
		due := v.StartAt.Add(-before)
		if due.Before(r.LastEvent.CreatedAt.Time) {
			continue
		}
		for _, c := range []Channel{SMS, Email} {
			out = append(out, notice{due: due, until: v.StartAt.Time, reminder: true, PatientMessage: r.message(c, RemindAppointment, v.StartAt.Time,
				fmt.Appendf(nil, "%s %s %d %s %d", RemindAppointment, v.ID, v.StartAt.UnixMicro(), c, before))})
		}
	}
	return out
}

// message returns a message to the patient about the occasion as, whose time is at. The id of the message is derived
// from the order's id and key, so every call with the same key returns the same id.
func (r *Record) message(c Channel, as Moment, at time.Time, key []byte) PatientMessage {
	m := PatientMessage{ID: uuid.NewSHA1(r.ID.UUID, key), Team: r.TeamID, Order: r.ID, User: r.UserID, Channel: c, To: r.address(c),
		Moment: as, Method: r.Method(), At: at}
	if r.PatientDetails != nil && r.PatientDetails.FirstName != nil {
		m.FirstName = *r.PatientDetails.FirstName
	}
	return m
}

// address returns the patient's address on a channel; empty if unknown.
func (r *Record) address(c Channel) string {
	p := r.PatientDetails
	switch {
	case p == nil:
		return ""
	case c == SMS && p.PhoneNumber != nil:
		return *p.PhoneNumber
	case c == Email && p.Email != nil:
		return *p.Email
	}
	return ""
}

// PlanMessages sets the time of the order's next message.
func (r *Record) PlanMessages() {
	var due time.Time
	earlier := func(t time.Time) {
		if due.IsZero() || t.Before(due) {
			due = t
		}
	}
	for _, n := range r.notices() {
		earlier(n.due)
	}
	r.Notifications.Due = due
}

func (r *Record) allowsSMS(settings Settings) bool {
	if r.SMSEnabled != nil {
		return *r.SMSEnabled
	}
	return !settings.SMSOff
}

// shouldSend reports whether the settings allow a message.
func (n notice) shouldSend(r *Record, settings Settings) bool {
	switch {
	case n.team:
		return n.To != ""
	case n.Moment == RemindVisit && r.hasAppointment():
		return false
	case n.reminder && !settings.Reminders, n.fallback && r.address(Email) != "" && !settings.EmailOff:
		return false
	case n.Channel == SMS:
		return r.allowsSMS(settings)
	default:
		return !settings.EmailOff
	}
}
