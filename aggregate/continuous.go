package aggregate

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate/internal/strictjson"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// QueryID names a continuous query. UUID version 7.
type QueryID struct{ uuid.UUID }

// ContinuousStatus says whether a continuous query is kept up to date.
type ContinuousStatus string

const (
	// ContinuousActive is kept up to date.
	ContinuousActive ContinuousStatus = "active"
	// ContinuousArchived is not evaluated any more. Its tables stay as they are.
	ContinuousArchived ContinuousStatus = "archived"
)

// ContinuousQuery is a stored question that is answered for every user of a team, over
// all of the user's data, and answered again where that data changes.
type ContinuousQuery struct {
	ID     QueryID          `json:"id"`
	Status ContinuousStatus `json:"status"`
	// Slug names the query among the active ones of its team.
	Slug  string           `json:"slug"`
	Title string           `json:"title"`
	Team  healthlab.TeamID `json:"team_id"`
	// Query has a date truncation and selects all of its group keys. Columns of its
	// tables have their qualified names.
	Query  Query  `json:"query"`
	Config Config `json:"query_config"`
	// Scheduling says how often a table may be made again.
	Scheduling Scheduling `json:"scheduling_preferences"`
	// Schema says which columns the tables have and of which type: int64, float64,
	// bool, string, date or timestamp.
	Schema map[string]Type `json:"result_table_schema"`
	// Resources are the slugs of the resources that the answer depends on.
	Resources []string `json:"resource_dependencies"`
	Export    Export   `json:"export_preferences"`
	// FHIRMappers is reserved, and empty.
	FHIRMappers []string `json:"fhir_observation_mappers"`

	// CreatedAt is when it was made, in UTC.
	CreatedAt time.Time `json:"-"`
	// Revision grows with every change. A store sets it.
	Revision int64 `json:"-"`
}

// Gap is the least time between two starts for one user.
func (q *ContinuousQuery) Gap() time.Duration {
	if g := q.Scheduling.MinimumGap; g != nil {
		return time.Duration(*g) * time.Second
	}
	return LeastGap
}

// LeastGap is the shortest time between two evaluations of a continuous query for one
// user that a team may ask for, and what it gets where it asks for none.
const LeastGap = 30 * time.Minute

// Scheduling says how often the table of a user may be made again.
type Scheduling struct {
	// MinimumGap is the least number of seconds between two starts, 1800 or more;
	// null means 1800.
	MinimumGap *int `json:"minimum_gap_duration_second"`
}

// Export says what becomes of changed rows.
type Export struct {
	// DataEvents says whether changed rows are announced.
	DataEvents DataEvents `json:"data_events"`
	// FHIR is reserved, and false.
	FHIR bool `json:"fhir_observations"`
}

// DataEvents says whether changed rows are announced with an event.
type DataEvents struct {
	Enabled bool `json:"enabled"`
}

// NewContinuousQuery is what a team says of a continuous query.
type NewContinuousQuery struct {
	// Slug is 1 to 128 lower-case letters, digits and single hyphens between them.
	Slug string
	// Title has at most 50 characters: letters, digits, ( ) & _ - . and white space.
	Title string
	Query Query
	// Config is as that of a request. Names of columns are always qualified.
	Config     Config
	Scheduling Scheduling
	// Quiet says that changes make no events.
	Quiet bool
}

// ContinuousPatch is a change of a continuous query. Nil leaves a field as it is.
type ContinuousPatch struct {
	Title      *string
	Scheduling *Scheduling
}

// ContinuousPreview is what would become of a continuous query.
type ContinuousPreview struct {
	Schema    map[string]Type `json:"result_table_schema"`
	Resources []string        `json:"resource_dependencies"`
	// FHIRPreviews is reserved, and empty.
	FHIRPreviews []string `json:"fhir_observation_previews"`
}

// EventResultTableChanged says that the table of a continuous query has changed for a
// user. Its key is the query and the user.
const EventResultTableChanged = "continuous_query.result_table.changed"

// EventTypes lists the events that this package emits.
func EventTypes() []healthlab.EventType {
	return []healthlab.EventType{{
		Name: EventResultTableChanged, Mode: healthlab.Ordered, Data: ResultTableChange{},
		Doc: "The result table of a continuous query has new or changed rows for one user.",
	}}
}

// ResultTableChange is the data of continuous_query.result_table.changed.
type ResultTableChange struct {
	QueryID   QueryID `json:"query_id"`
	QuerySlug string  `json:"query_slug"`
	// Data has the rows that are new or changed: by the name of each column, without
	// index, a JSON array of its values; all of them are equally long. Rows are known
	// by their group keys. A change that is too large for one message comes in
	// several, which have no row in common.
	Data map[string]json.RawMessage `json:"data"`
	// Others are further queries that an older form of the message tells of. We send
	// one message for each query.
	Others []ResultTableChange `json:"-"`
}

// UnmarshalJSON reads the change of one query, or an array of them, which is the older
// form of the message.
func (c *ResultTableChange) UnmarshalJSON(data []byte) error {
	type plain ResultTableChange // without this method
	var list []plain
	if text := bytes.TrimLeft(data, " \t\r\n"); len(text) == 0 || text[0] != '[' {
		list = make([]plain, 1)
		if err := json.Unmarshal(data, &list[0]); err != nil {
			return err
		}
	} else if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*c = ResultTableChange{}
	for i, p := range list {
		if i == 0 {
			*c = ResultTableChange(p)
			continue
		}
		c.Others = append(c.Others, ResultTableChange(p))
	}
	return nil
}

const codeContinuous = "continuous_query_invalid"

// checkStored checks a continuous query and returns its plan.
func (r *reader) checkStored(n *NewContinuousQuery, limits *Limits, known func(string) bool) *plan {
	noted := len(r.Problems) > 0 // what is missing was said already
	if (n.Slug != "" || !noted) && (len(n.Slug) > 128 || !goodSlug(n.Slug)) {
		r.Fault(codeBody, "is not 1 to 128 lower-case letters, digits and single hyphens between them", path{"slug"})
	}
	r.checkTitle(n.Title)
	r.checkScheduling(&n.Scheduling)
	r.checkConfig(&n.Config, known, path{"query_config"})
	config := n.Config
	config.ColumnNaming = QualifiedNames
	at := path{"query"}
	if noted && len(n.Query.Select) == 0 {
		return nil
	}
	before := len(r.Problems)
	p := r.checkQuery(&n.Query, &config, limits, at)
	p.window = everything
	if len(r.Problems) > before {
		return p
	}
	if p.trunc < 0 {
		r.Fault(codeContinuous, "needs exactly one date truncation", at.At("group_by"))
	}
	for k := range p.keys {
		if p.keyColumn(k) < 0 {
			r.Fault(codeContinuous, "needs every group key to be selected", at.At("select"))
			break
		}
	}
	return p
}

// keyColumn returns which column of a frame has a group key, -1 if none has.
func (p *plan) keyColumn(k int) int {
	i := slices.IndexFunc(p.outs, func(o out) bool { return o.kind == outKey && o.n == k })
	if i < 0 {
		return -1
	}
	return 1 + i // behind the index
}

func (r *reader) checkTitle(title string) {
	ok := utf8.RuneCountInString(title) <= 50
	for _, c := range title {
		ok = ok && (unicode.IsLetter(c) && c <= 0xff || c >= '0' && c <= '9' || unicode.IsSpace(c) || strings.ContainsRune("()&_-.", c))
	}
	if !ok {
		r.Fault(codeBody, "is not at most 50 letters, digits, ( ) & _ - . and white space", path{"title"})
	}
}

func (r *reader) checkScheduling(s *Scheduling) {
	if g := s.MinimumGap; g != nil && (*g < int(LeastGap/time.Second) || *g > maxGap) {
		r.Fault(codeBody, "is not between 1800 and 31536000", path{"scheduling_preferences", "minimum_gap_duration_second"})
	}
}

// maxGap is a year, in seconds.
const maxGap = 365 * 24 * 3600

// goodSlug reports whether s is words of lower-case letters and digits with single
// hyphens between them.
func goodSlug(s string) bool {
	for word := range strings.SplitSeq(s, "-") {
		if word == "" || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz0123456789") != "" {
			return false
		}
	}
	return true
}

// schema says which columns a frame of the plan has.
func (p *plan) schema() map[string]Type {
	out := map[string]Type{}
	f := p.frame(p.newGrid())
	for _, c := range f.Columns {
		out[c.Name] = c.Type
		if c.Type == typeInstant {
			out[c.Name] = typeTime // the wire has one name for both
		}
	}
	return out
}

// dependencies are the slugs of the resources that a plan reads.
func (p *plan) dependencies() []string {
	var out []string
	switch {
	case p.sampleTable():
		for _, r := range p.resources {
			out = append(out, r.Slug)
		}
	case p.table.summary == nil:
		out = append(out, healthdata.TableByName("sleep").Resource)
	default:
		out = append(out, p.table.summary.Resource)
		if p.cycles() {
			out = append(out, cycleResource)
		}
	}
	return out
}

// cycleResource is where the stages of a night are.
const cycleResource = "sleep_cycle"

// UnmarshalJSON reads the query as it is on the wire, strictly, without asking whether
// its names exist. The fault is [healthlab.InvalidError].
func (q *Query) UnmarshalJSON(data []byte) error {
	return unmarshal(data, func(r *reader, n *node) { *q = r.query(n, nil) })
}

// MarshalJSON writes the config as it is on the wire.
func (c Config) MarshalJSON() ([]byte, error) { return c.append(nil), nil }

// UnmarshalJSON reads the config as it is on the wire, strictly. The fault is
// [healthlab.InvalidError].
func (c *Config) UnmarshalJSON(data []byte) error {
	return unmarshal(data, func(r *reader, n *node) { *c = r.config(n, nil) })
}

func unmarshal(data []byte, read func(*reader, *node)) error {
	n, err := strictjson.Parse(data)
	if err != nil {
		return fmt.Errorf("%w: not a sound JSON text", healthlab.Invalid)
	}
	var r reader
	read(&r, &n)
	return r.Problems.Err()
}

// decodeNew reads the body that creates a continuous query. What could not be read has
// left a problem.
func (r *reader) decodeNew(data []byte) (out NewContinuousQuery) {
	n, err := strictjson.Parse(data)
	if err != nil {
		r.Fault(codeBody, "is not a sound JSON text", nil)
		return out
	}
	if !r.Object(&n, nil, "slug", "title", "query", "query_config", "scheduling_preferences", "export_preferences") {
		return out
	}
	out.Slug, _ = r.Text(n.Get("slug"), path{"slug"})
	out.Title, _ = r.Text(n.Get("title"), path{"title"})
	if q := n.Get("query"); q == nil {
		r.Fault(codeBody, "is required", path{"query"})
	} else {
		out.Query = r.query(q, path{"query"})
	}
	if c := n.Get("query_config"); !c.IsNull() {
		out.Config = r.config(c, path{"query_config"})
	}
	if s := n.Get("scheduling_preferences"); !s.IsNull() {
		out.Scheduling = r.scheduling(s, path{"scheduling_preferences"})
	}
	if e := n.Get("export_preferences"); !e.IsNull() {
		out.Quiet = r.quiet(e, path{"export_preferences"})
	}
	return out
}

func (r *reader) scheduling(n *node, p path) (s Scheduling) {
	if !r.Object(n, p, "minimum_gap_duration_second") {
		return s
	}
	if g := n.Get("minimum_gap_duration_second"); !g.IsNull() {
		v, ok := r.Whole(g, p.At("minimum_gap_duration_second"))
		if ok {
			v := int(min(v, maxGap+1))
			s.MinimumGap = &v
		}
	}
	return s
}

// quiet reads whether events are switched off.
func (r *reader) quiet(n *node, p path) bool {
	if !r.Object(n, p, "data_events", "fhir_observations") {
		return false
	}
	if f := n.Get("fhir_observations"); f != nil && r.Boolean(f, p.At("fhir_observations")) {
		r.Fault("not_supported", "is reserved, and false", p.At("fhir_observations"))
	}
	d := n.Get("data_events")
	if d.IsNull() || !r.Object(d, p.At("data_events"), "enabled") || d.Get("enabled") == nil {
		return false
	}
	return !r.Boolean(d.Get("enabled"), p.At("data_events", "enabled"))
}

// decodePatch reads the body that changes a continuous query.
func (r *reader) decodePatch(data []byte) (out ContinuousPatch) {
	n, err := strictjson.Parse(data)
	if err != nil {
		r.Fault(codeBody, "is not a sound JSON text", nil)
		return out
	}
	if !r.Object(&n, nil, "title", "scheduling_preferences") {
		return out
	}
	if t := n.Get("title"); t != nil {
		if s, ok := r.Text(t, path{"title"}); ok {
			out.Title = &s
		}
	}
	if s := n.Get("scheduling_preferences"); s != nil {
		out.Scheduling = &Scheduling{}
		if !s.IsNull() {
			*out.Scheduling = r.scheduling(s, path{"scheduling_preferences"})
		}
	}
	return out
}
