// Package orders places lab orders and stores their status and results. An order is placed once, and has
// an event for every change of its status.
//
//	lab, err := orders.New(store.Orders(), users, catalogue, &orders.Options{Environment: healthlab.Production})
//	order, err := lab.Place(ctx, team, orders.PlaceRequest{UserID: patient, …})
//	results, err := lab.Results(ctx, team, order.ID)
//
// Two packages above this one move an order along:
//
//   - package exchange submits it to the laboratory, processes the reports, and matches results to orders.
//   - package visits books its appointments.
//
// What a host calls and gets:
//
//   - [Service] places, reads, lists, registers and cancels. [PatientMessages] sends messages to patients,
//     and [Files] stores the files of orders.
//   - [Order] is an order in the HTTP API, with its history ([OrderEvent]) and its transaction, which includes
//     redraws and replacements ([OrderTransaction]).
//   - [Next] returns the status after a trigger, for each [catalogue.CollectionMethod]; [Diagram] draws the
//     lifecycle.
//   - [Record] is a stored order, with the rules that change it; [Store] stores it.
//
// Related questions have packages of their own:
//
//   - [catalogue]: what can a team order? [Service.Catalogue]
//   - [people]: who is the patient, and who pays? [Service.People]
//   - [appointment]: where and when can a sample be taken?
//   - [labresult]: what did the laboratory measure?
//   - packages documents, critical and simulation: what is printed, who has seen a critical result, and what
//     would a laboratory report?
//
// The id of an [OrderEvent] grows with every event of its order and is unique within a team. A store
// assigns it; ids may have gaps.
//
// What this package is not: a client of any particular laboratory, and not a reader of report files (see
// package labreport).
package orders

// Files in the order of reading: each uses those before it.
//
//	rows_event_ids.go reported_patient.go enum.go lifecycle.go order.go query.go visit.go interfaces.go
//	store.go event.go transition.go visit_record.go files.go notifications.go patient_messages.go service.go
//	request.go change_order.go plan.go rows.go rows_order.go rows_list.go rows_claim.go resend.go order_results.go
//	deleted_user.go testkit.go place_order.go followup_order.go
