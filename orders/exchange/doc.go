// Package exchange answers two questions: what does the laboratory get of an order, and whose is what it
// reports? It hands orders to a [LabBackend], takes in its messages, and gives a result to an order only where
// that is certain. Everything else waits for a person.
//
//	lab, err := orders.New(store.Orders(), users, catalogue, &orders.Options{Environment: healthlab.Production})
//	labs, err := exchange.New(lab, store.Orders(), store.Reviews(), laboratory, nil)
//	go labs.Run(ctx)
//	waiting, err := labs.Reviews().List(ctx, exchange.ResultQuery{Team: team})
//
// What a host calls and gets:
//
//   - [LabBackend] is a laboratory: an adapter implements it. [Message] is what it reports.
//   - [Service.Run] is the background work: it hands orders over and takes messages in.
//   - [Service.Reviews] and [Service.Operations] are decisions about results under review
//     ([UnmatchedResult]), by the team and by the service's operators.
//   - [Service.Simulate] walks an order of a sandbox to a status (package simulation says what a laboratory
//     would report).
//
// What this package is not: a client of any particular laboratory, and not a reader of report files (see
// package labreport).
package exchange

// Files in the order of reading: each uses those before it.
//
//	backend.go event.go unmatched_result.go service.go feed.go files.go match.go results.go submission.go
//	receive.go review_queue.go review_accept.go rows.go simulate.go
