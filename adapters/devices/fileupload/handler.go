package fileupload

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/devices/fileimport"
	"github.com/healthlab-dev/healthlab/adapters/httpapi"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/organisation"
)

// Config holds the services and limits of a handler.
type Config struct {
	// API authenticates, records and limits requests. Its Authenticate is required.
	API httpapi.Config
	// Health stores the data of the files. Required.
	Health *healthdata.Service
	// MaxBytes is the largest file, in bytes, both compressed and decoded. Default: API.MaxIngestBody, or 16 MiB if that
	// is 0 too.
	MaxBytes int64
	// Now is the clock. Data more than 24 hours in the future is left out. Default time.Now.
	Now func() time.Time
}

// Result is the answer to an uploaded file. Maps without entries are omitted.
type Result struct {
	// Format is the detected format of the file; zip for an archive.
	Format fileimport.Format `json:"format"`
	// New, Changed and Same count the items that were new, that changed stored data, and that were already stored.
	New     int `json:"new"`
	Changed int `json:"changed"`
	Same    int `json:"same"`
	// Summaries and Samples count the stored items of the file by resource, new or not. Streams counts the stored
	// recordings of workouts.
	Summaries map[string]int `json:"summaries,omitempty"`
	Samples   map[string]int `json:"samples,omitempty"`
	Streams   int            `json:"workout_streams"`
	// LeftOut counts the parts of the file that are not imported, by their name in the file or by the reason: data without
	// a resource, and unreadable or impossible data.
	LeftOut map[string]int `json:"left_out,omitempty"`
	// Refused counts the items that the service refused, by resource.
	Refused map[string]int `json:"refused,omitempty"`
	// Notes explain the counts to a person. They contain no value of the file.
	Notes []string `json:"notes,omitempty"`
}

// Handler serves POST /{user_id} with a file as the body. Safe for concurrent use. If required fields of c are missing,
// Handler returns an Invalid error that names them.
func Handler(c Config) (http.Handler, error) {
	var missing []string
	if c.API.Authenticate == nil {
		missing = append(missing, "API.Authenticate")
	}
	if c.Health == nil {
		missing = append(missing, "Health")
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("%w: fileupload: Config.%s: must be set", healthlab.Invalid, strings.Join(missing, ", Config."))
	}
	c.MaxBytes = cmp.Or(c.MaxBytes, c.API.MaxIngestBody, 16<<20)
	s := &server{c}
	mux := http.NewServeMux()
	mux.Handle("POST /{user_id}", httpapi.Extend(c.API, httpapi.Extension{
		ID: "import_file", Scopes: organisation.Scopes{organisation.DataWrite}, Handle: s.importFile, MaxBody: c.MaxBytes,
	})[0])
	return mux, nil
}

type server struct{ Config }

// importFile stores the file of a request.
func (s *server) importFile(w http.ResponseWriter, r *http.Request, by httpapi.Access) error {
	opts, problems := s.options(r)
	id, err := uuid.Parse(r.PathValue("user_id"))
	if err != nil {
		problems = append(problems, healthlab.Problem{Path: []any{"path", "user_id"}, Code: "invalid", Msg: "must be a UUID"})
	}
	if len(problems) > 0 {
		return problems.Err()
	}
	user := healthlab.UserID{UUID: id}
	if !by.User.IsZero() && by.User != user {
		return healthlab.NotFound
	}
	if _, err := s.Health.User(r.Context(), by.Team, user); err != nil {
		return fmt.Errorf("import file: %w", err)
	}
	by.Concerns(user)
	if kind, _, _ := strings.Cut(r.Header.Get("Content-Type"), "/"); strings.EqualFold(strings.TrimSpace(kind), "multipart") {
		return healthlab.Problems{{Path: []any{"header", "content-type"}, Code: "form", Msg: "must not be that of a form: send the file itself as the body, with curl by --data-binary @FILE"}}.Err()
	}
	file, err := by.Body(r)
	if err != nil {
		return err
	}
	to := &sink{health: s.Health, team: by.Team, user: user}
	report, err := fileimport.Import(r.Context(), bytes.NewReader(file), to, opts)
	if err != nil {
		return problemsOf(&report, err)
	}
	out, err := json.Marshal(resultOf(&report, to.counts))
	if err != nil {
		return fmt.Errorf("encode answer: %w", err)
	}
	w.Header().Set("Content-Type", "application/json")
	_, err = w.Write(out)
	return err
}

// options reads the query and the headers of a request. A parameter with an empty value counts as absent.
func (s *server) options(r *http.Request) (*fileimport.Options, healthlab.Problems) {
	opts := &fileimport.Options{
		Now: s.Now, Aggregation: fileimport.AggregationOf(r.Header.Get("automation-aggregation")),
		MaxRecordingBytes: s.MaxBytes, MaxArchiveBytes: 16 * s.MaxBytes,
		FieldNames: map[string]string{"Zone": "time_zone", "DateOrder": "date_order"},
	}
	query, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return nil, healthlab.Problems{{Path: []any{"query"}, Code: "invalid", Msg: "must be names and values in URL encoding"}}
	}
	var problems healthlab.Problems
	wrong := func(name, msg string) {
		problems = append(problems, healthlab.Problem{Path: []any{"query", name}, Code: "invalid", Msg: msg})
	}
	for name, values := range query {
		values = slices.DeleteFunc(values, func(v string) bool { return v == "" })
		if len(values) > 1 {
			wrong(name, "must be given once")
			continue
		}
		switch value := strings.Join(values, ""); name {
		case "time_zone":
			if value == "" {
				continue
			}
			if opts.Zone, err = time.LoadLocation(value); err != nil || value == "Local" {
				wrong(name, "must be an IANA zone such as Europe/Berlin")
			}
		case "date_order":
			if opts.DateOrder = fileimport.DateOrder(value); value != "" && opts.DateOrder != fileimport.DayFirst && opts.DateOrder != fileimport.MonthFirst {
				wrong(name, "must be one of: day_first, month_first")
			}
		case "aggregation":
			if value == "" {
				continue
			}
			if opts.Aggregation = fileimport.AggregationOf(value); opts.Aggregation == "" {
				wrong(name, "must be one of: minutes, hours, days")
			}
		default:
			if !s.API.IgnoreUnknown {
				wrong(name, "must be one of: aggregation, date_order, time_zone")
			}
		}
	}
	return opts, problems
}

// problemsOf returns the error of the response for a file whose import failed with err. If err is Invalid and no
// RuleError, the result contains the first 100 notes of the report.
func problemsOf(report *fileimport.Report, err error) error {
	var rule *healthlab.RuleError
	if errors.As(err, &rule) || !errors.Is(err, healthlab.Invalid) {
		return fmt.Errorf("import file: %w", err)
	}
	var problems healthlab.Problems
	for _, note := range report.Notes[:min(len(report.Notes), 100)] {
		problems = append(problems, healthlab.Problem{Path: []any{"body"}, Code: "refused", Msg: note})
	}
	var file *fileimport.FileError
	if len(problems) == 0 || errors.As(err, &file) || errors.Is(err, fileimport.ErrFormat) {
		problems = append(healthlab.Problems{{Path: []any{"body"}, Code: "invalid", Msg: strings.TrimPrefix(err.Error(), healthlab.Invalid.Error()+": ")}}, problems...)
	}
	return problems.Err()
}

func resultOf(report *fileimport.Report, counts healthdata.Counts) Result {
	out := Result{
		Format: report.Format, New: counts.New, Changed: counts.Changed, Same: counts.Same,
		Summaries: report.Summaries, Samples: report.Samples, Streams: report.Streams,
		LeftOut: report.Skipped, Refused: report.Refused, Notes: report.Notes,
	}
	for _, one := range report.Files {
		if out.Format == "" {
			out.Format = fileimport.ZIP
		}
		for _, note := range one.Notes {
			out.Notes = append(out.Notes, one.Name+": "+note)
		}
		if one.Err != nil && !errors.Is(one.Err, fileimport.ErrFormat) {
			out.Notes = append(out.Notes, one.Name+": not imported: "+one.Err.Error())
		}
	}
	return out
}
