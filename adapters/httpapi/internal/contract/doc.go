// Package contract helps tests to check that the handlers of httpapi and the OpenAPI contract agree.
//
//   - [Client] sends requests to a handler, and checks the status, content type and body of every reply. If the reply
//     is a success, it checks the request too.
//   - [CheckTypes] compares Go types with schemas: keys, required, null and types.
//   - [NilCollections] finds slices and maps that would be encoded as null.
//   - [Leaks] sends recognisable values in every part of every request, and searches for them in logs and in error
//     answers. [Strays] sends the same requests, and checks the replies against the contract.
//   - [Fuzz] sends random requests, [WrongValues] wrong values of enumerations, and [Foreign] ids of another team.
package contract
