package oauthrest

import (
	"fmt"
	"io"
	"reflect"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Config says all that there is to say of one provider. It is read from JSON, strictly;
// docs/providers.md explains every key with an example.
type Config struct {
	// Provider is its record in the catalogue.
	Provider healthdata.Provider `json:"provider"`
	// OAuth is how people sign in.
	OAuth OAuth `json:"oauth"`
	// API is how data is asked for.
	API API `json:"api"`
	// Resources are where the data is, and what it means. One resource may have several
	// entries, which are asked one after the other.
	Resources []Resource `json:"resources"`
}

// OAuth is the sign-in by the authorization code flow (RFC 6749).
type OAuth struct {
	AuthorizeURL string `json:"authorize_url"`
	TokenURL     string `json:"token_url"`
	// RevocationURL ends grants; empty where the provider has none. Revocation says how:
	// rfc7009 (the default), or bearer for a POST with the access token.
	RevocationURL string `json:"revocation_url"`
	Revocation    string `json:"revocation"`
	// ClientAuth is how we say who we are at the token URL (RFC 6749 section 2.3): basic
	// (the default), body, or none for a client without a secret.
	ClientAuth string `json:"client_auth"`
	// PKCE is for providers that refuse RFC 7636. Default true.
	PKCE *bool `json:"pkce"`
	// ScopeSeparator stands between scopes. Default a space.
	ScopeSeparator string `json:"scope_separator"`
	// MinimumScopes are the ones without which nothing works.
	MinimumScopes []string `json:"minimum_scopes"`
	// AuthorizeParams and TokenParams are sent besides, those of a token also when it is
	// renewed.
	AuthorizeParams map[string]string `json:"authorize_params"`
	TokenParams     map[string]string `json:"token_params"`
	// TokenSeconds is how long an access token works where the answer does not say.
	TokenSeconds int `json:"token_seconds"`
	// OverErrors are error codes of the token URL that mean that the grant is over,
	// besides invalid_grant.
	OverErrors []string `json:"over_errors"`
	// Account is where the provider's own name for the person is. Without it, they have
	// none.
	Account *Account `json:"account"`
	// Setup lists what a team that registers a client of its own has to set up at the
	// provider, besides the address to come back to.
	Setup []Setup `json:"setup"`
}

// Setup is something to set up at the provider. Type is one of the names linking.Setup…
// (open), Key and Value are what it is called and what to enter, and Description tells a
// person what to do.
type Setup struct {
	Type        string `json:"type"`
	Key         string `json:"key"`
	Value       string `json:"value"`
	Description string `json:"description"`
}

// Account is where the provider's own name for a person is: at a place in the token's
// answer or, with a URL, in the answer to a GET with the token.
type Account struct {
	URL string `json:"url"`
	At  string `json:"at"`
}

// API is what all requests for data have in common.
type API struct {
	// BaseURL is what paths are put behind.
	BaseURL string `json:"base_url"`
	// Headers are sent besides Accept and Authorization.
	Headers map[string]string `json:"headers"`
	// MaxBytes is the longest answer that is read. Default 8 MiB, at most 64.
	MaxBytes int `json:"max_bytes"`
	// NothingStatus are answers that mean that there is no data, besides 204.
	NothingStatus []int `json:"nothing_status"`
	// Over are answers that mean that the grant is over.
	Over []Over `json:"over"`
	// Rates say where answers tell of limits.
	Rates []RateHeaders `json:"rate_headers"`
	// RateScope is whom an answer of 429 is about: app (the default) or user.
	RateScope string `json:"rate_scope"`
}

// Over is an answer that means that the grant is over.
type Over struct {
	Status int `json:"status"`
	// At and Equals tell apart answers of one status; empty takes all of them.
	At     string `json:"at"`
	Equals string `json:"equals"`
	// Type is one of the names healthdata.Failure…; default deregistered_per_provider.
	Type string `json:"type"`
}

// RateHeaders are the headers that tell of one limit.
type RateHeaders struct {
	// Scope is app or user.
	Scope     string `json:"scope"`
	Remaining string `json:"remaining"`
	// Reset is a number of seconds, or with ResetUnix the Unix time.
	Reset     string `json:"reset"`
	ResetUnix bool   `json:"reset_unix"`
}

// Resource is where data is, and what it means.
type Resource struct {
	// Resource is the slug in the catalogue.
	Resource string `json:"resource"`
	// Path comes behind the base URL. It and the values of Query may hold {user_id},
	// {from} and {to}.
	Path  string            `json:"path"`
	Query map[string]string `json:"query"`
	Range Range             `json:"range"`
	// Paging is how an answer goes on.
	Paging Paging `json:"paging"`
	// Items is where the items are in the answer. An element of a list that leaves out what
	// leads on has none.
	Items string `json:"items"`
	// Where keeps the items that fulfil all of it.
	Where []Where `json:"where"`
	// Owner is where an item says whose it is.
	Owner string `json:"owner"`
	// SourceType is how it was recorded. Default unknown.
	SourceType *Field `json:"source_type"`
	// Device is what recorded it, where an item says.
	Device *Device `json:"device"`
	// Workout is where a sample of a single workout names it, by the id that the entry of
	// workouts has, and Sport is what it was.
	Workout *Field `json:"workout"`
	Sport   *Field `json:"sport"`
	// Combine says that people write this down, that the provider stamps it with the
	// beginning of its hour, and that the entries of one hour are one sample. Items come in
	// the order of time, either way.
	Combine bool `json:"combine"`
	// Sample or Summary says what an item means: one of the two.
	Sample  *Sample  `json:"sample"`
	Summary *Summary `json:"summary"`
}

// Device is where an item says what recorded it. ID is the provider's own id of the device;
// without one, it is known by its manufacturer and model. What is not there, or is no text,
// is not known, and refuses nothing.
type Device struct {
	ID           *Field `json:"id"`
	Manufacturer *Field `json:"manufacturer"`
	Model        *Field `json:"model"`
	Version      *Field `json:"version"`
}

// Range is how {from} and {to} are written.
type Range struct {
	// Format is iso (the default), unix, unix_ms, or date for local days.
	Format string `json:"format"`
	// Inclusive says that the day {to} belongs to the answer; for the format date.
	Inclusive bool `json:"inclusive"`
	// MaxDays is the longest range of one request; 0 for any. Of the format date it counts
	// days of the calendar, else 24 hours.
	MaxDays int `json:"max_days"`
}

// Paging is how an answer goes on.
type Paging struct {
	// Kind is none (the default), cursor, next_url, link, page or offset.
	Kind string `json:"kind"`
	// Next is where the answer has the cursor or the URL.
	Next string `json:"next"`
	// Param is the query parameter of the cursor, the page or the offset.
	Param string `json:"param"`
	// SizeParam and Size ask for pages of a size; a page of kind page or offset whose
	// outermost list, the first * of Items, has less elements is the last one.
	SizeParam string `json:"size_param"`
	Size      int    `json:"size"`
	// First is the number of the first page.
	First int `json:"first"`
	// MaxPages is how many pages an answer has at most. Default 1,000.
	MaxPages int `json:"max_pages"`
}

// Where is a condition on an item.
type Where struct {
	At string `json:"at"`
	// In or NotIn lists texts, numbers and truths as JSON writes them.
	In    []string `json:"in"`
	NotIn []string `json:"not_in"`
}

// Sample says what an item means that is one measurement.
type Sample struct {
	Timestamp Field `json:"timestamp"`
	// End or Seconds bounds an interval.
	End            *Field `json:"end"`
	Seconds        *Field `json:"seconds"`
	TimezoneOffset *Field `json:"timezone_offset"`
	// Value is a number, or the text of a note; Systolic and Diastolic are for blood
	// pressure.
	Value     *Field `json:"value"`
	Systolic  *Field `json:"systolic"`
	Diastolic *Field `json:"diastolic"`
	// Unit is the provider's, after the arithmetic of Value.
	Unit           Field  `json:"unit"`
	Type           *Field `json:"type"`
	SensorLocation *Field `json:"sensor_location"`
	Intensity      *Field `json:"intensity"`
	DeliveryMode   *Field `json:"delivery_mode"`
	DeliveryForm   *Field `json:"delivery_form"`
	BolusPurpose   *Field `json:"bolus_purpose"`
	// Tags are those of a note: a place through a list.
	Tags *Field `json:"tags"`
}

// Summary says what an item means that is an object of its own.
type Summary struct {
	// ID is where the provider's own id of it is.
	ID string `json:"id"`
	// Fields are the published fields by name, inner ones behind a dot.
	Fields map[string]Field `json:"fields"`
}

// Field is how a value is found and read.
type Field struct {
	// At is where it stands, and Const what it always is.
	At    string `json:"at"`
	Const string `json:"const"`
	// DateAt is where the day stands of which At has the time.
	DateAt string `json:"date_at"`
	// Format of an instant is iso (the default), unix, unix_ms or floating; the last one
	// for all instants of a resource whose affinity is floating, and for no others.
	Format string `json:"format"`
	// Zone is what clock digits without an offset are in: UTC (the default), user for the
	// user's own, or an IANA name; ZoneAt is where such a name or an offset stands.
	Zone   string `json:"zone"`
	ZoneAt string `json:"zone_at"`
	// Times and Plus turn a number into ours: number × times + plus.
	Times *float64 `json:"times"`
	Plus  float64  `json:"plus"`
	// Map turns words into ours. A word that it does not have is Else, or the item is
	// refused.
	Map  map[string]string `json:"map"`
	Else *string           `json:"else"`
}

// maxConfig is the longest configuration.
const maxConfig = 1 << 20

// ReadConfig reads a configuration. Invalid names every problem: its place in the
// document, and the rule.
func ReadConfig(r io.Reader) (Config, error) {
	doc, err := io.ReadAll(io.LimitReader(r, maxConfig+1))
	if err != nil {
		return Config{}, fmt.Errorf("read provider: %w", err)
	}
	var p healthlab.Problems
	if len(doc) > maxConfig {
		p.Add("too_long", "must have at most 1 MiB")
		return Config{}, fmt.Errorf("read provider: %w", p.Err())
	}
	v, err := tree(doc, &p)
	if err != nil {
		p.Add("json", "not one JSON document")
		return Config{}, fmt.Errorf("read provider: %w", p.Err())
	}
	var c Config
	assign(&p, reflect.ValueOf(&c).Elem(), v, nil)
	if len(p) == 0 {
		p = c.check()
	}
	if len(p) > 0 {
		slices.SortStableFunc(p, func(a, b healthlab.Problem) int { return comparePaths(a.Path, b.Path) })
		return Config{}, fmt.Errorf("read provider: %w", p.Err())
	}
	return c, nil
}

// comparePaths orders paths, so that the same mistakes are reported in the same order.
func comparePaths(a, b []any) int {
	return slices.CompareFunc(a, b, func(x, y any) int {
		i, one := x.(int)
		j, two := y.(int)
		if one && two {
			return i - j
		}
		s, t := fmt.Sprint(x), fmt.Sprint(y)
		switch {
		case s < t:
			return -1
		case s > t:
			return 1
		}
		return 0
	})
}
