package labreport_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/labreport"
)

// fakeExtractor is an extractor that knows what stands on its files.
type fakeExtractor struct {
	pages []labreport.Page
	fault error
	calls int
}

func (p *fakeExtractor) Check(_ context.Context, f labreport.File) (int, error) {
	switch {
	case bytes.Contains(f.Data, []byte("broken")):
		return 0, fmt.Errorf("%w: not a PDF", healthlab.Invalid)
	case bytes.Contains(f.Data, []byte("locked")):
		return 0, fmt.Errorf("%w: %w", healthlab.Invalid, labreport.ErrPassword)
	case bytes.Contains(f.Data, []byte("long")):
		return 31, nil
	}
	return max(1, len(p.pages)), nil
}

func (p *fakeExtractor) Extract(_ context.Context, _ labreport.File, page func(labreport.Page) error) error {
	p.calls++
	if p.fault != nil {
		return p.fault
	}
	for _, x := range p.pages {
		if err := page(x); err != nil {
			return err
		}
	}
	return nil
}

type oneUser struct{ user healthlab.UserID }

func (e oneUser) HasUser(_ context.Context, _ healthlab.TeamID, id healthlab.UserID) (bool, error) {
	return id == e.user, nil
}

// eventLog is a store that also keeps the events of updates.
type eventLog struct {
	labreport.Store
	events []healthlab.Event
}

func (j *eventLog) Update(ctx context.Context, team healthlab.TeamID, id labreport.JobID, change func(*labreport.Job) ([]healthlab.Event, error)) (labreport.Job, error) {
	var events []healthlab.Event
	got, err := j.Store.Update(ctx, team, id, func(x *labreport.Job) ([]healthlab.Event, error) {
		var err error
		events, err = change(x)
		return events, err
	})
	if err == nil {
		j.events = append(j.events, events...)
	}
	return got, err
}

// testService is a service with its stores and a fake extractor.
type testService struct {
	*labreport.Service
	extractor *fakeExtractor
	store     *eventLog
	blobs     labreport.BlobStore
	team      healthlab.TeamID
	user      healthlab.UserID
	now       time.Time
}

func newTestService(t *testing.T, opts labreport.Options) *testService {
	t.Helper()
	d := &testService{extractor: &fakeExtractor{pages: generate("six columns", layouts["six columns"], 1).pages},
		team: healthlab.TeamID{UUID: uuid.New()}, user: healthlab.UserID{UUID: uuid.New()}, now: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)}
	opts.Now = func() time.Time { return d.now }
	m := memory.New(&memory.Options{Now: opts.Now, UsersElsewhere: true})
	d.store, d.blobs = &eventLog{Store: m.ParsingJobs()}, m.Blobs()
	opts.Environment = cmp.Or(opts.Environment, healthlab.Production)
	s, err := labreport.New(d.store, d.blobs, oneUser{d.user}, d.extractor, &opts)
	require.NoError(t, err)
	d.Service = s
	return d
}

var pdf = labreport.File{Type: "application/pdf", Data: []byte("%PDF-1.4 a report")}

func (d *testService) create(t *testing.T, review bool) labreport.JobID {
	t.Helper()
	j, err := d.Create(t.Context(), d.team, labreport.Upload{User: d.user, Files: []labreport.File{pdf}, NeedsHumanReview: review})
	require.NoError(t, err)
	return j.ID
}

// work does all that is due now.
func (d *testService) work(t *testing.T) {
	t.Helper()
	for range 10 {
		jobs, err := d.store.Claim(t.Context(), 10, time.Minute)
		require.NoError(t, err)
		if len(jobs) == 0 {
			return
		}
		for _, j := range jobs {
			require.NoError(t, d.Step(t.Context(), j))
		}
	}
}

func (d *testService) get(t *testing.T, id labreport.JobID) labreport.PublishedJob {
	t.Helper()
	j, err := d.Get(t.Context(), d.team, id)
	require.NoError(t, err)
	return j
}

// eventStatuses returns the events as "name status".
func (d *testService) eventStatuses(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, e := range d.store.events {
		var j labreport.PublishedJob
		require.NoError(t, json.Unmarshal(e.Data, &j))
		out = append(out, strings.TrimPrefix(e.Type, "lab_report.parsing_job.")+" "+string(j.Status))
	}
	return out
}

func TestJob_goesFromUploadToDataAndDeletesItsFiles(t *testing.T) {
	d := newTestService(t, labreport.Options{})
	id := d.create(t, false)
	first := d.get(t, id)
	require.Equal(t, labreport.UploadPending, first.Status)
	require.Nil(t, first.Data)
	d.work(t)
	done := d.get(t, id)
	require.Equal(t, labreport.Completed, done.Status)
	require.NotEmpty(t, done.Data.Results)
	require.False(t, done.IsReviewed)
	require.Equal(t, []string{"created started", "updated completed"}, d.eventStatuses(t))

	// The files go when retention ends; the job stays.
	d.now = d.now.Add(30 * 24 * time.Hour)
	d.work(t)
	j, err := d.store.Get(t.Context(), d.team, id)
	require.NoError(t, err)
	require.Empty(t, j.Files)
	_, err = d.blobs.Get(t.Context(), d.team, d.user, "lab-reports/"+d.team.String()+"/"+id.String()+"/0")
	require.ErrorIs(t, err, healthlab.NotFound)
	require.NotNil(t, d.get(t, id).Data)
}

// A page that was not read is named, and a person reviews the job. Files are counted together.
func TestJob_withUnreadablePagesNeedsReview(t *testing.T) {
	for name, c := range map[string]struct {
		review bool
		unread []bool
	}{
		"all read":            {false, []bool{false, false}},
		"one not read":        {false, []bool{false, true}},
		"first not read":      {false, []bool{true, false, false}},
		"review was asked":    {true, []bool{false, true, true}},
		"all read for review": {true, []bool{false}},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestService(t, labreport.Options{})
			var want []labreport.PublishedPage
			report, partly := d.extractor.pages[0], false
			d.extractor.pages = nil
			for i, unread := range c.unread {
				page, status := report, labreport.PageRead
				if unread {
					page, status, partly = labreport.Page{Width: 1, Height: 1, Unread: true}, labreport.PageNotRead, true
				}
				d.extractor.pages = append(d.extractor.pages, page)
				want = append(want, labreport.PublishedPage{Number: i + 1, Status: status})
			}
			id := d.create(t, c.review)
			require.Empty(t, d.get(t, id).Pages)
			require.NotNil(t, d.get(t, id).Pages)
			d.work(t)
			got := d.get(t, id)
			require.Equal(t, want, got.Pages)
			require.Equal(t, c.review || partly, got.NeedsHumanReview)
			if !c.review && !partly {
				require.Equal(t, labreport.Completed, got.Status)
				return
			}
			require.Equal(t, labreport.PendingReview, got.Status)
			require.Nil(t, got.Data)
			_, err := d.Approve(t.Context(), d.team, id, "reviewer", nil)
			require.NoError(t, err)
			require.Equal(t, labreport.Completed, d.get(t, id).Status)
			require.Equal(t, want, d.get(t, id).Pages)
		})
	}
}

// A job's files are read once the access is recorded. Attempts that are not recorded do not count.
func TestJob_recordsAccessBeforeItReadsFiles(t *testing.T) {
	fault := errors.New("not recorded")
	var users []healthlab.UserID
	d := newTestService(t, labreport.Options{Tries: 1, Accessed: func(_ context.Context, j labreport.Job) error {
		users = append(users, j.User)
		return fault
	}})
	id := d.create(t, false)
	step := func() error {
		t.Helper()
		jobs, err := d.store.Claim(t.Context(), 10, time.Minute)
		require.NoError(t, err)
		require.Len(t, jobs, 1)
		return d.Step(t.Context(), jobs[0])
	}
	require.NoError(t, step()) // the files are there
	for range 3 {
		require.ErrorIs(t, step(), fault)
		d.now = d.now.Add(time.Minute) // the lease ends
	}
	require.Zero(t, d.extractor.calls)
	fault = nil
	d.work(t)
	require.Equal(t, labreport.Completed, d.get(t, id).Status)
	require.Equal(t, []healthlab.UserID{d.user, d.user, d.user, d.user}, users)
}

func TestCreate_PDFWithPasswordIsRefusedWithThatReason(t *testing.T) {
	d := newTestService(t, labreport.Options{})
	_, err := d.Create(t.Context(), d.team, labreport.Upload{User: d.user, Files: []labreport.File{{Data: []byte("%PDF-1.4 locked")}}})
	var refused *healthlab.RuleError
	require.ErrorAs(t, err, &refused)
	require.Equal(t, labreport.RuleUnreadablePDF, refused.Type)
	require.Contains(t, refused.Msg, "needs a password")
}

func TestJob_eachFailureHasItsReasonAndAttempts(t *testing.T) {
	for name, c := range map[string]struct {
		fault  error
		pages  []labreport.Page
		reason labreport.FailureReason
		calls  int
	}{
		"not a report":     {pages: typed(notReports["invoice"]), reason: labreport.InvalidInput, calls: 1},
		"damaged":          {fault: fmt.Errorf("%w: x", healthlab.Invalid), reason: labreport.InvalidInput, calls: 1},
		"bomb":             {fault: fmt.Errorf("%w: x", healthlab.Exhausted), reason: labreport.ProcessingError, calls: 1},
		"too many pages":   {fault: &healthlab.RuleError{Type: labreport.RuleTooManyPages}, reason: labreport.TooManyPages, calls: 1},
		"no OCR":           {fault: fmt.Errorf("%w: x", healthlab.Unimplemented), reason: labreport.ProcessingError, calls: 1},
		"passing failure":  {fault: errors.New("x"), reason: labreport.ProcessingError, calls: 3},
		"foreign language": {pages: typed(strings.Repeat("Анализ крови гемоглобин лейкоциты результат\n", 5)), reason: labreport.NotEnglish, calls: 1},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestService(t, labreport.Options{})
			d.extractor.fault = c.fault
			if c.pages != nil {
				d.extractor.pages = c.pages
			}
			id := d.create(t, true)
			for range 4 {
				d.work(t)
				d.now = d.now.Add(time.Minute)
			}
			got := d.get(t, id)
			require.Equal(t, labreport.Failed, got.Status)
			require.Equal(t, c.reason, *got.FailureReason)
			require.False(t, got.IsReviewed)
			require.Equal(t, c.calls, d.extractor.calls)
			require.Equal(t, []string{"created started", "updated failed"}, d.eventStatuses(t))
		})
	}
}

func TestJob_failureBeforeReadingSendsCreatedAndUpdatedEvents(t *testing.T) {
	d := newTestService(t, labreport.Options{})
	id := d.create(t, false)
	require.NoError(t, d.blobs.Delete(t.Context(), "lab-reports/"+d.team.String()+"/"+id.String()+"/0"))
	for range 4 {
		d.work(t)
		d.now = d.now.Add(time.Minute)
	}
	require.Equal(t, labreport.Failed, d.get(t, id).Status)
	require.Equal(t, []string{"created failed", "updated failed"}, d.eventStatuses(t))
}

func TestCreate_refusesInvalidFiles(t *testing.T) {
	jpeg := labreport.File{Type: "image/jpeg", Data: []byte{0xff, 0xd8, 0xff, 0xe0}}
	png := labreport.File{Type: "image/png", Data: []byte("\x89PNG\r\n\x1a\n")}
	of := func(kind, data string) labreport.File { return labreport.File{Type: kind, Data: []byte(data)} }
	for name, c := range map[string]struct {
		files []labreport.File
		rule  string
	}{
		"nine files":          {[]labreport.File{png, png, png, png, png, png, png, png, png}, labreport.RuleTooManyFiles},
		"empty":               {[]labreport.File{of("application/pdf", "")}, labreport.RuleEmptyFile},
		"too large":           {[]labreport.File{of("", "%PDF-1.4"+strings.Repeat(" ", labreport.MaxFileBytes))}, labreport.RuleUploadTooLarge},
		"text":                {[]labreport.File{of("", "hello")}, labreport.RuleUnsupportedFileType},
		"unknown type":        {[]labreport.File{of("image/gif", "%PDF-1.4")}, labreport.RuleUnsupportedFileType},
		"said to be a PNG":    {[]labreport.File{of("image/png", "%PDF-1.4")}, labreport.RuleContentTypeMismatch},
		"two with a PDF":      {[]labreport.File{jpeg, pdf}, labreport.RulePDFInMultiFile},
		"damaged PDF":         {[]labreport.File{of("", "%PDF-1.4 broken")}, labreport.RuleUnreadablePDF},
		"damaged picture":     {[]labreport.File{of("image/jpeg", "\xff\xd8\xff broken")}, labreport.RuleUndecodableImage},
		"damaged second page": {[]labreport.File{jpeg, of("image/jpg", "\xff\xd8\xff broken")}, labreport.RuleUndecodableImage},
		"a text behind a PNG": {[]labreport.File{of("image/png", "\xff\xd8\xff"), of("text/plain", "\xff\xd8\xff")}, labreport.RuleUnsupportedFileType},
		"31 pages":            {[]labreport.File{of("", "%PDF-1.4 long")}, labreport.RuleTooManyPages},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestService(t, labreport.Options{})
			_, err := d.Create(t.Context(), d.team, labreport.Upload{User: d.user, Files: c.files})
			var broken *healthlab.RuleError
			require.ErrorAs(t, err, &broken)
			require.Equal(t, c.rule, broken.Type)
			jobs, err := d.store.List(t.Context(), labreport.Query{Team: d.team, Size: 1})
			require.NoError(t, err)
			require.Empty(t, jobs)
		})
	}
}

func TestCreate_requiresTheTeamSettingAUserAndTheSandboxQuota(t *testing.T) {
	off := func(s labreport.Settings) labreport.Options {
		return labreport.Options{Settings: func(context.Context, healthlab.TeamID) (labreport.Settings, error) { return s, nil }}
	}
	ruleOf := func(err error) string {
		var r *healthlab.RuleError
		require.ErrorAs(t, err, &r)
		return r.Type
	}
	d := newTestService(t, off(labreport.Settings{}))
	_, err := d.Create(t.Context(), d.team, labreport.Upload{User: d.user, Files: []labreport.File{pdf}})
	require.Equal(t, labreport.RuleFeatureNotEnabled, ruleOf(err))
	d = newTestService(t, off(labreport.Settings{Enabled: true}))
	_, err = d.Create(t.Context(), d.team, labreport.Upload{User: d.user, Files: []labreport.File{pdf}, NeedsHumanReview: true})
	require.Equal(t, labreport.RuleHumanReviewNotEnabled, ruleOf(err))
	_, err = d.Create(t.Context(), d.team, labreport.Upload{User: healthlab.UserID{UUID: uuid.New()}, Files: []labreport.File{pdf}})
	require.Equal(t, labreport.RuleUserNotFound, ruleOf(err))

	d = newTestService(t, labreport.Options{Environment: healthlab.Sandbox, SandboxQuota: 2})
	d.create(t, false)
	d.create(t, false)
	_, err = d.Create(t.Context(), d.team, labreport.Upload{User: d.user, Files: []labreport.File{pdf}})
	require.Equal(t, labreport.RuleSandboxQuotaReached, ruleOf(err))
	_, err = d.Get(t.Context(), healthlab.TeamID{UUID: uuid.New()}, labreport.JobID{UUID: uuid.New()})
	require.Equal(t, labreport.RuleJobNotFound, ruleOf(err))
}

// shut is a BlobStore that takes a number of files and then no more.
type shut struct {
	labreport.BlobStore
	left int
}

func (s *shut) Put(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, key string, content io.Reader) error {
	if s.left--; s.left < 0 {
		return errors.New("no room")
	}
	return s.BlobStore.Put(ctx, team, user, key, content)
}

// If a file cannot be stored, its job fails and no file is left without a job.
func TestCreate_unstoredFileFailsTheJobAndLeavesNoFile(t *testing.T) {
	d := newTestService(t, labreport.Options{})
	s, err := labreport.New(d.store, &shut{d.blobs, 1}, oneUser{d.user}, d.extractor, &labreport.Options{Environment: healthlab.Production, Now: func() time.Time { return d.now }})
	require.NoError(t, err)
	png := labreport.File{Data: []byte("\x89PNG\r\n\x1a\n")}
	_, err = s.Create(t.Context(), d.team, labreport.Upload{User: d.user, Files: []labreport.File{png, png}})
	require.ErrorIs(t, err, healthlab.Unavailable)
	jobs, err := d.store.List(t.Context(), labreport.Query{Team: d.team, Size: 2})
	require.NoError(t, err)
	require.Len(t, jobs, 1)
	require.Equal(t, labreport.Failed, jobs[0].Status)
	require.Equal(t, []string{"created failed", "updated failed"}, d.eventStatuses(t))
	d.now = d.now.Add(30 * 24 * time.Hour)
	d.work(t)
	_, err = d.blobs.Get(t.Context(), d.team, d.user, jobs[0].Files[0].Key)
	require.ErrorIs(t, err, healthlab.NotFound)
}

// A process that ends between the job and its files leaves a job that fails.
func TestJob_withoutItsFilesFails(t *testing.T) {
	d := newTestService(t, labreport.Options{})
	id := d.create(t, false)
	_, err := d.store.Update(t.Context(), d.team, id, func(j *labreport.Job) ([]healthlab.Event, error) {
		j.DueAt = d.now.Add(2 * time.Minute) // as it is before the files are there
		return nil, nil
	})
	require.NoError(t, err)
	require.NoError(t, d.blobs.Delete(t.Context(), "lab-reports/"+d.team.String()+"/"+id.String()+"/0"))
	d.work(t)
	require.Equal(t, labreport.UploadPending, d.get(t, id).Status)
	for range 6 {
		d.now = d.now.Add(time.Minute)
		d.work(t)
	}
	require.Equal(t, labreport.Failed, d.get(t, id).Status)
}

// The reason of the failed job says nothing of the cause, so the log has it.
func TestJob_logsTheCauseOfEachFailedAttempt(t *testing.T) {
	for name, c := range map[string]struct {
		spoil func(d *testService, t *testing.T, file string)
		cause string
	}{
		"missing file": {func(d *testService, t *testing.T, file string) {
			require.NoError(t, d.blobs.Delete(t.Context(), file))
		}, "read stored file"},
		"cut file": {func(d *testService, t *testing.T, file string) {
			require.NoError(t, d.blobs.Put(t.Context(), d.team, d.user, file, strings.NewReader("%PDF")))
		}, "its size must be that of the uploaded one"},
		"failing extractor": {func(d *testService, _ *testing.T, _ string) {
			d.extractor.fault = errors.New("the reader of pictures is gone: 'Kim Person'")
		}, "the reader of pictures is gone: …"},
	} {
		t.Run(name, func(t *testing.T) {
			var log bytes.Buffer
			d := newTestService(t, labreport.Options{Tries: 2, Log: slog.New(slog.NewTextHandler(&log, nil))})
			id := d.create(t, false)
			c.spoil(d, t, "lab-reports/"+d.team.String()+"/"+id.String()+"/0")
			for range 3 {
				d.work(t)
				d.now = d.now.Add(time.Minute)
			}
			require.Equal(t, labreport.Failed, d.get(t, id).Status)
			require.Equal(t, 2, strings.Count(log.String(), "attempt to read a lab report failed"))
			require.Equal(t, 2, strings.Count(log.String(), c.cause))
			require.Contains(t, log.String(), "job.id="+id.String())
			require.NotContains(t, log.String(), "Kim")
		})
	}
}

// engine is an extractor of rows that knows what stands on every page.
type engine struct {
	raw    labreport.RawReport
	reason labreport.FailureReason
	fault  error
}

func (e engine) Rows(context.Context, []labreport.Page) (labreport.RawReport, labreport.FailureReason, error) {
	return e.raw, e.reason, e.fault
}

// A host's own engine reads the rows; what follows from them is ours.
func TestEngine_rowsOfACustomEngineAreInterpretedLikeDefaultOnes(t *testing.T) {
	low, high, none := json.Number("70"), json.Number("99.0"), json.Number("NaN")
	e := engine{raw: labreport.RawReport{Rows: []labreport.RawRow{
		{Name: "Glucose", Value: " 1,200 ", Unit: "mg/dL", Low: &low, High: &high, Type: labreport.Numeric, Panel: "Chemistry"},
		{Name: "Potassium", Value: "4.1", Unit: "mmol/L", Range: "3.50-5.0", Type: labreport.Comment},
		{Name: "HIV Ag/Ab", Value: "See note", Type: labreport.Numeric, Flag: "A"},
		{Name: "Empty", Value: " "},
		{Name: "Sodium", Value: "140", Low: &none},
	}}}
	d := newTestService(t, labreport.Options{Rows: e})
	id := d.create(t, false)
	d.work(t)
	got := d.get(t, id).Data.Results
	require.Len(t, got, 4)
	require.Nil(t, got[3].MinReferenceRange)
	require.Equal(t, "1200", got[0].Value)
	require.Equal(t, labreport.Numeric, *got[0].Type)
	require.Equal(t, json.Number("99"), *got[0].MaxReferenceRange)
	require.True(t, *got[0].IsAboveMaxRange)
	require.Equal(t, "2345-7", got[0].LoincMatches[0].LoincCode)
	require.NotNil(t, got[0].Evidence)
	require.Equal(t, labreport.Comment, *got[1].Type)
	require.Equal(t, json.Number("3.50"), *got[1].MinReferenceRange)
	require.Nil(t, got[1].IsAboveMaxRange, "words have no flags")
	require.Equal(t, labreport.Comment, *got[2].Type)
	require.Equal(t, labreport.Abnormal, *got[2].Interpretation)

	for name, c := range map[string]struct {
		e      engine
		reason labreport.FailureReason
	}{
		"a reason":       {engine{reason: labreport.NotEnglish}, labreport.NotEnglish},
		"no rows":        {engine{}, labreport.InvalidInput},
		"out of service": {engine{fault: errors.New("x")}, labreport.ProcessingError},
	} {
		t.Run(name, func(t *testing.T) {
			d := newTestService(t, labreport.Options{Rows: c.e})
			id := d.create(t, false)
			for range 4 {
				d.work(t)
				d.now = d.now.Add(time.Minute)
			}
			require.Equal(t, c.reason, *d.get(t, id).FailureReason)
		})
	}
}

// A user's files go with the user.
func TestForget_deletesTheUsersFilesOnly(t *testing.T) {
	d := newTestService(t, labreport.Options{})
	var keys []string
	for range 3 {
		keys = append(keys, "lab-reports/"+d.team.String()+"/"+d.create(t, false).String()+"/0")
	}
	require.NoError(t, d.Forget(t.Context(), d.team, healthlab.UserID{UUID: uuid.New()}))
	_, err := d.blobs.Get(t.Context(), d.team, d.user, keys[0])
	require.NoError(t, err)
	for range 2 {
		require.NoError(t, d.Forget(t.Context(), d.team, d.user))
	}
	for _, k := range keys {
		_, err := d.blobs.Get(t.Context(), d.team, d.user, k)
		require.ErrorIs(t, err, healthlab.NotFound)
	}
}

// Printing a report shows none of its content.
func TestPrint_containsNothingOfAReport(t *testing.T) {
	const mark = "Qz7Marker"
	d := labreport.Data{Metadata: labreport.Metadata{LabName: ptr(mark), Gender: mark}, Results: []labreport.Result{{TestName: mark, Value: mark}}}
	review := labreport.Review{By: mark, Data: &d}
	j := labreport.Job{Draft: &d, Review: &review}
	word := labreport.Word{Text: mark}
	var log strings.Builder
	logger := slog.New(slog.NewTextHandler(&log, nil))
	for _, v := range []any{d, &d, d.Metadata, d.Results[0], d.Results, j, &j, []labreport.Job{j}, review, j.Published(), word, labreport.Page{Words: []labreport.Word{word}}, labreport.File{Data: []byte(mark)},
		labreport.Correction{Value: ptr(mark)}, labreport.AddedRow{Value: mark}, labreport.TrainingExample{Read: ptr(mark)}, labreport.JobReview{Draft: &d}} {
		logger.Info("x", "v", v)
		require.NotContains(t, fmt.Sprintf("%v %+v %#v %s", v, v, v, v), mark)
	}
	require.NotContains(t, log.String(), mark)
}

func ptr[T any](v T) *T { return &v }

// A team's eleventh upload at the same time is refused, and one that ends makes room.
func TestOpen_refusesTheEleventhConcurrentUpload(t *testing.T) {
	d := newTestService(t, labreport.Options{})
	var all []*labreport.Intake
	for range 10 {
		i, err := d.Open(t.Context(), d.team)
		require.NoError(t, err)
		all = append(all, i)
	}
	_, err := d.Open(t.Context(), d.team)
	require.ErrorIs(t, err, healthlab.Exhausted)
	_, err = d.Create(t.Context(), d.team, labreport.Upload{User: d.user, Files: []labreport.File{pdf}})
	require.ErrorIs(t, err, healthlab.Exhausted)
	other, err := d.Open(t.Context(), healthlab.TeamID{UUID: uuid.New()})
	require.NoError(t, err)
	other.Close()
	for range 3 {
		all[0].Close()
	}
	i, err := d.Open(t.Context(), d.team)
	require.NoError(t, err)
	_, err = i.Create(t.Context(), labreport.Upload{User: d.user, Files: []labreport.File{pdf}})
	require.NoError(t, err)
	_, err = d.Open(t.Context(), d.team)
	require.ErrorIs(t, err, healthlab.Exhausted)
}

// The background loop takes jobs by itself and stops when its context ends.
func TestRun_processesJobsUntilItsContextEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newTestService(t, labreport.Options{})
		id := d.create(t, false)
		ctx, stop := context.WithCancel(t.Context())
		done := make(chan error)
		go func() { done <- d.Run(ctx) }()
		time.Sleep(5 * time.Second)
		synctest.Wait()
		require.Equal(t, labreport.Completed, d.get(t, id).Status)
		stop()
		require.NoError(t, <-done)
	})
}

// Every pair of status and trigger, by name.
func TestLifecycle_hasTheDocumentedTransitions(t *testing.T) {
	var got []string
	for _, r := range labreport.Lifecycle() {
		got = append(got, fmt.Sprintf("%s %s %s", r.From, r.On, r.To))
	}
	require.Equal(t, []string{
		"upload_pending staged started", "upload_pending staging_failed failed", "started read completed", "started read pending_review",
		"started read_in_part pending_review", "started reading_failed failed", "pending_review approved completed", "pending_review rejected failed",
	}, got)
}
