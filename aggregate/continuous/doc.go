// Package continuous keeps the results of stored queries up to date: one table for each query and user of a team. When
// a user's data changes, the service evaluates the affected part again.
//
// The names to know:
//
//   - [Query]: a stored query of package aggregate; [Definition] is the request for one.
//   - [Service]: checks, stores and evaluates queries. [Service.Run] evaluates due queries.
//   - [Store] and [Work]: the storage of queries, tables and tasks.
//   - [ResultTableChange]: the event about rows that are new or changed.
//
// A store schedules a task in the transaction that changes data, over the time range of the change. The service
// evaluates the buckets in that range, and writes the table and its event in one transaction.
//
// # What it is not
//
// It does not evaluate anything itself: [aggregate.Prepared] does. It is no stream: a table follows its data after
// [Query.Gap], 30 minutes at least.
package continuous

// Files in the order of reading: each uses those before it.
//
//	mapper.go query.go decode.go event.go store.go rows.go rows_tasks.go service.go run.go
