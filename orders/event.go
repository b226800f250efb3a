package orders

import (
	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/critical"
)

// Names of the events that this package emits.
const (
	EventOrderCreated       = "labtest.order.created"
	EventOrderUpdated       = "labtest.order.updated"
	EventAppointmentCreated = "labtest.appointment.created"
	EventAppointmentUpdated = "labtest.appointment.updated"
)

// EventTypes lists the events that this package and package critical emit. The events of an order
// have its id as key.
func EventTypes() []healthlab.EventType {
	return append([]healthlab.EventType{
		{Name: EventOrderCreated, Mode: healthlab.Ordered, Data: Order{},
			Doc: "A lab order was placed; its first event is ordered."},
		{Name: EventOrderUpdated, Mode: healthlab.Ordered, Data: Order{},
			Doc: "A lab order got a further event; partial results only for teams that asked for them."},
		{Name: EventAppointmentCreated, Mode: healthlab.Ordered, Data: Appointment{},
			Doc: "An appointment was made for an order."},
		{Name: EventAppointmentUpdated, Mode: healthlab.Ordered, Data: Appointment{},
			Doc: "An appointment changed its status or its time."},
	}, critical.EventTypes()...)
}
