// Package accesslog records every access to the data of a person: who, whose data, which
// kind, which operation, with which outcome.
//
// [Service.Add] stores a log line in the transaction that accesses the data, [Service.Record] in a
// transaction of its own. [Service.Run] seals stored lines within a second: it gives them their
// numbers in the hash chain of their team, and signs the last line of the chain. As lines get their
// numbers later, lines of one team can be stored concurrently.
//
// Each line of a chain has the hash of the line before it, so [Verifier] detects a line that was
// removed, changed or moved. An [Anchor] is a signed copy of the last line at some time. An anchor
// that is stored elsewhere shows whether lines were cut off at the end.
//
//	log, err := accesslog.New(store, key, nil)
//	err = log.Record(ctx, accesslog.Entry{Team: team, Actor: "key:…", Person: user, Operation: "read_sleep", Status: 200})
//
// A line contains ids and no personal value. It stays after the person is erased.
//
// Names to know: [Service], [Store], [Entry], [Line], [Verifier].
package accesslog
