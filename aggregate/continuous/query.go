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

// QueryID identifies a continuous query. UUID version 7.
type QueryID struct{ uuid.UUID }

// Status is the state of a continuous query.
type Status string

const (
	// Active: the service evaluates the query again whenever data changes.
	Active Status = "active"
	// Archived: the query is no longer evaluated, and its tables stay as they are.
	Archived Status = "archived"
)

// Query is a stored query. The service evaluates it over all data of every user of a team, and again when that
// data changes.
type Query struct {
	ID     QueryID `json:"id"`
	Status Status  `json:"status"`
	// Slug identifies the query among the active queries of its team.
	Slug  string           `json:"slug"`
	Title string           `json:"title"`
	Team  healthlab.TeamID `json:"team_id"`
	// Query must have a date truncation and select all of its group keys. The columns of its tables have their
	// qualified names.
	Query  aggregate.Query  `json:"query"`
	Config aggregate.Config `json:"query_config"`
	// Scheduling is how often the service may evaluate the query for a user.
	Scheduling Scheduling `json:"scheduling_preferences"`
	// Schema lists the columns of the tables and their types: int64, float64, bool, string, date or timestamp.
	Schema map[string]aggregate.Type `json:"result_table_schema"`
	// Resources are the slugs of the resources that the result depends on.
	Resources []string `json:"resource_dependencies"`
	Export    Export   `json:"export_preferences"`
	// FHIRMappers are the names of the mappers that make FHIR Observations from the rows: body_weight,
	// heart_rate, respiratory_rate; empty without Export.FHIR. See [Mappers].
	FHIRMappers []string `json:"fhir_observation_mappers"`

	// CreatedAt is the time of creation, in UTC.
	CreatedAt time.Time `json:"-"`
	// Revision grows with every change. The store sets it.
	Revision int64 `json:"-"`
}

// Gap returns the least time between two evaluations for one user.
func (q *Query) Gap() time.Duration {
	if g := q.Scheduling.MinimumGap; g != nil {
		return time.Duration(*g) * time.Second
	}
	return LeastGap
}

// LeastGap is the shortest allowed time between two evaluations of a continuous query for one user. It is also
// the default.
const LeastGap = 30 * time.Minute

// Scheduling is how often the table of a user may be evaluated.
type Scheduling struct {
	// MinimumGap is the least number of seconds between two evaluations, 1800 or more; null means 1800.
	MinimumGap *int `json:"minimum_gap_duration_second"`
}

// Export selects the destinations of changed rows.
type Export struct {
	// DataEvents selects whether changed rows make an event.
	DataEvents DataEvents `json:"data_events"`
	// FHIR is true if rows are pushed as FHIR Observations to the pipelines of the team (package ehr).
	FHIR bool `json:"fhir_observations"`
}

// DataEvents selects whether changed rows make an event.
type DataEvents struct {
	Enabled bool `json:"enabled"`
}

// Definition is a team's request for a continuous query.
type Definition struct {
	// Slug is 1 to 128 lower-case letters, digits and single hyphens between them.
	Slug string
	// Title has at most 50 characters: letters, digits, ( ) & _ - . and white space.
	Title string
	Query aggregate.Query
	// Config has the settings of an aggregate request. Its ColumnNaming is ignored: names of columns are always
	// qualified.
	Config     aggregate.Config
	Scheduling Scheduling
	// Quiet is true if changed rows make no event.
	Quiet bool
	// FHIR is true if rows are pushed as FHIR Observations; the query must have [Mappers].
	FHIR bool
}

// Patch is a change of a continuous query. Nil leaves a field as it is.
type Patch struct {
	Title      *string
	Scheduling *Scheduling
}

// Preview describes the result of a continuous query before it is created.
type Preview struct {
	Schema    map[string]aggregate.Type `json:"result_table_schema"`
	Resources []string                  `json:"resource_dependencies"`
	// FHIRPreviews are the possible names in Query.FHIRMappers, whether or not the definition asks for FHIR.
	FHIRPreviews []string `json:"fhir_observation_previews"`
}

const codeBody = strictjson.CodeBody

func checkSlug(p *healthlab.Problems, slug string) {
	if len(slug) > 128 || !isSlug(slug) {
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

// isSlug reports whether s consists of words of lower-case letters and digits with single hyphens between
// them.
func isSlug(s string) bool {
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
