// Package simulation answers one question: what would a laboratory report of this order?
//
// [Lab] walks orders of a sandbox to a status, for [exchange.Options].Simulator. [SuccessPath],
// [Tracking] and [Results] make up the parts, for laboratories of a sandbox of one's own. All
// of it is pure: the same order and moment give the same report.
//
// [MatchTests] uses them to show a team its review queue: a test run hands in a result that fits no order
// for certain, and checks that the result waits for the team's decision.
package simulation
