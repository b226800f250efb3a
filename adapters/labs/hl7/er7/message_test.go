package er7_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/text/encoding/unicode"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
)

const report = "MSH|^~\\&|LAB|NORTH|CLINIC|WEST|20260302093000-0700||ORU^R01^ORU_R01|M1|P|2.5.1\r" +
	"PID|1||77^^^CLINIC&1.2.3&ISO^MR~88^^^LAB||Roe^Ana||19840509|F\r" +
	"OBR|1|P1^CLINIC|F1|ferr^Ferritin^L\r" +
	"OBX|1|NM|2276-4^Ferritin^LN^ferr^Ferritin^L||11.50|ug/L|13-150|L|||F\r" +
	"ZZZ|anything^goes&here\r"

func parse(t testing.TB, text string) *er7.Message {
	t.Helper()
	m, err := er7.Parse([]byte(text), nil)
	require.NoError(t, err)
	return m
}

func TestMessage_findsSegmentFieldComponentAndRepetition(t *testing.T) {
	m := parse(t, report)
	code, event := m.Type()
	require.Equal(t, "ORU R01", code+" "+event)
	require.Equal(t, "M1", m.ControlID())
	require.Equal(t, 5, m.Len())
	require.Equal(t, "|", m.Header().Field(1).Text())
	require.Equal(t, `^~\&`, m.Header().Field(2).Text())
	require.Equal(t, 12, m.Header().Len())
	pid := m.Segment("PID")
	require.Equal(t, 2, pid.Number())
	require.Equal(t, "Ana", pid.Field(5).Component(2).Text())
	require.Equal(t, 2, pid.Field(3).Len())
	require.Equal(t, "88", pid.Field(3).Repetition(2).Component(1).Text())
	require.Equal(t, "1.2.3", pid.Field(3).Component(4).Subcomponent(2).Text())
	require.Equal(t, "CLINIC", pid.Field(3).Repetition(1).Component(4).Text())
	require.Equal(t, "here", m.Segment("ZZZ").Field(1).Component(2).Subcomponent(2).Text())
	require.Equal(t, "goes&here", m.Segment("ZZZ").Field(1).Component(2).Whole())

	for name, p := range map[string]er7.Part{
		"no such segment":      m.Segment("NTE").Field(3).Repetition(2).Component(4).Subcomponent(1),
		"no such field":        pid.Field(99).Component(1),
		"field zero":           pid.Field(0),
		"no such repetition":   pid.Field(3).Repetition(3).Component(1),
		"no such component":    pid.Field(5).Component(9),
		"no such subcomponent": pid.Field(5).Component(1).Subcomponent(2),
		"below the lowest":     pid.Field(5).Component(1).Subcomponent(1).Component(1),
		"of nothing":           er7.Part{}.Component(2),
	} {
		require.True(t, p.Empty(), name)
		require.Empty(t, p.Text(), name)
		require.Zero(t, p.Len(), name)
	}
	require.Zero(t, m.Segment("NTE").Len())
	require.Zero(t, er7.Segment{}.Number())
}

func TestParse_acceptsEveryLineEnd(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want []string
	}{
		"as the standard says":   {"MSH|^~\\&\rPID|1\r", []string{"MSH|^~\\&", "PID|1"}},
		"none at the end":        {"MSH|^~\\&\rPID|1", []string{"MSH|^~\\&", "PID|1"}},
		"line feeds":             {"MSH|^~\\&\nPID|1\n", []string{"MSH|^~\\&", "PID|1"}},
		"both":                   {"MSH|^~\\&\r\nPID|1\r\n", []string{"MSH|^~\\&", "PID|1"}},
		"mixed":                  {"MSH|^~\\&\rPID|1\nOBX|2\r\nOBX|3", []string{"MSH|^~\\&", "PID|1", "OBX|2", "OBX|3"}},
		"blank lines":            {"MSH|^~\\&\r\r\n\nPID|1\n\n", []string{"MSH|^~\\&", "PID|1"}},
		"before the message":     {"\xef\xbb\xbf\r\n \x0bMSH|^~\\&\rPID|1", []string{"MSH|^~\\&", "PID|1"}},
		"a frame's end":          {"MSH|^~\\&\rPID|1\r\x1c\r", []string{"MSH|^~\\&", "PID|1"}},
		"NULs at the end":        {"MSH|^~\\&\rPID|1\r\x00\x00\x00", []string{"MSH|^~\\&", "PID|1"}},
		"a line feed in a field": {"MSH|^~\\&\rNTE|1||one\ntwo|\rPID|1", []string{"MSH|^~\\&", "NTE|1||one\ntwo|", "PID|1"}},
		"a name alone":           {"MSH|^~\\&\rPID\rPV1", []string{"MSH|^~\\&", "PID", "PV1"}},
	} {
		t.Run(name, func(t *testing.T) {
			m := parse(t, tt.text)
			var got []string
			for s := range m.Segments() {
				got = append(got, s.Raw())
			}
			require.Equal(t, tt.want, got)
			require.Equal(t, tt.text, string(m.Bytes()))
		})
	}
}

func TestParse_usesTheDelimitersOfTheHeader(t *testing.T) {
	m := parse(t, "MSH!*%?$!LAB!!!!!!ORU*R01!M1\rPID!1!!7*a$b%8!!Ro?S?e*An?F?a*?X41?")
	pid := m.Segment("PID")
	require.Equal(t, er7.Delimiters{Field: '!', Component: '*', Repetition: '%', Escape: '?', Subcomponent: '$'}, m.Delimiters())
	require.Equal(t, "b", pid.Field(3).Component(2).Subcomponent(2).Text())
	require.Equal(t, "8", pid.Field(3).Repetition(2).Text())
	require.Equal(t, "Ro*e", pid.Field(5).Component(1).Text())
	require.Equal(t, "An!a", pid.Field(5).Component(2).Text())
	require.Equal(t, "A", pid.Field(5).Component(3).Text())

	m = parse(t, "MSH|^\rPID|1~2\\F\\^b&c")
	require.Equal(t, "1~2\\F\\", m.Segment("PID").Field(1).Text(), "a message without the other delimiters")
	require.Equal(t, "b&c", m.Segment("PID").Field(1).Component(2).Text())
	require.Equal(t, byte('#'), parse(t, "MSH|^~\\&#|").Delimiters().Truncation)
}

func TestText_unescapesSequences(t *testing.T) {
	for text, want := range map[string]string{
		`plain`:                      `plain`,
		`\F\\S\\T\\R\\E\`:            `|^&~\`,
		`\X48656C6C6F\`:              `Hello`,
		`\XC3A9\`:                    `é`,
		`a\.br\b\.sp\c\.sp+2\d`:      "a\nb\nc\n\nd",
		`\H\loud\N\ \.in+4\x\.ce\`:   "loud x\n",
		`C:\temp`:                    `C:\temp`,
		`a\b\F\c`:                    `a\b|c`,
		`\\`:                         `\\`,
		`\Zlocal\`:                   `\Zlocal\`,
		`\X4\ \X\ \.zz\ \.sp-1\`:     `\X4\ \X\ \.zz\ \.sp-1\`,
		`\XFF\`:                      "\ufffd",
		`a\X00\b\X410042\`:           "a\ufffdbA\ufffdB",
		`""`:                         ``,
		`\P\`:                        `\P\`,
		`\.sp999999999\ \.in\ \.br1`: `\.sp999999999\ \.in\ \.br1`,
	} {
		require.Equal(t, want, parse(t, "MSH|^~\\&\rNTE|1||"+text).Segment("NTE").Field(3).Text(), text)
	}
	require.True(t, parse(t, "MSH|^~\\&\rPID|\"\"").Segment("PID").Field(1).Null())
	require.Equal(t, "a~b^c|d", parse(t, "MSH|^~\\&\rNTE|a~b^c\\F\\d").Segment("NTE").Field(1).Whole())
}

func TestParse_decodesTheDeclaredCharset(t *testing.T) {
	head := func(name string) string { return "MSH|^~\\&" + strings.Repeat("|", 16) + name + "\rPID|" }
	for name, tt := range map[string]struct{ charset, bytes, want string }{
		"UTF-8":            {"UNICODE UTF-8", "Zo\u00eb \u0141", "Zo\u00eb \u0141"},
		"not said":         {"", "Zo\u00eb", "Zo\u00eb"},
		"Latin 1":          {"8859/1", "Zo\xeb \xa4", "Zo\u00eb \u00a4"},
		"Latin 1, escaped": {"8859/1", `Zo\XEB\`, "Zo\u00eb"},
		"Latin 1, NUL":     {"8859/1", `Zo\X00\`, "Zo\ufffd"},
		"Latin 9":          {"8859/15", "Zo\xeb \xa4\xbe", "Zo\u00eb \u20ac\u0178"},
		"several":          {"8859/1~8859/15", "\xa4", "\u00a4"},
		"Latin 2":          {"8859/2", "\xa3\xf3d\xbc", "\u0141\u00f3d\u017a"},
		"Cyrillic":         {"ISO-8859-5", "\xb8", "\u0418"},
		"Greek":            {"8859/7", "\xc1", "\u0391"},
		"Turkish":          {"8859/9", "\xfd", "\u0131"},
		"spelt":            {"iso 8859-1", "Zo\xeb", "Zo\u00eb"},
		"by name":          {"latin1", "Zo\xeb", "Zo\u00eb"},
		"Windows":          {"windows-1252", "\x93Zo\xeb\x94", "\u201cZo\u00eb\u201d"},
		"none, Latin 1":    {"", "M\xdcLLER", "M\u00dcLLER"},
		"none, Windows":    {"", "O\x92Brien", "O\u2019Brien"},
		"plain":            {"ASCII", "Zoe", "Zoe"},
	} {
		t.Run(name, func(t *testing.T) {
			m := parse(t, head(tt.charset)+tt.bytes)
			require.Equal(t, tt.want, m.Segment("PID").Field(1).Text())
			require.Equal(t, head(tt.charset)+tt.bytes, string(m.Bytes()))
		})
	}
	m, err := er7.Parse([]byte("MSH|^~\\&\rPID|Zo\xeb"), &er7.Options{Charset: er7.Latin1})
	require.NoError(t, err)
	require.Equal(t, "Zo\u00eb", m.Segment("PID").Field(1).Text())
	require.Equal(t, er7.Latin1, m.Charset())
}

// A message and a file in UTF-16 are read, with and without a byte order mark, and written back as they were.
func TestParse_readsUTF16WithAndWithoutAByteOrderMark(t *testing.T) {
	for _, declared := range []string{"", "UNICODE UTF-16", "UTF-16", "UNICODE"} {
		text := "MSH|^~\\&" + strings.Repeat("|", 16) + declared + "\rPID|Zo\u00eb \u6771\u4eac \U0001f600\r"
		for _, order := range []unicode.Endianness{unicode.LittleEndian, unicode.BigEndian} {
			for _, mark := range []unicode.BOMPolicy{unicode.UseBOM, unicode.IgnoreBOM} {
				write := unicode.UTF16(order, mark).NewEncoder()
				raw, err := write.Bytes([]byte(text))
				require.NoError(t, err)
				m, err := er7.Parse(raw, nil)
				require.NoError(t, err)
				require.Equal(t, "Zo\u00eb \u6771\u4eac \U0001f600", m.Segment("PID").Field(1).Text())
				require.Equal(t, raw, m.Bytes())

				raw, err = write.Bytes([]byte("BHS|^~\\&\r" + text + "PID|1\r" + text + "x\r" + text))
				require.NoError(t, err)
				require.True(t, er7.IsBatch(raw))
				b, err := er7.ParseBatch(raw, nil)
				require.NoError(t, err)
				require.Equal(t, raw, b.Append(nil))
				require.Len(t, b.Messages(), 3)
				alone, err := er7.Parse(b.Messages()[2].Bytes(), nil)
				require.NoError(t, err)
				require.Equal(t, "Zo\u00eb \u6771\u4eac \U0001f600", alone.Segment("PID").Field(1).Text())
			}
		}
	}
}

func TestParse_malformedMessageNamesSegmentAndField(t *testing.T) {
	for name, tt := range map[string]struct {
		text string
		want er7.SyntaxError
	}{
		"nothing":                {"", er7.SyntaxError{}},
		"blank":                  {"\r\n \x1c\r", er7.SyntaxError{Number: 1}},
		"no header":              {"PID|secret", er7.SyntaxError{Number: 1}},
		"a header cut short":     {"MSH", er7.SyntaxError{Segment: "MSH", Number: 1, Field: 1}},
		"no encoding characters": {"MSH|", er7.SyntaxError{Segment: "MSH", Number: 1, Field: 2}},
		"too many of them":       {"MSH|^~\\&#!|", er7.SyntaxError{Segment: "MSH", Number: 1, Field: 2}},
		"a letter to cut at":     {"MSHx^~\\&x", er7.SyntaxError{Segment: "MSH", Number: 1, Field: 1}},
		"a letter among them":    {"MSH|^~a&|", er7.SyntaxError{Segment: "MSH", Number: 1, Field: 2}},
		"one twice":              {"MSH|^~^&|", er7.SyntaxError{Segment: "MSH", Number: 1, Field: 2}},
		"the separator again":    {"MSH|^~&!|\rPID|", er7.SyntaxError{}},
		"no name":                {"MSH|^~\\&\rsecret|1", er7.SyntaxError{Number: 2}},
		"another separator":      {"MSH|^~\\&\rPID!secret", er7.SyntaxError{Segment: "PID", Number: 2}},
		"two messages":           {"MSH|^~\\&\rPID|1\rMSH|^~\\&", er7.SyntaxError{Segment: "MSH", Number: 3}},
		"charset":                {"MSH|^~\\&||||||||||||||||ISO IR87", er7.SyntaxError{Segment: "MSH", Number: 1, Field: 18}},
		"bytes of another":       {"MSH|^~\\&||||||||||||||||UTF-8\rPID|1||secret\xff", er7.SyntaxError{Segment: "PID", Number: 2, Field: 3}},
		"not ASCII":              {"MSH|^~\\&||||||||||||||||ASCII\rPID|\u00e9", er7.SyntaxError{Segment: "PID", Number: 2, Field: 1}},
		"a NUL":                  {"MSH|^~\\&||secret\x00|\rPID|1", er7.SyntaxError{Segment: "MSH", Number: 1, Field: 4}},
		"sixteen bits":           {"\xff\xfeM\x00S\x00H\x00", er7.SyntaxError{Segment: "MSH", Number: 1, Field: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := er7.Parse([]byte(tt.text), nil)
			if name == "the separator again" {
				require.NoError(t, err, "four are enough, in any order")
				return
			}
			var at *er7.SyntaxError
			require.True(t, errors.As(err, &at))
			require.ErrorIs(t, err, healthlab.Invalid)
			require.NotContains(t, err.Error(), "secret")
			require.NotEmpty(t, at.Problem)
			if name == "nothing" || name == "blank" {
				return
			}
			require.Equal(t, tt.want, er7.SyntaxError{Segment: at.Segment, Number: at.Number, Field: at.Field})
		})
	}
	_, err := er7.Parse([]byte("MSH|^~\\&||||||||||||||||UNICODE UTF-8\rPID|1||\xff"), nil)
	require.EqualError(t, err, "HL7 message: segment 2 (PID-3): must be text in the character set of the message (UNICODE UTF-8), without NUL")
}

func TestParse_beyondItsLimitsIsRefused(t *testing.T) {
	_, err := er7.Parse([]byte(report), &er7.Options{MaxBytes: len(report)})
	require.NoError(t, err)
	_, err = er7.Parse([]byte(report), &er7.Options{MaxBytes: len(report) - 1})
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = er7.Parse([]byte(report), &er7.Options{MaxSegments: 4})
	require.ErrorIs(t, err, healthlab.Invalid)
	_, err = er7.ParseBatch([]byte(report), &er7.Options{MaxSegments: 4})
	require.ErrorIs(t, err, healthlab.Invalid)
}

func TestParseBatch_splitsFilesIntoMessages(t *testing.T) {
	text := "FHS|^~\\&|LAB\rBHS|^~\\&|LAB\r" + report + "MSH!*%?$!LAB\rPID!1\rBTS|2\rFTS|1\r\x1a"
	b, err := er7.ParseBatch([]byte(text), nil)
	require.NoError(t, err)
	require.Equal(t, text, string(b.Append(nil)))
	require.Len(t, b.Items(), 6)
	require.Len(t, b.Messages(), 2)
	require.Equal(t, report, string(b.Messages()[0].Bytes()))
	require.Equal(t, byte('!'), b.Messages()[1].Delimiters().Field)
	require.Equal(t, "LAB", b.Items()[0].Envelope.Field(3).Text())
	require.Equal(t, "2", b.Items()[4].Envelope.Field(1).Text())

	for name, text := range map[string]string{
		"outside of a message": "BHS|^~\\&\rPID|1",
		"bad envelope":         "BHS|^^\r",
		"bad message":          "BHS|^~\\&\rMSH|^~\\&\rpid|1\rBTS|1",
		"bad trailer":          "BHS|^~\\&\rBTS!1",
		"bad bytes":            "BHS|^~\\&|\xff\r",
		"nothing":              "\r\n",
	} {
		_, err := er7.ParseBatch([]byte(text), nil)
		var at *er7.SyntaxError
		require.True(t, errors.As(err, &at), name)
	}

	// A malformed part of the envelope, and what stands in no message, are refused by themselves.
	for _, text := range []string{"BHS|^^\r" + report, "BHS|^~\\&\rPID|1\rOBX|1\r" + report + "BTS|1", "BHS|^~\\&\r" + report + "BTS!1", "no message\r" + report} {
		b, err := er7.ParseBatch([]byte(text), nil)
		require.NoError(t, err)
		require.Equal(t, text, string(b.Append(nil)))
		require.Len(t, b.Messages(), 1)
		require.Len(t, b.Errors(), 1)
	}

	// A malformed message is refused by itself.
	bad := "MSH|^~\\&||||||||||||||||UTF-8\rPID|1||\xff\r"
	text = "BHS|^~\\&\r" + bad + report + "MSH|^~\\&\rpid|1\rBTS|3"
	b, err = er7.ParseBatch([]byte(text), nil)
	require.NoError(t, err)
	require.Equal(t, text, string(b.Append(nil)))
	require.Len(t, b.Messages(), 1)
	require.Equal(t, bad, string(b.Items()[1].Raw))
	require.Len(t, b.Errors(), 2)
	require.EqualError(t, b.Errors()[0], "HL7 message: segment 3 (PID-3): must be text in the character set of the message (UNICODE UTF-8), without NUL")
	require.ErrorIs(t, b.Errors()[1], healthlab.Invalid)
}
