// Package orders answers two questions: where is this lab order, and what came out of it? An order is
// placed once, is where its status says it is, reaches the right result, and tells the customer of every
// step.
//
//	lab, err := orders.New(store.Orders(), users, catalogue, laboratory, &orders.Options{
//		Environment: healthlab.Production, Reviews: store.Reviews(),
//	})
//	order, err := lab.Place(ctx, team, orders.PlaceRequest{UserID: patient, …})
//	results, err := lab.Results(ctx, team, order.ID)
//
// [Service.Run] is the background work: it hands orders to the laboratory, and takes in what that reports.
//
// What a host calls and gets:
//
//   - [Service] places, reads, lists, registers and cancels.
//   - [Order] is an order as it is published, with its history ([OrderEvent]) and the journey it belongs to
//     ([OrderTransaction]).
//   - [Next] says what may follow what, one variant per [catalogue.CollectionMethod]; [Diagram] draws it.
//   - [Appointment] is a visit for an order; [Bookings.Book] books one.
//   - [LabBackend] is a laboratory: an adapter implements it.
//
// Questions beside the order have packages of their own:
//
//   - [catalogue]: what can a team order? [Service.Catalogue]
//   - [people]: who is the patient, and who pays? [Service.People]
//   - [appointment]: where and when can a sample be taken? [Service.Appointments]
//   - [labresult]: what did the laboratory measure?
//   - packages documents, critical and simulation: what is printed, who has seen a critical result, and what
//     would a laboratory report?
//
// The id of an [OrderEvent] grows with every event of its order and is unique within a team. A store draws
// it, so ids have gaps.
//
// What this package is not: a client of any particular laboratory, and not a reader of report files (see
// package labreport).
package orders

// Files in the order of reading: each uses those before it.
//
//	rows_event_ids.go reported_patient.go enum.go lifecycle.go order.go query.go visit.go interfaces.go
//	store.go event.go transition.go visit_record.go unmatched_result.go service.go request.go change_order.go
//	patient_match.go review_queue.go plan.go rows.go run.go lab_submission.go lab_feed.go rows_order.go
//	rows_list.go rows_claim.go resend.go order_results.go notifications.go deleted_user.go visit_booking.go
//	testkit.go place_order.go followup_order.go review_accept.go files.go rows_review.go lab_updates.go
//	simulate.go visit_loop.go
