package hl7_test

import (
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/labs/hl7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/labresult"
)

// read reads a message of these segments after its header.
func read(t *testing.T, header string, o *hl7.Options, segments ...string) hl7.Incoming {
	t.Helper()
	m, err := er7.Parse([]byte(strings.Join(append([]string{header}, segments...), "\r")), nil)
	require.NoError(t, err)
	in, err := hl7.Read(m, o)
	require.NoError(t, err)
	return in
}

const oru = "MSH|^~\\&|LIS|N|||20260303||ORU^R01"

// Units are read whole, and ranges as reports print them; the result is interpreted.
func TestRead_unitsAndRangesAreReadAsPrinted(t *testing.T) {
	for _, c := range []struct{ value, unit, bounds, wantUnit, want string }{
		{"4.4", "10^3/uL", "3.6-10.0", "10^3/uL", "normal"}, {"4.7", "x10^6/uL", "3.8-5.2", "x10^6/uL", "normal"}, {"4.4", "10*3/uL", "5.0-10.0", "10*3/uL", "abnormal"},
		{"130", "mg/dL", "70–99", "mg/dL", "abnormal"}, {"130", "mg/dL", "70-99 mg/dL", "mg/dL", "abnormal"}, {"130", "mg/dL", "(70-99)", "mg/dL", "abnormal"},
		{"130", "mg/dL", "70 to 99", "mg/dL", "abnormal"}, {"5", "", "≥60", "", "abnormal"}, {"80", "", "70~99", "", "normal"}, {"182", "mg/dl", "70_105", "mg/dl", "abnormal"},
		{"2.5", "mU/L", "0,270-4,200", "mU/L", "normal"}, {"12", "g/dL", "M: 13-17~F: 12-15", "g/dL", "unknown"}, {"5", "", "see note", "", "unknown"}, {"5", "", "", "", "unknown"},
		{"90", "mL/min/1.73m^2", ">60", "mL/min/1.73m^2", "normal"}, {"250", "mg/dL", "Desirable: \\T\\lt;200", "mg/dL", "unknown"}, {"250", "mg/dL", "Desirable: <200", "mg/dL", "abnormal"},
	} {
		in := read(t, oru, nil, "OBR|1|N1|F1|t^T", "OBX|1|NM|x^X^L||"+c.value+"|"+c.unit+"|"+c.bounds+"||||F")
		r := in.Tests[0].Observations[0].Result
		unit := ""
		if r.Unit != nil {
			unit = *r.Unit
		}
		require.Equal(t, c.wantUnit+" "+c.want, unit+" "+string(r.Interpretation), "%s in %s", c.value, c.bounds)
	}
	in := read(t, oru, nil, "OBR|1|N1|F1|t^T", "OBX|1|NM|x^X^L||12|g/dL|M: 13-17~F: 12-15||||F")
	require.Equal(t, "M: 13-17\nF: 12-15", *in.Tests[0].Observations[0].Result.ReferenceRange)
}

// Values of every type are published without the separators of the format.
func TestRead_valueOfEveryDataTypeIsReadWithoutSeparators(t *testing.T) {
	for _, c := range []struct{ kind, value, want string }{
		{"AD", "1 Main St^^Reno^NV", "1 Main St Reno NV"}, {"CE", "A^Able^L", "Able"}, {"CF", "A^Able^L", "Able"}, {"CK", "77^1^M10", "77"}, {"CN", "9^Doe^Jo", "Jo Doe"},
		{"CNE", "A^Able^L", "Able"}, {"CP", "12^UP", "12 UP"}, {"CQ", "12^mL&millilitre", "12 mL"}, {"CWE", "A^Able^L", "Able"}, {"CX", "77^^^LAB^MR", "77"},
		{"DR", "20260301^20260302", "2026-03-01 to 2026-03-02"}, {"DT", "202603", "2026-03"}, {"DTM", "202603020930-0700", "2026-03-02T09:30-07:00"}, {"EI", "S1^LAB^1.2^ISO", "S1"},
		{"FT", "a\\.br\\b", "a\nb"}, {"ID", "Y", "Y"}, {"IS", "Y", "Y"}, {"MO", "12.5^USD", "12.5 USD"}, {"NA", "1^2^3", "1 2 3"}, {"NM", "+5.0", "5.0"}, {"NR", "1^5", "1-5"},
		{"PN", "Doe^Jo", "Jo Doe"}, {"SN", "<^5", "<5"}, {"SN", "^1^:^128", "1:128"}, {"SN", "^positive", "positive"}, {"SN", "&lt;^5", "&lt;5"}, {"SN", "^5&6", "5&6"}, {"SN", "<=^3,5", "<=3.5"}, {"ST", "10^3", "10^3"}, {"ST", "a & b", "a & b"},
		{"TM", "093015", "09:30:15"}, {"TN", "555-0100", "555-0100"}, {"TS", "2026030209301^D", "2026030209301^D"}, {"TS", "20260302093000^D", "2026-03-02"}, {"TX", "a^b", "a^b"},
		{"XAD", "1 Main St&Main^^Reno", "1 Main St Main Reno"}, {"XCN", "9^Doe^Jo", "Jo Doe"}, {"XCN", "9", "9"}, {"XON", "North Lab^L", "North Lab L"}, {"XPN", "Doe^Jo^B", "Jo B Doe"},
		{"XTN", "^PRN^Internet^jo@example.org", "jo@example.org"}, {"", "<^5", "<5"}, {"", "5", "5"},
	} {
		in := read(t, oru, nil, "OBR|1|N1|F1|t^T", "OBX|1|"+c.kind+"|x^X^L|1^2.3|"+c.value+"||||||F")
		r := in.Tests[0].Observations[0].Result
		require.Equal(t, c.want, r.Result, c.kind)
		require.Equal(t, "1.2.3", r.Group)
	}
}

// Times come out with the precision that they were written with, in every place.
func TestRead_timesKeepTheirPrecision(t *testing.T) {
	for _, c := range []struct {
		written, text, instant string
		precision              labresult.Precision
	}{
		{"2026", "2026", "2026-01-01T07:00:00+00:00", labresult.YearPrecision},
		{"202603", "2026-03", "2026-03-01T07:00:00+00:00", labresult.MonthPrecision},
		{"20260302", "2026-03-02", "2026-03-02T07:00:00+00:00", labresult.DayPrecision},
		{"20260302000000^D", "2026-03-02", "2026-03-02T07:00:00+00:00", labresult.DayPrecision},
		{"20260302+0530", "2026-03-02", "2026-03-01T18:30:00+00:00", labresult.DayPrecision},
		{"2026030212", "2026-03-02T19:00:00+00:00", "2026-03-02T19:00:00+00:00", labresult.HourPrecision},
		{"202603021230", "2026-03-02T19:30:00+00:00", "2026-03-02T19:30:00+00:00", labresult.MinutePrecision},
		{"20260302123015", "2026-03-02T19:30:15+00:00", "2026-03-02T19:30:15+00:00", ""},
		{"20260302123015.2500", "2026-03-02T19:30:15.25+00:00", "2026-03-02T19:30:15.25+00:00", ""},
		{"20260302123015-0500", "2026-03-02T17:30:15+00:00", "2026-03-02T17:30:15+00:00", ""},
	} {
		b := newBench(t, func(o *hl7.Options) { o.Zone = time.FixedZone("", -7*3600) })
		n := b.submit(submission())
		require.Equal(t, "AA", b.send(b.report(n, ana,
			"OBR|1|"+n+"|F1|4598^Ferritin^L|||"+c.written+"|||||||"+c.written+"||||||||"+c.written+"|||F", "OBX|1|NM|2276-4^Ferritin^LN||95|ug/L|13-150|N|||F|||"+c.written)))
		m := b.told()[0]
		sample, head, r := m.Results.SampleInformation["F1"], m.Results.Metadata, m.Results.Results[0]
		for _, at := range []*labresult.TimestampWithOffset{sample.DateCollected, sample.DateReceived, sample.DateReported} {
			require.Equal(t, c.instant, at.Timestamp.String(), c.written)
			require.Equal(t, c.precision, at.Precision, c.written)
			require.Equal(t, c.text, at.Text(), c.written)
		}
		require.Equal(t, []string{c.text, c.text, c.text}, []string{*head.DateCollected, *head.DateReceived, head.DateReported})
		require.Equal(t, c.instant, r.Timestamp.String())
		require.Equal(t, c.precision, r.TimestampPrecision)
		require.Equal(t, sample.DateCollected.TimezoneOffset, *r.TimestampOffset)
		if c.precision == labresult.DayPrecision {
			require.Equal(t, "2026-03-02T00:00:00Z", m.CollectedAt.Format(time.RFC3339), "the day that was said")
		}
	}
	for written, want := range map[string]string{"1984": "1984 1984", "198405": "1984-05 198405", "19840509^L": "1984-05 198405", "19840509": "1984-05-09 ", "x": " x"} {
		in := read(t, oru, nil, "PID|1||||ROE^ANA||"+written, "OBR|1|N1|F1|t^T", "OBX|1|NM|x^X^L||1||||||F")
		require.Equal(t, want, in.Tests[0].Head.DOB+" "+in.Tests[0].Patient.DOBText, written)
	}
}

// The offset of MSH-7 is that of times without one, unless the laboratory's zone has it.
func TestRead_timesWithoutOffsetUseTheHeadersOrTheLabsZone(t *testing.T) {
	berlin, err := time.LoadLocation("Europe/Berlin")
	require.NoError(t, err)
	for _, c := range []struct {
		sent string
		zone *time.Location
		want string
	}{
		{"20260303", nil, "2026-03-02T12:00:00Z"}, {"20260303120000-0700", nil, "2026-03-02T12:00:00-07:00"}, {"20260303120000", berlin, "2026-03-02T12:00:00+01:00"},
		{"20260603120000+0200", berlin, "2026-03-02T12:00:00+01:00"}, {"20260603120000+0300", berlin, "2026-03-02T12:00:00+03:00"},
	} {
		in := read(t, "MSH|^~\\&|LIS|N|||"+c.sent+"||ORU^R01", &hl7.Options{Zone: c.zone}, "OBR|1|N1|F1|t^T|||20260302120000", "OBX|1|NM|x^X^L||1||||||F")
		require.Equal(t, c.want, in.Tests[0].Collected.Local().Format(time.RFC3339), c.sent)
	}
}

// What is known of the equipment, the specimen and its container.
func TestReport_keepsEquipmentSpecimenAndContainer(t *testing.T) {
	b := newBench(t, nil)
	n := b.submit(submission())
	obx := "OBX|1|NM|2276-4^Ferritin^LN||95|ug/L|13-150|N|||F||||||IA^Immunoassay^L|AU-12^NORTHLAB^1.2.3^ISO~PIP-7"
	spm := "SPM|1|^S1||SER^Serum^HL70487||F10^sodium fluoride 10mM^HL70371~EDTA^EDTA^L||||||40^mL&millilitre&UCUM||pale, clear~second tube|||||||||||||SST^Serum separator tube^L"
	require.Equal(t, "AA", b.send(b.report(n, ana, ferrF, obx, spm, ironF, iron)))
	m := b.told()[0]
	require.Equal(t, []string{"AU-12 NORTHLAB:AU-12", "PIP-7"}, codedTexts(m.Results.Results[0].Equipment))
	sample := m.Results.SampleInformation["S1"]
	require.Equal(t, []string{"sodium fluoride 10mM HL70371:F10", "EDTA L:EDTA"}, codedTexts(sample.Additives))
	require.Equal(t, "40 mL", *sample.ClinicalInformation.TotalVolume)
	require.Equal(t, "pale, clear\nsecond tube", sample.Description)
	require.Equal(t, "Serum separator tube L:SST", codedText(*sample.ContainerType))
	require.Nil(t, m.Results.SampleInformation["F2"].ClinicalInformation)

	// Before the specimen had a segment of its own.
	b = newBench(t, nil)
	n = b.submit(submission())
	require.Equal(t, "AA", b.send(b.report(n, ana, "OBR|1|$^ORDERS|F1^LIS|4598^Ferritin^L|||20260302120000-0700||1500^mL|||||||||||||20260304090000-0700|||F", ferritin("95", "N", "F"))))
	require.Equal(t, "1500 mL", *b.told()[0].Results.SampleInformation["F1"].ClinicalInformation.TotalVolume)
}

// Notes are kept with what they follow, in both orders of specimens and tests.
func TestReport_notesStayWithOrderTestSpecimenOrResult(t *testing.T) {
	for name, c := range map[string]struct {
		event    string
		segments []string
	}{
		"test first": {"ORU^R01", []string{"ORC|RE|$|F1", "NTE|1||of the order", "OBR|1|$|F1|4598^Ferritin^L|||20260302||||||||||||||||||F", "NTE|1||of the test",
			"OBX|1|NM|2276-4^Ferritin^LN||95||||||F", "NTE|1||of the result", "OBX|2|ST|q^Fasting^L||N||||||O", "NTE|1||of the answer", "SPM|1|^S1||SER^Serum^L", "NTE|1||of the specimen"}},
		"specimen first": {"OUL^R22", []string{"SPM|1|^S1||SER^Serum^L", "NTE|1||of the specimen", "OBR|1|$|F1|4598^Ferritin^L|||20260302||||||||||||||||||F",
			"ORC|RE|$|F1", "NTE|1||of the order", "NTE|2||of the test", "OBX|1|NM|2276-4^Ferritin^LN||95||||||F", "NTE|1||of the result", "OBX|2|ST|q^Fasting^L||N||||||O", "NTE|1||of the answer"}},
		"order between": {"OUL^R22", []string{"SPM|1|^S1||SER^Serum^L", "NTE|1||of the specimen", "ORC|RE|$|F1", "NTE|1||of the order", "OBR|1|$|F1|4598^Ferritin^L|||20260302||||||||||||||||||F",
			"NTE|2||of the test", "OBX|1|NM|2276-4^Ferritin^LN||95||||||F", "NTE|1||of the result", "OBX|2|ST|q^Fasting^L||N||||||O", "NTE|1||of the answer"}},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			n := b.submit(submission())
			raw := b.report(n, append([]string{"NTE|1||of the message", ana, "NTE|1||of the patient", "PV1|1|O", "NTE|1||of the visit"}, c.segments...)...)
			require.Equal(t, "AA", b.send([]byte(strings.Replace(string(raw), "ORU^R01^ORU_R01", c.event, 1))))
			m := b.told()[0]
			require.Equal(t, "of the message\nof the patient\nof the visit", *m.Results.Metadata.Notes)
			require.Len(t, m.Results.SampleInformation, 1)
			require.Equal(t, "of the order\nof the test\nof the answer\nof the specimen", *m.Results.SampleInformation["S1"].ClinicalInformation.Notes)
			require.Len(t, m.Results.Results, 1)
			require.Equal(t, "of the result", *m.Results.Results[0].Notes)
		})
	}
}

// The specimens of a test have their own notes.
func TestReport_eachSpecimenKeepsItsNotes(t *testing.T) {
	b := newBench(t, nil)
	n := b.submit(submission())
	require.Equal(t, "AA", b.send(b.report(n, ana, ferrF, ferritin("95", "N", "F"), "SPM|1|^S1||SER^Serum^L", "NTE|1||first tube", "SPM|2|^S2||PLAS^Plasma^L", "NTE|1||second tube", "NTE|2||pink")))
	samples := b.told()[0].Results.SampleInformation
	require.Equal(t, "first tube", *samples["S1"].ClinicalInformation.Notes)
	require.Equal(t, "second tube\npink", *samples["S2"].ClinicalInformation.Notes)
}

// An ORC that follows an OBR of another order begins a test of its own.
func TestRead_ORCAfterAnotherOrdersOBRBeginsATest(t *testing.T) {
	in := read(t, strings.Replace(oru, "ORU^R01", "OUL^R22", 1), nil, "SPM|1|^S1", "OBR|1|N1|F1|a^A|||||||||||||||||||||F", "ORC|RE|N2|F2", "OBR|2|N2|F2|b^B|||||||||||||||||||||F", "OBX|1|NM|x^X^L||1||||||F")
	require.Len(t, in.Tests, 2)
	require.Equal(t, []string{"N1"}, in.Tests[0].Numbers)
	require.Equal(t, []string{"N2"}, in.Tests[1].Numbers)
	require.Len(t, in.Tests[1].Observations, 1)
}

// Documents come embedded, in the encoding that they name; a reference is refused by itself.
func TestDocument_embeddedIsDecodedAndReferenceRefused(t *testing.T) {
	pdf := base64.StdEncoding.EncodeToString([]byte("%PDF-1.7 x"))
	for _, c := range []struct{ kind, value, status, answer, content string }{
		{"ED", "^application^pdf^Base64^" + pdf, "F", "AA", "application/pdf"},
		{"ED", "LIS^AP^Octet-stream^BASE64^" + pdf[:8] + "\\.br\\" + pdf[8:], "F", "AA", "application/pdf"},
		{"ED", "^application^pdf^^" + pdf, "F", "AA", "application/pdf"},
		{"ED", "^application^pdf^Hex^255044462D", "F", "AA", "application/pdf"},
		{"ED", "^TEXT^plain^A^see below", "F", "AA", "text/plain"},
		{"ED", "^application^pdf^Base64^***", "F", "AE", ""},
		{"ED", "^application^pdf^uuencode^" + pdf, "F", "AE", ""},
		{"RP", "https://lab.example.com/1^LIS^application^pdf", "F", "AE", ""},
		{"RP", "https://lab.example.com/1^LIS^application^pdf", "X", "AA", ""},
		{"RP", "https://lab.example.com/1^LIS^application^pdf", "D", "AA", ""},
		{"RP", "", "F", "AA", ""},
	} {
		kept := &documentRecorder{}
		b := newBench(t, func(o *hl7.Options) { o.Documents = kept })
		n := b.submit(submission())
		raw := b.report(n, ana, ferrF, ferritin("95", "N", "F"), fmt.Sprintf("OBX|2|%s|pdf^Report^L||%s||||||%s", c.kind, c.value, c.status), ironF, iron)
		m, err := er7.Parse(b.back.Handle(t.Context(), raw, nil), nil)
		require.NoError(t, err)
		require.Equal(t, c.answer, m.Segment("MSA").Field(1).Text(), c.value)
		if c.answer == "AE" {
			require.Equal(t, "OBX^5^5", strings.Join([]string{m.Segment("ERR").Field(2).Component(1).Text(), m.Segment("ERR").Field(2).Component(2).Text(), m.Segment("ERR").Field(2).Component(3).Text()}, "^"))
		}
		require.Equal(t, []orders.Trigger{orders.FinalResult}, triggers(b.told()), "the other results are kept")
		require.Equal(t, map[string]string{"Ferritin": "95", "Iron": "90"}, values(b.told()[0]))
		if c.content == "" {
			require.Empty(t, kept.docs)
			continue
		}
		require.Len(t, kept.docs, 1)
		require.Equal(t, c.content, kept.docs[0].ContentType)
	}
}
