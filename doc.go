// Package healthlab is the front door of a library for teams that build on
// people's health data and lab tests.
//
// It takes the part that everybody gets wrong once: samples that arrive twice or
// late, local days in a moving time zone, events that are lost or overtake each
// other, results in the wrong unit or on the wrong order.
//
// The packages, and the question each of them answers:
//
//   - healthdata: who are the users, which sources have they connected, and what
//     did those sources measure?
//   - aggregate: what does a year of that look like by day, week or hour, in the
//     user's own local time?
//   - linking: how does a person connect a source, safely?
//   - orders: where is this lab order, and what came out of it?
//   - labreport: what does this report on paper say, in LOINC?
//   - webhook: how does the customer's system learn of all that?
//
// Each of them has pure rules, a few small interfaces (a Store, and where needed a
// connector to the world) and a Service that joins the two. The folder adapters
// holds implementations of those interfaces: memory, postgres, sandbox, net/http and
// more. A host mixes them as it likes; examples/server is the whole service in
// one program.
//
// This package itself holds only the words that the others share: ids ([TeamID],
// [UserID]), calendar and wire time ([Date], [Time]), the kinds of fault ([Kind]),
// what happened ([Event], [EventType]), and what encrypts secrets ([Sealer]).
//
// # Time
//
// Instants are kept in UTC to the microsecond and written with the offset +00:00.
// Calendar days are [Date] values; they have no zone. Which zone decides a user's
// day is a rule of the package concerned, and its documentation says so.
//
// # Faults
//
// Errors carry a [Kind], itself an error: test with
// errors.Is(err, healthlab.NotFound). Messages name places and rules, never a
// person's values, so they can be logged.
package healthlab
