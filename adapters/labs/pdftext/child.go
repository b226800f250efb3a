package pdftext

import (
	"bufio"
	"encoding/gob"
	"errors"
	"image"
	"io"
	"os"
	"runtime/debug"
	"sync/atomic"
)

// childName is the first argument of the child process. A program that is started with it becomes a child.
const childName = "healthlab-pdftext-child"

// called reports that this process has called Child.
var called atomic.Bool

// Child must be the first call in main of every program that uses this package, and in TestMain of its tests. In the
// program itself it returns at once. In the child process, the same program started again to read untrusted files in
// isolation, it never returns.
func Child() {
	called.Store(true)
	if len(os.Args) == 3 && os.Args[0] == childName {
		serve(os.Stdin, os.Stdout, os.Args[1], os.Args[2])
		os.Exit(0)
	}
}

// request is one task of the child.
type request struct {
	Op     string // "open", "text", "render", "pages"
	PDF    []byte // the file to open
	Close  []int  // documents to close first
	Doc    int    // number of the document to read
	Page   int    // from 0
	DPI    int
	Pixels int
}

// reply is the answer of the child process, which reads PDFs, to one request of the parent.
type reply struct {
	// Err is "password" or "file"; in the first reply it is the error that prevented the start of the engine.
	Err string
	// Broken means that the PDF engine may be damaged, so that the child process must not be used again.
	Broken        bool
	Doc           int // number of an opened document
	Pages         int
	Text          pageText
	Pix           []byte
	Width, Height int
}

// serve answers requests until its input ends. cache is the directory for compiled code, and memoryBytes the memory
// limit as a decimal number.
func serve(in io.Reader, out io.Writer, cache, memoryBytes string) {
	memory, ok := atoi(memoryBytes)
	if !ok {
		return
	}
	w := bufio.NewWriterSize(out, 1<<16)
	enc, dec := gob.NewEncoder(w), gob.NewDecoder(bufio.NewReaderSize(in, 1<<16))
	e, err := newEngine(cache)
	first := reply{}
	if err != nil {
		first.Err = err.Error()
	}
	limitMemory(memory)
	if enc.Encode(first) != nil || w.Flush() != nil || err != nil {
		return
	}
	for {
		var q request
		if dec.Decode(&q) != nil {
			return
		}
		a := answer(e, q)
		if enc.Encode(a) != nil || w.Flush() != nil {
			return
		}
	}
}

func limitMemory(memory int64) {
	// Only files are untrusted, so the first start may take longer: it compiles the engine.
	debug.FreeOSMemory()
	debug.SetMemoryLimit(memory * 3 / 4)
	debug.SetGCPercent(40)
	limitSelf(memory)
}

// answer executes one request. It converts a panic of the engine to an unreadable file.
func answer(e *engine, q request) (a reply) {
	defer func() {
		if recover() != nil {
			a = reply{Err: "file", Broken: true}
		}
	}()
	for _, doc := range q.Close {
		e.close(doc)
	}
	var err error
	switch q.Op {
	case "open":
		a.Doc, a.Pages, err = e.open(q.PDF)
	case "text":
		a.Text, err = e.text(q.Doc, q.Page)
	case "render":
		var g *image.Gray
		if g, err = e.render(q.Doc, q.Page, q.DPI, q.Pixels); err == nil {
			a.Pix, a.Width, a.Height = g.Pix, g.Rect.Dx(), g.Rect.Dy()
		}
	}
	if errors.Is(err, errPassword) {
		a.Err = "password"
	} else if err != nil {
		// After a page on which the engine failed, it may be damaged.
		a.Err, a.Broken = "file", q.Op != "open" || !errors.Is(err, errFile)
	}
	return a
}

func atoi(s string) (int64, bool) {
	var n int64
	for _, c := range s {
		if c < '0' || c > '9' || n > 1<<40 {
			return 0, false
		}
		n = n*10 + int64(c-'0')
	}
	return n, s != ""
}
