package fileimport

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"
)

// event is what a reader of XML tells of one element.
type event struct {
	end   bool
	name  string
	attrs string
	text  string
}

// scanAll reads a document with the scanner. What is not well formed is an error.
func scanAll(r io.Reader) ([]event, error) {
	s := newScanner(r, HealthExport)
	var out []event
	var told error
	s.told = func(what string) {
		if told == nil {
			told = fmt.Errorf("line %d: %s", s.line(), what)
		}
	}
	var text strings.Builder
	s.text = func(b []byte) { text.Write(b) }
	for {
		token, err := s.next()
		if err != nil {
			return nil, err
		}
		e := event{end: token == endToken, name: string(s.name), text: text.String()}
		text.Reset()
		switch token {
		case endOfStream:
			if told != nil {
				return nil, told
			}
			return out, nil
		case startToken:
			for _, a := range s.attrs {
				e.attrs += string(a.name) + "=" + string(s.value(a)) + ";"
			}
		}
		out = append(out, e)
	}
}

// parseAll reads a document with encoding/xml.
func parseAll(data []byte) ([]event, error) {
	d := xml.NewDecoder(bytes.NewReader(data))
	var out []event
	var text strings.Builder
	depth := 0
	flat := func(n xml.Name) string {
		if n.Space != "" {
			return n.Space + ":" + n.Local
		}
		return n.Local
	}
	for {
		token, err := d.RawToken()
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		switch v := token.(type) {
		case xml.StartElement:
			e := event{name: flat(v.Name), text: text.String()}
			for _, a := range v.Attr {
				e.attrs += flat(a.Name) + "=" + a.Value + ";"
			}
			out = append(out, e)
			depth++
			text.Reset()
		case xml.EndElement:
			out = append(out, event{end: true, name: flat(v.Name), text: text.String()})
			depth--
			text.Reset()
		case xml.CharData:
			if depth > 0 {
				text.Write(v)
			}
		}
	}
}

// What the scanner accepts, encoding/xml accepts and reads the same. Line ends are the
// exception: encoding/xml turns \r\n into \n, the scanner keeps what is written, and
// nothing that is imported depends on it. So is the document type, which the scanner
// does not read.
func agree(t require.TestingT, data []byte) {
	got, err := scanAll(bytes.NewReader(data))
	slow, slowErr := scanAll(iotest.OneByteReader(bytes.NewReader(data)))
	require.Equal(t, err, slowErr)
	require.Equal(t, got, slow)
	if err != nil || bytes.ContainsAny(data, "\r") || bytes.Contains(data, []byte("<!DOCTYPE")) {
		return
	}
	want, err := parseAll(data)
	require.NoError(t, err)
	require.Equal(t, want, got)
}

func TestScanner_agreesWithEncodingXML(t *testing.T) {
	piece := rapid.SampledFrom([]string{
		"<a>", "</a>", "<b:c/>", "<a x='1'>", `<a x="&lt;&#65;" y='"'/>`, "text", "&amp;", "<!-- c -->", "<![CDATA[<&]]>",
		"<?p i?>", " ", "\n", "é", "]]>", "<", ">", "&", "'", "\"", "=", "/", "a", "x='", "-", "--", "!", "?", "\x00", "\xff", ":",
	})
	rapid.Check(t, func(t *rapid.T) {
		data := "<a>" + strings.Join(rapid.SliceOfN(piece, 0, 12).Draw(t, "pieces"), "") + "</a>"
		agree(t, []byte(data))
	})
}

func TestScanner_acceptsWellFormedDocuments(t *testing.T) {
	for _, text := range []string{
		"<a/>", "<a></a>", " <a/>\n", "<?xml version='1.0'?>\n<a/>", "<?xml version=\"1.0\" encoding=\"utf-8\" standalone='yes'?><a/>",
		"<!-- x --><a/><!-- y -->", "<a b='1'c='2'/>"[:0] + "<a b='1' c='2' />", "<a>x<b/>y</a>", "<é/>", "<a ü='ö'/>",
		"<!DOCTYPE a><a/>", "<!DOCTYPE a [<!ENTITY x 'y'>]><a/>", "<!DOCTYPE a [ <!-- ]> --> <!ATTLIST a b CDATA ']>'> ] ><a/>",
		"<a>" + strings.Repeat(" ", 600<<10) + "</a>", "<a><?go fmt?></a>",
	} {
		_, err := scanAll(strings.NewReader(text))
		require.NoError(t, err, "%.60s", text)
	}
}

func TestScanner_refusesMalformedDocuments(t *testing.T) {
	for _, text := range []string{
		"", " ", "x", "<?>", "<?><a/>", "<!-->", "<!--->", "<a", "<a>", "</a>", "<a></b>", "<a/><b/>", "<a/>x", "x<a/>", "<a b/>", "<a b=1/>", "<a b='1' b='2'/>",
		"<a b='1'c='2'/>", "<a b='<'/>", "<a b='&x;'/>", "<a>&x;</a>", "<a>]]></a>", "<a>\x01</a>", "<a>\xc0\x80</a>", "<1/>", "<a><!-- -- --></a>",
		"<a><!FOO></a>", "<a/><!DOCTYPE a>", "<![CDATA[x]]><a/>", "<a>&#0;</a>", "<a>&#xD800;</a>", "<a b='\x0b'/>", "< a/>",
		"<?xml version='1.2'?><a/>", "<?xml version='1.0' encoding='klingon'?><a/>", "<a / >", "<a></a b='1'>",
		"<!DOCTYPE a [", "<!DOCTYPE a [ '>]><a/>", "<a><b></a></b>", "<-a/>", "<a><![CDATA[x]]</a>",
	} {
		_, err := scanAll(strings.NewReader(text))
		require.Error(t, err, "%.60q", text)
	}
}

func TestScanner_errorNamesTheLine(t *testing.T) {
	text := "<a>\n" + strings.Repeat("<b c='x'/>\n", 100_000) + "<b c=x/>\n</a>"
	_, err := scanAll(strings.NewReader(text))
	require.EqualError(t, err, "line 100002: tag that cannot be read")
}

func TestParseStamp_readsDateTimeAndOffsetOrRefuses(t *testing.T) {
	unix, offset, ok := parseStamp([]byte("2016-04-01 07:23:29 -0430"))
	require.True(t, ok)
	require.Equal(t, time.Date(2016, 4, 1, 11, 53, 29, 0, time.UTC).Unix(), unix)
	require.Equal(t, -(4*3600 + 1800), offset)
	for _, text := range []string{
		"", "2016-04-01", "2016-04-01 07:23:29", "2016-04-31 07:23:29 +0000", "2016-13-01 07:23:29 +0000", "2016-04-01 25:00:00 +0000",
		"2016-04-01 07:60:29 +0000", "2016-04-01 07:23:60 +0000", "0000-04-01 07:23:29 +0000", "0001-01-01 00:00:00 +0100",
		"2016-04-01 07:23:29 *0000", "2016-04-01 07:23:29 +0060", "2016-04-01 07:23:29 +1801", "2O16-04-01 07:23:29 +0000",
	} {
		_, _, ok := parseStamp([]byte(text))
		require.False(t, ok, text)
	}
}

func FuzzScanner(f *testing.F) {
	f.Add([]byte("<a b='1'>x<c/>&lt;<!-- --><![CDATA[y]]></a>"))
	f.Add([]byte("<?xml version='1.0'?><a:b/>"))
	f.Fuzz(func(t *testing.T, data []byte) { agree(t, data) })
}
