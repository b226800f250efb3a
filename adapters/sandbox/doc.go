// Package sandbox is a world to try things in: a [Provider] whose people have
// believable days, and a laboratory that walks orders from the post to the result.
//
// Both are deterministic: the same user and day give the same data in every process,
// and the same order has the same behaviour. They are behaviour, not mocks: they fail on
// demand as real ones do, and what they deliver goes through the same services.
package sandbox

// Files in the order of reading: each uses those before it.
//
//	person.go day.go provider.go connector.go control.go grant.go lab_catalogue.go lab_outcome.go lab_visits.go
//	lab.go outbox.go page.go push.go registry.go samples.go summaries.go device.go pull.go
