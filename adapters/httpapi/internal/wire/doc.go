// Package wire is what stands between HTTP and the handlers of httpapi: strict
// input, exact output.
//
// A handler reads everything through one [In] and asks once whether all was well:
//
//	in := wire.From(r)
//	id := in.PathUUID("user_id")
//	limit := in.Int("limit", 100, 1, 500)
//	var body createUser
//	in.Body(&body)
//	if err := in.Err(); err != nil {
//		return err // every problem of path, query, headers and body at once
//	}
//	…
//	return wire.JSON(w, http.StatusOK, out)
//
// # Bodies
//
// [Decode] walks the JSON text once beside the Go type and notes every problem with
// its exact path; what it accepts is what encoding/json would have made of it. The
// Go type says what is expected:
//
//   - A field is required, unless it is a pointer, an [Opt], or has omitempty or
//     omitzero.
//   - Null is accepted by pointers, [Opt], json.RawMessage and any. Elsewhere it is a
//     problem.
//   - A type with UnmarshalJSON gets its raw bytes, checked to be sound JSON. A type
//     with UnmarshalText gets the text. Ids of 36 characters are the only spelling of
//     a UUID, in any case.
//   - Keys must be spelt exactly, and once. Unknown keys are refused, unless
//     [Options.IgnoreUnknown] is set. A known key in the wrong case is always refused.
//
// A second tag, wire, adjusts a field; several words are separated by commas:
//
//	required   a pointer, Opt or omitempty field that must be present all the same
//	out        written by us only: on the way in it is an unknown key
//	in         read only, never part of an answer; may be absent
//	opt        may be absent or null on the way in, where we fill it in
//	nullable   null is accepted and leaves the zero value (lists, maps, own types);
//	           in what we write, a list or map may be null
//	notnull    null is refused (pointers, Opt, json.RawMessage, any)
//	tolerant   an integer may be written as 78.0
//	offset     a date and time keeps its written offset, if not Z, UTC or GMT, as its location
//	items      the elements of a list are items of an upload; see [In.Items]
//	points     the elements of a list are values of points of an upload: one with problems is left zero,
//	           and Unparsed names its position and the list
//	max=20     a list or map holds at most so many
//
// Problems name places and rules and never repeat a value. The one thing of a
// caller's that they do repeat, cut to 64 bytes, is the name of a key that is not
// known, for a misspelt key must be found.
//
// # Answers
//
// [JSON] encodes first and writes after, so a failure to encode is still a clean
// 500. It does not turn nil into []: published types never hold a nil list or map in
// a field that is always written, and the contract tests check that.
package wire

// Files in the order of reading: each uses those before it.
//
//	opt.go scan.go plan.go decode.go fault.go in.go coding.go body.go decode_scalar.go decode_list.go query.go
//	form.go own.go reply.go decode_raw.go
