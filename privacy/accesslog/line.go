package accesslog

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Entry is one access to personal data.
type Entry struct {
	Team healthlab.TeamID
	// At is the time at which the request was answered.
	At time.Time
	// Actor is the caller: key:ID (an API key), app (a token of the person's own app), link (a link token),
	// management:NAME (a management credential) or job:NAME (a background job).
	Actor string
	// Person is the person whose data was accessed; zero if the access failed before the person was known.
	Person healthlab.UserID
	// Kind is the kind of data: data, orders, reports, link or admin.
	Kind string
	// Operation is the operationId of the HTTP API, or the name of a background job's operation.
	Operation string
	// Status is the HTTP status of the answer.
	Status int
	// Request is the id of the HTTP request.
	Request string
	// Address is the network address of the client; empty for jobs.
	Address string
}

// Hash is the SHA-256 of a log line.
type Hash [sha256.Size]byte

// String returns the hash in hexadecimal digits.
func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// Line is an entry with its number and hashes in the hash chain of its team.
type Line struct {
	Entry
	// Seq is the number of the line among the lines of its team, from 1.
	Seq int64
	// Prev is the Hash of the team's previous line; zero for the first line.
	Prev Hash
	// Hash is the SHA-256 of [Line.Canonical].
	Hash Hash
}

// PublishedLine is a line as the HTTP API returns it to the team and to the person.
type PublishedLine struct {
	Seq   int64          `json:"seq"`
	At    healthlab.Time `json:"at"`
	Actor string         `json:"actor"`
	// Person is nil if the access failed before the person was known.
	Person    *healthlab.UserID `json:"user_id"`
	Kind      string            `json:"kind"`
	Operation string            `json:"operation"`
	Status    int               `json:"status"`
	Request   string            `json:"request_id"`
	Address   string            `json:"address"`
}

// Published returns the line as the HTTP API returns it: without the hashes.
func (l *Line) Published() PublishedLine {
	p := PublishedLine{
		Seq: l.Seq, At: healthlab.At(l.At), Actor: l.Actor, Kind: l.Kind, Operation: l.Operation, Status: l.Status, Request: l.Request, Address: l.Address,
	}
	if !l.Person.IsZero() {
		p.Person = &l.Person
	}
	return p
}

// canonicalLine has the fields of [Line.Canonical], in the order in which they are hashed.
type canonicalLine struct {
	Team      healthlab.TeamID  `json:"team_id"`
	Seq       int64             `json:"seq"`
	At        string            `json:"at"`
	Actor     string            `json:"actor"`
	Person    *healthlab.UserID `json:"user_id"`
	Kind      string            `json:"kind"`
	Operation string            `json:"operation"`
	Status    int               `json:"status"`
	Request   string            `json:"request_id"`
	Address   string            `json:"address"`
	Prev      string            `json:"prev"`
}

// TimeForm is the format of times in hashed lines and in anchors: UTC with microseconds.
const TimeForm = "2006-01-02T15:04:05.000000Z"

// Canonical returns the text whose SHA-256 is the line's Hash: a JSON object with the fields in a fixed order,
// without spaces, and times in UTC with microseconds.
func (l *Line) Canonical() []byte {
	c := canonicalLine{
		Team: l.Team, Seq: l.Seq, At: l.At.UTC().Format(TimeForm), Actor: l.Actor, Kind: l.Kind, Operation: l.Operation, Status: l.Status,
		Request: l.Request, Address: l.Address, Prev: l.Prev.String(),
	}
	if !l.Person.IsZero() {
		c.Person = &l.Person
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(c); err != nil {
		panic("accesslog: " + err.Error()) // cannot happen: strings and numbers can always be encoded
	}
	return bytes.TrimSuffix(b.Bytes(), []byte("\n"))
}

// AppendNDJSON appends the line to b as one line of JSON: the text of Canonical with the hash as its last field.
func (l *Line) AppendNDJSON(b []byte) []byte {
	c := l.Canonical()
	b = append(b, c[:len(c)-1]...)
	return append(append(append(b, `,"hash":"`...), l.Hash.String()...), "\"}\n"...)
}

// Head identifies the last line of a team's hash chain. Seq 0 means that the chain has no line.
type Head struct {
	Team healthlab.TeamID
	Seq  int64
	Hash Hash
}

// SignedHead is a Head as it is stored, with the signature of the [Service].
type SignedHead struct {
	Head
	Signature []byte
}

func (h *Head) message() []byte {
	return fmt.Appendf(nil, "healthlab access log head\n%s\n%d\n%s\n", h.Team, h.Seq, h.Hash)
}

// Chain turns entries into the lines that follow head in its chain, and returns them with the new head. All entries
// must be of the head's team.
func Chain(head Head, entries []Entry) ([]Line, Head) {
	out := make([]Line, len(entries))
	for i, e := range entries {
		e.At = e.At.UTC().Truncate(time.Microsecond)
		l := Line{Entry: e, Seq: head.Seq + 1, Prev: head.Hash}
		l.Hash = sha256.Sum256(l.Canonical())
		out[i], head = l, Head{e.Team, l.Seq, l.Hash}
	}
	return out, head
}

// Verifier checks the lines of one chain in order. The zero Verifier expects the first line of a team. If older
// lines were deleted by [Store.Prune], set Head to that of the oldest anchor; checking then begins after it.
type Verifier struct{ Head Head }

// Check returns a Conflict if the line does not follow the line checked before, or was changed.
func (v *Verifier) Check(l *Line) error {
	switch {
	case l.Seq != v.Head.Seq+1:
		return fmt.Errorf("%w: access log: line %d follows line %d: lines were removed or moved", healthlab.Conflict, l.Seq, v.Head.Seq)
	case l.Prev != v.Head.Hash:
		return fmt.Errorf("%w: access log: line %d does not contain the hash of line %d", healthlab.Conflict, l.Seq, v.Head.Seq)
	case Hash(sha256.Sum256(l.Canonical())) != l.Hash:
		return fmt.Errorf("%w: access log: line %d was changed", healthlab.Conflict, l.Seq)
	}
	v.Head = Head{l.Team, l.Seq, l.Hash}
	return nil
}
