// Package continuous keeps the answers to stored questions up to date: a table for every
// user of a team, evaluated again where the user's data changes.
//
// The names to know:
//
//   - [Query]: a stored question of package aggregate; [Definition] is what a team says of it.
//   - [Service]: checks, stores and evaluates queries. [Service.Run] does the work that is due.
//   - [Store] and [Work]: what keeps queries, tables and tasks.
//   - [ResultTableChange]: the event about rows that are new or changed.
//
// A store schedules a task in the commit that changes data, over the time in which it
// changed. The service evaluates the buckets that the task touches, and writes the table and
// its event in one commit.
//
// # What it is not
//
// It does not evaluate anything itself: [aggregate.Prepared] does. It is no stream: a table
// follows its data after [Query.Gap], 30 minutes at least.
package continuous

// Files in the order of reading: each uses those before it.
//
//	mapper.go query.go decode.go event.go store.go rows.go rows_tasks.go service.go run.go
