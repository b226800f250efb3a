// Package series keeps samples of one series in columns: it encodes, decodes, merges,
// cuts and adds them up. It is pure code over bytes and slices; it knows no database,
// no clock and no user.
//
// One series is what one user measured of one thing with one source: one resource
// (heart rate, steps), one provider, one source type, and the sample type or workout
// where that is part of the key. Inside a series the key of a sample is its time.
// The later one wins, as a whole sample.
//
// The names to know:
//
//   - [Block]: samples as columns, ascending by time. A [Builder] makes one from
//     samples in any order.
//   - [Chunk]: an encoded block with its [Header]. A stored series has a body, which is a list of chunks
//     that do not overlap, and a short log of pending chunks (segments), which were appended and not merged
//     into the body yet.
//   - [Apply]: what a store must put and drop when new samples arrive; [Remove] likewise for
//     removed samples.
//   - [Scanner]: reads chunks and pending segments as one series, in time order.
//   - [HourScanner]: the local hours that have samples, without their values.
//   - [Reducer]: count, sum, min, max, first and last per bucket of time, without
//     decoding what need not be decoded.
//
// # Writing a store
//
// A store keeps bytes and headers and has three things to do, all per series:
//
//   - append a segment: write [NewChunk] of a small batch to the log, in order of
//     arrival;
//   - load: the pending segments, and the chunks that overlap a list of ranges;
//   - replace under a lock: call [Reach] to learn which segments and ranges are affected, load
//     them, call [Apply], delete the chunks in Change.Drop and the affected segments, and write
//     the chunks in Change.Put.
//
// # Times and values
//
// Times are microseconds since 1970 in UTC, from year 1 to year 9999. Values are finite float64 and come back
// bit for bit. Functions are safe for concurrent use; a [Chunk] is immutable by convention. A [Block],
// [Builder], [Scanner], [Reducer] or [HourScanner] belongs to one goroutine.
package series

// Files in the order of reading: each uses those before it.
//
//	sum.go attrs.go block.go format.go total.go attrcode.go builder.go cursor.go encode.go decode.go chunk.go
//	span.go latest.go merge.go apply.go scan.go remove.go reduce.go hours.go
