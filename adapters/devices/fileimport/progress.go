package fileimport

import "io"

// progress calls Options.Progress with the number of bytes read from the files of an import.
type progress struct {
	tell       func(read, size int64)
	told, size int64
}

func (p *progress) report(read int64) {
	if read = min(read, p.size); read > p.told {
		p.told = read
		p.tell(read, p.size)
	}
}

// span is the part of an import's progress that one file covers. A nil span reports nothing.
type span struct {
	of *progress
	// from is the position of the file in the bytes of the import, and length its packed size.
	from, length int64
	// size is the unpacked size of the file, and read how many of these bytes were read.
	size, read int64
}

func spanOf(o *Options, size int64) *span {
	if o.Progress == nil {
		return nil
	}
	return &span{of: &progress{tell: o.Progress, size: size}, length: size, size: size}
}

// part returns the span of one of the files that s consists of. offset, length and whole are packed sizes in bytes: of
// the files before this one, of this file, and of all files. size is the unpacked size of this file.
func (s *span) part(offset, length, whole, size int64) *span {
	if s == nil || whole <= 0 {
		return nil
	}
	scale := float64(s.length) / float64(whole)
	return &span{of: s.of, from: s.from + int64(float64(offset)*scale), length: int64(float64(length) * scale), size: size}
}

// add records that n more bytes of the file were read.
func (s *span) add(n int) {
	if s == nil || s.size <= 0 {
		return
	}
	s.read = min(s.read+int64(n), s.size)
	s.of.report(s.from + int64(float64(s.length)*float64(s.read)/float64(s.size)))
}

func (s *span) end() {
	if s != nil {
		s.of.report(s.from + s.length)
	}
}

// spanReaderAt is a file with random access that counts every byte read as progress, as if each byte were read once.
type spanReaderAt struct {
	io.ReaderAt
	span *span
}

// ReadAt reads bytes and records the progress.
func (r *spanReaderAt) ReadAt(b []byte, at int64) (int, error) {
	n, err := r.ReaderAt.ReadAt(b, at)
	r.span.add(n)
	return n, err
}
