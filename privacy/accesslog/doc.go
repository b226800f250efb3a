// Package accesslog records every access to the data of a person: who, whose data, which
// kind, which operation, with which outcome.
//
// A line is added in the transaction of the accessed data ([Service.Add]) or in one of its own
// ([Service.Record]). [Service.Run] seals lines within a second: it gives them their numbers in the
// chain of their team and signs its end. So lines of one team are added without waiting for each other.
//
// The lines of a team form a chain: each has the hash of the line before it, so a line that is
// removed, changed or moved is found ([Verifier]). An [Anchor] is a signed copy of the end of
// a chain; kept elsewhere, it shows that lines were cut off at the end.
//
//	log, err := accesslog.New(store, key, nil)
//	err = log.Record(ctx, accesslog.Entry{Team: team, Actor: "key:…", Person: user, Operation: "read_sleep", Status: 200})
//
// A line holds ids and no value of a person. It stays after the person is erased.
//
// Names to know: [Service], [Store], [Entry], [Line], [Verifier].
package accesslog
