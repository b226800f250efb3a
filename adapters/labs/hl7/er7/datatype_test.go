package er7_test

import (
	"encoding/base64"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
)

func fieldOf(t *testing.T, text string) er7.Part {
	return parse(t, "MSH|^~\\&\rZZZ|"+text).Segment("ZZZ").Field(1)
}

func TestStamp_readsTimeAndPrecision(t *testing.T) {
	phoenix := time.FixedZone("", -7*3600)
	for text, want := range map[string]struct {
		at        string
		precision er7.Precision
		offset    bool
	}{
		"2026":                     {"2026-01-01T00:00:00-07:00", er7.Year, false},
		"202603":                   {"2026-03-01T00:00:00-07:00", er7.Month, false},
		"20260302":                 {"2026-03-02T00:00:00-07:00", er7.Day, false},
		"2026030209":               {"2026-03-02T09:00:00-07:00", er7.Hour, false},
		"202603020930":             {"2026-03-02T09:30:00-07:00", er7.Minute, false},
		"20260302093015":           {"2026-03-02T09:30:15-07:00", er7.Second, false},
		"20260302093015.25":        {"2026-03-02T09:30:15.25-07:00", er7.Fraction, false},
		"20260302093015.1234+0530": {"2026-03-02T09:30:15.1234+05:30", er7.Fraction, true},
		"202603020930-0215":        {"2026-03-02T09:30:00-02:15", er7.Minute, true},
		"20260302+0000":            {"2026-03-02T00:00:00Z", er7.Day, true},
		"20240229^D":               {"2024-02-29T00:00:00-07:00", er7.Day, false},
		"20260302093015^M":         {"2026-03-02T09:30:00-07:00", er7.Minute, false},
		"20260302093015.25^S":      {"2026-03-02T09:30:15-07:00", er7.Second, false},
		"2026030209+0100^H":        {"2026-03-02T09:00:00+01:00", er7.Hour, true},
		"20260302000000^D":         {"2026-03-02T00:00:00-07:00", er7.Day, false},
		"20260302^L":               {"2026-03-01T00:00:00-07:00", er7.Month, false},
		"20260302^Y":               {"2026-01-01T00:00:00-07:00", er7.Year, false},
		"2026^D":                   {"2026-01-01T00:00:00-07:00", er7.Year, false},
		"20260302^20260303":        {"2026-03-02T00:00:00-07:00", er7.Day, false},
		" 202603020930 ":           {"2026-03-02T09:30:00-07:00", er7.Minute, false},
	} {
		s, err := fieldOf(t, text).Stamp(phoenix)
		require.NoError(t, err, text)
		at, err := time.Parse(time.RFC3339Nano, want.at)
		require.NoError(t, err)
		require.True(t, s.Time.Equal(at), "%s: %s", text, s.Time)
		require.Equal(t, want.precision, s.Precision, text)
		require.Equal(t, want.offset, s.Offset, text)
	}
	for _, text := range []string{"", "0000", "26", "20261", "202613", "20260230", "2026030224", "202603020960", "20260302093060",
		"20260302093015.", "20260302093015.1234567890", "2026030209.5", "20260302093015.1x", "20260302+00", "20260302+1500",
		"20260302+0060", "20260302+05300", "yesterday", "2026-03-02", "+0100"} {
		_, err := fieldOf(t, text).Stamp(nil)
		require.ErrorIs(t, err, healthlab.Invalid, text)
	}
	require.Equal(t, "20260302093000-0700", er7.FormatStamp(time.Date(2026, 3, 2, 9, 30, 0, 0, phoenix)))
	require.Equal(t, "00840509", er7.FormatDay(healthlab.Date{Year: 84, Month: 5, Day: 9}))
	require.Empty(t, er7.FormatStamp(time.Time{})+er7.FormatDay(healthlab.Date{}))
}

// Every precision, with and without an offset, is written with the parts that were said.
func TestStamp_isFormattedWithItsOwnPrecision(t *testing.T) {
	parts := []struct{ digits, iso string }{
		{"2026", "2026"}, {"03", "-03"}, {"02", "-02"}, {"09", "T09"}, {"30", ":30"}, {"15", ":15"}, {".25", ".25"},
	}
	for n := range parts {
		for offset, iso := range map[string]string{"": "", "-0700": "-07:00", "+0530": "+05:30", "+0000": "+00:00"} {
			text, want := "", ""
			for _, p := range parts[:n+1] {
				text, want = text+p.digits, want+p.iso
			}
			s, err := er7.ParseStamp(text+offset, nil)
			require.NoError(t, err)
			require.Equal(t, want+iso, s.String())
			require.Equal(t, er7.Precision(n+1), s.Precision)
		}
	}
	require.Empty(t, er7.Stamp{}.String())
	for text, want := range map[string]string{"0930": "09:30", "093015": "09:30:15", "093015.5": "09:30:15.5", "0930-0700": "09:30-07:00", "09": "", "2500": "", "x": "", "": ""} {
		clock, ok := fieldOf(t, text).Clock()
		require.Equal(t, want, clock, text)
		require.Equal(t, want != "", ok, text)
	}
}

func TestUnit_readsCodesAndTextsOfUnits(t *testing.T) {
	for text, want := range map[string]string{
		"10^3/uL": "10^3/uL", `10\S\3/uL`: "10^3/uL", "10*3/uL": "10*3/uL", "x10^6/uL": "x10^6/uL", "X10^9/L": "X10^9/L", "10^-3/uL": "10^-3/uL", "10^12/L^^UCUM": "10^12/L",
		"10^3/uL^thousand per microlitre^UCUM": "10^3/uL", "10^9/L^10^9/L^UCUM": "10^9/L", "x 10^9 /L": "x 10^9 /L", "10^6": "10^6", "log10^3": "log10^3",
		"mL/min/1.73m^2": "mL/min/1.73m^2", "kg/m^2^kg/m2^UCUM": "kg/m^2", "(mL/min/1.73m^2)": "(mL/min/1.73m^2)",
		"mg/dL": "mg/dL", "mg/dL^milligram per decilitre^UCUM": "mg/dL", "ug/mL^MicroGrams^UCUM^ug/mL^ug/mL^L": "ug/mL", "^per litre": "per litre", "^^^K/uL^thousand^L": "thousand",
		"a^Year^UCUM^^^^2.1": "a", "1^CM^METRIC": "1", "%": "%", "": "", `""`: "", "a & b": "a & b", "10^mg^L": "10", "h^24 h": "h", "210^3": "210",
	} {
		require.Equal(t, want, fieldOf(t, text).Unit(), text)
	}
	require.Equal(t, "10&3/uL", fieldOf(t, "5^10&3/uL&UCUM").Component(2).Unit())
	require.Equal(t, "lbs", fieldOf(t, "40^&lbs").Component(2).Unit())
}

func TestPlain_joinsPartsBySeparator(t *testing.T) {
	for text, want := range map[string]string{"a": "a", "a^b&c~d": "a b c d", "^^a^": "a", "": "", `a\S\b^c`: "a^b c", `""^a`: "a"} {
		require.Equal(t, want, fieldOf(t, text).Plain(" "), text)
	}
}

func TestDataTypes_readEntityIdentifierNameAndTelecom(t *testing.T) {
	require.Equal(t, er7.Entity{ID: "P1", Authority: er7.Authority{Namespace: "CLINIC", ID: "1.2.3", Type: "ISO"}}, fieldOf(t, "P1^CLINIC^1.2.3^ISO").Entity())
	require.Equal(t, er7.Identifier{ID: "77", Authority: er7.Authority{Namespace: "CLINIC", ID: "1.2.3", Type: "ISO"}, Type: "MR"},
		fieldOf(t, "77^^^CLINIC&1.2.3&ISO^MR").Identifier())
	require.Equal(t, er7.Name{Family: "Roe", Given: "Ana", Middle: "B", Suffix: "Jr", Prefix: "Dr", Degree: "MD", Type: "L"}, fieldOf(t, "Roe&van^Ana^B^Jr^Dr^MD^L").Name())
	require.Equal(t, "Ana B Roe", fieldOf(t, "Roe^Ana^B").Name().Full())
	require.Equal(t, er7.Person{ID: "123", Name: er7.Name{Family: "Doe", Given: "Jo", Type: "L"}, Authority: er7.Authority{Namespace: "NPI"}}, fieldOf(t, "123^Doe^Jo^^^^^^NPI^L").Person())
	require.Equal(t, er7.Address{Street: "7 Elm Rd", Other: "Apt 2", City: "Mesa", State: "AZ", Zip: "85201", Country: "US", Type: "H"}, fieldOf(t, "7 Elm Rd&Elm&7^Apt 2^Mesa^AZ^85201^US^H").Address())

	coded := fieldOf(t, "2276-4^Ferritin^LN^ferr^FERRITIN^L^2.7^1^Ferritin, serum^x^y^z").Coded()
	require.Equal(t, "Ferritin, serum", coded.Display())
	loinc, ok := coded.In("http://loinc.org", "LN")
	require.True(t, ok)
	require.Equal(t, er7.Code{Code: "2276-4", Text: "Ferritin", System: "LN"}, loinc)
	_, ok = coded.In("SCT")
	require.False(t, ok)
	require.Equal(t, "x", coded.Codes[2].Code)
	require.Equal(t, "FERRITIN", fieldOf(t, "^^^ferr^FERRITIN").Coded().Display())
	require.Equal(t, "ferr", fieldOf(t, "ferr").Coded().Display())
	require.Empty(t, fieldOf(t, "").Coded().Display())

	for text, want := range map[string]er7.Telecom{
		"(480)555-0100^PRN^PH":               {Number: "(480)555-0100", Use: "PRN", Equipment: "PH"},
		"^PRN^PH^^1^480^5550100^9":           {Number: "+1480" + "5550100 x9", Use: "PRN", Equipment: "PH"},
		"^NET^Internet^ana@example.com":      {Use: "NET", Equipment: "Internet", Email: "ana@example.com"},
		"x^^^^^480^5550100^^^^^480 555 0100": {Number: "480 555 0100"},
	} {
		require.Equal(t, want, fieldOf(t, text).Telecom(), text)
	}
}

func TestNumber_readsDecimalsAndStructuredNumerics(t *testing.T) {
	for text, want := range map[string]string{"11.50": "11.5", "-3": "-3", "+3": "3", " 7 ": "7", "0.000": "0", ".5": "0.5"} {
		n, ok := fieldOf(t, text).Number()
		require.True(t, ok, text)
		require.Equal(t, want, n.String(), text)
	}
	for _, text := range []string{"", "x", "1e9", "1E999999999", "<5", "1,5", "--1", "+-1"} {
		_, ok := fieldOf(t, text).Number()
		require.False(t, ok, text)
	}
	for text, want := range map[string]string{"<^5": "<5", "^182": "182", "=^182": "182", "^1^:^128": "1:128", "^3^-^5": "3-5", ">=^0.10": ">=0.10", "^2^+": "2+"} {
		s, ok := fieldOf(t, text).Structured()
		require.True(t, ok, text)
		require.Equal(t, want, s.String())
	}
	for _, text := range []string{"", "\"^1^/^3", "<", "about^5", "<^x", "^1^:^x"} {
		_, ok := fieldOf(t, text).Structured()
		require.False(t, ok, text)
	}
}

func TestEmbedded_decodesBase64HexAndText(t *testing.T) {
	pdf := []byte("%PDF-1.7 made up\n")
	b64 := base64.StdEncoding.EncodeToString(pdf)
	for text, want := range map[string]er7.Embedded{
		"^application^PDF^Base64^" + b64:                              {Type: "application", Subtype: "PDF", Data: pdf},
		"^AP^PDF^base64^" + b64[:8] + `\.br\` + b64[8:]:               {Type: "AP", Subtype: "PDF", Data: pdf},
		"^AP^PDF^Base64^" + base64.RawStdEncoding.EncodeToString(pdf): {Type: "AP", Subtype: "PDF", Data: pdf},
		"^TEXT^^Hex^4869":         {Type: "TEXT", Data: []byte("Hi")},
		`^TEXT^^A^a \T\ b`:        {Type: "TEXT", Data: []byte("a & b")},
		"^IM^PNG^Hex^89504E47":    {Type: "IM", Subtype: "PNG", Data: []byte("\x89PNG")},
		"^IM^JPEG^Hex^FFD8FF":     {Type: "IM", Subtype: "JPEG", Data: []byte("\xff\xd8\xff")},
		"^TEXT^HTML^A^x":          {Type: "TEXT", Subtype: "HTML", Data: []byte("x")},
		"^TEXT^XML^A^x":           {Type: "TEXT", Subtype: "XML", Data: []byte("x")},
		"^TEXT^RTF^A^x":           {Type: "TEXT", Subtype: "RTF", Data: []byte("x")},
		"^Application^Custom^A^x": {Type: "Application", Subtype: "Custom", Data: []byte("x")},
	} {
		got, err := fieldOf(t, text).Embedded()
		require.NoError(t, err)
		require.Equal(t, want, got, text)
		require.Equal(t, map[string]string{"PDF": "application/pdf", "": "text/plain", "PNG": "image/png", "JPEG": "image/jpeg",
			"HTML": "text/html", "XML": "application/xml", "RTF": "application/rtf", "Custom": "application/octet-stream"}[want.Subtype], got.ContentType())
	}
	for _, text := range []string{"^AP^PDF^Base64^sec*ret", "^AP^PDF^Hex^xyz"} {
		_, err := fieldOf(t, text).Embedded()
		require.ErrorIs(t, err, healthlab.Invalid)
		require.NotContains(t, err.Error(), "sec")
	}
}
