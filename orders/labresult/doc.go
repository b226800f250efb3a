// Package labresult answers one question: what did the laboratory measure?
//
// Names to know:
//
//   - [Report] is a laboratory's report: [Result] values, [Missing] ones, and samples.
//   - [Complete] adds the catalogue's data of the ordered lab test to a report.
//   - [Result.Compare] parses a reference range and sets whether the result is outside of it.
//   - [Merge] joins the reports of a transaction: an order with its redraw and replacements.
//   - [MarkCorrected] marks the results that a corrected report changed, [MarkChanged] those that a
//     partial or final report corrected.
//
// The package has values and pure functions only. Package orders stores reports with their orders.
package labresult
