// Package archtest is the law of the house as tests: which package may import which,
// ours and others'; which names the root package has; what every package owes its
// reader; and what no tracked file may say.
//
// The law is the tables in law_test.go. If a change needs an edge that is not there,
// it needs a decision record in docs/adr first, and the table follows it.
package archtest
