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
	// Sum binds the cursor to what was asked, and the place to the cursor: one that
	// was damaged on the way is not another place.
	Sum        []byte     `json:"q"`
	Provider   string     `json:"p"`
	SourceType SourceType `json:"s"`
	Time       int64      `json:"t"`
	Part       string     `json:"x,omitempty"`
}

// sum names the query and the place that a cursor belongs to. It is no secret and no
// signature: a cursor shows nothing that its query would not.
func (c *cursor) sum(user healthlab.UserID, q *SampleQuery) []byte {
	h := sha256.New()
	for _, part := range [...]string{
		user.String(), q.Resource, q.Provider, instantText(q.From), instantText(q.To), q.Days.From.String(), q.Days.To.String(),
		c.Provider, string(c.SourceType), strconv.FormatInt(c.Time, 10), c.Part,
	} {
		h.Write(strconv.AppendInt(nil, int64(len(part)), 10))
		h.Write([]byte{':'})
		h.Write([]byte(part))
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
	c.Sum = c.sum(user, q)
	return base64.RawURLEncoding.EncodeToString(appendJSON(nil, c))
}

// openCursor reads a cursor of the same query. Any other text is healthlab.Invalid.
func openCursor(text string, user healthlab.UserID, q *SampleQuery) (cursor, error) {
	if text == "" {
		return cursor{}, nil
	}
	var c cursor
	b, err := base64.RawURLEncoding.DecodeString(text)
	if err == nil {
		err = json.Unmarshal(b, &c)
	}
	// A cursor is written in one way only.
	if err != nil || c.Provider == "" || text != c.seal(user, q) {
		var p healthlab.Problems
		p.Add("cursor", "damaged, or of another query", "next_cursor")
		return cursor{}, p.Err()
	}
	return c, nil
}
