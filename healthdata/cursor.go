package healthdata

import (
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"strconv"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// cursor is a place in the samples of a user: just after this sample. The zero value
// is the start.
type cursor struct {
	// Query binds the cursor to what was asked.
	Query      []byte     `json:"q"`
	Provider   string     `json:"p"`
	SourceType SourceType `json:"s"`
	Time       int64      `json:"t"`
	Part       string     `json:"x,omitempty"`
}

// fingerprint names the query that a cursor belongs to.
func fingerprint(user healthlab.UserID, q *SampleQuery) []byte {
	h := sha256.New()
	for _, part := range [...]string{
		user.String(), q.Resource, q.Provider, instantText(q.From), instantText(q.To),
	} {
		h.Write([]byte(part))
		h.Write([]byte{0})
	}
	return h.Sum(nil)[:12]
}

func instantText(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return strconv.FormatInt(t.UnixMicro(), 10)
}

// seal returns the cursor as an opaque text.
func (c cursor) seal(user healthlab.UserID, q *SampleQuery) string {
	c.Query = fingerprint(user, q)
	return base64.RawURLEncoding.EncodeToString(appendJSON(nil, c))
}

// openCursor reads a cursor of the same query. Any other text is healthlab.Invalid.
func openCursor(text string, user healthlab.UserID, q *SampleQuery) (cursor, error) {
	if text == "" {
		return cursor{}, nil
	}
	var c cursor
	b, err := base64.RawURLEncoding.Strict().DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	if err != nil || c.Provider == "" || string(c.Query) != string(fingerprint(user, q)) {
		var p healthlab.Problems
		p.Add("cursor", "damaged, or of another query", "next_cursor")
		return cursor{}, p.Err()
	}
	return c, nil
}
