package series

import (
	"encoding/binary"
	"math"
	"slices"
)

// pieceHead is the length of what stands before each piece of a tail: its own length.
const pieceHead = 2

// NewPiece encodes a small batch as a piece of a tail. A tail is the pieces of a log in
// one run of bytes, the newest first: a store appends to the log by putting a piece
// before what it has, unread, and [ReadTail] makes a segment of it.
//
// A piece is 2 bytes of length, little-endian, and what [Encode] writes. The faults are
// those of [Encode], and Invalid for a batch whose encoding is longer than 65535 bytes.
func NewPiece(b *Block) ([]byte, error) {
	piece, err := Encode(make([]byte, pieceHead, 64+3*b.Len()), b)
	if err != nil {
		return nil, err
	}
	n := len(piece) - pieceHead
	if n > math.MaxUint16 {
		return nil, invalid("a batch is too long for a tail")
	}
	binary.LittleEndian.PutUint16(piece, uint16(n))
	return slices.Clip(piece), nil
}

// ReadTail returns the samples of a tail as one segment. Where two pieces have a sample
// at the same time, the newer one wins. What is not made of pieces gives [ErrCorrupt],
// as does an empty tail.
func ReadTail(tail []byte) (Segment, error) {
	var pieces [][]byte
	for len(tail) > 0 {
		ok := true
		head, rest := takeBytes(tail, pieceHead, &ok)
		if !ok {
			return Segment{}, corrupt("tail")
		}
		data, rest := takeBytes(rest, int(binary.LittleEndian.Uint16(head)), &ok)
		if !ok {
			return Segment{}, corrupt("tail")
		}
		pieces, tail = append(pieces, data), rest
	}
	var all, piece, spare Block
	for _, data := range slices.Backward(pieces) {
		if err := Decode(&piece, data); err != nil {
			return Segment{}, err
		}
		if all.Len()+piece.Len() > MaxLen {
			return Segment{}, corrupt("tail")
		}
		all.put(&piece, &spare)
	}
	if all.Len() == 0 {
		return Segment{}, corrupt("tail")
	}
	all.tidy()
	return NewChunk(&all)
}
