// Package bulk changes many connections of a team at once: it imports them from the tokens of another service,
// pauses them, exports their tokens, and fetches their history again. A team that moves to another service
// pauses its connections before the export, so that the exported tokens stay valid.
//
// An import and a new fetch of histories are operations. An operation is stored with its data, and any process that
// runs [Service.Run] continues it, also after a crash. [Service.Ops] lists it until it is deleted, 90 days after its
// end ([Options].Keep).
//
// Bulk operations must be enabled for a team. A team can move tokens only of providers for which it has credentials of
// its own, because a token is bound to the OAuth client that obtained it.
package bulk

// Files in the order of reading: each uses those before it.
//
//	op.go store.go service.go list.go rows.go rows_op.go export.go run.go rows_item.go import.go trigger.go
