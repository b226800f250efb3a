// Package fileupload accepts files of devices and phones over HTTP, each for one person: the JSON that Health Auto
// Export sends on a schedule, and every other file that package fileimport reads.
//
// The names to know:
//
//   - [Handler]: the handler, under the rules of adapters/httpapi.
//   - [Config]: the services behind it, and the largest file.
//   - [Result]: the answer, with what is stored and what is left out.
//
// [fileimport.Import] reads the file: a bad item is left out alone. A file that arrives twice is stored once. The
// status is 200 if the file is read, even if it is empty or all of it is left out, which the counts tell. It is 422 if
// nothing can be read or the service refuses every item.
//
// A caller that may act for one user only (httpapi.Caller.User) can send files of that user only. The key of a team
// gives access to all its users, so it does not belong on a phone: see docs/account-exports.md.
//
// The package keeps no file and has no queue: it answers a request when its file is stored.
package fileupload
