// Package labresult answers one question: what did the laboratory measure?
//
// Names to know:
//
//   - [Report] is what a laboratory reports: [Result] values, the [Missing] ones, the samples.
//   - [Complete] fills in what the catalogue knows of the ordered test.
//   - [Result.Compare] reads a reference range and says whether the result lies outside of it.
//   - [Merge] joins the reports of several orders of one testing journey.
//   - [MarkCorrected] marks what a corrected report changed, [MarkChanged] what another one did.
//
// All of it is values and pure functions. Package orders keeps reports with their orders.
package labresult
