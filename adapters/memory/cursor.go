package memory

import (
	"bytes"
	"encoding/base64"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
)

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
