package labreport_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
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

// paper is an extractor that knows what stands on its files.
type paper struct {
	pages []labreport.Page
	fault error
	calls int
}

func (p *paper) Check(_ context.Context, f labreport.File) (int, error) {
	switch {
	case bytes.Contains(f.Data, []byte("broken")):
		return 0, fmt.Errorf("%w: not a PDF", healthlab.Invalid)
	case bytes.Contains(f.Data, []byte("long")):
		return 31, nil
	}
	return max(1, len(p.pages)), nil
}

func (p *paper) Extract(_ context.Context, _ labreport.File, page func(labreport.Page) error) error {
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

type everybody struct{ user healthlab.UserID }

func (e everybody) HasUser(_ context.Context, _ healthlab.TeamID, id healthlab.UserID) (bool, error) {
	return id == e.user, nil
}

// journal keeps what a store was told, beside the store.
type journal struct {
	labreport.Store
	events []healthlab.Event
}

func (j *journal) Update(ctx context.Context, team healthlab.TeamID, id labreport.JobID, change func(*labreport.Job) ([]healthlab.Event, error)) (labreport.Job, error) {
	var told []healthlab.Event
	got, err := j.Store.Update(ctx, team, id, func(x *labreport.Job) ([]healthlab.Event, error) {
		var err error
		told, err = change(x)
		return told, err
	})
	if err == nil {
		j.events = append(j.events, told...)
	}
	return got, err
}

// desk is a service with everything round it.
type desk struct {
	*labreport.Service
	paper *paper
	store *journal
	blobs labreport.BlobStore
	team  healthlab.TeamID
	user  healthlab.UserID
	now   time.Time
}

func newDesk(t *testing.T, opts labreport.Options) *desk {
	t.Helper()
	m := memory.New(nil)
	d := &desk{paper: &paper{pages: generate("six columns", layouts["six columns"], 1).pages}, store: &journal{Store: m.ParsingJobs()}, blobs: m.Blobs(),
		team: healthlab.TeamID{UUID: uuid.New()}, user: healthlab.UserID{UUID: uuid.New()}, now: time.Date(2026, 3, 1, 8, 0, 0, 0, time.UTC)}
	opts.Now = func() time.Time { return d.now }
	s, err := labreport.New(d.store, d.blobs, everybody{d.user}, d.paper, nil, &opts)
	require.NoError(t, err)
	d.Service = s
	return d
}

var pdf = labreport.File{Type: "application/pdf", Data: []byte("%PDF-1.4 a report")}

func (d *desk) create(t *testing.T, review bool) labreport.JobID {
	t.Helper()
	j, err := d.Create(t.Context(), d.team, labreport.Upload{User: d.user, Files: []labreport.File{pdf}, NeedsHumanReview: review})
	require.NoError(t, err)
	return j.ID
}

// work does all that is due now.
func (d *desk) work(t *testing.T) {
	t.Helper()
	for range 10 {
		jobs, err := d.store.Claim(t.Context(), d.now, d.now.Add(time.Minute), 10)
		require.NoError(t, err)
		if len(jobs) == 0 {
			return
		}
		for _, j := range jobs {
			require.NoError(t, d.Step(t.Context(), j))
		}
	}
}

func (d *desk) get(t *testing.T, id labreport.JobID) labreport.PublishedJob {
	t.Helper()
	j, err := d.Get(t.Context(), d.team, id)
	require.NoError(t, err)
	return j
}

// told returns the events as "name status".
func (d *desk) told(t *testing.T) []string {
	t.Helper()
	var out []string
	for _, e := range d.store.events {
		var j labreport.PublishedJob
		require.NoError(t, json.Unmarshal(e.Data, &j))
		out = append(out, strings.TrimPrefix(e.Type, "lab_report.parsing_job.")+" "+string(j.Status))
	}
	return out
}

func TestReportFromUploadToData(t *testing.T) {
	d := newDesk(t, labreport.Options{})
	id := d.create(t, false)
	first := d.get(t, id)
	require.Equal(t, labreport.UploadPending, first.Status)
	require.Nil(t, first.Data)
	d.work(t)
	done := d.get(t, id)
	require.Equal(t, labreport.Completed, done.Status)
	require.NotEmpty(t, done.Data.Results)
	require.False(t, done.IsReviewed)
	require.Equal(t, []string{"created started", "updated completed"}, d.told(t))

	// The files go when retention ends; the job stays.
	d.now = d.now.Add(30 * 24 * time.Hour)
	d.work(t)
	j, err := d.store.Get(t.Context(), d.team, id)
	require.NoError(t, err)
	require.Empty(t, j.Files)
	_, err = d.blobs.Get(t.Context(), "lab-reports/"+d.team.String()+"/"+id.String()+"/0")
	require.ErrorIs(t, err, healthlab.NotFound)
	require.NotNil(t, d.get(t, id).Data)
}

func TestReviewKeepsWhatWasRead(t *testing.T) {
	d := newDesk(t, labreport.Options{})
	id := d.create(t, true)
	d.work(t)
	require.Equal(t, labreport.PendingReview, d.get(t, id).Status)
	require.Nil(t, d.get(t, id).Data, "clients see no draft")
	waiting, err := d.PendingReviews(t.Context(), d.team, labreport.JobID{}, 10)
	require.NoError(t, err)
	require.Len(t, waiting, 1)
	draft, err := d.Draft(t.Context(), d.team, id)
	require.NoError(t, err)
	read := draft.Results[0].Value

	draft.Results[0].Value = "42"
	done, err := d.Approve(t.Context(), d.team, id, "dr. example", &draft)
	require.NoError(t, err)
	require.Equal(t, labreport.Completed, done.Status)
	require.True(t, done.IsReviewed)
	require.Equal(t, "42", done.Data.Results[0].Value)
	kept, err := d.store.Get(t.Context(), d.team, id)
	require.NoError(t, err)
	require.Equal(t, read, kept.Draft.Results[0].Value)
	require.Equal(t, "dr. example", kept.Review.By)
	require.Equal(t, d.now, kept.Review.At)

	_, err = d.Approve(t.Context(), d.team, id, "somebody", nil)
	require.ErrorIs(t, err, healthlab.Precondition)
	require.Equal(t, []string{"created started", "updated pending_review", "updated completed"}, d.told(t))
}

func TestRejectedReview(t *testing.T) {
	d := newDesk(t, labreport.Options{})
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

func TestReasonsOfFailure(t *testing.T) {
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
			d := newDesk(t, labreport.Options{})
			d.paper.fault = c.fault
			if c.pages != nil {
				d.paper.pages = c.pages
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
			require.Equal(t, c.calls, d.paper.calls)
			require.Equal(t, []string{"created started", "updated failed"}, d.told(t))
		})
	}
}

func TestStagingThatFailsIsToldTwice(t *testing.T) {
	d := newDesk(t, labreport.Options{})
	id := d.create(t, false)
	require.NoError(t, d.blobs.Delete(t.Context(), "lab-reports/"+d.team.String()+"/"+id.String()+"/0"))
	for range 4 {
		d.work(t)
		d.now = d.now.Add(time.Minute)
	}
	require.Equal(t, labreport.Failed, d.get(t, id).Status)
	require.Equal(t, []string{"created failed", "updated failed"}, d.told(t))
}

func TestUploadsThatAreRefused(t *testing.T) {
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
		"damaged second page": {[]labreport.File{jpeg, of("image/jpg", "\xff\xd8\xff broken")}, labreport.RuleUndecodableImage},
		"31 pages":            {[]labreport.File{of("", "%PDF-1.4 long")}, labreport.RuleTooManyPages},
	} {
		t.Run(name, func(t *testing.T) {
			d := newDesk(t, labreport.Options{})
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

func TestWhoMayUpload(t *testing.T) {
	off := func(s labreport.Settings) labreport.Options {
		return labreport.Options{Settings: func(context.Context, healthlab.TeamID) (labreport.Settings, error) { return s, nil }}
	}
	ruleOf := func(err error) string {
		var r *healthlab.RuleError
		require.ErrorAs(t, err, &r)
		return r.Type
	}
	d := newDesk(t, off(labreport.Settings{}))
	_, err := d.Create(t.Context(), d.team, labreport.Upload{User: d.user, Files: []labreport.File{pdf}})
	require.Equal(t, labreport.RuleFeatureNotEnabled, ruleOf(err))
	d = newDesk(t, off(labreport.Settings{Enabled: true}))
	_, err = d.Create(t.Context(), d.team, labreport.Upload{User: d.user, Files: []labreport.File{pdf}, NeedsHumanReview: true})
	require.Equal(t, labreport.RuleHumanReviewNotEnabled, ruleOf(err))
	_, err = d.Create(t.Context(), d.team, labreport.Upload{User: healthlab.UserID{UUID: uuid.New()}, Files: []labreport.File{pdf}})
	require.Equal(t, labreport.RuleUserNotFound, ruleOf(err))

	d = newDesk(t, labreport.Options{Environment: healthlab.Sandbox, SandboxQuota: 2})
	d.create(t, false)
	d.create(t, false)
	_, err = d.Create(t.Context(), d.team, labreport.Upload{User: d.user, Files: []labreport.File{pdf}})
	require.Equal(t, labreport.RuleSandboxQuotaReached, ruleOf(err))
	_, err = d.Get(t.Context(), healthlab.TeamID{UUID: uuid.New()}, labreport.JobID{UUID: uuid.New()})
	require.Equal(t, labreport.RuleJobNotFound, ruleOf(err))
}

// The background loop takes jobs by itself, and stops when it is told to.
func TestRun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newDesk(t, labreport.Options{})
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
func TestLifecycle(t *testing.T) {
	var got []string
	for _, r := range labreport.Lifecycle() {
		got = append(got, fmt.Sprintf("%s %s %s", r.From, r.On, r.To))
	}
	require.Equal(t, []string{
		"upload_pending staged started", "upload_pending staging_failed failed", "started read completed", "started read pending_review",
		"started reading_failed failed", "pending_review approved completed", "pending_review rejected failed",
	}, got)
}
