// Package queryoracle makes random data and random aggregate queries, and computes the expected
// answers in the simplest way: one struct for each sample, maps, and the calendar arithmetic of
// package time. It shares no code with the engine of package aggregate, so tests can compare the
// two. [Question.SQL] returns a query as SQL for PostgreSQL.
package queryoracle
