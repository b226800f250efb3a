package mllp

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Bytes around a message.
const (
	startBlock     = 0x0b
	endBlock       = 0x1c
	carriageReturn = 0x0d
)

// DefaultMaxBytes is the default for the largest message, in bytes.
const DefaultMaxBytes = 16 << 20

// Errors of a frame. After each of them a [Reader] continues with the next frame.
var (
	// ErrTooLarge is the error of a frame beyond the limit. The frame was read to its end and discarded.
	ErrTooLarge = fmt.Errorf("%w: MLLP frame: must have at most MaxBytes bytes", healthlab.Invalid)
	// ErrUnterminated is the error of a frame without an end: another frame began in it, or it timed out.
	ErrUnterminated = fmt.Errorf("%w: MLLP frame: the end of the frame is missing", healthlab.Invalid)
)

// Append appends a message to b as a frame.
func Append(b, message []byte) []byte {
	b = append(b, startBlock)
	b = append(b, message...)
	return append(b, endBlock, carriageReturn)
}

// Reader reads frames from a stream. It skips bytes between frames.
type Reader struct {
	in     io.Reader
	max    int
	buf    [4096]byte
	have   []byte // bytes in buf that were not processed yet
	inside bool   // a start block was read, but not the end of its frame
	// begun and ended are called at the start and at the end of a frame, for deadlines.
	begun, ended func()
}

// NewReader returns a Reader for frames with at most maxBytes bytes; zero means [DefaultMaxBytes].
func NewReader(in io.Reader, maxBytes int) *Reader {
	if maxBytes <= 0 {
		maxBytes = DefaultMaxBytes
	}
	return &Reader{in: in, max: maxBytes, begun: func() {}, ended: func() {}}
}

// fill reads until the buffer is not empty.
func (r *Reader) fill() error {
	for len(r.have) == 0 {
		n, err := r.in.Read(r.buf[:])
		r.have = r.buf[:n]
		if n == 0 && err != nil {
			return err
		}
	}
	return nil
}

// Next returns the next message. The end of the stream between frames is io.EOF, and within a frame
// io.ErrUnexpectedEOF.
func (r *Reader) Next() ([]byte, error) {
	for !r.inside {
		if err := r.fill(); errors.Is(err, io.EOF) {
			return nil, io.EOF
		} else if err != nil {
			return nil, fmt.Errorf("wait for MLLP frame: %w", err)
		}
		if i := bytes.IndexByte(r.have, startBlock); i >= 0 {
			r.have, r.inside = r.have[i+1:], true
		} else {
			r.have = nil
		}
	}
	r.begun()
	defer r.ended()
	return r.frame()
}

// frame reads a frame after its start block.
func (r *Reader) frame() ([]byte, error) {
	var message []byte
	size := 0
	take := func(b ...byte) {
		if size += len(b); size <= r.max {
			message = append(message, b...)
		} else {
			message = nil
		}
	}
	for {
		if err := r.fill(); err != nil {
			r.inside = false
			return nil, broken(err)
		}
		i := bytes.IndexAny(r.have, "\x0b\x1c")
		if i < 0 {
			take(r.have...)
			r.have = nil
			continue
		}
		take(r.have[:i]...)
		block := r.have[i]
		r.have = r.have[i+1:]
		if block == startBlock {
			return nil, ErrUnterminated // the frame has no end; another one begins
		}
		// A sender may omit the carriage return, and the text may contain an end block character.
		over := r.fill() != nil
		if !over && r.have[0] == carriageReturn {
			over, r.have = true, r.have[1:]
		}
		if over || r.have[0] == startBlock {
			r.inside = false
			if size > r.max {
				return nil, ErrTooLarge
			}
			return message, nil
		}
		take(endBlock)
	}
}

// broken converts the error of a failed read within a frame.
func broken(err error) error {
	switch {
	case timeout(err):
		return ErrUnterminated
	case errors.Is(err, io.EOF):
		return io.ErrUnexpectedEOF
	}
	return fmt.Errorf("read MLLP frame: %w", err)
}

func timeout(err error) bool {
	var t interface{ Timeout() bool }
	return errors.As(err, &t) && t.Timeout()
}

// wait waits for the duration d, or until done is closed. It returns false if done was closed first.
func wait(done <-chan struct{}, d time.Duration) bool {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-done:
		return false
	}
}
