// Package wire reads requests and writes answers for the handlers of httpapi. It reports every problem of a request
// at once.
//
// A handler reads all values through one [In], and then asks for their problems:
//
//	in := wire.From(r)
//	id := in.PathUUID("user_id")
//	limit := in.Int("limit", 100, 1, 500)
//	var body createUser
//	in.Body(&body)
//	if err := in.Err(); err != nil {
//		return err // every problem of path, query, headers and body
//	}
//	…
//	return wire.JSON(w, http.StatusOK, out)
//
// # Bodies
//
// [Decode] reads the JSON text once, and records every problem with its path. A value that it accepts is decoded as
// encoding/json would decode it. The Go type defines what is valid:
//
//   - A field is required, unless it is a pointer, an [Opt], or has omitempty or omitzero.
//   - Null is accepted by pointers, [Opt], json.RawMessage and any. Elsewhere it is a problem.
//   - A type with UnmarshalJSON gets its raw bytes after a check of the JSON syntax. A type with UnmarshalText gets
//     the text. A UUID must have 36 characters, in any case.
//   - Keys must be spelt exactly, and must be unique. Unknown keys are refused, unless [Options.IgnoreUnknown] is set.
//     A known key in the wrong case is always refused.
//
// A second tag, wire, adjusts a field. Several words are separated by commas:
//
//	required   a pointer, Opt or omitempty field must be present
//	out        only answers have the field: in a request it is an unknown key
//	in         only requests have the field, and it may be absent
//	opt        in requests the field may be absent or null; the service fills it in
//	nullable   null is accepted and leaves the zero value (lists, maps, types with UnmarshalJSON);
//	           in answers, a list or map may be null
//	notnull    null is refused (pointers, Opt, json.RawMessage, any)
//	filled     in answers, a pointer is never nil
//	tolerant   an integer may be written as 78.0
//	offset     a date and time keeps its written offset, if not Z, UTC or GMT, as its location
//	items      the elements of a list are items of an upload; see [In.Items]
//	points     the elements of a list are values of points of an upload: one with problems is left zero,
//	           and Unparsed names its position and the list
//	max=20     a list or map has at most 20 elements
//
// Problems name paths and rules, and never repeat a value. They repeat unknown keys, cut to 64 bytes, so that the
// client can find a misspelt key.
//
// # Answers
//
// [JSON] encodes the whole answer before it sends anything, so that a value that cannot be encoded becomes an answer
// with status 500. It does not replace nil by []: types of answers never have a nil list or map in a field that is
// always written, which the contract tests check.
package wire

// Files in the order of reading: each uses those before it.
//
//	opt.go scan.go plan.go decode.go fault.go in.go coding.go body.go decode_scalar.go decode_list.go query.go
//	form.go own.go reply.go decode_raw.go
