// Package tables shows the summaries of a resource as rows of typed columns, for queries and exports.
//
// The names to know:
//
//   - [All] and [ByName]: the tables. They derive from the catalogue of package healthdata, where a
//     resource names its table.
//   - [Table] and [Column]: a table and its columns, with types, units and descriptions.
//   - [Row] and [Cell]: a summary, and one value of it.
//   - [SampleColumns]: the columns of the samples of a timeseries.
//
// It reads no store and computes no query: package aggregate does.
package tables
