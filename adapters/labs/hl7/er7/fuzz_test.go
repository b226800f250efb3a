package er7_test

import (
	"bytes"
	"errors"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
)

// FuzzParse checks four properties for any bytes: nothing panics; a parsed message is written
// back byte for byte; the parts of a message, joined by its delimiters, are the message; text
// is UTF-8 without NUL. A refusal has a position.
func FuzzParse(f *testing.F) {
	for _, seed := range []string{
		report,
		"\xef\xbb\xbfMSH|^~\\&|A\nPID|1||\"\"\n\nZ01|\\X41\\&\\.br\\&\\Z\\\n",
		"MSH!*%?$#!LAB\rOBX!1!ED!!!*AP*PDF*Base64*JVBERg==\r\x1c\r",
		"FHS|^~\\&\rBHS|^~\\&\rMSH|^~\\&\rNTE|1||one\ntwo\rBTS|1\rFTS|1",
		"MSH|^~\\&||||||||||||||||8859/15\rPID|\xa4\x80",
		"MSH|^\rPID",
		"MSH|^~\\&\rOBX|1|SN|a^b||<^5.0^-^7||||||20260302093015.1234+0530",
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		batch, err := er7.ParseBatch(raw, nil)
		var at *er7.SyntaxError
		if err != nil {
			if !errors.As(err, &at) || at.Problem == "" {
				t.Fatal("a fault without a place")
			}
		} else if !bytes.Equal(raw, batch.Append(nil)) {
			t.Fatal("the batch is not what was read")
		}
		m, err := er7.Parse(raw, nil)
		if err != nil {
			if !errors.As(err, &at) || at.Problem == "" {
				t.Fatal("a fault without a place")
			}
			return
		}
		if batch == nil || len(batch.Messages()) != 1 {
			t.Fatal("one message is no batch of one")
		}
		if !bytes.Equal(raw, m.Bytes()) {
			t.Fatal("the message is not what was read")
		}
		again, err := er7.Parse(m.Bytes(), nil)
		if err != nil || again.Len() != m.Len() {
			t.Fatal("what was written is another message")
		}
		for s := range m.Segments() {
			joined(t, m.Delimiters(), s)
		}
	})
}

func joined(t *testing.T, d er7.Delimiters, s er7.Segment) {
	fields := make([]string, 0, s.Len())
	for i := 1; i <= s.Len(); i++ {
		p := s.Field(i)
		if !(i == 1 && s.Name() == "MSH") {
			fields = append(fields, p.Raw())
		}
		if both := p.Text() + p.Whole(); !utf8.ValidString(both) || strings.Contains(both, "\x00") {
			t.Fatal("text is not UTF-8 without NUL")
		}
		_, _ = p.Stamp(nil)
		_, _ = p.Structured()
		_, _ = p.Embedded()
		_, _ = p.Number()
		_, _, _, _ = p.Coded().Display(), p.Identifier(), p.Telecom(), p.Person()
		var reps []string
		for r := range p.Len() {
			rep := p.Repetition(r + 1)
			var comps []string
			for c := range rep.Len() {
				comp := rep.Component(c + 1)
				var subs []string
				for n := range comp.Len() {
					subs = append(subs, comp.Subcomponent(n+1).Raw())
				}
				comps = append(comps, join(t, subs, d.Subcomponent, comp.Raw()))
			}
			reps = append(reps, join(t, comps, d.Component, rep.Raw()))
		}
		if !(s.Name() == "MSH" && i <= 2) {
			join(t, reps, d.Repetition, p.Raw())
		}
	}
	text := s.Name()
	if len(fields) > 0 {
		text += string([]byte{d.Field}) + join(t, fields, d.Field, strings.Join(fields, string([]byte{d.Field})))
	}
	if text != s.Raw() {
		t.Fatal("the fields are not the segment")
	}
}

func join(t *testing.T, parts []string, by byte, whole string) string {
	sep := ""
	if by != 0 {
		sep = string([]byte{by})
	}
	if got := strings.Join(parts, sep); got != whole {
		t.Fatalf("%d parts are not the whole", len(parts))
	}
	return whole
}

func BenchmarkParse(b *testing.B) {
	raw := []byte(report + strings.Repeat("OBX|1|NM|2276-4^Ferritin^LN^ferr^Ferritin^L||11.50|ug/L|13-150|L|||F|||20260302093000-0700\r", 30))
	b.SetBytes(int64(len(raw)))
	b.ReportAllocs()
	for b.Loop() {
		if _, err := er7.Parse(raw, nil); err != nil {
			b.Fatal(err)
		}
	}
}
