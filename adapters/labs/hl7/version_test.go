package hl7_test

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// stamped is a report of one result: its status and value, OBR-22, and MSH-7 and MSH-10.
type stamped struct{ status, value, changed, sent, id string }

func (r stamped) message(number string) []byte {
	head := "MSH|^~\\&|LIS|NORTH|ORDERS|CLINIC|" + r.sent + "||ORU^R01^ORU_R01|" + r.id + "|P|2.5.1"
	text := strings.Join([]string{head, ana, glucose("GLU^Glucose^L", "F1", r.status, r.value, "", r.changed)}, "\r")
	return []byte(strings.ReplaceAll(text, "$", number))
}

// Which of several reports counts: the later one where the times can be compared, else the one whose status says that
// it corrects, else the one that came last. No correction is dropped without a trace.
func TestReports_newestCounts(t *testing.T) {
	for name, tt := range map[string]struct {
		come []stamped
		want string
	}{
		"later OBR-22":                            {[]stamped{{"F", "99", "20260303080000", "", "1"}, {"F", "151", "20260303090000", "", "2"}}, "151"},
		"earlier OBR-22":                          {[]stamped{{"F", "99", "20260303080000", "", "1"}, {"F", "151", "20260303070000", "", "2"}}, "99"},
		"earlier correction":                      {[]stamped{{"C", "99", "20260303080000", "", "1"}, {"C", "151", "20260303070000", "", "2"}}, "99"},
		"earlier fraction":                        {[]stamped{{"C", "99", "20260303080000.2345", "", "1"}, {"C", "151", "20260303080000.2344", "", "2"}}, "99"},
		"day, of a correction":                    {[]stamped{{"F", "99", "20260303080000", "20260303080000", "1"}, {"C", "151", "20260303", "20260303090000", "2"}}, "151"},
		"day, without MSH-7":                      {[]stamped{{"F", "99", "20260303080000", "", "1"}, {"C", "151", "20260303", "", "2"}}, "151"},
		"day, of the first":                       {[]stamped{{"F", "99", "20260303", "20260303080000", "1"}, {"C", "151", "20260303090000", "20260303090000", "2"}}, "151"},
		"day, and the final is late":              {[]stamped{{"C", "151", "20260303", "20260303090000", "2"}, {"F", "99", "20260303080000", "20260303080000", "1"}}, "151"},
		"day, late without MSH-7":                 {[]stamped{{"C", "151", "20260303", "", "2"}, {"F", "99", "20260303080000", "", "1"}}, "151"},
		"day before":                              {[]stamped{{"C", "99", "20260303080000", "20260303090000", "1"}, {"C", "151", "20260302", "20260303090000", "2"}}, "99"},
		"month":                                   {[]stamped{{"F", "99", "20260303080000", "20260303080000", "1"}, {"C", "151", "202603", "20260303090000", "2"}}, "151"},
		"minute":                                  {[]stamped{{"F", "99", "20260303080030", "20260303080100", "1"}, {"C", "151", "202603030800", "20260303090000", "2"}}, "151"},
		"MSH-7, then OBR-22":                      {[]stamped{{"F", "99", "", "20260303080000", "1"}, {"C", "151", "20260302080000", "20260303090000", "2"}}, "151"},
		"MSH-7, then OBR-22 without":              {[]stamped{{"F", "99", "", "20260303080000", "1"}, {"C", "151", "20260302080000", "", "2"}}, "151"},
		"OBR-22, then MSH-7":                      {[]stamped{{"F", "99", "20260304080000", "20260303080000", "1"}, {"C", "151", "", "20260303090000", "2"}}, "151"},
		"OBR-22, then no time":                    {[]stamped{{"F", "99", "20260303080000", "20260303080000", "1"}, {"C", "151", "", "", "2"}}, "151"},
		"no time, then OBR-22":                    {[]stamped{{"C", "151", "", "", "1"}, {"F", "99", "20260303080000", "20260303080000", "2"}}, "151"},
		"no times":                                {[]stamped{{"F", "99", "", "", "1"}, {"C", "151", "", "", "2"}, {"C", "152", "", "", "3"}}, "152"},
		"no times, final last":                    {[]stamped{{"C", "151", "", "", "1"}, {"F", "99", "", "", "2"}}, "151"},
		"no times, partial last":                  {[]stamped{{"F", "151", "", "", "1"}, {"P", "99", "", "", "2"}}, "151"},
		"MSH-7 alone":                             {[]stamped{{"F", "99", "", "20260303080000", "1"}, {"F", "151", "", "20260303090000", "2"}}, "151"},
		"MSH-7 alone, late":                       {[]stamped{{"F", "151", "", "20260303090000", "2"}, {"F", "99", "", "20260303080000", "1"}}, "151"},
		"MSH-7 alone, correction":                 {[]stamped{{"C", "151", "", "20260303090000", "2"}, {"F", "99", "", "20260303080000", "1"}}, "151"},
		"partial after final":                     {[]stamped{{"F", "151", "", "20260303080000", "1"}, {"P", "99", "", "20260303090000", "2"}}, "151"},
		"corrected back":                          {[]stamped{{"F", "99", "", "20260303080000", "1"}, {"C", "151", "", "20260303090000", "2"}, {"C", "99", "", "20260303100000", "3"}, {"C", "151", "", "20260303110000", "4"}}, "151"},
		"corrected back, same OBR-22":             {[]stamped{{"F", "99", "20260303080000", "20260303080000", "1"}, {"C", "151", "20260303080000", "20260303090000", "2"}, {"C", "99", "20260303080000", "20260303100000", "3"}, {"C", "151", "20260303080000", "20260303110000", "4"}}, "151"},
		"final after the correction, same OBR-22": {[]stamped{{"C", "151", "20260303080000", "20260303090000", "1"}, {"F", "99", "20260303080000", "20260303100000", "2"}}, "151"},
		"correction comes late":                   {[]stamped{{"C", "99", "", "20260303100000", "3"}, {"C", "151", "", "20260303090000", "2"}}, "99"},
		"correction comes late, same OBR-22":      {[]stamped{{"C", "99", "20260303080000", "20260303100000", "3"}, {"C", "151", "20260303080000", "20260303090000", "2"}}, "99"},
		"resent with its control id":              {[]stamped{{"C", "151", "", "20260303090000", "2"}, {"C", "99", "", "20260303100000", "3"}, {"C", "151", "", "20260303110000", "2"}}, "99"},
		"resent with its time":                    {[]stamped{{"C", "151", "", "20260303090000", "2"}, {"C", "99", "", "20260303100000", "3"}, {"C", "151", "", "20260303090000", "4"}}, "99"},
		"resent without a time":                   {[]stamped{{"C", "151", "", "", "2"}, {"C", "99", "", "", "3"}, {"C", "151", "", "", "4"}}, "99"},
		"resent final":                            {[]stamped{{"F", "99", "", "20260303090000", "2"}, {"C", "151", "", "20260303100000", "3"}, {"F", "99", "", "20260303110000", "4"}}, "151"},
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t, nil)
			n := b.submit(submission())
			for _, r := range tt.come {
				require.Equal(t, "AA", b.send(r.message(n)))
			}
			require.Equal(t, []string{tt.want}, held(b))
		})
	}
}

// A test that is cancelled, restored and cancelled in the same words is cancelled.
func TestReport_cancelledAgainIsCancelled(t *testing.T) {
	b := newBench(t, nil)
	n := b.submit(submission())
	gone := strings.TrimSuffix(ferrF, "F") + "X"
	back := strings.TrimSuffix(ferrF, "F") + "C"
	for _, m := range [][]string{{ferrF, ferritin("9", "L", "F"), ironF, iron}, {gone}, {back, ferritin("9", "L", "C")}, {gone}} {
		for i := range m {
			m[i] = strings.Replace(m[i], "202603031000-0700", "", 1)
		}
		require.Equal(t, "AA", b.send(b.report(n, append([]string{ana}, m...)...)))
	}
	require.Equal(t, []string{"90", "missing Ferritin"}, held(b))
}
