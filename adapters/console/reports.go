package console

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"image/png"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"time"
)

func (s *Console) teamPath() string { return "/team/" + s.Team + "/" + s.Environment }

// reportJob is a parsing job of a lab report.
type reportJob struct {
	ID       string    `json:"id"`
	UserID   string    `json:"user_id"`
	Status   string    `json:"status"`
	Failure  string    `json:"failure_reason"`
	Pages    int       `json:"pages"`
	Created  time.Time `json:"created_at"`
	Reviewer string    `json:"reviewed_by"`
}

// reviewedJob is a parsing job with its draft.
type reviewedJob struct {
	reportJob
	Draft       *draft       `json:"draft"`
	Corrections []correction `json:"corrections"`
	Data        *draft       `json:"data"` // what clients see; nil until the job is completed
}

// correction is a change that a reviewer has made to the draft. Result is the index of the changed or dropped result.
// For an added result it is the index before which the result is inserted. Nil means the metadata, or the end.
type correction struct {
	Action string            `json:"action"`
	Result *int              `json:"result"`
	Field  string            `json:"field"`
	Value  *string           `json:"value"`
	Row    map[string]string `json:"row"`
}

// Text describes the correction.
func (c *correction) Text() string {
	where := "Report"
	if c.Result != nil {
		where = fmt.Sprintf("Result %d", *c.Result+1)
	}
	switch c.Action {
	case "drop":
		return where + " dropped"
	case "add":
		return "Result added: " + c.Row["test_name"] + " " + c.Row["value"] + " " + c.Row["units"]
	}
	value := "nothing"
	if c.Value != nil {
		value = *c.Value
	}
	return where + ", " + words(c.Field) + ": " + value
}

type reportPage struct {
	Data []reportJob `json:"data"`
	Next string      `json:"next_cursor"`
}

func (s *Console) reports(w http.ResponseWriter, r *http.Request, on *session) error {
	var data struct {
		reportPage
		Status   string
		Statuses []string
	}
	c, err := s.contract(r)
	if err != nil {
		return err
	}
	data.Statuses = c.enum("/v1/org/{org_id}/team/{team_id}/{environment}/lab_report_job", "get", "status")
	data.Status = r.FormValue("status")
	if !r.Form.Has("status") {
		data.Status = "pending_review"
	}
	q := url.Values{"limit": {"50"}}
	for name, v := range map[string]string{"status": data.Status, "next_cursor": r.FormValue("next_cursor")} {
		if v != "" {
			q.Set(name, v)
		}
	}
	if err := s.manage(r, on, http.MethodGet, s.teamPath()+"/lab_report_job", q, nil, &data.reportPage); err != nil {
		return err
	}
	if data.Next != "" {
		data.Next = "?" + url.Values{"status": {data.Status}, "next_cursor": {data.Next}}.Encode()
	}
	return s.show(w, r, on, "reports", "Lab reports", data)
}

// reading is where on a page the parser read a field. Coordinates are fractions of the page's width and height, from
// its upper left corner.
type reading struct {
	Page int `json:"page"`
	Box  *struct {
		X      float64 `json:"x"`
		Y      float64 `json:"y"`
		Width  float64 `json:"width"`
		Height float64 `json:"height"`
	} `json:"box"`
	Confidence float64 `json:"confidence"`
}

// draft is the output of the parser, which a reviewer corrects. It maps the names of fields to values.
type draft struct {
	Metadata map[string]json.RawMessage   `json:"metadata"`
	Results  []map[string]json.RawMessage `json:"results"`
}

// The fields that a reviewer can correct, in the order of the form.
var (
	metadataFields = []string{"patient_first_name", "patient_last_name", "dob", "gender", "lab_name", "date_reported", "date_collected", "specimen_number"}
	resultFields   = []string{"test_name", "value", "units", "reference_range", "interpretation", loincField}
)

// loincField is the field with the LOINC code of a result, for which the draft has candidates.
const loincField = "loinc_code"

// loincMatch is a candidate LOINC code of a result.
type loincMatch struct {
	Code string `json:"loinc_code"`
	Name string `json:"loinc_name"`
}

// field is an input of the review form, with the position on the page from which the parser read its value.
type field struct {
	Options            []loincMatch
	Name, Label, Value string
	Confidence         string
	Unsure             bool // the reviewer should check it
	Page               int
	Mark               string
}

// fieldOf returns the form field for values[name], and where it was read; nil if that is unknown. prefix precedes name
// in the name of the form field.
func fieldOf(prefix, name string, values map[string]json.RawMessage) (field, *reading) {
	f := field{Name: prefix + name, Label: words(name)}
	var text *string
	if json.Unmarshal(values[name], &text) == nil && text != nil {
		f.Value = *text
	}
	if name == loincField {
		var status string
		_ = json.Unmarshal(values["loinc_match_status"], &status)
		_ = json.Unmarshal(values["loinc_matches"], &f.Options)
		if status == "auto_match" && len(f.Options) > 0 {
			f.Value = f.Options[0].Code
		}
		return f, nil
	}
	var evidence map[string]reading
	_ = json.Unmarshal(values["evidence"], &evidence)
	at, ok := evidence[name]
	if !ok {
		return f, nil
	}
	f.Page, f.Confidence, f.Unsure = at.Page, fmt.Sprintf("%.0f%%", 100*at.Confidence), at.Confidence < 0.9
	return f, &at
}

// markedBox marks on the image of a page, in pixels, where a field was read.
type markedBox struct {
	box
	Mark string
}

// reportRow is a result of a draft with its form fields. Number is its index; Row is Number + 1, as shown.
type reportRow struct {
	Number, Row int
	Fields      []field
}

func (s *Console) report(w http.ResponseWriter, r *http.Request, on *session) error {
	id := url.PathEscape(r.PathValue("id"))
	var data struct {
		Job           reviewedJob
		Page          int
		Pages         []int
		Width, Height int
		MarkSize      int
		Metadata      []field
		Rows          []reportRow
		Boxes         []markedBox
		Reasons       []string
		Added         []field
		Open          bool
	}
	path := s.teamPath() + "/lab_report_job/" + id
	if err := s.manage(r, on, http.MethodGet, path, nil, nil, &data.Job); err != nil {
		return err
	}
	data.Page, _ = strconv.Atoi(cmp.Or(r.FormValue("page"), "1"))
	for i := range data.Job.Pages {
		data.Pages = append(data.Pages, i+1)
	}
	if slices.Contains(data.Pages, data.Page) {
		picture, err := s.reportPicture(r, on, data.Page)
		if err := s.optional(err); err != nil {
			return err
		}
		if picture != nil {
			if config, err := png.DecodeConfig(bytes.NewReader(picture.body.Bytes())); err == nil {
				data.Width, data.Height, data.MarkSize = config.Width, config.Height, max(config.Width/60, 12)
			}
		}
	}
	mark := func(f *field, at *reading) {
		if at == nil || at.Box == nil || at.Page != data.Page {
			return
		}
		f.Mark = strconv.Itoa(len(data.Boxes) + 1)
		width, height := float64(data.Width), float64(data.Height)
		data.Boxes = append(data.Boxes, markedBox{Mark: f.Mark,
			box: box{X: at.Box.X * width, Y: at.Box.Y * height, Width: at.Box.Width * width, Height: at.Box.Height * height}})
	}
	data.Open = data.Job.Status == "pending_review"
	for _, name := range resultFields {
		data.Added = append(data.Added, field{Name: "add." + name, Label: words(name)})
	}
	shown := data.Job.Draft
	if data.Job.Data != nil {
		shown = data.Job.Data
	}
	if shown != nil {
		for _, name := range metadataFields {
			f, at := fieldOf("m.", name, shown.Metadata)
			mark(&f, at)
			data.Metadata = append(data.Metadata, f)
		}
		for i, values := range shown.Results {
			row := reportRow{Number: i, Row: i + 1}
			for _, name := range resultFields {
				f, at := fieldOf(fmt.Sprintf("r%d.", i), name, values)
				mark(&f, at)
				row.Fields = append(row.Fields, f)
			}
			data.Rows = append(data.Rows, row)
		}
	}
	c, err := s.contract(r)
	if err != nil {
		return err
	}
	data.Reasons = c.Components.Schemas["LabReportRejection"].Properties["failure_reason"].Enum
	return s.show(w, r, on, "report", "Lab report", data)
}

func (s *Console) reportPicture(r *http.Request, on *session, page int) (*answer, error) {
	path := fmt.Sprintf("/v1/org/%s%s/lab_report_job/%s/page/%d", s.Org, s.teamPath(), url.PathEscape(r.PathValue("id")), page)
	return s.send(r, http.MethodGet, path, nil, http.Header{managementHeader: {on.key}, "Accept": {"image/png"}}, nil)
}

func (s *Console) reportImage(w http.ResponseWriter, r *http.Request, on *session) error {
	page, _ := strconv.Atoi(r.PathValue("page"))
	a, err := s.reportPicture(r, on, page)
	if err != nil {
		return err
	}
	return sendFile(w, a, "page.png")
}

// decideReport approves a report with the changed fields of the form, or rejects it.
func (s *Console) decideReport(w http.ResponseWriter, r *http.Request, on *session) error {
	id := url.PathEscape(r.PathValue("id"))
	path := s.teamPath() + "/lab_report_job/" + id
	reviewer := r.PostFormValue("reviewed_by")
	if reason := r.PostFormValue("failure_reason"); r.PostFormValue("action") == "reject" {
		in := map[string]any{"reviewed_by": reviewer, "failure_reason": reason}
		if err := s.manage(r, on, http.MethodPost, path+"/reject", nil, in, nil); err != nil {
			return err
		}
	} else {
		var job reviewedJob
		if err := s.manage(r, on, http.MethodGet, path, nil, nil, &job); err != nil {
			return err
		}
		in := map[string]any{"reviewed_by": reviewer, "corrections": corrections(r.PostForm, job.Draft)}
		if err := s.manage(r, on, http.MethodPost, path+"/approve", nil, in, nil); err != nil {
			return err
		}
	}
	http.Redirect(w, r, s.Path+"/reports/"+id, http.StatusSeeOther)
	return nil
}

// corrections returns what a reviewer changed: the fields of the form that differ from the draft, and the results that
// were dropped or added.
func corrections(form url.Values, d *draft) []map[string]any {
	list := []map[string]any{}
	if d == nil {
		return list
	}
	change := func(prefix, name string, values map[string]json.RawMessage, result *int) {
		f, _ := fieldOf(prefix, name, values)
		if !form.Has(f.Name) || form.Get(f.Name) == f.Value {
			return
		}
		one := map[string]any{"action": "change", "field": name, "result": result}
		if v := form.Get(f.Name); v != "" {
			one["value"] = v
		}
		list = append(list, one)
	}
	for _, name := range metadataFields {
		change("m.", name, d.Metadata, nil)
	}
	for i, values := range d.Results {
		if form.Get(fmt.Sprintf("r%d.drop", i)) != "" {
			list = append(list, map[string]any{"action": "drop", "result": i})
			continue
		}
		for _, name := range resultFields {
			change(fmt.Sprintf("r%d.", i), name, values, &i)
		}
	}
	added := map[string]any{}
	for _, name := range resultFields {
		if v := form.Get("add." + name); v != "" {
			added[name] = v
		}
	}
	if len(added) > 0 {
		list = append(list, map[string]any{"action": "add", "row": added})
	}
	return list
}
