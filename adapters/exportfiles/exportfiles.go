// Package exportfiles writes the data that the packages of healthlab store about a person, as the files of an
// export.
//
//	exports, err := personexport.New(store.PersonExports(), files, health,
//		exportfiles.Sources(exportfiles.Services{Health: health}), nil)
//
// The folders are person, summaries, samples, query_results, orders, documents, lab_reports and access. A JSON file
// has one document, an NDJSON file one on each line. A Parquet file has the samples of the NDJSON file with the same
// name. Files are written page by page: memory does not grow with the amount of data, except for single documents.
//
// Secrets of connections are left out, and so are copies: bodies of events, and answers stored for idempotency keys.
//
// Names to know: [Sources], [Services].
package exportfiles

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/continuous"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/labreport"
	"github.com/healthlab-dev/healthlab/orders"
	"github.com/healthlab-dev/healthlab/orders/documents"
	"github.com/healthlab-dev/healthlab/privacy/accesslog"
	"github.com/healthlab-dev/healthlab/privacy/personexport"
)

// Services holds the services whose data is exported. Health is required; the export has no folders for nil services.
// Documents requires Orders.
type Services struct {
	Health     *healthdata.Service
	Continuous *continuous.Service
	Orders     *orders.Service
	Documents  *documents.Service
	Reports    *labreport.Service
	Access     *accesslog.Service
}

// Sources returns the contents of an export's folders, by the name of the folder.
func Sources(s Services) map[string]personexport.Source {
	out := map[string]personexport.Source{
		"person":    files{s.person()},
		"summaries": files{s.summaries()},
		"samples":   sampleFiles{s.Health},
	}
	if s.Continuous != nil {
		out["query_results"] = queryFiles{s.Continuous}
	}
	if s.Orders != nil {
		out["orders"] = files{[]file{{"orders.ndjson", s.orders}}}
	}
	if s.Documents != nil {
		out["documents"] = documentFiles(s)
	}
	if s.Reports != nil {
		out["lab_reports"] = reportFiles{s.Reports}
	}
	if s.Access != nil {
		out["access"] = files{[]file{{"access_log.ndjson", s.accessLog}}}
	}
	return out
}

// write writes the content of one file of a user's export.
type write func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, w io.Writer) error

// file is one file of an export.
type file struct {
	name  string
	write write
}

// files is a folder that has the same files for every user.
type files struct{ list []file }

// Files implements [personexport.Source].
func (f files) Files(context.Context, healthlab.TeamID, healthlab.UserID) ([]string, error) {
	var names []string
	for _, x := range f.list {
		names = append(names, x.name)
	}
	return names, nil
}

// Write implements [personexport.Source].
func (f files) Write(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, name string, w io.Writer) error {
	i := slices.IndexFunc(f.list, func(x file) bool { return x.name == name })
	if i < 0 {
		return noFile()
	}
	return f.list[i].write(ctx, team, user, w)
}

func noFile() error {
	return fmt.Errorf("%w: the export has no file of this name, or no data for it", healthlab.NotFound)
}

// jsonWriter returns the writer of a file with one JSON value, which read returns.
func jsonWriter[T any](read func(context.Context, healthlab.TeamID, healthlab.UserID) (T, error)) write {
	return func(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, w io.Writer) error {
		v, err := read(ctx, team, user)
		if err != nil {
			return err
		}
		e := json.NewEncoder(w)
		e.SetIndent("", "  ")
		return e.Encode(v)
	}
}

// person returns the files with the account, connections, consents and devices of the user. With Orders it also returns
// those with the demographics and the insurance.
func (s Services) person() []file {
	list := []file{
		{"user.json", jsonWriter(s.Health.User)},
		{"connections.json", jsonWriter(s.Health.Connections().List)},
		{"consents.json", jsonWriter(s.Health.Connections().Consents)},
		{"devices.json", jsonWriter(s.Health.Devices)},
	}
	if s.Orders != nil {
		list = append(list, file{"demographics.json", jsonWriter(s.Orders.People().UserInfo)}, file{"insurance.ndjson", s.insurance})
	}
	return list
}

// insuranceLine is an insurance record with the time for which it was valid; ValidUntil is nil if it still is.
type insuranceLine struct {
	Record     any        `json:"record"`
	ValidFrom  time.Time  `json:"valid_from"`
	ValidUntil *time.Time `json:"valid_until"`
}

// insurance writes all insurance records: the primary ones, then the others, each newest first.
func (s Services) insurance(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, w io.Writer) error {
	out := lines{w: json.NewEncoder(w)}
	for _, primary := range []bool{true, false} {
		// Each record is valid until the next one begins, so the loop goes back in time from the newest.
		for at := (time.Time{}); ; {
			c, err := s.Orders.People().InsuranceAt(ctx, team, user, primary, at)
			if errors.Is(err, healthlab.NotFound) {
				break
			}
			if err != nil {
				return err
			}
			line := insuranceLine{Record: c.Record, ValidFrom: c.ValidFrom}
			if !c.ValidUntil.IsZero() {
				line.ValidUntil = &c.ValidUntil
			}
			if err := out.add(line); err != nil {
				return err
			}
			at = c.ValidFrom.Add(-time.Microsecond)
		}
	}
	return out.end()
}

// lines writes values as NDJSON, and counts them.
type lines struct {
	w *json.Encoder
	n int
}

func (l *lines) add(v any) error {
	l.n++
	return l.w.Encode(v)
}

func (l *lines) end() error {
	if l.n == 0 {
		return noFile()
	}
	return nil
}

func (s Services) accessLog(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, w io.Writer) error {
	const page = 1000
	out := lines{w: json.NewEncoder(w)}
	for q := (accesslog.Query{Team: team, Person: user, N: page}); ; {
		list, err := s.Access.Lines(ctx, q)
		if err != nil {
			return err
		}
		for i := range list {
			q.After = list[i].Seq
			if err := out.add(list[i].Published()); err != nil {
				return err
			}
		}
		if len(list) < page {
			return out.end()
		}
	}
}

// queryFiles is the folder of the results of continuous queries. Files are named after the id of the query.
type queryFiles struct{ queries *continuous.Service }

// Files implements [personexport.Source].
func (f queryFiles) Files(ctx context.Context, team healthlab.TeamID, _ healthlab.UserID) ([]string, error) {
	var names []string
	for q := (continuous.ListQuery{Team: team}); ; {
		page, err := f.queries.List(ctx, q)
		if err != nil {
			return nil, err
		}
		for i := range page.Queries {
			names = append(names, page.Queries[i].ID.String()+jsonFile)
		}
		if q.Cursor = page.Next; q.Cursor == "" {
			return names, nil
		}
	}
}

// jsonFile is the suffix of the name of a JSON file.
const jsonFile = ".json"

// Write implements [personexport.Source].
func (f queryFiles) Write(ctx context.Context, team healthlab.TeamID, user healthlab.UserID, name string, w io.Writer) error {
	frame, err := f.queries.Result(ctx, team, user, name[:max(0, len(name)-len(jsonFile))])
	if err == nil && frame.Len() == 0 {
		err = noFile()
	}
	if err != nil {
		return err
	}
	return frame.WriteJSON(w)
}
