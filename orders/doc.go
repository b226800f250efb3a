// Package orders answers two questions: where is this lab order, and what came out
// of it?
//
// A lab order is a medical act. It must be placed once, be where its status says it
// is, reach the right result, and tell the customer of every step.
//
// Names to know:
//
//   - [Order] is an order as it is published, with its history ([OrderEvent]) and the
//     journey it belongs to ([OrderTransaction]).
//   - [Apply] moves an order along. What may follow what is a table, one variant per
//     [catalogue.CollectionMethod]: [Next] asks it, [Diagram] draws it, [Statuses] lists what an
//     order can be.
//   - [Service] is what handlers and hosts call: place, get, list, register, cancel.
//   - [Store] keeps orders; [LabBackend] is a laboratory; [people.Users] and [catalogue.Source]
//     say who can be a patient and what can be ordered.
//   - [Appointment] is a visit for an order; [Bookings.Book] books one, through the
//     laboratory's [BookingBackend].
//
// Questions beside the order have packages of their own, below this one unless said
// otherwise:
//
//   - [catalogue]: what can a team order? [Service.Catalogue]
//   - [people]: who is the patient, and who pays? [Service.People]
//   - [appointment]: where and when can a sample be taken? [Service.Appointments]
//   - [labresult]: what did the laboratory measure?
//   - packages documents, matchtest and simulation, above this one: what is printed of an
//     order, what happens to a result that fits none, and what would a laboratory report?
//
// [Service.Run] is the background work: it hands orders to the lab, and takes in what the lab
// reports.
//
// What this package is not: a client of any particular laboratory, and not a reader
// of report files (see package labreport).
//
// # Ids of order events
//
// The id of an [OrderEvent] grows with every event of its order and is unique within
// a team. A Store draws it, so ids have gaps.
package orders
