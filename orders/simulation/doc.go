// Package simulation generates the reports of a laboratory for simulated orders.
//
// [Lab] decides the steps and reports by which an order in a sandbox reaches a status; set it as
// [exchange.Options].Simulator. [SuccessPath], [Tracking] and [Results] generate parts of its reports, for hosts with
// a simulated laboratory of their own. They are pure: the same order and time give the same report.
//
// [MatchTests] uses them so that a team can try its review queue: a test run sends a result that matches no order
// with certainty, and checks that the result waits for the team's decision.
package simulation
