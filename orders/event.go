package orders

import (
	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders/critical"
)

// Event types of this package.
const (
	EventOrderCreated       = "labtest.order.created"
	EventOrderUpdated       = "labtest.order.updated"
	EventAppointmentCreated = "labtest.appointment.created"
	EventAppointmentUpdated = "labtest.appointment.updated"
)

// EventTypes lists the event types of this package and of package critical. The key of an order's events is the
// order's id.
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
