package series

import (
	"encoding/binary"
	"math"
	"slices"
)

const (
	// pieceHead is the length of the prefix of each piece of a tail, which holds the length of the piece.
	pieceHead = 2

	// packed is the first byte of a piece without its zero bytes. No chunk format has this number.
	packed = 2
	// packedBits is the length of the bit mask that marks the non-zero bytes in the head of a packed piece,
	// without its first byte.
	packedBits = (fixedBytes - 1 + 7) / 8
)

// NewPiece encodes a small batch as a piece of a tail. A tail is the pieces of a log in one run of bytes, the newest
// first: a store appends to the log by putting a piece before the stored bytes, without reading them, and [ReadTail]
// makes a segment of the tail.
//
// A piece is its length (2 bytes, little-endian) and the result of [Encode]. The first 36 bytes of that result are most
// of a small batch, and most of them are zero. They are packed if this makes them shorter: a 2; 5 bytes, little-endian,
// whose bit i says that byte i + 1 is not zero; and the bytes that are not zero. The errors are those of [Encode], and
// Invalid for a batch whose encoding is longer than 65535 bytes.
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

// pack removes the zero bytes from the fixed part at the start of an encoded block, in place, if that makes it shorter.
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

// unpack appends the original bytes of a packed piece to dst.
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

// ReadTail returns the samples of a tail as one segment. If two pieces have a sample of one time, that of the
// newer piece is used. An invalid or empty tail returns [ErrCorrupt]. If open is not nil, it decrypts the bytes
// of each piece after the length; its error is returned.
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
			all.grow(min(piece.Len()*len(pieces), MaxLen)) // pieces mostly have the same length
		}
		all.put(&piece, &spare)
	}
	if all.Len() == 0 {
		return Segment{}, corrupt("tail")
	}
	all.tidy()
	return NewChunk(&all)
}
