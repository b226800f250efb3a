// Package bulk works on many connections of a team at once: it makes them of tokens that
// come from another service, pauses them, hands their tokens out to the service that fetches with
// them from then on, and has their history fetched again. A team that moves away pauses
// first, so that what it exports is the newest.
//
// What takes long is an operation: it is written down with all it needs, and any process
// that runs [Service.Run] carries it on, also after a crash. For 90 days after it has ended
// it is listed ([Options].Keep), and then forgotten with all that was kept of it.
//
// It is for teams that bulk operations are enabled for. Tokens move only at providers for
// which a team has credentials of its own, for they are bound to these.
package bulk

// Files in the order of reading: each uses those before it.
//
//	op.go store.go service.go list.go rows.go rows_op.go export.go run.go rows_item.go import.go trigger.go
