// Package orders places lab orders and stores their status and results. Every change of an order's status is
// appended to the order's history and reported to the team as an event, except partial results that the team does
// not want.
//
//	lab, err := orders.New(store.Orders(), users, catalogue, &orders.Options{Environment: healthlab.Production})
//	order, err := lab.Place(ctx, team, orders.PlaceRequest{UserID: patient, …})
//	results, err := lab.Results(ctx, team, order.ID)
//
// Two packages that import this one change the status of orders:
//
//   - package exchange submits orders to the laboratory, processes its reports, and matches results to orders.
//   - package visits books the appointments of orders.
//
// The main types:
//
//   - [Service] places, reads, lists and cancels orders, and registers kits. [PatientMessages] sends messages to
//     patients, and [Files] stores the files of orders.
//   - [Order] is an order in the HTTP API, with its history ([OrderEvent]) and its transaction, which includes
//     redraws and replacements ([OrderTransaction]).
//   - [Next] returns the status after a trigger, for each [catalogue.CollectionMethod]; [Diagram] returns the
//     lifecycle as a diagram.
//   - [Record] is a stored order, with the rules that change it; [Store] stores it.
//
// Other packages answer related questions:
//
//   - [catalogue]: what can a team order? [Service.Catalogue]
//   - [people]: who is the patient, and who pays? [Service.People]
//   - [appointment]: where and when can a sample be taken?
//   - [labresult]: what did the laboratory measure?
//   - package documents: which documents of an order can be printed?
//   - package critical: who has acknowledged a critical result?
//   - package simulation: what would a laboratory report about an order in a sandbox?
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
