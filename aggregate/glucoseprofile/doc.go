// Package glucoseprofile makes the ambulatory glucose profile of a person: one day that stands for
// many, with the measures that clinicians read beside it.
//
//	p, err := glucoseprofile.Of(ctx, questions, team, user, glucoseprofile.Question{To: today})
//
// The names to know:
//
//   - [Of] asks for a [Profile]: measures, bands, percentiles by the time of day, and the last days.
//   - [Question] selects the days and the [Unit].
//   - [Printer] lays a profile out on one page; adapters/labs/pdfdoc is one.
//
// The measures are those of package aggregate, over the merged sources; docs/concepts/glucose.md has the
// formulas and their papers. It is no diagnosis.
package glucoseprofile
