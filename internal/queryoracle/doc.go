// Package queryoracle draws random data and random aggregate queries, and answers them the slow
// way: one struct a sample, maps, and the calendar arithmetic of package time. It shares no code
// with the engine of package aggregate. [Question.SQL] is the same query for PostgreSQL.
package queryoracle
