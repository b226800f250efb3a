// Package exchange submits orders to laboratories and matches their results to orders. It submits orders to a
// [LabBackend], processes the backend's messages, and assigns a result to an order only if the match is certain.
// Other results wait until a person decides.
//
//	lab, err := orders.New(store.Orders(), users, catalogue, &orders.Options{Environment: healthlab.Production})
//	labs, err := exchange.New(lab, store.Orders(), store.Reviews(), laboratory, nil)
//	go labs.Run(ctx)
//	waiting, err := labs.Reviews().List(ctx, exchange.ResultQuery{Team: team})
//
// The main types and methods:
//
//   - [LabBackend] is a laboratory: an adapter implements it. [Message] is a message from it.
//   - [Service.Run] is the background work: it submits orders, processes messages and continues simulations.
//   - [Service.Reviews] and [Service.Operations] decide about results under review
//     ([UnmatchedResult]), by the team and by the service's operators.
//   - [Service.Simulate] moves an order of a sandbox to a status (package simulation generates the reports
//     of a laboratory).
//
// What this package is not: a client of any particular laboratory, and not a reader of report files (see
// package labreport).
package exchange

// Files in the order of reading: each uses those before it.
//
//	backend.go event.go unmatched_result.go service.go feed.go files.go match.go attached.go results.go
//	submission.go receive.go review_queue.go review_accept.go rows.go simulate.go
