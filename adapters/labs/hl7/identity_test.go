package hl7_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/labs/hl7"
	"github.com/healthlab-dev/healthlab/orders"
)

// glucose writes a test with one result. fields are OBR-7, OBR-22, OBX-3 if it differs from OBR-4, and OBX-4.
func glucose(code, filler, status, value string, fields ...string) string {
	at := func(n int) string {
		if n < len(fields) {
			return fields[n]
		}
		return ""
	}
	result := code
	if at(2) != "" {
		result = at(2)
	}
	return "OBR|1|$^ORDERS|" + filler + "|" + code + "|||" + at(0) + "|||||||||||||||" + at(1) + "|||" + status + "\r" +
		"OBX|1|ST|" + result + "|" + at(3) + "|" + value + "||||||" + status
}

// held describes the results of an order: value@sample, and the missing ones.
func held(b *bench) []string {
	told := b.told()
	var out []string
	if len(told) == 0 || told[len(told)-1].Results == nil {
		return out
	}
	last := told[len(told)-1].Results
	for _, r := range last.Results {
		line := r.Result
		if r.SourceSampleID != nil && strings.HasPrefix(*r.SourceSampleID, "S") {
			line += "@" + *r.SourceSampleID
		}
		out = append(out, line)
	}
	for _, m := range last.MissingResults {
		out = append(out, "missing "+m.Name)
	}
	return out
}

// The partial, the final and the corrected report of a test are about one result, whatever the laboratory adds or
// writes otherwise; reports of other samples, isolates, accessions and collection times are not.
func TestReports_ofOneTestReplaceEachOther(t *testing.T) {
	const g = "GLU^Glucose^L"
	spm := func(id string) string { return "\rSPM|1|" + id + "||BLD^Blood^L" }
	for name, tt := range map[string]struct {
		come   []string
		want   []string
		review bool
	}{
		"number added":              {[]string{glucose(g, "", "P", "99"), glucose(g, "F1", "F", "151")}, []string{"151"}, false},
		"number left out":           {[]string{glucose(g, "F1", "F", "99"), glucose(g, "", "C", "151")}, []string{"151"}, false},
		"another number":            {[]string{glucose(g, "F1", "F", "99"), glucose(g, "F2", "F", "151")}, []string{"99", "151"}, false},
		"another text":              {[]string{glucose(g, "F1", "F", "99"), glucose("GLU^GLUCOSE, SERUM^L", "F1", "C", "151")}, []string{"151"}, false},
		"another text of the test":  {[]string{glucose("T^Panel^L", "F1", "F", "99", "", "", g), glucose("T^Chem panel^L", "F1", "C", "151", "", "", g)}, []string{"151"}, false},
		"LOINC added after":         {[]string{glucose(g, "F1", "F", "99"), glucose(g+"^2345-7^Glucose^LN", "F1", "C", "151")}, []string{"151"}, false},
		"LOINC added before":        {[]string{glucose(g, "F1", "F", "99"), glucose("2345-7^Glucose^LN^"+g, "F1", "C", "151")}, []string{"151"}, false},
		"LOINC left out":            {[]string{glucose("2345-7^Glucose^LN^"+g, "F1", "F", "99"), glucose(g, "F1", "C", "151")}, []string{"151"}, false},
		"LOINC of the result alone": {[]string{glucose(g, "F1", "F", "99"), glucose(g, "F1", "C", "151", "", "", g+"^2345-7^Glucose^LN")}, []string{"151"}, false},
		"another code, one LOINC": {[]string{glucose("GLU1^Glucose^L^2345-7^Glucose^LN", "F1", "F", "99"), glucose("GLU2^Glucose^L^2345-7^Glucose^LN", "F1", "F", "151")},
			[]string{"99", "151"}, false},
		"another group":            {[]string{glucose(g, "F1", "F", "99", "", "", "", "1"), glucose(g, "F1", "F", "151", "", "", "", "2")}, []string{"99", "151"}, false},
		"another name, no code":    {[]string{glucose("T^T^L", "F1", "F", "99", "", "", "^One"), glucose("T^T^L", "F1", "F", "151", "", "", "^Two")}, []string{"99", "151"}, false},
		"names of one code":        {[]string{glucose("T^T^L", "F1", "F", "a", "", "", "O^One^L") + "\rOBX|2|ST|O^Two^L||b||||||F", glucose("T^T^L", "F1", "C", "c", "", "", "O^Two^L")}, []string{"a", "c"}, false},
		"an unknown name of two":   {[]string{glucose("T^T^L", "F1", "F", "a", "", "", "O^One^L") + "\rOBX|2|ST|O^Two^L||b||||||F", glucose("T^T^L", "F1", "C", "c", "", "", "O^Three^L")}, []string{"a", "b", "c"}, false},
		"sample stated later":      {[]string{glucose(g, "F1", "P", "99"), glucose(g, "F1", "F", "151") + spm("S1")}, []string{"151@S1"}, false},
		"sample left out":          {[]string{glucose(g, "F1", "F", "99") + spm("S1"), glucose(g, "F1", "C", "151")}, []string{"151@S1"}, false},
		"sample has a second id":   {[]string{glucose(g, "F1", "P", "99") + spm("S1"), glucose(g, "F1", "F", "151") + spm("S1^S7")}, []string{"151@S7"}, false},
		"another sample":           {[]string{glucose(g, "F1", "F", "99") + spm("S1"), glucose(g, "F1", "F", "151") + spm("S2")}, []string{"99@S1", "151@S2"}, false},
		"the second of two":        {[]string{glucose(g, "F1", "F", "99") + spm("S1") + "\r" + glucose(g, "F1", "F", "98") + spm("S2"), glucose(g, "F1", "C", "151") + spm("S2")}, []string{"99@S1", "151@S2"}, false},
		"two in another order":     {[]string{glucose(g, "F1", "F", "99") + spm("S1") + "\r" + glucose(g, "F1", "F", "98") + spm("S2"), glucose(g, "F1", "C", "151") + spm("S2") + "\r" + glucose(g, "F1", "C", "150") + spm("S1")}, []string{"150@S1", "151@S2"}, false},
		"one of two and the other": {[]string{glucose(g, "F1", "F", "99") + spm("S1") + "\r" + glucose(g, "F1", "F", "98") + spm("S2"), glucose(g, "F1", "C", "151") + "\r" + glucose(g, "F1", "C", "150") + spm("S1")}, []string{"150@S1", "151@S2"}, false},
		"no sample of two":         {[]string{glucose(g, "F1", "F", "99") + spm("S1") + "\r" + glucose(g, "F1", "F", "98") + spm("S2"), glucose(g, "F1", "C", "151")}, []string{"99@S1", "98@S2"}, true},
		"two, none with a sample":  {[]string{glucose(g, "F1", "P", "99") + "\r" + glucose(g, "F1", "P", "98"), glucose(g, "F1", "F", "151") + "\r" + glucose(g, "F1", "F", "152")}, []string{"151", "152"}, false},
		"one of two, no sample":    {[]string{glucose(g, "F1", "F", "99") + "\r" + glucose(g, "F1", "F", "98"), glucose(g, "F1", "C", "151")}, []string{"99", "98"}, true},
		"one of two, by result": {[]string{glucose("T^T^L", "F1", "F", "99", "", "", "A^A^L") + "\r" + glucose("T^T^L", "F1", "F", "98", "", "", "B^B^L"),
			glucose("T^T^L", "F1", "C", "151", "", "", "B^B^L")}, []string{"99", "151"}, false},
		"one of two, by collection": {[]string{glucose(g, "F1", "F", "99", "202603020700") + "\r" + glucose(g, "F1", "F", "98", "202603020900"), glucose(g, "F1", "C", "151", "202603020900")}, []string{"99", "151"}, false},
		"another collection":        {[]string{glucose(g, "F1", "F", "99", "202603020700"), glucose(g, "F1", "F", "151", "202603020900")}, []string{"99", "151"}, false},
		"a corrected collection":    {[]string{glucose(g, "F1", "F", "99", "202603020700"), glucose(g, "F1", "C", "151", "202603020900")}, []string{"151"}, false},
		"a coarser collection":      {[]string{glucose(g, "F1", "P", "99", "202603020700"), glucose(g, "F1", "F", "151", "20260302")}, []string{"151"}, false},
		"collection stated later":   {[]string{glucose(g, "F1", "P", "99"), glucose(g, "F1", "F", "151", "20260302")}, []string{"151"}, false},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			s := submission()
			n := b.submit(s)
			for _, segments := range tt.come {
				require.Equal(t, "AA", b.send(b.report(n, ana, segments)))
			}
			require.Equal(t, tt.want, held(b))
			list, err := b.back.Review(t.Context(), 0, 10)
			require.NoError(t, err)
			require.Equal(t, tt.review, len(list) == 1)
			if !tt.review {
				return
			}
			require.Equal(t, hl7.ReviewTest, list[0].Review)
			require.Equal(t, "AA", b.send(b.report(n, ana, "ZZZ|1", tt.come[len(tt.come)-1])))
			require.NoError(t, b.back.Attach(t.Context(), list[0].Place, s.Order.TeamID, s.Order.ID))
			require.Equal(t, append(tt.want, "151"), held(b), "a person decided: it stays beside the others")
		})
	}
}

// A test that may be one of several waits; the others of its message do not.
func TestReport_unclearTestKeepsTheOthers(t *testing.T) {
	b := newBench(t, nil)
	s := submission()
	n := b.submit(s)
	two := glucose("GLU^Glucose^L", "F1", "F", "99")
	require.Equal(t, "AA", b.send(b.report(n, ana, two, two)))
	require.Equal(t, "AA", b.send(b.report(n, ana, ferrF, ferritin("9", "L", "F"), glucose("GLU^Glucose^L", "F1", "C", "151"), ironF, iron)))
	require.Equal(t, []string{"99", "99", "9", "90"}, held(b))
	list, err := b.back.Review(t.Context(), 0, 10)
	require.NoError(t, err)
	require.Len(t, list, 1)
	require.NoError(t, b.back.Attach(t.Context(), list[0].Place, s.Order.TeamID, s.Order.ID))
	require.Equal(t, []string{"99", "99", "9", "90", "151"}, held(b))
}

// An order becomes final with the final report of a test whose partial report lacked what the final one states.
func TestReports_finalReportEndsThePartialOne(t *testing.T) {
	for name, partial := range map[string]string{
		"number": strings.Replace(ferrP, "F1^LIS", "", 1), "codes": strings.Replace(ferrP, "4598^Ferritin^L", "4598", 1),
		"collection": strings.Replace(ferrP, "202603021200-0700", "", 1), "same": ferrP,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			n := b.submit(submission())
			require.Equal(t, "AA", b.send(b.report(n, ana, partial, ferritin("9", "L", "P"))))
			require.Equal(t, "AA", b.send(b.report(n, ana, ferrF, "SPM|1|S1", ferritin("9.5", "L", "F"), ironF, iron)))
			require.Equal(t, []orders.Trigger{orders.PartialResult, orders.FinalResult}, triggers(b.told()))
			require.Equal(t, []string{"9.5@S1", "90"}, held(b))
		})
	}
}

// In whatever order the reports of two samples come, each result stays with its sample.
func TestReports_ofTwoSamplesInAnyOrderStayApart(t *testing.T) {
	set := func(sample, status, value string, hour int) string {
		return glucose("CULT^Blood culture^L", "F1", status, value, "", fmt.Sprintf("20260303%02d", hour)) + "\rSPM|1|" + sample + "||BLD^Blood^L"
	}
	reports := []string{set("S1", "P", "p1", 1), set("S2", "P", "p2", 2), set("S1", "F", "f1", 3), set("S2", "F", "f2", 4), set("S2", "C", "c2", 5)}
	orderOf := func(n int) (out []string) {
		rest := append([]string{}, reports...)
		for k := len(rest); k > 0; k-- {
			out, rest, n = append(out, rest[n%k]), append(append([]string{}, rest[:n%k]...), rest[n%k+1:]...), n/k
		}
		return out
	}
	for n := range 120 {
		b := newBench(t, nil)
		number := b.submit(submission())
		for _, r := range orderOf(n) {
			require.Equal(t, "AA", b.send(b.report(number, ana, r)))
		}
		require.ElementsMatch(t, []string{"f1@S1", "c2@S2"}, held(b), "order %d", n)
	}
}
