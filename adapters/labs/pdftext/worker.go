package pdftext

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport"
)

// worker is one child process. Only one goroutine may use it at a time.
type worker struct {
	cmd   *exec.Cmd
	in    io.WriteCloser
	enc   *gob.Encoder
	out   *bufio.Writer
	dec   *gob.Decoder
	dead  atomic.Bool
	fat   atomic.Bool // killed because of its memory
	done  chan struct{}
	files int

	// mu guards the fields below. open is the number of files that the child has open, and closing lists those that
	// it should close. Other goroutines may add to closing while the child works.
	mu      sync.Mutex
	open    int
	closing []int
}

func (w *worker) release(doc int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closing = append(w.closing, doc)
}

func (w *worker) neededFiles() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.open - len(w.closing)
}

func (w *worker) opened() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.open++
	w.files++
}

// takeClosing returns and clears the list of files to close.
func (w *worker) takeClosing() []int {
	w.mu.Lock()
	defer w.mu.Unlock()
	list := w.closing
	w.open -= len(list)
	w.closing = nil
	return list
}

// start starts a child and waits until it is ready.
func start(ctx context.Context) (*worker, error) {
	exe, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("%w: start pdf reader: the path of the running program is unknown: %v", healthlab.Unavailable, err)
	}
	c := exec.CommandContext(context.WithoutCancel(ctx), exe) //nolint:gosec // this program itself; it outlives the call
	c.Args = []string{childName, cacheDir(), strconv.FormatInt(memoryBytes, 10)}
	c.Env = []string{}
	c.Dir = os.TempDir()
	attributes(c)
	in, err1 := c.StdinPipe()
	out, err2 := c.StdoutPipe()
	if err := errors.Join(err1, err2); err != nil {
		return nil, fmt.Errorf("%w: start pdf reader: %v", healthlab.Unavailable, err)
	}
	if err := c.Start(); err != nil {
		return nil, fmt.Errorf("%w: start pdf reader: %v", healthlab.Unavailable, err)
	}
	w := &worker{cmd: c, in: in, out: bufio.NewWriterSize(in, 1<<16), done: make(chan struct{})}
	w.enc, w.dec = gob.NewEncoder(w.out), gob.NewDecoder(bufio.NewReaderSize(out, 1<<16))
	if a, err := w.receive(ctx, startTimeout); err != nil || a.Err != "" {
		w.kill()
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
		cause := a.Err
		switch {
		case errors.Is(err, healthlab.Exhausted):
			cause = fmt.Sprintf("the child process sent no reply within %s", startTimeout)
		case err != nil:
			cause = "the child process ended before its first reply"
		}
		return nil, fmt.Errorf("%w: start pdf reader: %s", healthlab.Unavailable, cause)
	}
	go w.watch(memoryBytes)
	return w, nil
}

// watch kills a child that exceeds the memory limit. It returns when the child has ended.
func (w *worker) watch(limit int64) {
	t := time.NewTicker(15 * time.Millisecond)
	defer t.Stop()
	for {
		select {
		case <-w.done:
			return
		case <-t.C:
			if n, ok := resident(w.cmd.Process.Pid); ok && n > limit {
				w.fat.Store(true)
				_ = w.cmd.Process.Kill()
				return
			}
		}
	}
}

// kill ends the child and frees its resources.
func (w *worker) kill() {
	if w.dead.Swap(true) {
		return
	}
	_ = w.cmd.Process.Kill()
	_ = w.in.Close()
	_ = w.cmd.Wait()
	close(w.done)
}

// call sends a request and waits for the answer. After any error the worker is dead.
func (w *worker) call(ctx context.Context, q request, timeout time.Duration) (reply, error) {
	q.Close = w.takeClosing()
	sent := make(chan struct{})
	go func() {
		defer close(sent)
		// If the request cannot be sent, receive returns the error.
		if w.enc.Encode(q) == nil {
			_ = w.out.Flush()
		}
	}()
	a, err := w.receive(ctx, timeout)
	if err != nil {
		w.kill()
		<-sent
		return reply{}, err
	}
	<-sent
	if a.Broken {
		w.kill()
	}
	if a.Err == "password" {
		return a, fmt.Errorf("%w: %w", healthlab.Invalid, labreport.ErrPassword)
	}
	if a.Err != "" {
		return a, fmt.Errorf("%w: the file must be a readable PDF", healthlab.Invalid)
	}
	return a, nil
}

// receive waits for one answer.
func (w *worker) receive(ctx context.Context, timeout time.Duration) (reply, error) {
	type result struct {
		a   reply
		err error
	}
	got := make(chan result, 1)
	go func() {
		var r result
		r.err = w.dec.Decode(&r.a)
		got <- r
	}()
	t := time.NewTimer(timeout)
	defer t.Stop()
	select {
	case r := <-got:
		switch {
		case r.err == nil:
			return r.a, nil
		case w.fat.Load():
			return reply{}, fmt.Errorf("%w: reading the PDF file needs more than %d MiB of memory", healthlab.Exhausted, memoryBytes>>20)
		}
		return reply{}, fmt.Errorf("%w: the PDF reader crashed on the file", healthlab.Invalid)
	case <-t.C:
		w.kill()
		<-got
		return reply{}, fmt.Errorf("%w: opening, reading or drawing a page of the PDF file took longer than %s (Options.PageTimeout)", healthlab.Exhausted, timeout)
	case <-ctx.Done():
		w.kill()
		<-got
		return reply{}, ctx.Err()
	}
}
