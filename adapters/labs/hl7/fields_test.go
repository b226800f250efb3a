package hl7_test

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7"
	"github.com/healthlab-dev/healthlab/adapters/labs/hl7/er7"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/labresult"
	"github.com/healthlab-dev/healthlab/orders/people"
)

func example(t testing.TB, name, number string) []byte {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	require.NoError(t, err)
	return []byte(strings.ReplaceAll(string(raw), "$", number))
}

// reportOf sends an example as the laboratory and returns what the service is told last.
func reportOf(t *testing.T, name string) exchange.Message {
	t.Helper()
	b := newBench(t, nil)
	n := b.submit(submission())
	require.Equal(t, "AA", b.send(example(t, name, n)))
	told := b.told()
	require.Len(t, told, 1)
	return told[0]
}

func codedText(c labresult.Coded) string {
	text := c.Text
	for _, code := range c.Codes {
		text += " " + code.System + ":" + code.Code
	}
	return text
}

func codedTexts(list []labresult.Coded) []string {
	var out []string
	for _, c := range list {
		out = append(out, codedText(c))
	}
	return out
}

func TestReport_cultureKeepsIsolatesSusceptibilitiesAndSpecimens(t *testing.T) {
	m := reportOf(t, "culture.hl7")
	require.Equal(t, orders.FinalResult, m.On)
	require.Equal(t, "Patient took antibiotics before collection\nVisit note: seen by night staff", *m.Results.Metadata.Notes)
	var got []string
	for _, r := range m.Results.Results {
		line := r.Group + " " + r.Name + " " + r.Result
		if r.Parent != nil {
			line += " of " + r.Parent.Group + " " + r.Parent.Value + " in " + r.Parent.FillerNumber
		}
		got = append(got, line)
	}
	require.Equal(t, []string{
		"1 Microorganism identified E. coli >100,000 CFU/mL",
		"2 Microorganism identified Klebsiella pneumoniae",
		"1 Ampicillin >32 of 1 Escherichia coli in F1",
		"1 Ciprofloxacin <=0.25 of 1 Escherichia coli in F1",
		"2 Ampicillin >64 of 2 Klebsiella pneumoniae in F1",
		"2 Ciprofloxacin 0.5 of 2 Klebsiella pneumoniae in F1",
	}, got)
	isolate := m.Results.Results[0]
	require.Equal(t, []labresult.Code{{Code: "112283007", Text: "Escherichia coli", System: "SCT"}, {Code: "ECOLI", Text: "E. coli", System: "L"}}, isolate.Codes)
	require.Equal(t, []string{"Culture L:CULT", "MALDI-TOF 99NL:MALDI"}, codedTexts(isolate.Methods))
	require.Equal(t, "Confirmed by repeat", *isolate.Notes)
	require.Equal(t, "Microorganism identified LN:11475-1 L:ORG", codedText(*m.Results.Results[2].Parent.Result))
	require.Equal(t, m.SampleID, m.Results.Results[2].Parent.PlacerNumber)

	require.Equal(t, "S7", *isolate.SourceSampleID)
	urine, blood := m.Results.SampleInformation["S7"], m.Results.SampleInformation["S8"]
	require.Equal(t, "Urine specimen SCT:122575003 HL70487:UR", codedText(*urine.SpecimenType))
	require.Equal(t, "Prostatic secretion SCT:41216001 L:BL", codedText(*urine.SpecimenSite))
	require.Equal(t, []string{"Autolyzed HL70493:AUT", "Room temperature HL70493:ROOM"}, codedTexts(urine.Conditions))
	require.Equal(t, []string{"Volume questionable HL70490:QS"}, codedTexts(urine.RejectReasons))
	require.Equal(t, "Mixed growth", *urine.ClinicalInformation.Notes)
	require.Equal(t, "Blood specimen SCT:119297000", codedText(*blood.SpecimenType))
	require.NotEqual(t, urine.DateCollected, blood.DateCollected)
}

func TestReport_missingResultsHaveTheirReasons(t *testing.T) {
	m := reportOf(t, "missing.hl7")
	require.Equal(t, orders.FinalResult, m.On)
	require.Equal(t, map[string]string{"Ferritin": "9.5"}, values(m))
	got := map[string][2]string{}
	for _, r := range m.Results.MissingResults {
		note := ""
		if r.Note != nil {
			note = *r.Note
		}
		got[r.Name] = [2]string{string(r.InferredFailureType), note}
	}
	require.Equal(t, map[string][2]string{
		"Iron":                  {string(labresult.UnknownFailure), "TNP"},
		"Iron binding capacity": {string(labresult.QuantityNotSufficientFailure), "QNS"},
		"Unsaturated capacity":  {string(labresult.CollectionProcessFailure), "CANC: hemolyzed"},
		"Transferrin":           {string(labresult.CollectionProcessFailure), "Test not performed\nTube clotted"},
		"Iron saturation":       {string(labresult.UnknownFailure), ""},
		"Iron panel":            {string(labresult.UnknownFailure), ""},
	}, got)
}

// Words for results that are missing, and words that are results.
func TestReport_wordsForNotPerformedMakeAResultMissing(t *testing.T) {
	for value, missing := range map[string]bool{
		"TNP": true, "tnp": true, "QNS": true, "Canc": true, "CANCELLED": true, "Canceled by physician": true, "TNP - hemolyzed": true, "*QNS*": true,
		"Test not performed. Lipemic": true, "NOT DONE": true, "DNR": true, "Quantity not sufficient": true, "SPECIMEN REJECTED": true, "": true,
		"Unable to calculate": true, "No specimen received": true, "CXL": true, "Specimen not received": true, "Insufficient volume": true, "No growth": false,
		"Specimen adequate": false, "Not applicable": false, "Unable to exclude malignancy": false,
		"No specimen": true, "NO SAMPLE.": true, "No specimen - tube broken": true, "No specimens were received": true, "No sample (lost)": true,
		"No specimen anomalies": false, "No sample interference": false, "No specimen-related findings": false, "No samples differ": false,
		"No specimen. No anomalies": true, "No specimen received label issues": true, "No specimen receiving problems": false,
		"Insufficient": false, "Cancer cells seen": false, "Not detected": false, "Negative": false, "Qnsx": false, "see note": false, "0": false,
	} {
		t.Run(value, func(t *testing.T) {
			b := newBench(t, nil)
			n := b.submit(submission())
			require.Equal(t, "AA", b.send(b.report(n, ana, ironF, iron, ferrF, "OBX|1|ST|2276-4^Ferritin^LN||"+value+"||||||F")))
			told := b.told()
			require.Len(t, told, 1)
			require.Equal(t, missing, len(told[0].Results.MissingResults) == 1)
			require.Len(t, told[0].Results.Results, 2-len(told[0].Results.MissingResults))
		})
	}
}

// A value that cannot be calculated is missing, and says nothing of the sample.
func TestReport_valueThatCannotBeCalculatedIsMissing(t *testing.T) {
	b := newBench(t, nil)
	n := b.submit(submission())
	require.Equal(t, "AA", b.send(b.report(n, ana, "ORC|RE|$|||CM", ferrF, "OBX|1|ST|2276-4^Ferritin^LN||Unable to calculate||||||F")))
	m := b.told()[0]
	require.Equal(t, orders.FinalResult, m.On)
	require.Equal(t, labresult.MissingResultCalcFailure, m.Results.MissingResults[0].InferredFailureType)
}

// An empty result that is not final may still come.
func TestReport_emptyPreliminaryResultIsPendingAndNotMissing(t *testing.T) {
	b := newBench(t, nil)
	n := b.submit(submission())
	require.Equal(t, "AA", b.send(b.report(n, ana, ferrP, ferritin("", "", "P"))))
	require.Empty(t, b.told())
	require.Equal(t, "AA", b.send(b.report(n, ana, ferrF, ferritin("9", "L", "F"), ironF, iron)))
	require.Empty(t, b.told()[0].Results.MissingResults)
}

func TestReport_rejectedSampleRejectsTheOrderWithReasons(t *testing.T) {
	m := reportOf(t, "rejected.hl7")
	require.Equal(t, orders.SampleRejected, m.On)
	require.Equal(t, orders.SampleStabilityExceeded, m.Detail)
	require.Equal(t, "SAMPLE REJECTED: shipped frozen\nCourier was late", *m.Results.Metadata.Notes)
	require.Empty(t, m.Results.Results)
	require.Len(t, m.Results.MissingResults, 2)
	require.Equal(t, []string{"Missing collection date HL70490:RA"}, codedTexts(m.Results.SampleInformation["S9"].RejectReasons))
}

// A rejected sample is also told beside results of another one.
func TestReport_rejectedSampleOfOneTestKeepsTheOthers(t *testing.T) {
	b := newBench(t, nil)
	n := b.submit(submission())
	require.Equal(t, "AA", b.send(b.report(n, ana, "NTE|1||one tube was frozen", ironF, iron, strings.TrimSuffix(ferrF, "F")+"X", "SPM|1|^S3||SER^Serum^HL70487|||||||||||||||||RB^Broken container^HL70490")))
	m := b.told()[0]
	require.Equal(t, "one tube was frozen", *m.Results.Metadata.Notes)
	require.Len(t, m.Results.MissingResults, 1)
	require.Equal(t, "Broken container", *m.Results.MissingResults[0].Note)
	require.Equal(t, labresult.DropOffFailure, m.Results.MissingResults[0].InferredFailureType)
	require.Equal(t, []string{"Broken container HL70490:RB"}, codedTexts(m.Results.SampleInformation["S3"].RejectReasons))
}

func TestReport_specimenInOBR15IsRead(t *testing.T) {
	m := reportOf(t, "old_version.hl7")
	sample := m.Results.SampleInformation["F1"]
	require.Equal(t, "Throat swab HL70070:THRT", codedText(*sample.SpecimenType))
	require.Equal(t, "Tonsil L:TONS", codedText(*sample.SpecimenSite))
	require.Equal(t, "Streptococcus pyogenes\nNormal flora", m.Results.Results[0].Result)
	require.Len(t, m.Results.Results[0].Codes, 2)
}

// In messages about specimens, each precedes its tests.
func TestReport_specimenBeforeItsTestsIsJoined(t *testing.T) {
	m := reportOf(t, "specimen_first.hl7")
	of := map[string]string{}
	for _, r := range m.Results.Results {
		of[r.Name] = *r.SourceSampleID
	}
	require.Equal(t, map[string]string{"Ferritin": "S1", "Iron": "S1", "Ratio": "S2"}, of)
	require.Equal(t, "Left arm L:LA", codedText(*m.Results.SampleInformation["S1"].SpecimenSite))
	require.Equal(t, []string{"Cool L:COOL"}, codedTexts(m.Results.SampleInformation["S2"].Conditions))
}

// A correction without the specimen keeps what is known of it, whichever comes first.
func TestCorrection_withoutASpecimenKeepsTheKnownOne(t *testing.T) {
	for _, late := range []bool{false, true} {
		b := newBench(t, nil)
		n := b.submit(submission())
		first := b.report(n, ana, ferrF, ferritin("9", "L", "F"), "SPM|1|^F1||SER^Serum^HL70487", ironF, iron)
		second := b.report(n, ana, ferrC, ferritin("95", "N", "C"))
		if late {
			first, second = second, first
		}
		require.Equal(t, "AA", b.send(first))
		require.Equal(t, "AA", b.send(second))
		told := b.told()
		last := told[len(told)-1].Results
		require.Equal(t, "95", last.Results[0].Result)
		require.Equal(t, "Serum HL70487:SER", codedText(*last.SampleInformation["F1"].SpecimenType))
	}
}

// A message may have results without an OBR.
func TestReport_resultsWithoutAnOBRBelongToTheOrder(t *testing.T) {
	b := newBench(t, nil)
	n := b.submit(submission())
	require.Equal(t, "AA", b.send(b.report(n, ana, "ORC|RE|$|F1||CM", iron, "NTE|1||fasting")))
	m := b.told()[0]
	require.Equal(t, orders.FinalResult, m.On)
	require.Equal(t, map[string]string{"Iron": "90"}, values(m))
	require.Equal(t, "fasting", *m.Results.Results[0].Notes)
}

// A batch is read by Handle, by ReceiveAll and by ReadAll.
func TestBatch_isReadMessageByMessage(t *testing.T) {
	envelope := func(messages ...[]byte) []byte {
		text := "FHS|^~\\&|LIS\rBHS|^~\\&|LIS\r"
		for _, m := range messages {
			text += string(m) + "\r"
		}
		return []byte(text + "BTS|2\rFTS|1\r")
	}
	b := newBench(t, nil)
	n := b.submit(submission())
	raw := envelope(b.report(n, ana, ferrF, ferritin("9", "L", "F")), b.report(n, ana, ironF, iron))
	answers, err := er7.ParseBatch(b.back.Handle(t.Context(), raw, nil), nil)
	require.NoError(t, err)
	require.Equal(t, "BHS", answers.Items()[0].Envelope.Name())
	require.Len(t, answers.Messages(), 2)
	for i, m := range answers.Messages() {
		require.Equal(t, "AA", m.Segment("MSA").Field(1).Text())
		require.Equal(t, []string{"R1", "R2"}[i], m.Segment("MSA").Field(2).Text())
	}
	require.Equal(t, []orders.Trigger{orders.PartialResult, orders.FinalResult}, triggers(b.told()))

	other := newBench(t, nil)
	n = other.submit(submission())
	raw = envelope(other.report(n, ana, ferrF, ferritin("9", "L", "F")), other.report(n, ana, ironF, iron))
	require.NoError(t, other.back.ReceiveAll(t.Context(), raw))
	require.Equal(t, []orders.Trigger{orders.PartialResult, orders.FinalResult}, triggers(other.told()))
	read, err := hl7.ReadAll(raw, nil)
	require.NoError(t, err)
	require.Len(t, read, 2)
	read, err = hl7.ReadAll(other.report(n, ana, ironF, iron), nil)
	require.NoError(t, err)
	require.Len(t, read, 1)

	// A message that is malformed or of another kind is refused by itself, a malformed
	// envelope as a whole.
	bad := []byte("MSH|^~\\&|LIS|N|||20260302||ORU^R01|B1|P|2.5.1\rPID|1||\x00")
	raw = envelope(bad, b.report(n, ana, iron))
	answers, err = er7.ParseBatch(b.back.Handle(t.Context(), raw, nil), nil)
	require.NoError(t, err)
	require.Equal(t, "AE", answers.Messages()[0].Segment("MSA").Field(1).Text())
	require.Equal(t, "B1", answers.Messages()[0].Segment("MSA").Field(2).Text())
	require.Equal(t, "AA", answers.Messages()[1].Segment("MSA").Field(1).Text())
	require.ErrorIs(t, b.back.ReceiveAll(t.Context(), raw), healthlab.Invalid)
	_, err = hl7.ReadAll(raw, nil)
	require.ErrorIs(t, err, healthlab.Invalid)
	query := []byte("MSH|^~\\&|LIS|N|||20260302||QRY^A19|Q1|P|2.5.1")
	answers, err = er7.ParseBatch(b.back.Handle(t.Context(), envelope(query, b.report(n, ana, ironF, iron)), nil), nil)
	require.NoError(t, err)
	require.Equal(t, "AR", answers.Messages()[0].Segment("MSA").Field(1).Text())
	require.Equal(t, "AA", answers.Messages()[1].Segment("MSA").Field(1).Text())
	require.Equal(t, "AE", b.send([]byte("BHS|^~\\&\rPID|1")))
}

// sentValues collects what a message says in the fields that results, samples and notes are
// read from, by the number of the test's OBR.
func sentValues(m *er7.Message) (tests map[int][]string, notes []string) {
	tests = map[int][]string{}
	code, event := m.Type()
	obr, patient, first := 0, false, []string(nil)
	coded := func(f er7.Part) (out []string) {
		for _, r := range f.Repetitions() {
			c := r.Coded()
			out = append(out, c.Original)
			for _, x := range c.Codes {
				out = append(out, x.Code, x.Text)
			}
		}
		return out
	}
	add := func(values ...string) {
		for _, v := range values {
			if v != "" {
				tests[obr] = append(tests[obr], v)
			}
		}
	}
	for s := range m.Segments() {
		switch s.Name() {
		case "PID":
			obr, patient = 0, true
		case "ORC":
			patient = false
		case "OBR":
			obr, patient = s.Number(), false
			add(first...)
			first = nil
			prl, eip := s.Field(26), s.Field(29)
			c := prl.Component(1).Coded()
			add(c.Codes[0].Code, c.Codes[0].Text, prl.Component(2).Whole(), prl.Component(3).Whole(), eip.Component(1).Text(), eip.Component(2).Text())
		case "SPM":
			var values []string
			for _, n := range []int{4, 5, 6, 7, 8, 9, 10, 21, 24, 27} {
				values = append(values, coded(s.Field(n))...)
			}
			values = append(values, s.Field(12).Component(1).Text(), s.Field(12).Component(2).Unit())
			for _, p := range s.Field(14).Repetitions() {
				values = append(values, p.Whole())
			}
			if code == "OUL" && event != "R24" || obr == 0 {
				first = values
			} else {
				add(values...)
			}
		case "OBX":
			status, kind := s.Field(11).Text(), s.Field(2).Text()
			if obr == 0 || kind == "ED" || kind == "RP" || status == "O" || status == "N" || s.Field(29).Text() == "QST" {
				continue
			}
			add(s.Field(4).Plain("."))
			add(coded(s.Field(17))...)
			for _, p := range s.Field(18).Repetitions() {
				add(p.Component(1).Text())
			}
			if kind == "CE" || kind == "CWE" || kind == "CNE" {
				add(coded(s.Field(5))...)
			}
		case "NTE":
			if patient {
				for _, p := range s.Field(3).Repetitions() {
					notes = append(notes, p.Whole())
				}
			} else if obr > 0 {
				add(s.Field(3).Whole())
			}
		}
	}
	return tests, notes
}

// texts returns every text in a value.
func texts(t *testing.T, v any) []string {
	t.Helper()
	raw, err := json.Marshal(v)
	require.NoError(t, err)
	var tree any
	require.NoError(t, json.Unmarshal(raw, &tree))
	var out []string
	var walk func(v any)
	walk = func(v any) {
		switch v := v.(type) {
		case string:
			out = append(out, v)
		case []any:
			for _, x := range v {
				walk(x)
			}
		case map[string]any:
			for k, x := range v {
				out = append(out, k)
				walk(x)
			}
		}
	}
	walk(tree)
	return out
}

func requireTexts(t *testing.T, want, got []string) {
	t.Helper()
	for _, w := range want {
		require.True(t, slices.ContainsFunc(got, func(g string) bool { return g == w || strings.Contains(g, w) }), "a field is lost: %q", w)
	}
}

// No value of the fields is lost: of the messages of testdata, and of every recorded message
// where there are any.
func TestReport_keepsEveryFieldOfSampleMessages(t *testing.T) {
	files, err := filepath.Glob(filepath.Join("testdata", "*.hl7"))
	require.NoError(t, err)
	require.NotEmpty(t, files)
	recorded, err := filepath.Glob(filepath.Join(realDataDir(), "*.hl7"))
	require.NoError(t, err)
	if len(recorded) == 0 {
		t.Log("no recorded messages here: HEALTHLABTEST_REAL_DATA names the folder that has them")
	}
	values := 0
	for _, file := range append(files, recorded...) {
		t.Run(filepath.Base(file), func(t *testing.T) {
			raw, err := os.ReadFile(file)
			require.NoError(t, err)
			m, err := er7.Parse(raw, nil)
			require.NoError(t, err)
			in, err := hl7.Read(m, nil)
			require.NoError(t, err)
			sent, notes := sentValues(m)
			for _, test := range in.Tests {
				requireTexts(t, sent[test.Segment], texts(t, test))
				values += len(sent[test.Segment])
			}
			if len(in.Tests) > 0 {
				requireTexts(t, notes, texts(t, in))
				values += len(notes)
			}
			if code, _ := m.Type(); code != "ORU" && code != "OUL" {
				return
			}

			// The order's results have them too.
			b := newBench(t, nil)
			s := submission()
			b.submit(s)
			b.back.Handle(t.Context(), raw, nil)
			list, err := b.back.Review(t.Context(), 0, 10)
			require.NoError(t, err)
			if len(list) == 0 {
				return // without a test
			}
			require.NoError(t, b.back.Attach(t.Context(), list[0].Place, s.Order.TeamID, s.Order.ID))
			told := b.told()
			if len(told) == 0 || told[len(told)-1].Results == nil {
				return // without a result yet
			}
			got := texts(t, told[len(told)-1].Results)
			requireTexts(t, notes, got)
			for _, test := range in.Tests {
				shown := len(test.Observations) > 0
				for _, o := range test.Observations {
					shown = shown && o.Result.Result != "" && o.Status != "D" && o.Status != "W" && o.Status != "R" && o.Status != "X"
				}
				if shown {
					requireTexts(t, sent[test.Segment], got)
				}
			}
		})
	}
	t.Logf("%d values of %d messages", values, len(files)+len(recorded))
}

// All results go to the service with what was reported: it decides whose they are.
func TestReviewTeam_resultsWithoutAnOrderAreQueuedForItsReview(t *testing.T) {
	team := healthlab.TeamID{UUID: uuid.New()}
	b := newBench(t, func(o *hl7.Options) { o.ReviewTeam, o.LabSlug = team, "northlab" })
	s := submission()
	n := b.submit(s)
	bob := "PID|1||78^^^LIS||Poe^Bob||19700101|M"
	require.Equal(t, "AA", b.send(b.report("OTHER", bob, ferrF, ferritin("9", "L", "F"), ironF, iron)))
	require.Equal(t, "AA", b.send(b.report(n, bob, ferrF, ferritin("9", "L", "F"))))
	require.Equal(t, "AA", b.send(b.report("", "PID|1||79||Moe", "OBR|1|||x^X||||||||||||||||||||||P", "OBX|1|NM|x^X||1||||||P")))
	require.NoError(t, b.back.Cancel(t.Context(), s.Order.TeamID, s.Order.ID))
	require.Equal(t, "AA", b.send(b.report(n, ana, ferrF, ferritin("9", "L", "F"))))
	status := strings.Replace(string(b.report("OTHER", bob, "ORC|SC|OTHER|F1||IP")), "ORU^R01^ORU_R01", "ORM^O01", 1)
	require.Equal(t, "AA", b.send([]byte(status)))

	told := b.told()
	require.Equal(t, []orders.Trigger{orders.PartialResult, orders.PartialResult, orders.PartialResult, orders.PartialResult}, triggers(told))
	require.NotNil(t, told[0].Awaited, "its results are final, and the order's report is not")
	require.Nil(t, told[2].Awaited, "its result is preliminary")
	require.Equal(t, orders.ReportedPatient{FirstName: "Bob", LastName: "Poe", DOB: healthlab.Date{Year: 1970, Month: 1, Day: 1}, Gender: people.Male}, *told[0].Patient)
	require.Equal(t, team, told[0].Team)
	require.Equal(t, "northlab", told[0].Lab)
	require.Len(t, told[0].Results.Results, 2)
	require.Empty(t, told[0].SampleID)
	require.True(t, told[0].Order.IsZero())
	require.True(t, told[2].Order.IsZero())
	require.Equal(t, []string{"OTHER"}, told[0].ForeignNumbers)
	require.Equal(t, []string{"F1"}, told[0].LabNumbers)
	require.Equal(t, s.Order.TeamID, told[1].Team)
	require.Equal(t, s.Order.ID, told[1].Order)
	require.Equal(t, *told[0].Patient, *told[1].Patient, "what was reported, for the service to compare")
	require.Equal(t, s.Order.ID, told[3].Order)
	require.Equal(t, "ANA", told[3].Patient.FirstName)
	list, err := b.back.Review(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Len(t, list, 1, "news of an order cannot be reviewed as results")
	require.Equal(t, hl7.ReviewNoMatch, list[0].Review)
}

// randomReport writes a final report in which every value is another text.
func randomReport(r *rand.Rand, number string) []string {
	n := 0
	value := func() string {
		if n++; r.IntN(4) == 0 {
			return ""
		}
		return fmt.Sprintf("v%d.", n)
	}
	always := func() string { n++; return fmt.Sprintf("v%d.", n) }
	coded := func(separator string) string {
		parts := []string{value(), value(), "L", value(), value(), "SCT", "", "", value(), value(), value(), "X"}
		return strings.Join(parts, separator)
	}
	repeated := func(separator string) string {
		return strings.Join([]string{coded(separator), coded(separator)}[:1+r.IntN(2)], "~")
	}
	out := []string{`PID|1||77||ROE \T\ SOHNE^ANA||19840509`}
	notes := func(most int) {
		for range r.IntN(most + 1) {
			out = append(out, "NTE|1||"+always())
		}
	}
	segment := func(name string, fields map[int]string) {
		last := slices.Max(slices.Collect(maps.Keys(fields)))
		text := name
		for i := 1; i <= last; i++ {
			text += "|" + fields[i]
		}
		out = append(out, text)
	}
	notes(2)
	if r.IntN(2) == 0 {
		out = append(out, "PV1|1|O")
		notes(2)
	}
	sameFiller := r.IntN(2) == 0
	for range 1 + r.IntN(4) {
		obr := map[int]string{2: number, 3: "F1", 4: "CODE^Test^L", 7: "20260302", 22: "20260304", 25: "F"}
		if !sameFiller {
			obr[3] = always()
		}
		if r.IntN(2) == 0 {
			obr[26] = coded("&") + "^" + value() + "^" + value()
			obr[29] = value() + "^" + value()
		}
		if r.IntN(4) == 0 {
			out = append(out, "ORC|RE|"+number)
			notes(1)
		}
		segment("OBR", obr)
		notes(2)
		for i := range 1 + r.IntN(4) {
			obx := map[int]string{1: fmt.Sprint(i), 2: "ST", 3: "R^Result^L", 4: value(), 5: value(), 11: "F", 17: repeated("^"), 18: value() + "^" + value() + "~" + value()}
			switch r.IntN(3) {
			case 0:
				obx[2], obx[5] = "CWE", repeated("^")
			case 1:
				obx[2] = "TX"
			}
			segment("OBX", obx)
			notes(1)
		}
		for range r.IntN(3) {
			spm := map[int]string{1: "1", 2: "^" + value()}
			for _, f := range []int{4, 5, 6, 7, 8, 9, 10, 21, 24, 27} {
				if r.IntN(2) == 0 {
					spm[f] = coded("^")
				}
			}
			if r.IntN(2) == 0 {
				spm[12], spm[14] = value()+"^"+value(), value()+"~"+value()
			}
			for _, f := range []int{5, 6, 9, 21, 24} {
				if spm[f] != "" {
					spm[f] += "~" + coded("^")
				}
			}
			segment("SPM", spm)
			notes(2)
		}
	}
	return out
}

// No value of a final report is lost, however tests, isolates and samples share numbers and
// codes: the results of the order have all of them.
func TestReport_keepsEveryFieldOfRandomMessages(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for range prove.Sequential(300, 300, 20_000) {
		b := newBench(t, nil)
		number := b.submit(submission())
		raw := b.report(number, randomReport(r, number)...)
		m, err := er7.Parse(raw, nil)
		require.NoError(t, err)
		require.Equal(t, "AA", b.send(raw))
		told := b.told()
		require.Len(t, told, 1, string(raw))
		got := texts(t, told[0].Results)
		sent, notes := sentValues(m)
		for _, values := range sent {
			for _, v := range values {
				if strings.HasPrefix(v, "v") && !slices.ContainsFunc(got, func(g string) bool { return strings.Contains(g, v) }) {
					require.Fail(t, "a value is lost", "%s of\n%s", v, strings.ReplaceAll(string(raw), "\r", "\n"))
				}
			}
		}
		requireTexts(t, notes, got)
	}
}
