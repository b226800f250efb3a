// Package visits answers the question: how does an order get its appointment? It books free times for
// orders, moves and cancels appointments, and follows them until the sample is taken.
//
//	booking, err := visits.New(lab, store.Orders(), &visits.Options{
//		Slots: provider, Bookings: provider, BookingKeys: sealer,
//	})
//	free, err := booking.Places().HomeSlots(ctx, team, nil, address)
//	visit, err := booking.Book(ctx, team, order.ID, appointment.Phlebotomy, visits.BookRequest{BookingKey: key})
//
// What a host calls and gets:
//
//   - [Service] books, moves, cancels and shows the appointments of orders; [Service.Run] is its background
//     work.
//   - [Service.Places] says where and when samples can be taken (package appointment).
//   - [Backend] is a provider of appointments: an adapter implements it.
//
// An appointment is a part of its order: [orders.Appointment] is what is published, [orders.Visit] what is
// kept, and the rules for what may follow what are those of package appointment.
//
// What this package is not: a calendar. Which times are free is the provider's to say.
package visits
