// Package tables shows the summaries of a resource as rows of typed columns, for questions over
// them and for exports.
//
// The names to know:
//
//   - [All] and [ByName]: the tables. They derive from the catalogue of package healthdata: a
//     resource names its own.
//   - [Table] and [Column]: what a table has, with types, units and words.
//   - [Row] and [Cell]: a summary, and one value of it.
//   - [SampleColumns]: the columns that samples of a timeseries have.
//
// It reads no store and answers no question: that is package aggregate's.
package tables
