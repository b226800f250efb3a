package labreport_test

import (
	"context"
	"encoding/json"
	"fmt"
	"image"
	"image/png"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/labreport/loinc"
)

// change corrects a field of a result; value "" says that the report prints none.
func change(result int, field, value string) labreport.Correction {
	c := labreport.Correction{Action: labreport.ChangeField, Result: &result, Field: field}
	if value != "" {
		c.Value = &value
	}
	return c
}

func draftOf(t *testing.T, lines string) labreport.Data {
	t.Helper()
	d, reason := labreport.NewReader(nil).Read(typed(lines))
	require.Empty(t, reason)
	return d
}

func (d *testService) review(t *testing.T, id labreport.JobID) labreport.JobReview {
	t.Helper()
	j, err := d.JobReview(t.Context(), d.team, id)
	require.NoError(t, err)
	return j
}

func TestReview_approvalCompletesTheJob(t *testing.T) {
	d := newTestService(t, labreport.Options{})
	id := d.create(t, true)
	require.Nil(t, d.review(t, id).Draft, "nothing is read")
	d.work(t)
	require.Equal(t, labreport.PendingReview, d.get(t, id).Status)
	require.Nil(t, d.get(t, id).Data, "clients see no draft")
	before := d.review(t, id)
	require.Equal(t, d.user, before.UserID)
	require.Equal(t, 1, before.Pages)
	require.Nil(t, before.Data)
	require.Nil(t, before.ReviewedBy)
	require.NotEmpty(t, before.Draft.Results[0].Evidence["value"].Box)
	read := before.Draft.Results[0].Value

	d.now = d.now.Add(time.Hour)
	done, err := d.Approve(t.Context(), d.team, id, "dr. example", []labreport.Correction{change(0, "value", "42")})
	require.NoError(t, err)
	require.Equal(t, labreport.Completed, done.Status)
	require.True(t, done.IsReviewed)
	require.Equal(t, "42", done.Data.Results[0].Value)
	after := d.review(t, id)
	require.Equal(t, done.Data, after.Data)
	require.Equal(t, before.Draft, after.Draft)
	require.Equal(t, read, after.Draft.Results[0].Value)
	require.Equal(t, "dr. example", *after.ReviewedBy)
	require.Equal(t, d.now, after.ReviewedAt.Time)
	require.Equal(t, []labreport.Correction{change(0, "value", "42")}, after.Corrections)

	_, err = d.Approve(t.Context(), d.team, id, "another", nil)
	var wrong *healthlab.RuleError
	require.ErrorAs(t, err, &wrong)
	require.Equal(t, labreport.RuleJobNotInReview, wrong.Type)
	require.ErrorIs(t, err, healthlab.Precondition)
	require.Equal(t, []string{"created started", "updated pending_review", "updated completed"}, d.eventStatuses(t))
	_, err = d.Approve(t.Context(), healthlab.TeamID{UUID: uuid.New()}, id, "another", nil)
	require.ErrorIs(t, err, healthlab.NotFound)
	_, err = d.JobReview(t.Context(), healthlab.TeamID{UUID: uuid.New()}, id)
	require.ErrorIs(t, err, healthlab.NotFound)
}

func TestApprove_withoutCorrectionsPublishesTheDraft(t *testing.T) {
	d := newTestService(t, labreport.Options{})
	id := d.create(t, true)
	d.work(t)
	done, err := d.Approve(t.Context(), d.team, id, "dr. example", nil)
	require.NoError(t, err)
	require.Equal(t, d.review(t, id).Draft, done.Data)
	require.NoError(t, d.Examples(t.Context(), d.team, func(labreport.TrainingExample) error { return fmt.Errorf("no correction was made") }))
}

// Of two reviewers at a time one decides, and the other is told so.
func TestReview_onlyOneOfTwoConcurrentReviewersDecides(t *testing.T) {
	d := newTestService(t, labreport.Options{})
	id := d.create(t, true)
	d.work(t)
	errs := make(chan error, 8)
	for i := range cap(errs) {
		go func() {
			var err error
			if i%2 == 0 {
				_, err = d.Approve(t.Context(), d.team, id, "first", []labreport.Correction{change(0, "value", "42")})
			} else {
				_, err = d.Reject(t.Context(), d.team, id, "second", labreport.LowQuality)
			}
			errs <- err
		}()
	}
	decided := 0
	for range cap(errs) {
		err := <-errs
		if err == nil {
			decided++
			continue
		}
		var wrong *healthlab.RuleError
		require.ErrorAs(t, err, &wrong)
		require.Equal(t, labreport.RuleJobNotInReview, wrong.Type)
	}
	require.Equal(t, 1, decided)
	require.Len(t, d.eventStatuses(t), 3)
}

// A review names a person and leaves a result.
func TestReview_requiresAReviewerAndAResult(t *testing.T) {
	d := newTestService(t, labreport.Options{})
	id := d.create(t, true)
	d.work(t)
	for _, by := range []string{"", "   ", "a\x00b", "a\nb", "\xff", strings.Repeat("é", 201)} {
		_, err := d.Approve(t.Context(), d.team, id, by, nil)
		require.ErrorIs(t, err, healthlab.Invalid, "%q", by)
		_, err = d.Reject(t.Context(), d.team, id, by, labreport.LowQuality)
		require.ErrorIs(t, err, healthlab.Invalid, "%q", by)
	}
	for _, text := range []string{"4\x002", "4\n2", "\xff"} {
		_, err := d.Approve(t.Context(), d.team, id, "dr. example", []labreport.Correction{change(0, "value", text)})
		require.ErrorIs(t, err, healthlab.Invalid, "%q", text)
	}
	var none []labreport.Correction
	for i := range d.review(t, id).Draft.Results {
		none = append(none, labreport.Correction{Action: labreport.DropResult, Result: &i})
	}
	_, err := d.Approve(t.Context(), d.team, id, "dr. example", none)
	require.ErrorIs(t, err, healthlab.Invalid)
	require.Equal(t, labreport.PendingReview, d.get(t, id).Status)
	_, err = d.Approve(t.Context(), d.team, id, strings.Repeat("é", 200), none[1:])
	require.NoError(t, err)
}

func TestReject_failsTheJobWithItsReason(t *testing.T) {
	d := newTestService(t, labreport.Options{})
	id := d.create(t, true)
	d.work(t)
	_, err := d.Reject(t.Context(), d.team, id, "", "nonsense")
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	require.Len(t, invalid.Problems, 2)
	got, err := d.Reject(t.Context(), d.team, id, "dr. example", labreport.LowQuality)
	require.NoError(t, err)
	require.Equal(t, labreport.Failed, got.Status)
	require.Equal(t, labreport.LowQuality, *got.FailureReason)
	require.True(t, got.IsReviewed)
}

const correctable = "Patient: Amara Hartley   DOB: 1980-05-21\nTest   Result   Units   Reference Range\n" +
	"Glucose   112   mg/dL   70 - 99\nSodium   139   mmol/L   135 - 146\nPotassium   4.1   mmol/L   3.5 - 5.3"

func TestCorrect_changesFieldsAndWhatDependsOnThem(t *testing.T) {
	reader, draft := labreport.NewReader(nil), draftOf(t, correctable)
	require.Len(t, draft.Results, 3)
	before, err := json.Marshal(draft)
	require.NoError(t, err)
	fix := func(list ...labreport.Correction) []labreport.Result {
		t.Helper()
		got, err := reader.Correct(draft, list)
		require.NoError(t, err)
		now, err := json.Marshal(draft)
		require.NoError(t, err)
		require.Equal(t, before, now, "the draft is unchanged")
		return got.Results
	}
	got := fix(change(0, "value", "88"))
	require.Equal(t, "88", got[0].Value)
	require.Equal(t, labreport.Normal, *got[0].Interpretation)
	require.False(t, *got[0].IsAboveMaxRange)
	require.Equal(t, draft.Results[0].LoincMatches, got[0].LoincMatches)
	require.InDelta(t, 1, got[0].Evidence["value"].Confidence, 0)
	require.Equal(t, draft.Results[0].Evidence["value"].Box, got[0].Evidence["value"].Box)
	require.Equal(t, draft.Results[0].Evidence["units"], got[0].Evidence["units"])
	require.Equal(t, draft.Results[1:], got[1:])

	got = fix(change(0, "reference_range", "70 - 120"))
	require.Equal(t, "120", string(*got[0].MaxReferenceRange))
	require.Equal(t, labreport.Normal, *got[0].Interpretation)
	got = fix(change(0, "reference_range", ""))
	require.Nil(t, got[0].ReferenceRange)
	require.Nil(t, got[0].MinReferenceRange)
	require.Equal(t, labreport.Unclear, *got[0].Interpretation)

	got = fix(change(1, "test_name", "Chloride"))
	require.Equal(t, "2075-0", got[1].LoincMatches[0].LoincCode)
	require.Equal(t, labreport.Normal, *got[1].Interpretation)
	got = fix(change(0, "sample_type", "urine"))
	require.Equal(t, loinc.Urine, got[0].SampleType)
	require.NotEqual(t, draft.Results[0].LoincMatches[0].LoincCode, got[0].LoincMatches[0].LoincCode)
	got = fix(change(0, "units", "mmol/L"), change(0, "value", "6.2"), change(0, "reference_range", "3.9 - 5.5"))
	require.Equal(t, "mmol/L", *got[0].Units)
	require.Equal(t, "14749-6", got[0].LoincMatches[0].LoincCode)
	require.Equal(t, labreport.Abnormal, *got[0].Interpretation)
	got = fix(change(0, "units", ""))
	require.Nil(t, got[0].Units)
	got = fix(change(0, "interpretation", "critical"))
	require.Equal(t, labreport.Critical, *got[0].Interpretation)
	require.True(t, *got[0].IsAboveMaxRange)

	got = fix(change(2, "loinc_code", "6298-4")) // of whole blood
	require.Equal(t, labreport.AutoMatch, *got[2].LoincMatchStatus)
	require.Len(t, got[2].LoincMatches, 1)
	require.Equal(t, "6298-4", got[2].LoincMatches[0].LoincCode)
	require.NotEmpty(t, got[2].LoincMatches[0].LoincName)
	got = fix(change(2, "loinc_code", "99999-5")) // beyond the catalogue
	require.Equal(t, labreport.Match{LoincCode: "99999-5", Aliases: []string{}, ConfidenceScore: 1}, got[2].LoincMatches[0])
	got = fix(change(2, "loinc_code", ""))
	require.Equal(t, labreport.NoMatch, *got[2].LoincMatchStatus)
	require.Empty(t, got[2].LoincMatches)
}

func TestCorrect_addsAndDropsRowsAndChangesMetadata(t *testing.T) {
	reader, draft := labreport.NewReader(nil), draftOf(t, correctable)
	at := func(i int) *int { return &i }
	row := func(name, value string) *labreport.AddedRow {
		return &labreport.AddedRow{TestName: name, Value: value, Units: "mmol/L", ReferenceRange: "98 - 110"}
	}
	got, err := reader.Correct(draft, []labreport.Correction{
		{Action: labreport.DropResult, Result: at(1)},
		{Action: labreport.AddResult, Result: at(1), Row: row("Chloride", "101")},
		{Action: labreport.AddResult, Row: row("Bicarbonate", "24")},
	})
	require.NoError(t, err)
	var names []string
	for _, r := range got.Results {
		names = append(names, r.TestName)
	}
	require.Equal(t, []string{"Glucose", "Chloride", "Potassium", "Bicarbonate"}, names)
	require.Equal(t, "2075-0", got.Results[1].LoincMatches[0].LoincCode)
	require.Equal(t, labreport.Normal, *got.Results[1].Interpretation)
	require.Equal(t, labreport.Evidence{}, got.Results[1].Evidence)

	got, err = reader.Correct(draft, []labreport.Correction{{Action: labreport.AddResult, Row: &labreport.AddedRow{TestName: "HIV 1/2 Ab", Value: "Reactive", ReferenceRange: "Non-reactive"}}})
	require.NoError(t, err)
	require.Equal(t, labreport.Abnormal, *got.Results[3].Interpretation)

	name := "Amar"
	got, err = reader.Correct(draft, []labreport.Correction{{Action: labreport.ChangeField, Field: "patient_first_name", Value: &name}, {Action: labreport.ChangeField, Field: "dob"}})
	require.NoError(t, err)
	require.Equal(t, "Amar", *got.Metadata.PatientFirstName)
	require.Nil(t, got.Metadata.DOB)
	require.Equal(t, "Amara", *draft.Metadata.PatientFirstName)
	require.InDelta(t, 1, got.Metadata.Evidence["patient_first_name"].Confidence, 0)
	require.Less(t, draft.Metadata.Evidence["patient_first_name"].Confidence, 1.0)
}

// The ranges of a report with decimal commas keep their meaning.
func TestCorrect_readsRangesWithDecimalCommas(t *testing.T) {
	draft := draftOf(t, "Untersuchung   Ergebnis   Einheit   Referenzbereich\nKalium   4,1   mmol/l   3,5 - 5,1\nNatrium   139   mmol/l   135 - 146\nKreatinin   0,91   mg/dl   0,67 - 1,17")
	require.Equal(t, "4.1", draft.Results[0].Value)
	got, err := labreport.NewReader(nil).Correct(draft, []labreport.Correction{change(0, "value", "5.8"), change(2, "reference_range", "0,50 - 0,90")})
	require.NoError(t, err)
	require.Equal(t, "5.1", string(*got.Results[0].MaxReferenceRange))
	require.Equal(t, "3,5 - 5,1", *got.Results[0].ReferenceRange)
	require.True(t, *got.Results[0].IsAboveMaxRange)
	require.Equal(t, labreport.Abnormal, *got.Results[0].Interpretation)
	require.Equal(t, "0.90", string(*got.Results[2].MaxReferenceRange))
	require.True(t, *got.Results[2].IsAboveMaxRange)
}

func TestCorrect_invalidCorrectionNamesItsField(t *testing.T) {
	draft := draftOf(t, correctable)
	at := func(i int) *int { return &i }
	text := func(s string) *string { return &s }
	for name, c := range map[string]struct {
		list []labreport.Correction
		path []any
	}{
		"no action":            {[]labreport.Correction{{}}, []any{"action"}},
		"result beyond":        {[]labreport.Correction{change(3, "value", "1")}, []any{"result"}},
		"result before":        {[]labreport.Correction{change(-1, "value", "1")}, []any{"result"}},
		"added beyond the end": {[]labreport.Correction{{Action: labreport.AddResult, Result: at(4), Row: &labreport.AddedRow{TestName: "Iron", Value: "90"}}}, []any{"result"}},
		"unknown field":        {[]labreport.Correction{change(0, "type", "range")}, []any{"field"}},
		"field of metadata":    {[]labreport.Correction{{Action: labreport.ChangeField, Field: "value", Value: text("1")}}, []any{"field"}},
		"no value":             {[]labreport.Correction{change(0, "value", "")}, []any{"value"}},
		"empty unit":           {[]labreport.Correction{{Action: labreport.ChangeField, Result: at(0), Field: "units", Value: text("")}}, []any{"value"}},
		"decimal comma":        {[]labreport.Correction{change(0, "value", "11,2")}, []any{"value"}},
		"long":                 {[]labreport.Correction{change(0, "value", strings.Repeat("x", 1001))}, []any{"value"}},
		"specimen":             {[]labreport.Correction{change(0, "sample_type", "blood")}, []any{"value"}},
		"interpretation":       {[]labreport.Correction{change(0, "interpretation", "high")}, []any{"value"}},
		"check digit":          {[]labreport.Correction{change(0, "loinc_code", "2345-6")}, []any{"value"}},
		"gender":               {[]labreport.Correction{{Action: labreport.ChangeField, Field: "gender", Value: text("f")}}, []any{"value"}},
		"drop nothing":         {[]labreport.Correction{{Action: labreport.DropResult}}, []any{"result"}},
		"drop with a field":    {[]labreport.Correction{{Action: labreport.DropResult, Result: at(0), Field: "value"}}, []any{"field"}},
		"change with a row":    {[]labreport.Correction{{Action: labreport.ChangeField, Result: at(0), Field: "value", Value: text("1"), Row: &labreport.AddedRow{}}}, []any{"row"}},
		"add nothing":          {[]labreport.Correction{{Action: labreport.AddResult}}, []any{"row"}},
		"add without a value":  {[]labreport.Correction{{Action: labreport.AddResult, Row: &labreport.AddedRow{TestName: "Iron"}}}, []any{"row", "value"}},
	} {
		_, err := labreport.NewReader(nil).Correct(draft, c.list)
		var invalid *healthlab.InvalidError
		require.ErrorAs(t, err, &invalid, name)
		require.Len(t, invalid.Problems, 1, name)
		require.Equal(t, append([]any{"corrections", 0}, c.path...), invalid.Problems[0].Path, name)
		require.NotContains(t, err.Error(), "11,2")
	}
	for _, list := range [][]labreport.Correction{
		{change(0, "value", "1"), change(0, "value", "2")},
		{{Action: labreport.DropResult, Result: at(0)}, change(0, "value", "2")},
		{{Action: labreport.DropResult, Result: at(0)}, {Action: labreport.DropResult, Result: at(0)}},
		{change(0, "value", "2"), {Action: labreport.DropResult, Result: at(0)}},
	} {
		_, err := labreport.NewReader(nil).Correct(draft, list)
		require.ErrorIs(t, err, healthlab.Invalid)
	}
	_, err := labreport.NewReader(nil).Correct(draft, make([]labreport.Correction, labreport.MaxCorrections+1))
	require.ErrorIs(t, err, healthlab.Invalid)
}

func TestJobs_areListedNewestFirstInPages(t *testing.T) {
	d := newTestService(t, labreport.Options{})
	var want []labreport.JobID
	for range 5 {
		d.now = d.now.Add(time.Second)
		want = append([]labreport.JobID{d.create(t, true)}, want...)
	}
	d.work(t)
	_, err := d.Approve(t.Context(), d.team, want[2], "dr. example", nil)
	require.NoError(t, err)
	list := func(q labreport.JobsQuery) (got []labreport.JobID) {
		for {
			page, err := d.Jobs(t.Context(), d.team, q)
			require.NoError(t, err)
			for _, j := range page.Jobs {
				got = append(got, j.ID)
			}
			if q.Cursor = page.Next; q.Cursor == "" {
				return got
			}
		}
	}
	require.Equal(t, want, list(labreport.JobsQuery{}))
	require.Equal(t, want, list(labreport.JobsQuery{Size: 2, User: d.user}))
	require.Equal(t, append(append([]labreport.JobID{}, want[:2]...), want[3:]...), list(labreport.JobsQuery{Size: 1, Status: []labreport.Status{labreport.PendingReview}}))
	require.Empty(t, list(labreport.JobsQuery{User: healthlab.UserID{UUID: uuid.New()}}))
	for _, bad := range []string{"x", "1", "1.x", "01." + want[0].String(), "1." + strings.ToUpper(want[0].String())} {
		_, err := d.Jobs(t.Context(), d.team, labreport.JobsQuery{Cursor: bad})
		require.ErrorIs(t, err, healthlab.Invalid, bad)
	}
}

func TestExamples_exportEachCorrectionOfTheTeam(t *testing.T) {
	d := newTestService(t, labreport.Options{})
	id := d.create(t, true)
	d.work(t)
	draft := d.review(t, id).Draft
	at, name := 1, "Amar"
	list := []labreport.Correction{
		change(0, "value", "42"), change(0, "loinc_code", "2498-4"), {Action: labreport.DropResult, Result: &at},
		{Action: labreport.AddResult, Row: &labreport.AddedRow{TestName: "Iron", Value: "90"}}, {Action: labreport.ChangeField, Field: "patient_first_name", Value: &name},
	}
	_, err := d.Approve(t.Context(), d.team, id, "dr. example", list)
	require.NoError(t, err)
	var got []labreport.TrainingExample
	require.NoError(t, d.Examples(t.Context(), d.team, func(e labreport.TrainingExample) error {
		got = append(got, e)
		return nil
	}))
	require.Len(t, got, 5)
	reading := draft.Results[0].Evidence["value"]
	require.Equal(t, labreport.TrainingExample{JobID: id, UserID: d.user, ReviewedBy: "dr. example", ReviewedAt: healthlab.At(d.now), Correction: list[0], Read: &draft.Results[0].Value,
		Reading: &reading, Draft: &draft.Results[0]}, got[0])
	require.Equal(t, draft.Results[0].LoincMatches[0].LoincCode, *got[1].Read)
	require.Equal(t, &draft.Results[1], got[2].Draft)
	require.Nil(t, got[3].Draft)
	require.Equal(t, draft.Metadata.PatientFirstName, got[4].Read)
	require.NoError(t, d.Examples(t.Context(), healthlab.TeamID{UUID: uuid.New()}, func(labreport.TrainingExample) error { return fmt.Errorf("of another team") }))
}

// drawn is a renderer whose pages are as wide as their number.
type drawn struct {
	err   error
	pages int
}

func (r drawn) RenderPage(_ context.Context, f labreport.File, page, pixels int) (image.Image, error) {
	if r.err == nil && page > r.pages {
		return nil, healthlab.NotFound
	}
	if pixels != labreport.MaxPagePixels || len(f.Data) == 0 {
		return nil, fmt.Errorf("%d pixels", pixels)
	}
	return image.NewGray(image.Rect(0, 0, page, len(f.Data))), r.err
}

func TestPagePNG_drawsAPageUntilTheRetentionEnds(t *testing.T) {
	d := newTestService(t, labreport.Options{Retention: time.Hour, Renderer: labreport.Renderers{"application/pdf": drawn{pages: 2}, "image/png": drawn{pages: 1}}})
	width := func(id labreport.JobID, page int) image.Config {
		t.Helper()
		data, err := d.PagePNG(t.Context(), d.team, id, page)
		require.NoError(t, err)
		c, err := png.DecodeConfig(strings.NewReader(string(data)))
		require.NoError(t, err)
		return c
	}
	refused := func(id labreport.JobID, page int, why string) {
		t.Helper()
		_, err := d.PagePNG(t.Context(), d.team, id, page)
		var rule *healthlab.RuleError
		require.ErrorAs(t, err, &rule)
		require.Equal(t, why, rule.Type)
	}
	id := d.create(t, false)
	require.Equal(t, 2, width(id, 2).Width)
	for _, page := range []int{0, -1, 3} {
		refused(id, page, labreport.RulePageNotFound)
	}
	picture := func(n int) labreport.File {
		return labreport.File{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n" + strings.Repeat("x", n))}
	}
	two, err := d.Create(t.Context(), d.team, labreport.Upload{User: d.user, Files: []labreport.File{picture(1), picture(2)}})
	require.NoError(t, err)
	require.Equal(t, 9, width(two.ID, 1).Height)
	require.Equal(t, 10, width(two.ID, 2).Height)
	refused(two.ID, 3, labreport.RulePageNotFound)
	jpeg, err := d.Create(t.Context(), d.team, labreport.Upload{User: d.user, Files: []labreport.File{{Data: []byte("\xff\xd8\xff\xe0")}}})
	require.NoError(t, err)
	refused(jpeg.ID, 1, labreport.RulePageNotDrawn)
	_, err = d.PagePNG(t.Context(), healthlab.TeamID{UUID: uuid.New()}, id, 1)
	require.ErrorIs(t, err, healthlab.NotFound)
	d.work(t)
	d.now = d.now.Add(2 * time.Hour)
	d.work(t)
	refused(id, 1, labreport.RulePageNotFound)

	d = newTestService(t, labreport.Options{})
	refused(d.create(t, false), 1, labreport.RulePageNotDrawn)
	d = newTestService(t, labreport.Options{Renderer: drawn{err: healthlab.Exhausted}})
	refused(d.create(t, false), 1, labreport.RulePageNotDrawn)
}
