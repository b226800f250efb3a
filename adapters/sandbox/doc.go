// Package sandbox is a world to try things in: a [Provider] whose people have
// believable days, and a laboratory that walks orders from the post to the result.
//
// Both are deterministic: the same user and day give the same data in every process,
// and the same order has the same behaviour. They are behaviour, not mocks: they fail on
// demand as real ones do, and what they deliver goes through the same services.
package sandbox
