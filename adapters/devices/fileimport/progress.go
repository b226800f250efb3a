package fileimport

import "io"

// progress tells Options.Progress how many bytes of the files of an import are read.
type progress struct {
	tell       func(read, size int64)
	told, size int64
}

func (p *progress) show(read int64) {
	if read = min(read, p.size); read > p.told {
		p.told = read
		p.tell(read, p.size)
	}
}

// span is the part of an import that one file takes. A nil span tells nothing.
type span struct {
	of *progress
	// from and length are where the file is in the bytes of the import. A packed file is as long as it is packed.
	from, length int64
	// size is how long the file is when it is unpacked, and read how much of that is read.
	size, read int64
}

func spanOf(o *Options, size int64) *span {
	if o.Progress == nil {
		return nil
	}
	return &span{of: &progress{tell: o.Progress, size: size}, length: size, size: size}
}

// part is the span of a file that takes length bytes after the first offset bytes of s, of whole bytes in all.
func (s *span) part(offset, length, whole, size int64) *span {
	if s == nil || whole <= 0 {
		return nil
	}
	scale := float64(s.length) / float64(whole)
	return &span{of: s.of, from: s.from + int64(float64(offset)*scale), length: int64(float64(length) * scale), size: size}
}

// add notes that n more bytes of the file are read.
func (s *span) add(n int) {
	if s == nil || s.size <= 0 {
		return
	}
	s.read = min(s.read+int64(n), s.size)
	s.of.show(s.from + int64(float64(s.length)*float64(s.read)/float64(s.size)))
}

func (s *span) end() {
	if s != nil {
		s.of.show(s.from + s.length)
	}
}

// spanReaderAt is a file that is read at any place, mostly once each.
type spanReaderAt struct {
	io.ReaderAt
	span *span
}

// ReadAt reads, and adds what it read.
func (r *spanReaderAt) ReadAt(b []byte, at int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(b, at)
	r.span.add(n)
	return n, err
}
