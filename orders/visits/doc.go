// Package visits books appointments for orders, reschedules and cancels them, and tracks them until the
// sample is taken.
//
//	booking, err := visits.New(lab, store.Orders(), &visits.Options{
//		Slots: provider, Bookings: provider, BookingKeys: sealer,
//	})
//	free, err := booking.Places().HomeSlots(ctx, team, nil, address)
//	visit, err := booking.Book(ctx, team, order.ID, appointment.Phlebotomy, visits.BookRequest{BookingKey: key})
//
// The main types and methods:
//
//   - [Service] books, reschedules, cancels and returns the appointments of orders; [Service.Run] is its background
//     work.
//   - [Service.Places] finds centers and free times (package appointment).
//   - [Backend] is a provider of appointments: an adapter implements it.
//
// An appointment is a part of its order: [orders.Appointment] is its form in the HTTP API,
// [orders.Visit] the stored form, and the lifecycle is that of package appointment.
//
// What this package is not: a calendar. The provider decides which times are free.
package visits
