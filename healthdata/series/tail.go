package series

import (
	"encoding/binary"
	"math"
	"slices"
)

const (
	// pieceHead is the length of what stands before each piece of a tail: its own length.
	pieceHead = 2

	// packed is the first byte of a piece whose zeros are left out. No format of a chunk
	// has this number.
	packed = 2
	// packedBits is the length of what says which bytes of the head of a packed piece, but
	// its first, are not zero.
	packedBits = (fixedBytes - 1 + 7) / 8
)

// NewPiece encodes a small batch as a piece of a tail. A tail is the pieces of a log in
// one run of bytes, the newest first: a store appends to the log by putting a piece
// before what it has, unread, and [ReadTail] makes a segment of it.
//
// A piece is 2 bytes of length, little-endian, and what [Encode] writes. Of that the first
// 36 bytes, which are most of a small batch and most of them zero, are packed where this
// makes them shorter: a 2; 5 bytes, little-endian, whose bit i says that byte i + 1 is not
// zero; and the bytes that are not. The errors are those of [Encode], and Invalid for a
// batch whose encoding is longer than 65535 bytes.
//
// If seal is not nil, it encrypts the bytes behind the length, and its error is returned.
func NewPiece(b *Block, seal func(plain []byte) ([]byte, error)) ([]byte, error) {
	piece, err := Encode(make([]byte, pieceHead, 64+3*b.Len()), b)
	if err != nil {
		return nil, err
	}
	piece = piece[:pieceHead+len(pack(piece[pieceHead:]))]
	if seal != nil {
		box, err := seal(piece[pieceHead:])
		if err != nil {
			return nil, err
		}
		piece = append(piece[:pieceHead], box...)
	}
	n := len(piece) - pieceHead
	if n > math.MaxUint16 {
		return nil, invalid("a batch is too long for a tail")
	}
	binary.LittleEndian.PutUint16(piece, uint16(n))
	return slices.Clip(piece), nil
}

// pack leaves the zeros out of the head of what Encode wrote, in place, if that makes it
// shorter.
func pack(data []byte) []byte {
	head := [1 + packedBits + fixedBytes]byte{packed}
	n := 1 + packedBits
	for i, v := range data[1:fixedBytes] {
		if v != 0 {
			head[1+i/8] |= 1 << (i % 8)
			head[n] = v
			n++
		}
	}
	if n >= fixedBytes {
		return data
	}
	return data[:copy(data, head[:n])+copy(data[n:], data[fixedBytes:])]
}

// unpack appends to dst what pack was given, which began with formatOne.
func unpack(dst, data []byte) (out []byte, ok bool) {
	ok = true
	bits, rest := takeBytes(data[1:], packedBits, &ok)
	if !ok || bits[packedBits-1]>>((fixedBytes-1)%8) != 0 {
		return dst, false
	}
	dst = append(dst, formatOne)
	for i := range fixedBytes - 1 {
		var v byte
		if bits[i/8]>>(i%8)&1 != 0 {
			if len(rest) == 0 || rest[0] == 0 {
				return dst, false
			}
			v, rest = rest[0], rest[1:]
		}
		dst = append(dst, v)
	}
	return append(dst, rest...), true
}

// ReadTail returns the samples of a tail as one segment. Where two pieces have a sample
// at the same time, the newer one wins. What is not made of pieces gives [ErrCorrupt],
// as does an empty tail.
//
// If open is not nil, it gets the bytes of each piece behind the length and returns them as they
// were before they were encrypted; its error is returned.
func ReadTail(tail []byte, open func(piece []byte) ([]byte, error)) (Segment, error) {
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
	var whole []byte
	for _, data := range slices.Backward(pieces) {
		if open != nil {
			var err error
			if data, err = open(data); err != nil {
				return Segment{}, err
			}
		}
		if len(data) > 0 && data[0] == packed {
			var ok bool
			if whole, ok = unpack(whole[:0], data); !ok {
				return Segment{}, corrupt("tail")
			}
			data = whole
		}
		if err := Decode(&piece, data); err != nil {
			return Segment{}, err
		}
		if all.Len()+piece.Len() > MaxLen {
			return Segment{}, corrupt("tail")
		}
		if all.Len() == 0 {
			all.grow(min(piece.Len()*len(pieces), MaxLen)) // they are mostly alike
		}
		all.put(&piece, &spare)
	}
	if all.Len() == 0 {
		return Segment{}, corrupt("tail")
	}
	all.tidy()
	return NewChunk(&all)
}
