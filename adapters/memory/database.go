package memory

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"sync"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/personkey"
)

// database is the lock, the clock and the keys that all stores of a [Store] share.
type database struct {
	now  func() time.Time
	keys *personkey.Keys // nil keeps everything in clear

	mu    sync.Mutex // guards all tables, and trace
	trace string     // of the context with which the lock was taken
}

// clock returns the store's time as it is kept: in UTC, to the microsecond.
func (db *database) clock() time.Time { return instant(db.now()) }

// instant returns t as it is kept: in UTC, to the microsecond.
func instant(t time.Time) time.Time { return t.UTC().Truncate(time.Microsecond) }

// lock takes the store's lock, unless ctx has ended: then nothing is locked, and the
// error is the context's.
func (db *database) lock(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	db.mu.Lock()
	db.trace = healthlab.TraceOf(ctx)
	return nil
}

// latest returns the later of two instants.
func latest(a, b time.Time) time.Time {
	if b.After(a) {
		return b
	}
	return a
}

// document encodes what is to be kept.
func document(v any) ([]byte, error) {
	doc, err := json.Marshal(v)
	if err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	if hasInvalidText(doc) {
		return nil, fmt.Errorf("%w: text is UTF-8 without NUL", healthlab.Invalid)
	}
	return doc, nil
}

// sealDocument encodes what is to be kept about a person, and encrypts it.
func sealDocument(ctx context.Context, keys *personkey.Keys, ref personkey.Ref, bound string, v any) ([]byte, error) {
	doc, err := document(v)
	if err != nil {
		return nil, err
	}
	return keys.Seal(ctx, ref, bound, doc)
}

// openDocument decrypts and decodes what sealDocument made.
func openDocument(ctx context.Context, keys *personkey.Keys, ref personkey.Ref, bound string, box []byte, v any) error {
	doc, err := keys.Open(ctx, ref, bound, box)
	if err != nil {
		return err
	}
	return json.Unmarshal(doc, v)
}

// hasInvalidText reports whether any text of a document that was encoded as JSON has the
// character NUL, or was not UTF-8: the encoder writes either of them as an escape.
func hasInvalidText(doc []byte) bool {
	for i := 0; i < len(doc); i++ {
		if doc[i] != '\\' {
			continue
		}
		if rest := doc[i:]; bytes.HasPrefix(rest, []byte(`\u0000`)) || bytes.HasPrefix(rest, []byte(`\ufffd`)) {
			return true
		}
		i++ // the escaped character is no escape itself
	}
	return false
}

// cursor is where a page of a list ends that has the newest first.
type cursor struct {
	at time.Time
	id uuid.UUID
}

// before reports whether something comes after the place in a list whose ties are by id
// descending.
func (p cursor) before(at time.Time, id uuid.UUID) bool {
	if c := p.at.Compare(at); c != 0 {
		return c > 0
	}
	return bytes.Compare(p.id[:], id[:]) > 0
}

func (p cursor) String() string {
	return base64.RawURLEncoding.EncodeToString([]byte(p.at.Format(time.RFC3339Nano) + " " + p.id.String()))
}

func parseCursor(text string) (cursor, error) {
	if text == "" {
		return cursor{}, nil
	}
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err != nil {
		return cursor{}, badCursor()
	}
	at, id, ok := bytes.Cut(b, []byte(" "))
	t, err1 := time.Parse(time.RFC3339Nano, string(at))
	u, err2 := uuid.ParseBytes(id)
	if !ok || err1 != nil || err2 != nil {
		return cursor{}, badCursor()
	}
	return cursor{t, u}, nil
}

const defaultPage = 50

func badCursor() error {
	return &healthlab.InvalidError{Problems: []healthlab.Problem{{
		Path: []any{"cursor"}, Code: "bad_cursor", Msg: "the cursor is not one of this list",
	}}}
}

// storedEvent is an event with its message.
type storedEvent struct {
	healthlab.Event
	body []byte    // encrypted; nil once it is deleted
	at   time.Time // when it was written
	n    int64     // grows with every event written
}

func refOfEvent(e *healthlab.Event) personkey.Ref {
	return personkey.Ref{Team: e.Team, User: e.User}
}
