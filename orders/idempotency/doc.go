// Package idempotency runs a request with an idempotency key once and repeats its answer.
//
// [Service.Once] runs a [Request] once for each key of a [Scope], stores its [Outcome], and
// gives the same answer to every repetition. [Keys] is the store. A request that places an order
// gets the same [orders.OrderID] in each run ([orders.Service.PlaceAs]). So a process that
// crashes before it stores the answer does not cause a second order.
package idempotency
