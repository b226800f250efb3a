package httpapi_test

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"maps"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/textproto"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/contract"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/labreport"
)

func reportPairs() []contract.Pair {
	enums := map[string][]string{
		"status":                          {"upload_pending", "started", "pending_review", "completed", "failed"},
		"failure_reason":                  {"invalid_input", "low_quality", "not_english", "too_many_pages", "processing_error"},
		"data.metadata.gender":            {"male", "female", "other"},
		"data.results.type":               {"numeric", "percentage", "range", "ratio", "boolean", "duration", "comment"},
		"data.results.sample_type":        {"urine", "serum_plasma_blood", "capillary_blood", "stool", "saliva", "other", "unknown"},
		"data.results.measurement_kind":   {"direct", "calculated", "ratio", "unknown"},
		"data.results.sensitivity":        {"sensitive", "insensitive", "unknown"},
		"data.results.interpretation":     {"normal", "abnormal", "critical", "unknown"},
		"data.results.loinc_match_status": {"auto_match", "needs_review", "no_match"},
	}
	return append(httpapi.ReportReviewBodies(), contract.Pair{Schema: "LabReportJob", Value: labreport.PublishedJob{}, Enums: enums},
		contract.Pair{Schema: "LabReportReview", Value: labreport.JobReview{}, Enums: reviewEnums(enums)},
		contract.Pair{Schema: "LabReportExample", Value: labreport.TrainingExample{}, Enums: exampleEnums(enums)})
}

// reviewEnums are the enumerations of a job with its draft, by those of a published job.
func reviewEnums(published map[string][]string) map[string][]string {
	out := maps.Clone(published)
	for name, values := range published {
		if rest, ok := strings.CutPrefix(name, "data."); ok {
			out["draft."+rest] = values
		}
	}
	for name, values := range correctionEnums(published) {
		out["corrections."+name] = values
	}
	return out
}

// exampleEnums are the enumerations of an exported correction.
func exampleEnums(published map[string][]string) map[string][]string {
	out := map[string][]string{}
	for name, values := range published {
		if rest, ok := strings.CutPrefix(name, "data.results."); ok {
			out["draft."+rest] = values
		}
	}
	for name, values := range correctionEnums(published) {
		out["correction."+name] = values
	}
	return out
}

func correctionEnums(published map[string][]string) map[string][]string {
	return map[string][]string{
		"action": {"change", "drop", "add"}, "row.sample_type": published["data.results.sample_type"], "row.interpretation": published["data.results.interpretation"],
	}
}

// scripted is an extractor: a PDF is one page of words, its text without the first line.
type scripted struct{}

func (scripted) Check(_ context.Context, f labreport.File) (int, error) {
	switch {
	case bytes.Contains(f.Data, []byte("damaged")):
		return 0, healthlab.Invalid
	case bytes.Contains(f.Data, []byte("31 pages")):
		return 31, nil
	}
	return 1, nil
}

func (scripted) Extract(_ context.Context, f labreport.File, page func(labreport.Page) error) error {
	p := labreport.Page{Number: 1, Width: 600, Height: 800}
	for y, line := range strings.Split(string(f.Data), "\n")[1:] {
		for x, word := range strings.Split(line, "\t") {
			for k, w := range strings.Fields(word) {
				p.Words = append(p.Words, labreport.Word{Text: w, Confidence: 1, Box: labreport.Box{
					X: 0.05 + 0.2*float64(x) + 0.07*float64(k), Y: 0.05 + 0.03*float64(y), Width: 0.06, Height: 0.012}})
			}
		}
	}
	return page(p)
}

const reportText = "%PDF-1.4\nPatient: Amara Hartley\tDOB: 1980-05-21\nCollected: 2026-02-01\nTest\tResult\tUnits\tReference Range\nGlucose\t112\tmg/dL\t70 - 99\nSodium\t139\tmmol/L\t135 - 146\nPotassium\t4.1\tmmol/L\t3.5 - 5.3"

// newReports makes a service for reports; opts may be nil.
func newReports(t *testing.T, store *memory.Store, users labreport.Users, opts *labreport.Options, logs *contract.Logs) *labreport.Service {
	t.Helper()
	var o labreport.Options
	if opts != nil {
		o = *opts
	}
	o.Now, o.Log = func() time.Time { return fixtureNow }, logs.Logger()
	o.Environment = cmp.Or(o.Environment, healthlab.Production)
	s, err := labreport.New(store.ParsingJobs(), store.Blobs(), users, scripted{}, &o)
	require.NoError(t, err)
	return s
}

// lab is a fixture with reports.
type lab struct {
	*fixture
	store *memory.Store
}

func newLab(t *testing.T, opts *labreport.Options) *lab {
	t.Helper()
	l := &lab{fixture: newFixture(t, nil), store: memory.New(&memory.Options{Now: func() time.Time { return fixtureNow }, UsersElsewhere: true})}
	l.config.Reports = newReports(t, l.store, l.health, opts, l.logs)
	l.Client = contract.NewClient(t, l.handler(), httpapi.OpenAPI()).With("x-service-api-key", goodKey)
	return l
}

// field is a part of a form.
type field struct{ name, kind, content string }

const ofFile = "file"

func file(kind, content string) field { return field{ofFile, kind, content} }

func (l *lab) whose() field { return field{"user_id", "", l.user.String()} }

func form(fields ...field) (contentType string, body []byte) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, f := range fields {
		h := textproto.MIMEHeader{}
		disposition := fmt.Sprintf(`form-data; name=%q`, f.name)
		if f.name == ofFile {
			disposition += `; filename="Qz7Marker9xW.pdf"`
		}
		h.Set("Content-Disposition", disposition)
		if f.kind != "" {
			h.Set("Content-Type", f.kind)
		}
		p, _ := w.CreatePart(h)
		_, _ = io.WriteString(p, f.content)
	}
	_ = w.Close()
	return w.FormDataContentType(), b.Bytes()
}

const jobPath = "/lab_report/v1/parser/job"

func (l *lab) upload(fields ...field) *contract.Reply {
	l.t.Helper()
	kind, body := form(fields...)
	return l.sendForm(kind, body)
}

func (l *lab) sendForm(kind string, body []byte) *contract.Reply {
	l.t.Helper()
	r := httptest.NewRequestWithContext(l.t.Context(), http.MethodPost, jobPath, bytes.NewReader(body))
	r.Header.Set("Content-Type", kind)
	return l.Do(l.t, r)
}

// work does all that is due.
func (l *lab) work() {
	l.t.Helper()
	for {
		jobs, err := l.store.ParsingJobs().Claim(l.t.Context(), 10, time.Minute)
		require.NoError(l.t, err)
		if len(jobs) == 0 {
			return
		}
		for _, j := range jobs {
			require.NoError(l.t, l.config.Reports.Step(l.t.Context(), j))
		}
	}
}

func TestReport_isUploadedReadAndAnswered(t *testing.T) {
	l := newLab(t, nil)
	var made, done struct {
		ID, JobID     string
		Status        string
		FailureReason *string
		Data          *struct {
			Results []struct {
				TestName string `json:"test_name"`
				Value    string
			}
		}
		NeedsHumanReview bool `json:"needs_human_review"`
	}
	r := l.upload(file("application/pdf", reportText), l.whose(), field{"needs_human_review", "", "FALSE"}).Want(t, 200)
	r.JSON(t, &made)
	require.Equal(t, "upload_pending", made.Status)
	require.Contains(t, string(r.Body), `"failure_reason":null,"data":null,"needs_human_review":false,"is_reviewed":false,"pages":[]}`)
	require.Contains(t, string(r.Body), `"job_id":"`+made.ID+`"`)
	l.work()
	l.get(jobPath+"/"+made.ID, 200).JSON(t, &done)
	require.Equal(t, "completed", done.Status)
	require.Len(t, done.Data.Results, 3)
	require.Equal(t, "112", done.Data.Results[0].Value)

	// The other team sees nothing of it.
	other := l.With("x-service-api-key", "other").Send(t, "GET", jobPath+"/"+made.ID, nil)
	require.Equal(t, "JOB_NOT_FOUND", other.Want(t, 404).ErrorType(t))
	require.Equal(t, "JOB_NOT_FOUND", l.get(jobPath+"/"+uuid.NewString(), 404).ErrorType(t))
	require.Equal(t, []string{"path.job_id"}, l.get(jobPath+"/x", 422).Locs(t))

	// With a review, clients wait.
	l.upload(l.whose(), field{"needs_human_review", "", "1"}, file("", reportText)).Want(t, 200).JSON(t, &made)
	require.True(t, made.NeedsHumanReview)
	l.work()
	l.get(jobPath+"/"+made.ID, 200).JSON(t, &done)
	require.Equal(t, "pending_review", done.Status)
	require.Nil(t, done.Data)
	id := labreport.JobID{UUID: uuid.MustParse(made.ID)}
	_, err := l.config.Reports.Reject(t.Context(), team, id, "dr. example", labreport.LowQuality)
	require.NoError(t, err)
	require.Contains(t, string(l.get(jobPath+"/"+made.ID, 200).Body), `"status":"failed","failure_reason":"low_quality","data":null,"needs_human_review":true,"is_reviewed":true,"pages":[{"number":1,"status":"read"}]}`)
}

const (
	jpegHead = "\xff\xd8\xff\xe0 picture"
	pngHead  = "\x89PNG\r\n\x1a\n picture"
)

// The first check that fails answers, and nothing is kept.
func TestReportUpload_refusedReportIsNotStored(t *testing.T) {
	pdf := file("application/pdf", reportText)
	most := labreport.MaxFileBytes
	full := "%PDF-1.4\n" + strings.Repeat(" ", most-9)
	nine := func(l *lab) []field {
		return append(slices.Repeat([]field{file("image/png", pngHead)}, 8), file("image/png", ""), l.whose())
	}
	for name, c := range map[string]struct {
		fields func(l *lab) []field
		status int
		code   string
	}{
		"no such user":           {func(*lab) []field { return []field{file("text/plain", ""), {"user_id", "", uuid.NewString()}} }, 404, "USER_NOT_FOUND"},
		"nine files, one empty":  {nine, 400, "TOO_MANY_FILES"},
		"an empty file":          {func(l *lab) []field { return []field{file("image/png", ""), file("", full+full[:9]), l.whose()} }, 400, "EMPTY_FILE"},
		"one byte too many":      {func(l *lab) []field { return []field{file("text/plain", full+" "), l.whose()} }, 413, "UPLOAD_TOO_LARGE"},
		"too large together":     {func(l *lab) []field { return []field{file("", full[:most-5]), l.whose(), file("", "%PDF-1")} }, 413, "UPLOAD_TOO_LARGE"},
		"another type":           {func(l *lab) []field { return []field{file("application/pdf", "hello"), l.whose()} }, 400, "UNSUPPORTED_FILE_TYPE"},
		"another declared type":  {func(l *lab) []field { return []field{file("image/gif", pngHead), l.whose()} }, 400, "UNSUPPORTED_FILE_TYPE"},
		"not as declared":        {func(l *lab) []field { return []field{file("image/png", jpegHead), l.whose()} }, 400, "CONTENT_TYPE_MISMATCH"},
		"a PDF among pictures":   {func(l *lab) []field { return []field{file("image/jpg", jpegHead), pdf, l.whose()} }, 400, "PDF_IN_MULTI_FILE"},
		"a picture that is none": {func(l *lab) []field { return []field{file("", jpegHead), file("", pngHead+"damaged"), l.whose()} }, 400, "UNDECODABLE_IMAGE"},
		"a PDF that is none":     {func(l *lab) []field { return []field{file("", "%PDF-1.4\ndamaged"), l.whose()} }, 400, "UNREADABLE_PDF"},
		"a PDF with 31 pages":    {func(l *lab) []field { return []field{file("", "%PDF-1.4\n31 pages"), l.whose()} }, 400, "TOO_MANY_PAGES"},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, nil)
			r := l.upload(c.fields(l)...).Want(t, c.status)
			require.Equal(t, c.code, r.ErrorType(t))
			jobs, err := l.store.ParsingJobs().List(t.Context(), labreport.Query{Team: team, Size: 1})
			require.NoError(t, err)
			require.Empty(t, jobs)
		})
	}
	// The largest that there may be.
	l := newLab(t, nil)
	l.upload(file("application/pdf", full), l.whose()).Want(t, 200)
}

func TestReportUpload_invalidFormIsRefusedByField(t *testing.T) {
	l := newLab(t, nil)
	pdf, user := file("application/pdf", reportText), l.whose()
	require.ElementsMatch(t, []string{"body.file", "body.user_id"}, l.upload().Want(t, 422).Locs(t))
	require.ElementsMatch(t, []string{"body.user_id", "body.needs_human_review", "body.colour", "body."},
		l.upload(pdf, field{"user_id", "", "x"}, field{"needs_human_review", "", "yes"}, field{"colour", "", "Qz7Marker9xW"}, field{"", "", "x"}).Want(t, 422).Locs(t))
	require.Equal(t, []string{"body.user_id"}, l.upload(pdf, user, user).Want(t, 422).Locs(t))
	long := field{"user_id", "", user.content + strings.Repeat(" ", 500)}
	require.Equal(t, "bad_uuid", l.upload(pdf, long).Want(t, 422).ErrorType(t))
	require.Equal(t, []string{"query.x"}, l.sendTo(jobPath+"?x=1", pdf, user).Want(t, 422).Locs(t))

	kind, body := form(pdf, user)
	require.Equal(t, "form_invalid", l.sendForm(kind, body[:len(body)-30]).Want(t, 422).ErrorType(t), "cut off")
	require.Equal(t, "missing missing", l.sendForm(kind, []byte("no form at all")).Want(t, 422).ErrorType(t))
	require.Equal(t, []string{"header.content-type"}, l.sendForm("multipart/form-data", body).Want(t, 422).Locs(t))
	require.Equal(t, "UNSUPPORTED_MEDIA_TYPE", l.sendForm("application/json", []byte("{}")).Want(t, 415).ErrorType(t))
	require.Equal(t, "UNSUPPORTED_MEDIA_TYPE", l.sendForm("", body).Want(t, 415).ErrorType(t))
	require.Equal(t, "too_many_parts", l.upload(slices.Repeat([]field{{"file", "", "x"}}, 300)...).Want(t, 422).ErrorType(t))

	// A body over its limit is cut off while it is read, declared or not.
	const most = labreport.MaxFileBytes + 512<<10
	large := file("application/pdf", strings.Repeat("x", most))
	require.Equal(t, "UPLOAD_TOO_LARGE", l.upload(large, user).Want(t, 413).ErrorType(t))
	kind, body = form(large, user)
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, jobPath, io.MultiReader(bytes.NewReader(body)))
	r.Header.Set("Content-Type", kind)
	r.ContentLength = -1
	require.Equal(t, "UPLOAD_TOO_LARGE", l.Do(t, r).Want(t, 413).ErrorType(t))
	require.NotContains(t, l.logs.Take(), "Qz7Marker")
}

// The name of a file decides nothing, so a form is read however a client writes it.
func TestReportUpload_ignoresTheFileName(t *testing.T) {
	const part = `form-data; name="file"; `
	for name, disposition := range map[string]string{
		"none":                       `form-data; name="file"`,
		"empty":                      part + `filename=""`,
		"no value":                   part + `filename=`,
		"letters beyond ASCII":       part + `filename="naïve.pdf"`,
		"NFD":                        part + "filename=\"nai\u0308ve.pdf\"",
		"emoji":                      part + `filename="😀.pdf"`,
		"Latin-1":                    part + "filename=\"na\xefve.pdf\"",
		"direction mark":             part + "filename=\"r\u202egnp.pdf\"",
		"path":                       part + `filename="../../etc/passwd"`,
		"path of Windows":            part + `filename="C:\Users\r.pdf"`,
		"RFC 5987":                   part + `filename*=UTF-8''na%C3%AFve%20%F0%9F%98%80.pdf`,
		"both":                       part + `filename="r.pdf"; filename*=utf-8'en'r.pdf`,
		"RFC 5987 in no encoding":    part + `filename*=UTF-8''%zz.pdf`,
		"RFC 2231 in pieces":         part + `filename*0*=UTF-8''lab%20; filename*1*=re%C3%BC.pdf`,
		"quotes as %22":              part + `filename="a%22b.pdf"`,
		"quotes with a backslash":    part + `filename="a\"b.pdf"`,
		"quotes as they are":         part + `filename="a"b".pdf"`,
		"semicolon":                  part + `filename="a;b.pdf"`,
		"no quotes":                  part + `filename=r.pdf`,
		"no quotes and a space":      part + `filename=my report.pdf`,
		"no quotes and other letter": part + `filename=naïve.pdf`,
		"twice":                      part + `filename="r.pdf"; filename="s.pdf"`,
		"before the name":            `form-data; filename=my report.pdf; name="file"`,
		"before the name, in quotes": `Form-Data; FILENAME="a"b"; NAME=file`,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, nil)
			l.Lenient = true // the contract check cannot parse these forms
			kind, body := form(l.whose(), file("application/pdf", reportText))
			const written = `form-data; name="file"; filename="Qz7Marker9xW.pdf"`
			require.Contains(t, string(body), written)
			l.sendForm(kind, bytes.Replace(body, []byte(written), []byte(disposition), 1)).Want(t, 200)
		})
	}
	for name, disposition := range map[string]string{
		"another part":       `form-data; name=other; filename=my report.pdf`,
		"no name":            `form-data; filename=my report.pdf`,
		"in the file's name": `form-data; filename="name=file" x`,
		"an attachment":      `attachment; name=file; filename=my report.pdf`,
		"quote without end":  `form-data; filename="a; name=file`,
	} {
		t.Run(name, func(t *testing.T) {
			l := newLab(t, nil)
			kind, body := form(l.whose(), file("application/pdf", reportText))
			l.sendForm(kind, bytes.Replace(body, []byte(`form-data; name="file"; filename="Qz7Marker9xW.pdf"`), []byte(disposition), 1)).Want(t, 422)
		})
	}
}

func (l *lab) handler() http.Handler { return l.config.handler() }

func (l *lab) sendTo(target string, fields ...field) *contract.Reply {
	kind, body := form(fields...)
	r := httptest.NewRequestWithContext(l.t.Context(), http.MethodPost, target, bytes.NewReader(body))
	r.Header.Set("Content-Type", kind)
	return l.Do(l.t, r)
}

// The settings of the team are checked before the body is read.
func TestReportUpload_teamSettingsAreCheckedBeforeTheBody(t *testing.T) {
	with := func(s labreport.Settings) *labreport.Options {
		return &labreport.Options{Settings: func(context.Context, healthlab.TeamID) (labreport.Settings, error) { return s, nil }}
	}
	l := newLab(t, with(labreport.Settings{}))
	require.Equal(t, "FEATURE_NOT_ENABLED", l.sendForm("text/plain", nil).Want(t, 403).ErrorType(t))
	l = newLab(t, with(labreport.Settings{Enabled: true}))
	pdf := file("application/pdf", reportText)
	l.upload(pdf, l.whose()).Want(t, 200)
	require.Equal(t, "HUMAN_REVIEW_NOT_ENABLED", l.upload(file("", "hello"), l.whose(), field{"needs_human_review", "", "true"}).Want(t, 400).ErrorType(t))
	require.Equal(t, "UNAUTHORIZED", l.With("x-service-api-key", "wrong").Send(t, "POST", jobPath, nil).Want(t, 401).ErrorType(t))

	l = newLab(t, &labreport.Options{Environment: healthlab.Sandbox, SandboxQuota: 2})
	for range 2 {
		l.upload(pdf, l.whose()).Want(t, 200)
	}
	require.Equal(t, "SANDBOX_QUOTA_REACHED", l.upload(pdf, l.whose()).Want(t, 403).ErrorType(t))

	// An upload that is slow counts as long as it takes, and no longer.
	l = newLab(t, &labreport.Options{CreatesPerTeam: 1})
	var inner *contract.Reply
	kind, body := form(pdf, l.whose())
	slow := io.MultiReader(bytes.NewReader(body[:100]), readerFunc(func([]byte) (int, error) {
		inner = l.upload(pdf, l.whose())
		return 0, io.EOF
	}), bytes.NewReader(body[100:]))
	w := httptest.NewRecorder()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, jobPath, slow)
	r.Header.Set("Content-Type", kind)
	r.Header.Set("x-service-api-key", goodKey)
	l.handler().ServeHTTP(w, r)
	require.Equal(t, "TOO_MANY_REQUESTS", inner.Want(t, 429).ErrorType(t))
	require.Equal(t, 200, w.Code, w.Body.String())
	l.upload(pdf, l.whose()).Want(t, 200)
}

type readerFunc func([]byte) (int, error)

func (f readerFunc) Read(b []byte) (int, error) { return f(b) }
