package hl7

import (
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
)

// document reads an embedded document in an OBX.
func (r *reader) document(t *TestReport, s er7.Segment) {
	r.note = &t.Notes
	if !t.brings(s) {
		return
	}
	for _, p := range s.Field(5).Repetitions() {
		e, err := p.Embedded()
		if err != nil {
			r.in.Refused = append(r.in.Refused, &er7.SyntaxError{
				Segment: s.Name(), Number: s.Number(), Field: 5, Problem: "an embedded document must be encoded as OBX-5.4 says: A, Base64 or Hex",
			})
			continue
		}
		if len(e.Data) > 0 {
			t.Documents = append(t.Documents, Document{Title: s.Field(3).Coded().Display(), ContentType: e.ContentType(), Data: e.Data})
		}
	}
}

// reference refuses a reference to a document in an OBX, because its target is not read.
func (r *reader) reference(t *TestReport, s er7.Segment) {
	r.note = &t.Notes
	if t.brings(s) && !s.Field(5).Empty() {
		r.in.Refused = append(r.in.Refused, &er7.SyntaxError{
			Segment: s.Name(), Number: s.Number(), Field: 5, Problem: "a reference to a document (RP) is not followed; the document must be embedded (ED)",
		})
	}
}

func (t *TestReport) brings(obx er7.Segment) bool {
	// A deleted or wrong document is withdrawn. An unverified or cancelled one is ignored.
	status := obx.Field(11).Text()
	t.Withdrawn = t.Withdrawn || status == "D" || status == "W"
	return status != "D" && status != "W" && status != "R" && status != "X"
}

func documentID(number string, d Document) string {
	return digestID([]byte(number), []byte(d.Title), d.Data)
}
