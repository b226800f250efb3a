package er7_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"pgregory.net/rapid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
)

// Any text that is written is read back unchanged.
func TestBuild_anyTextIsReadBackUnchanged(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text := rapid.Custom(func(t *rapid.T) string {
			text := string(rapid.SliceOfN(rapid.OneOf(rapid.Rune(), rapid.RuneFrom([]rune("|^~\\&#\r\n\"\x01\x0b\x1c é€Z.X"))), 0, 8).Draw(t, "text"))
			return strings.ReplaceAll(text, "\x00", "") // which is no text
		})
		d := rapid.SampledFrom([]er7.Delimiters{er7.Standard(), {Field: '!', Component: '*', Repetition: '%', Escape: '?', Subcomponent: '$', Truncation: '#'}}).Draw(t, "delimiters")
		b := er7.NewBuilder(d, "")
		first, second, third, again := text.Draw(t, "first"), text.Draw(t, "second"), text.Draw(t, "third"), text.Draw(t, "again")
		b.Add("NTE").Set(5, first, second).Repeat(5, "x", again).SetParts(2, nil, []string{first, third})
		b.Add("ZZZ").Set(1, third)
		m, err := b.Build()
		require.NoError(t, err)
		nte := m.Segment("NTE")
		if first != "" || second != "" {
			require.Equal(t, second, nte.Field(5).Component(2).Text())
			require.Equal(t, first, nte.Field(5).Text())
			require.Equal(t, again, nte.Field(5).Repetition(2).Component(2).Text())
		}
		require.Equal(t, third, nte.Field(2).Component(2).Subcomponent(2).Text())
		require.Equal(t, third, m.Segment("ZZZ").Field(1).Text())
		require.Empty(t, nte.Field(1).Text())
	})
}

func TestBuild_leavesOutEmptyTrailingParts(t *testing.T) {
	b := er7.NewBuilder(er7.Standard(), er7.ASCII)
	b.Header().Set(3, "APP").Set(9, "OML", "O21", "")
	b.Add("PID").SetNumber(1, 1).Set(3, "7", "", "", "CLINIC").Set(30, "", "").Repeat(4, "")
	b.Add("NTE").SetParts(3, []string{"", "", ""}, []string{"a", "", "b", ""})
	m, err := b.Build()
	require.NoError(t, err)
	require.Equal(t, "MSH|^~\\&|APP||||||OML^O21\rPID|1||7^^^CLINIC\rNTE|||^a&&b\r", string(m.Bytes()))
}

func TestBuild_refusesTextOutsideItsCharset(t *testing.T) {
	for name, tt := range map[string]struct {
		charset er7.Charset
		text    string
		ok      bool
	}{
		"all letters":            {er7.UTF8, "Łódź 東京", true},
		"Latin":                  {er7.Latin1, "Zoë", true},
		"not Latin":              {er7.Latin1, "Łódź", false},
		"the euro":               {er7.Latin9, "Zoë 5 €", true},
		"what the euro replaced": {er7.Latin9, "¤", false},
		"plain":                  {er7.ASCII, "Zoe", true},
		"not plain":              {er7.ASCII, "Zoë", false},
		"no text":                {er7.UTF8, "secret\xff", false},
		"NUL":                    {er7.UTF8, "secret\x00", false},
	} {
		t.Run(name, func(t *testing.T) {
			b := er7.NewBuilder(er7.Standard(), tt.charset)
			b.Add("PID").Set(5, tt.text)
			m, err := b.Build()
			if !tt.ok {
				require.ErrorIs(t, err, healthlab.Invalid)
				require.Contains(t, err.Error(), "segment 2 (PID-5)")
				require.NotContains(t, err.Error(), tt.text)
				return
			}
			require.NoError(t, err)
			require.Equal(t, tt.text, m.Segment("PID").Field(5).Text())
			require.Equal(t, tt.charset, m.Charset())
			require.Equal(t, tt.charset == er7.ASCII, m.Header().Field(18).Empty())
		})
	}
	_, err := er7.NewBuilder(er7.Delimiters{Field: '|', Component: '^'}, "").Build()
	require.ErrorIs(t, err, healthlab.Invalid)
	b := er7.NewBuilder(er7.Standard(), "")
	b.Add("not a name")
	_, err = b.Build()
	require.ErrorIs(t, err, healthlab.Invalid)
}

// A clinic writes a message, and reads what a laboratory sent.
func Example() {
	b := er7.NewBuilder(er7.Standard(), er7.ASCII)
	b.Header().Set(9, "OML", "O21", "OML_O21").Set(10, "M1").Set(12, "2.5.1")
	b.Add("PID").SetNumber(1, 1).Set(5, "Roe & Doe", "Ana")
	m, err := b.Build()
	if err != nil {
		fmt.Println(err)
		return
	}
	for s := range m.Segments() {
		fmt.Println(s.Raw())
	}

	in, err := er7.Parse([]byte("MSH|^~\\&|LAB\nOBX|1|SN|2276-4^Ferritin^LN||<^5|ug/L\nZLB|kept\n"), nil)
	if err != nil {
		fmt.Println(err)
		return
	}
	obx := in.Segment("OBX")
	value, _ := obx.Field(5).Structured()
	fmt.Println(obx.Field(3).Component(2).Text(), value, obx.Field(6).Text())

	_, err = er7.Parse([]byte("MSH|^~\\&|LAB\nOBX~1"), nil)
	fmt.Println(err)
	// Output:
	// MSH|^~\&|||||||OML^O21^OML_O21|M1||2.5.1
	// PID|1||||Roe \T\ Doe^Ana
	// Ferritin <5 ug/L
	// HL7 message: segment 2 (OBX): the segment name must be followed by the field separator of the message (MSH-1)
}
