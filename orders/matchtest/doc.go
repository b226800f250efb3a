// Package matchtest answers one question: what happens to a result that fits no order for
// certain?
//
// A team of a sandbox asks for a test run of one [Case]. A [Service] makes the orders that the
// case needs, or takes the team's own, brings them to where the case needs them, hands in a
// result as a laboratory would, and checks that the result waits for the team's decision. The
// [Store] keeps the runs.
package matchtest
