// Package fileupload takes files of devices and phones over HTTP, for one person each: the JSON that
// Health Auto Export sends on a schedule, and every other file that package fileimport reads.
//
// The names to know:
//
//   - [Handler]: the handler, under the rules of adapters/httpapi.
//   - [Config]: the services behind it, and the largest file.
//   - [Result]: the answer, with what is stored and what is left out.
//
// A file is read by [fileimport.Import]: one bad item costs itself. A file that comes twice is stored once.
// The status is 200 if something of the file is stored or was there, and 422 if nothing of it can be
// read or all of it is refused.
//
// A caller that is bound to one user (httpapi.Caller.User) sends files of that user alone. A key of a team
// opens all its users, so it does not belong on a phone: see docs/account-exports.md.
//
// The package keeps no file, and has no queue: a request is answered when its file is stored.
package fileupload
