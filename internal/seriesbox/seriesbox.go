// Package seriesbox encrypts what a store keeps of a series with the key of its person: the headers
// and data of chunks and segments, and the pieces of a tail. The stores in memory and in PostgreSQL
// use it, so that both encrypt alike.
//
//	cipher := seriesbox.Cipher{Keys: keys, Encrypt: true}
//	s := cipher.Series(personkey.Ref{Team: team, User: user}, &key)
//	header, data, err := s.Seal(ctx, &chunk)
//	chunk, err := s.Open(ctx, chunk.Start, header, data)
//
// Bytes that are not encrypted are read as they are, so that a store whose option was switched reads
// what it has.
package seriesbox

import (
	"context"

	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/personkey"
)

// Cipher is what a store encrypts samples with. The zero value keeps them in clear. Safe for
// concurrent use.
type Cipher struct {
	// Keys opens boxes, and seals if Encrypt is set. With nil, boxes are Unavailable.
	Keys *personkey.Keys
	// Encrypt says that what is written is encrypted.
	Encrypt bool
}

// Load opens the keys of many persons with one call of their store, if c encrypts.
func (c *Cipher) Load(ctx context.Context, refs []personkey.Ref) error {
	if !c.Encrypt {
		return nil
	}
	return c.Keys.Load(ctx, refs)
}

// Series returns what encrypts a series of a person.
func (c *Cipher) Series(ref personkey.Ref, key *healthdata.SeriesKey) Series {
	return Series{c, ref, *key}
}

// Series encrypts one series. Each box is bound to the series, and one of a chunk also to the time of
// its first sample: it does not open elsewhere. Errors are those of [personkey.Keys.Seal] and
// [personkey.Keys.Open], and of the functions of [series] that are named.
type Series struct {
	cipher *Cipher
	ref    personkey.Ref
	key    healthdata.SeriesKey
}

// seal and open make the row's name only if there is a box, since most stores keep samples in clear.
func (s *Series) seal(ctx context.Context, row func() string, plain []byte) ([]byte, error) {
	if !s.cipher.Encrypt {
		return plain, nil
	}
	return s.cipher.Keys.Seal(ctx, s.ref, row(), plain)
}

func (s *Series) open(ctx context.Context, row func() string, data []byte) ([]byte, error) {
	if !personkey.Sealed(data) {
		return data, nil
	}
	return s.cipher.Keys.Open(ctx, s.ref, row(), data)
}

func (s *Series) name() string {
	return personkey.RowSeries(s.key.Resource, s.key.Provider, string(s.key.SourceType), s.key.Part)
}

func (s *Series) headerRow(start int64) func() string {
	return func() string { return personkey.RowChunkHeader(s.name(), start) }
}

func (s *Series) dataRow(start int64) func() string {
	return func() string { return personkey.RowChunkData(s.name(), start) }
}

func (s *Series) tailRow() string { return personkey.RowTail(s.name()) }

// Seal returns the header and the data of a chunk or a segment as they are stored.
func (s *Series) Seal(ctx context.Context, c *series.Chunk) (header, data []byte, err error) {
	if header, err = s.seal(ctx, s.headerRow(c.Start), c.Append(nil)); err != nil {
		return nil, nil, err
	}
	data, err = s.seal(ctx, s.dataRow(c.Start), c.Data)
	return header, data, err
}

// Open returns the chunk or segment whose first sample is at start, by [series.ParseHeader].
func (s *Series) Open(ctx context.Context, start int64, header, data []byte) (series.Chunk, error) {
	h, err := s.OpenHeader(ctx, start, header)
	if err != nil {
		return series.Chunk{}, err
	}
	data, err = s.open(ctx, s.dataRow(start), data)
	return series.Chunk{Header: h, Data: data}, err
}

// OpenHeader is Open for the header alone.
func (s *Series) OpenHeader(ctx context.Context, start int64, header []byte) (series.Header, error) {
	header, err := s.open(ctx, s.headerRow(start), header)
	if err != nil {
		return series.Header{}, err
	}
	return series.ParseHeader(header)
}

// NewPiece returns a batch as a piece of the tail, by [series.NewPiece].
func (s *Series) NewPiece(ctx context.Context, b *series.Block) ([]byte, error) {
	return series.NewPiece(b, func(plain []byte) ([]byte, error) { return s.seal(ctx, s.tailRow, plain) })
}

// ReadTail returns the samples of a tail, by [series.ReadTail].
func (s *Series) ReadTail(ctx context.Context, tail []byte) (series.Segment, error) {
	return series.ReadTail(tail, func(piece []byte) ([]byte, error) { return s.open(ctx, s.tailRow, piece) })
}
