// Notifier shows how a host delivers events in a way of its own: it appends each signed message to a file, one JSON
// object on each line, for programs that read files. The test runs the conformance suite of notifiers.
//
//	go run ./examples/notifier
//
// A service delivers to endpoints with the scheme files if service.Config.Notifier is webhook.ByScheme{"https":
// webhook.NewHTTP(nil), Scheme: NewFiles(folder)}, and webhook.Guard.Brokers contains Scheme.
package main

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab/webhook"
)

// Scheme is the URL scheme of endpoints, as in files://name.
const Scheme = "files"

// Message is one delivered message, as one line of JSON in a file.
type Message struct {
	Header http.Header `json:"header"`
	Body   []byte      `json:"body"`
}

// Files is a [webhook.Notifier] that appends messages to files of one folder. Safe for
// concurrent use by one process.
type Files struct {
	folder string
	mu     sync.Mutex
}

var _ webhook.Notifier = (*Files)(nil)

// NewFiles returns a notifier that appends to files in a folder.
func NewFiles(folder string) *Files { return &Files{folder: folder} }

// Notify appends one message to the file that the endpoint's URL names. The file must exist: the program that reads the
// messages creates it. See [webhook.Notifier].
func (f *Files) Notify(ctx context.Context, n webhook.Notification) webhook.Result {
	began := time.Now()
	class := f.append(ctx, n)
	return webhook.Result{Class: class, Duration: time.Since(began)}
}

func (f *Files) append(ctx context.Context, n webhook.Notification) webhook.Class {
	name, ok := strings.CutPrefix(n.URL, Scheme+"://")
	if !ok || !filepath.IsLocal(name) || strings.ContainsAny(name, "/\\\x00") {
		return webhook.ClassBlocked
	}
	m := Message{Header: n.Headers.Clone(), Body: n.Body}
	if m.Header == nil {
		m.Header = http.Header{}
	}
	webhook.SetSignature(m.Header, n.ID, n.At, n.Body, n.Secrets...)
	line, err := json.Marshal(m)
	if err != nil {
		return webhook.ClassRefused
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if ctx.Err() != nil {
		return webhook.ClassConnect // nothing was written
	}
	file, err := os.OpenFile(filepath.Join(f.folder, name), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		return webhook.ClassConnect
	}
	_, err = file.Write(append(line, '\n'))
	if bad := file.Close(); err != nil || bad != nil {
		return webhook.ClassReset // a part of it may be in the file
	}
	return webhook.ClassOK
}

func main() {
	if err := run(context.Background(), os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "notifier:", err)
		os.Exit(1)
	}
}

// run delivers one signed message to a file, reads it back and prints it.
func run(ctx context.Context, out io.Writer) error {
	folder, err := os.MkdirTemp("", "notifier")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(folder) }() // the system clears it otherwise
	path := filepath.Join(folder, "events.jsonl")
	if err := os.WriteFile(path, nil, 0o600); err != nil {
		return err
	}
	secret, err := webhook.GenerateSecret(rand.Reader)
	if err != nil {
		return err
	}
	at := time.Now()
	result := NewFiles(folder).Notify(ctx, webhook.Notification{
		URL: "files://events.jsonl", ID: webhook.MessageID(uuid.New()), At: at, Secrets: []webhook.Secret{secret},
		Body: []byte(`{"event_type":"labtest.order.updated"}`),
	})
	fmt.Fprintln(out, "sent:", result.Class)
	line, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	var m Message
	if err := json.Unmarshal(line, &m); err != nil {
		return err
	}
	if err := (webhook.Verifier{}).Verify(m.Body, m.Header, at, secret); err != nil {
		return err
	}
	fmt.Fprintf(out, "read and verified: %s\n", m.Body)
	return nil
}
