// Package sandbox has invented people and an invented laboratory to try healthlab with: a [Provider] whose people
// have plausible days, and a [Lab] that takes an order from the shipment of the kit to the result.
//
// Both are deterministic: the same user and day give the same data in every process, and the same order has the same
// course. They fail on demand as real ones do, and what they deliver is processed by the same services.
package sandbox

// Files in the order of reading: each uses those before it.
//
//	person.go day.go provider.go connector.go control.go grant.go lab_catalogue.go lab_outcome.go lab_visits.go
//	lab.go outbox.go page.go push.go registry.go samples.go summaries.go device.go pull.go
