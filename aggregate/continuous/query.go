package continuous

import (
	"errors"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/aggregate/internal/strictjson"
)

// QueryID names a continuous query. UUID version 7.
type QueryID struct{ uuid.UUID }

// Status says whether a continuous query is kept up to date.
type Status string

const (
	// Active is kept up to date.
	Active Status = "active"
	// Archived is not evaluated any more. Its tables stay as they are.
	Archived Status = "archived"
)

// Query is a stored question that is answered for every user of a team, over
// all of the user's data, and answered again where that data changes.
type Query struct {
	ID     QueryID `json:"id"`
	Status Status  `json:"status"`
	// Slug names the query among the active ones of its team.
	Slug  string           `json:"slug"`
	Title string           `json:"title"`
	Team  healthlab.TeamID `json:"team_id"`
	// Query has a date truncation and selects all of its group keys. Columns of its
	// tables have their qualified names.
	Query  aggregate.Query  `json:"query"`
	Config aggregate.Config `json:"query_config"`
	// Scheduling says how often a table may be made again.
	Scheduling Scheduling `json:"scheduling_preferences"`
	// Schema says which columns the tables have and of which type: int64, float64,
	// bool, string, date or timestamp.
	Schema map[string]aggregate.Type `json:"result_table_schema"`
	// Resources are the slugs of the resources that the answer depends on.
	Resources []string `json:"resource_dependencies"`
	Export    Export   `json:"export_preferences"`
	// FHIRMappers are the names of the mappers that make FHIR Observations of the rows: body_weight, heart_rate,
	// respiratory_rate; empty without Export.FHIR. See [Mappers].
	FHIRMappers []string `json:"fhir_observation_mappers"`

	// CreatedAt is when it was made, in UTC.
	CreatedAt time.Time `json:"-"`
	// Revision grows with every change. A store sets it.
	Revision int64 `json:"-"`
}

// Gap is the least time between two starts for one user.
func (q *Query) Gap() time.Duration {
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
	// FHIR says whether rows are pushed as FHIR Observations to the pipelines of the team (package ehr).
	FHIR bool `json:"fhir_observations"`
}

// DataEvents says whether changed rows are announced with an event.
type DataEvents struct {
	Enabled bool `json:"enabled"`
}

// Definition is what a team says of a continuous query.
type Definition struct {
	// Slug is 1 to 128 lower-case letters, digits and single hyphens between them.
	Slug string
	// Title has at most 50 characters: letters, digits, ( ) & _ - . and white space.
	Title string
	Query aggregate.Query
	// Config is as that of a request. Names of columns are always qualified.
	Config     aggregate.Config
	Scheduling Scheduling
	// Quiet says that changes make no events.
	Quiet bool
	// FHIR says that rows are pushed as FHIR Observations; the query must have [Mappers].
	FHIR bool
}

// Patch is a change of a continuous query. Nil leaves a field as it is.
type Patch struct {
	Title      *string
	Scheduling *Scheduling
}

// Preview is what would become of a continuous query.
type Preview struct {
	Schema    map[string]aggregate.Type `json:"result_table_schema"`
	Resources []string                  `json:"resource_dependencies"`
	// FHIRPreviews are what Query.FHIRMappers can be, whether or not the definition asks for it.
	FHIRPreviews []string `json:"fhir_observation_previews"`
}

const codeBody = strictjson.CodeBody

func checkSlug(p *healthlab.Problems, slug string) {
	if len(slug) > 128 || !goodSlug(slug) {
		p.Add(codeBody, "must have 1 to 128 lower-case letters, digits and single hyphens between them", "slug")
	}
}

func checkTitle(p *healthlab.Problems, title string) {
	ok := utf8.RuneCountInString(title) <= 50
	for _, c := range title {
		ok = ok && (unicode.IsLetter(c) && c <= 0xff || c >= '0' && c <= '9' || unicode.IsSpace(c) || strings.ContainsRune("()&_-.", c))
	}
	if !ok {
		p.Add(codeBody, "must have at most 50 characters: letters, digits, ( ) & _ - . and white space", "title")
	}
}

func checkScheduling(p *healthlab.Problems, s *Scheduling) {
	if g := s.MinimumGap; g != nil && (*g < int(LeastGap/time.Second) || *g > maxGap) {
		p.Add(codeBody, "must be from 1800 to 31536000 seconds", "scheduling_preferences", "minimum_gap_duration_second")
	}
}

func checkPatch(p *healthlab.Problems, patch *Patch) {
	if patch.Title != nil {
		checkTitle(p, *patch.Title)
	}
	if patch.Scheduling != nil {
		checkScheduling(p, patch.Scheduling)
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

func note(p *healthlab.Problems, err error, key string) {
	if invalid := (*healthlab.InvalidError)(nil); errors.As(err, &invalid) {
		p.Under(invalid.Problems, key)
	}
}
