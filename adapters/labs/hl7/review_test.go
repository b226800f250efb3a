package hl7_test

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/exchange"
	"github.com/healthlab-dev/healthlab/orders/people"
)

// reviewedOrder is Ana's order for ferritin and iron.
type reviewedOrder struct {
	*serviceBench
	id     orders.OrderID
	number string
}

func newReviewedOrder(t *testing.T) *reviewedOrder {
	s := newServiceBench(t)
	id, n := s.place(healthlab.UserID{UUID: uuid.New()}, people.PatientDetailsInput{
		FirstName: "Ana", LastName: "Roe", DOB: healthlab.Date{Year: 1984, Month: 5, Day: 9}, Gender: people.Female,
	})
	return &reviewedOrder{s, id, n}
}

func (o *reviewedOrder) receive(name string, segments ...string) {
	o.t.Helper()
	raw := string(o.report(o.number, append([]string{"PID|1||77^^^LIS||" + name + "^ANA||19840509|F"}, segments...)...))
	require.Equal(o.t, "AA", o.send([]byte(strings.ReplaceAll(raw, "|iron^", "|7573^"))))
	o.pull()
}

// waiting returns the results under review, oldest first, and their values.
func (o *reviewedOrder) waiting() (list []exchange.UnmatchedResult, texts []string) {
	o.t.Helper()
	page, err := o.labs.Operations().Waiting(o.t.Context(), exchange.ResultQuery{Team: o.team})
	require.NoError(o.t, err)
	slices.Reverse(page.Results)
	for _, r := range page.Results {
		var values []string
		for _, m := range r.Markers {
			values = append(values, *m.Name+" "+m.Result)
		}
		texts = append(texts, strings.Join(values, ", "))
	}
	return page.Results, texts
}

func (o *reviewedOrder) accept() {
	o.t.Helper()
	list, _ := o.waiting()
	require.Len(o.t, list, 1)
	_, err := o.labs.Operations().Accept(o.t.Context(), o.team, list[0].ID, exchange.AcceptRequest{OrderID: &o.id})
	require.NoError(o.t, err)
}

func (o *reviewedOrder) requireResults(status orders.LowLevel, want ...string) {
	o.t.Helper()
	got, err := o.service.Results(o.t.Context(), o.team, o.id)
	require.NoError(o.t, err)
	var texts []string
	for _, r := range got.Results {
		texts = append(texts, r.Name+" "+r.Result)
	}
	require.ElementsMatch(o.t, want, texts)
	r, err := o.service.Get(o.t.Context(), o.team, o.id)
	require.NoError(o.t, err)
	require.Equal(o.t, status, r.LowLevel())
	require.Empty(o.t, got.MissingResults)
}

// Results that a person accepts and results that match the order are joined in any order.
func TestReview_acceptedResultsAreJoinedWithTheReports(t *testing.T) {
	ironC := strings.Replace(strings.TrimSuffix(ironF, "F")+"C", "20260303", "20260305", 1)
	t.Run("accepted first", func(t *testing.T) {
		o := newReviewedOrder(t)
		o.receive("ROW", ferrF, ferritin("9", "LL", "F"))
		o.accept()
		o.requireResults(orders.PartialResults, "Ferritin 9")
		o.receive("ROE", ironF, iron)
		o.requireResults(orders.Completed, "Ferritin 9", "Iron 90")
		r, err := o.service.Get(t.Context(), o.team, o.id)
		require.NoError(t, err)
		require.EqualValues(t, "critical", *r.Interpretation)
	})
	t.Run("accepted last, then corrections", func(t *testing.T) {
		o := newReviewedOrder(t)
		o.receive("ROE", ironF, iron)
		o.receive("ROW", ferrF, ferritin("9", "LL", "F"))
		o.accept()
		o.requireResults(orders.Completed, "Ferritin 9", "Iron 90")
		o.receive("ROE", ironC, strings.Replace(strings.TrimSuffix(iron, "F")+"C", "|90|", "|95|", 1))
		o.requireResults(orders.Corrected, "Ferritin 9", "Iron 95")
		o.receive("ROE", ferrC, ferritin("20", "N", "C"))
		o.requireResults(orders.Corrected, "Ferritin 20", "Iron 95")
	})
	t.Run("without a number", func(t *testing.T) {
		o := newReviewedOrder(t)
		o.receive("ROE", strings.Replace(strings.Replace(ferrF, "$^ORDERS", "", 1), "F1^LIS", "Z9", 1), strings.Replace(ferritin("9", "L", "F"), "^ferr^", "^4598^", 1))
		o.accept()
		o.requireResults(orders.PartialResults, "Ferritin 9")
		o.receive("ROE", ironF, iron)
		o.requireResults(orders.Completed, "Ferritin 9", "Iron 90")
	})
	t.Run("everything, then a correction", func(t *testing.T) {
		o := newReviewedOrder(t)
		o.receive("ROW", ferrF, ferritin("9", "L", "F"), ironF, iron)
		o.accept()
		o.requireResults(orders.Completed, "Ferritin 9", "Iron 90")
		o.receive("ROE", ferrC, ferritin("20", "N", "C"))
		o.requireResults(orders.Corrected, "Ferritin 20", "Iron 90")
	})
	t.Run("a result that was not ordered", func(t *testing.T) {
		o := newReviewedOrder(t)
		o.receive("ROE", ferrF, ferritin("9", "L", "F"), ironF, iron)
		o.receive("ROE", "OBR|1||Z9|ZZ^Zinc^L|||20260302|||||||||||||||202603031000|||F", "OBX|1|NM|ZZ^Zinc^L||5|ug/dL||||||F")
		o.accept()
		o.requireResults(orders.Corrected, "Ferritin 9", "Iron 90", "Zinc 5")
	})
	t.Run("a preliminary result", func(t *testing.T) {
		o := newReviewedOrder(t)
		o.receive("ROW", ferrP, ferritin("9", "L", "P"))
		o.accept()
		o.receive("ROE", ironF, iron)
		o.requireResults(orders.PartialResults, "Ferritin 9", "Iron 90")
	})
}

// Each report of an uncertain patient is decided once: what was rejected does not come again with a later report.
func TestReview_itemHasOnlyWhatItsMessageReportsForTheFirstTime(t *testing.T) {
	ironP, prelim := strings.TrimSuffix(ironF, "F")+"P", strings.TrimSuffix(iron, "F")+"P"
	for name, c := range map[string]struct {
		first, second []string
		want          string // the second item; empty for none
	}{
		"another test":           {[]string{ferrF, ferritin("9", "LL", "F")}, []string{ironF, iron}, "Iron 90"},
		"the whole report again": {[]string{ferrF, ferritin("9", "LL", "F")}, []string{ferrF, ferritin("9", "LL", "F"), ironF, iron}, "Iron 90"},
		"the same again":         {[]string{ferrF, ferritin("9", "LL", "F")}, []string{"ZZZ|1", ferrF, ferritin("9", "LL", "F")}, ""},
		"a correction":           {[]string{ferrF, ferritin("9", "LL", "F"), ironF, iron}, []string{ferrC, ferritin("20", "N", "C"), ironF, iron}, "Ferritin 20"},
		"the final result":       {[]string{ironP, prelim}, []string{ironF, iron}, "Iron 90"},
		"an older result":        {[]string{ironF, iron}, []string{ironP, strings.Replace(prelim, "|90|", "|80|", 1)}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			o := newReviewedOrder(t)
			o.receive("OTHER", c.first...)
			list, _ := o.waiting()
			require.Len(t, list, 1)
			_, err := o.labs.Operations().Reject(t.Context(), o.team, list[0].ID, nil)
			require.NoError(t, err)
			o.receive("OTHER", c.second...)
			_, texts := o.waiting()
			require.Equal(t, c.want, strings.Join(texts, "; "))
			if c.want == "" {
				return
			}
			o.accept()
			require.Equal(t, strings.Fields(c.want)[1]+"\n", o.resultTexts(o.id))
		})
	}
}
