package fhir

import (
	"context"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/appointment"
)

type appointmentResource struct {
	head
	Identifier  []identifier  `json:"identifier"`
	Status      string        `json:"status"`
	Type        concept       `json:"appointmentType"`
	Start       string        `json:"start,omitempty"`
	End         string        `json:"end,omitempty"`
	Created     string        `json:"created,omitempty"`
	Instruction string        `json:"patientInstruction,omitempty"`
	BasedOn     []reference   `json:"basedOn"`
	Participant []participant `json:"participant"`
}

type participant struct {
	Actor  reference `json:"actor"`
	Status string    `json:"status"`
}

// visitStatus maps appointment statuses to those of a FHIR Appointment. Appointments with another status are not
// published.
var visitStatus = map[appointment.Status]string{
	appointment.VisitPending: "pending", appointment.VisitReserved: "pending", appointment.VisitConfirmed: "booked",
	appointment.VisitInProgress: "arrived", appointment.VisitCompleted: "fulfilled", appointment.VisitCancelled: "cancelled",
}

// appointments returns the appointments of an order.
func (s *server) appointments(_ context.Context, r *orders.Record) (out []match, err error) {
	for i := range r.Visits {
		v := &r.Visits[i].Appointment
		status, published := visitStatus[v.Status]
		if !published {
			continue
		}
		a := &appointmentResource{
			head:       head{ResourceType: "Appointment", ID: ofOrderID(r.ID, "appointment", v.ID.String())},
			Identifier: []identifier{{System: uriSystem, Value: "urn:uuid:" + v.ID.String()}}, Status: status,
			Type: concept{Text: strings.ReplaceAll(string(v.Type), "_", " ")}, BasedOn: requestReference(r),
			Participant: []participant{{personReference(r.UserID), "accepted"}},
		}
		if id := v.ExternalID; id != nil && *id != "" {
			a.Identifier = append(a.Identifier, identifier{System: s.URL + "/NamingSystem/appointment/" + v.Provider, Value: *id})
		}
		var when span
		switch {
		case v.StartAt != nil && v.EndAt != nil:
			a.Start, a.End = instant(v.StartAt.Time), instant(v.EndAt.Time)
			when = span{v.StartAt.Time, v.EndAt.Time}
		case status != "cancelled":
			a.Status = "proposed" // those without a time may be nothing else
		}
		if lines := texts(v.Address.FirstLine, v.Address.City, v.Address.State, v.Address.ZipCode); len(lines) > 0 {
			a.Participant = append(a.Participant, participant{reference{Display: strings.Join(lines, ", ")}, "accepted"})
		}
		if v.AppointmentNotes != nil {
			a.Instruction = *v.AppointmentNotes
		}
		var updated time.Time
		if n := len(v.Events); n > 0 {
			a.Created, updated = instant(v.Events[0].CreatedAt.Time), v.Events[n-1].CreatedAt.Time
			a.Meta.LastUpdated = instant(updated)
		}
		out = append(out, match{resource: a, status: a.Status, when: when, updated: updated})
	}
	return out, nil
}
