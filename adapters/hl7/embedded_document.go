package hl7

import (
	"github.com/healthlab-dev/healthlab/adapters/hl7/er7"
)

// document reads a document that stands in place of a result.
func (r *reader) document(t *TestReport, s er7.Segment) {
	r.note = &t.Notes
	switch s.Field(11).Text() {
	case "D", "W":
		t.Withdrawn = true
		return
	case "R", "X":
		return // not verified yet, or there will be none
	}
	for _, p := range s.Field(5).Repetitions() {
		e, err := p.Embedded()
		if err != nil {
			r.in.Refused = append(r.in.Refused, &er7.SyntaxError{
				Segment: s.Name(), Number: s.Number(), Field: 5, Problem: "an embedded document must be in the encoding that it names",
			})
			continue
		}
		if len(e.Data) > 0 {
			t.Documents = append(t.Documents, Document{Title: s.Field(3).Coded().Display(), ContentType: e.ContentType(), Data: e.Data})
		}
	}
}

// documentID is the same for the same document of the same order.
func documentID(number string, d Document) string {
	return shortID([]byte(number), []byte(d.Title), d.Data)
}
