// Package healthlab holds the types that all packages of the library share: ids ([TeamID],
// [UserID]), days and instants ([Date], [Time]), error kinds ([ErrorKind]), events ([Event],
// [EventType]) and the encryption of secrets ([Sealer]).
//
// The library is for teams whose product touches health data or lab tests. Its packages
// answer one question each:
//
//   - healthdata: who are the users, which sources did they connect, what was measured?
//   - aggregate: what is the value per day, week or hour, in the user's local time?
//   - linking: how does a person connect a source?
//   - orders: where is this lab order, and what was its result?
//   - labreport: which results does a report file contain, in LOINC?
//   - webhook: which endpoint receives which event, signed how, retried when?
//
// Each of them has pure rules, a few small interfaces (a Store, and a connector to the
// outside where needed) and a Service that joins the two. The folder adapters holds
// implementations of the interfaces: memory, postgres, sandbox, net/http and more. A host
// chooses from them or brings its own. adapters/service assembles the whole service, and
// examples/server runs it.
//
// # Time
//
// Instants are kept in UTC to the microsecond and written with the offset +00:00.
// Calendar days are [Date] values; they have no zone. The documentation of each package
// says which zone decides a user's day.
//
// # Errors
//
// Errors have a [ErrorKind], itself an error: test with
// errors.Is(err, healthlab.NotFound). Messages name fields and rules, never a
// person's values, so that they can be logged.
package healthlab

// Version is the version of the library, by Semantic Versioning. CHANGELOG.md lists the changes of each
// version.
const Version = "0.1.0"

// Files in the order of reading: each uses those before it.
//
//	error_kind.go errors.go id.go event.go number.go private.go sealer.go text.go time.go date.go trace.go
