package pdftext

import (
	"bytes"
	"context"
	"fmt"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport"
)

// session reads one file in one goroutine. It occupies a child process only during a call.
type session struct {
	x     *Extractor
	data  []byte
	pages int
	w     *worker // child that has the file open; nil if none has
	doc   int     // number of the file in that child
}

// open begins to read a file.
func (x *Extractor) open(ctx context.Context, file labreport.File) (*session, error) {
	if file.Type != "application/pdf" || !bytes.Contains(file.Data[:min(1024, len(file.Data))], []byte("%PDF-")) {
		return nil, fmt.Errorf("%w: the file must be a PDF", healthlab.Invalid)
	}
	if err := prescan(ctx, file.Data, inflateBytes); err != nil {
		return nil, err
	}
	s := &session{x: x, data: file.Data}
	if _, err := s.call(ctx, request{Op: "pages"}); err != nil {
		return nil, err
	}
	return s, nil
}

// call sends a request about the file to a child.
func (s *session) call(ctx context.Context, q request) (reply, error) {
	a, shared, err := s.callOnce(ctx, q)
	if err != nil && shared && ctx.Err() == nil {
		// Another file may have crashed the child, so the request is repeated in a new child that has only this file.
		a, _, err = s.callOnce(ctx, q)
	}
	return a, err
}

// callOnce sends a request once. shared reports that the child died and had other files open too.
func (s *session) callOnce(ctx context.Context, q request) (a reply, shared bool, err error) {
	select {
	case s.x.slots <- struct{}{}:
		defer func() { <-s.x.slots }()
	case <-ctx.Done():
		return reply{}, false, ctx.Err()
	}
	w, err := s.x.acquireWorker(ctx, s.w)
	if err != nil {
		return reply{}, false, err
	}
	defer func() {
		mine := 0
		if s.w == w {
			mine = 1
		}
		if s.x.put(w); w.dead.Load() {
			shared, s.w = w.neededFiles() > mine, nil
		}
	}()
	if s.w != w {
		s.forget()
		if a, err = w.call(ctx, request{Op: "open", PDF: s.data}, s.x.o.PageTimeout); err != nil {
			return reply{}, false, err
		}
		s.w, s.doc, s.pages = w, a.Doc, a.Pages
		w.opened()
	}
	if q.Op == "pages" {
		return a, false, nil
	}
	q.Doc = s.doc
	a, err = w.call(ctx, q, s.x.o.PageTimeout)
	return a, false, err
}

// close ends the session. An idle child closes the file at once, a busy one before its next request.
func (s *session) close(ctx context.Context) {
	w := s.w
	s.forget()
	if w == nil {
		return
	}
	select {
	case s.x.slots <- struct{}{}:
		defer func() { <-s.x.slots }()
	default:
		return
	}
	if got := s.x.pick(w); got != nil {
		if got == w {
			_, _ = w.call(context.WithoutCancel(ctx), request{Op: "pages"}, s.x.o.PageTimeout)
		}
		s.x.put(got)
	}
}

func (s *session) forget() {
	if s.w != nil {
		s.w.release(s.doc)
		s.w = nil
	}
}

func (x *Extractor) acquireWorker(ctx context.Context, prefer *worker) (*worker, error) {
	// The caller holds a slot of the pool.
	if w := x.pick(prefer); w != nil {
		return w, nil
	}
	return start(ctx)
}

func (x *Extractor) pick(prefer *worker) *worker {
	x.mu.Lock()
	defer x.mu.Unlock()
	x.idle = slices.DeleteFunc(x.idle, func(w *worker) bool {
		if w.fat.Load() {
			w.kill() // the child was killed because of its memory
		}
		return w.dead.Load()
	})
	if len(x.idle) == 0 {
		return nil
	}
	i := max(0, slices.Index(x.idle, prefer))
	w := x.idle[i]
	x.idle = slices.Delete(x.idle, i, i+1)
	return w
}

// put returns a child to the pool. It replaces a child that has read many files or still uses much memory without an
// open file, so that leaks stay bounded.
func (x *Extractor) put(w *worker) {
	if w.dead.Load() {
		return
	}
	if n, ok := resident(w.cmd.Process.Pid); w.neededFiles() == 0 && (w.files >= 200 || ok && n > memoryBytes*3/4) {
		w.kill()
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.idle = append(x.idle, w)
}
