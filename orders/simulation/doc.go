// Package simulation generates the reports of a laboratory for simulated orders.
//
// [Lab] moves orders of a sandbox to a status, for [exchange.Options].Simulator. [SuccessPath], [Tracking] and
// [Results] generate parts of its reports, for hosts with a simulated laboratory of their own. They are pure:
// the same order and time give the same report.
//
// [MatchTests] uses them to show a team its review queue: a test run sends a result that matches no order
// with certainty, and checks that the result waits for the team's decision.
package simulation
