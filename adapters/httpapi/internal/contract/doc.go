// Package contract checks that httpapi and its contract say the same. It is for
// tests.
//
//   - [Client] sends requests to a handler and checks every reply against the
//     document: status, content type, body. What was answered with success it checks
//     on the way in, too.
//   - [CheckTypes] compares Go types with schemas: keys, required, nullable, types.
//   - [NilCollections] finds lists and maps that would be null on the wire.
//   - [Leaks] plants values in every part of every operation and looks for them in
//     logs and in the replies that refuse; [Strays] makes the same calls and checks
//     the replies against the document.
package contract
