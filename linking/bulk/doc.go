// Package bulk changes many connections of a team at once: it imports them from the tokens of another service,
// pauses them, exports their tokens, and fetches their history again. A team that moves to another service
// pauses first, so that the exported tokens stay valid.
//
// A long call is an operation: it is stored with its data, and any process that runs [Service.Run] continues it,
// also after a crash. It is listed for 90 days after its end ([Options].Keep), and then deleted.
//
// It is for teams that bulk operations are enabled for. Tokens move only at providers for
// which a team has credentials of its own, for they are bound to these.
package bulk

// Files in the order of reading: each uses those before it.
//
//	op.go store.go service.go list.go rows.go rows_op.go export.go run.go rows_item.go import.go trigger.go
