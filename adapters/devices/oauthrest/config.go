package oauthrest

import (
	"fmt"
	"io"
	"reflect"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Config is the complete description of one provider. It is read from JSON, strictly; docs/providers.md explains
// every key with an example. A place is a path to a value in an answer.
type Config struct {
	// Provider is the provider's record in the catalogue.
	Provider healthdata.Provider `json:"provider"`
	// OAuth describes how people sign in.
	OAuth OAuth `json:"oauth"`
	// API describes what all data requests share.
	API API `json:"api"`
	// Resources maps answers to resources. A resource may have several entries, which are requested one after the
	// other.
	Resources []Resource `json:"resources"`
}

// OAuth is the sign-in by the authorization code flow (RFC 6749).
type OAuth struct {
	AuthorizeURL string `json:"authorize_url"`
	TokenURL     string `json:"token_url"`
	// RevocationURL revokes grants; empty if the provider supports none. Revocation is the form of the request: rfc7009
	// (the default), or bearer for a POST with the access token.
	RevocationURL string `json:"revocation_url"`
	Revocation    string `json:"revocation"`
	// ClientAuth is the client authentication at the token URL (RFC 6749 section 2.3): basic (the default), body, or
	// none for a client without a secret.
	ClientAuth string `json:"client_auth"`
	// PKCE is false for providers that do not accept RFC 7636. Default true.
	PKCE *bool `json:"pkce"`
	// ScopeSeparator separates scopes. Default a space.
	ScopeSeparator string `json:"scope_separator"`
	// MinimumScopes lists the scopes without which the connection is useless.
	MinimumScopes []string `json:"minimum_scopes"`
	// AuthorizeParams and TokenParams are additional parameters of the authorize and token requests. TokenParams are
	// also sent when a token is renewed.
	AuthorizeParams map[string]string `json:"authorize_params"`
	TokenParams     map[string]string `json:"token_params"`
	// TokenSeconds is the lifetime of an access token if the answer does not state it.
	TokenSeconds int `json:"token_seconds"`
	// OverErrors lists the error codes of the token URL, besides invalid_grant, which mean that the grant has ended.
	OverErrors []string `json:"over_errors"`
	// Account is the place of the provider's id of the person. Nil: the provider has no such id.
	Account *Account `json:"account"`
	// Setup lists what a team that registers its own client must configure at the provider, besides the redirect URL.
	Setup []Setup `json:"setup"`
}

// Setup is one setting at the provider. Type is one of the names linking.Setup… or another one, Key is the name of the
// setting, Value its value, and Description an instruction for a person.
type Setup struct {
	Type        string `json:"type"`
	Key         string `json:"key"`
	Value       string `json:"value"`
	Description string `json:"description"`
}

// Account is the place of the provider's id of the person: in the token answer or, with a URL, in the answer to a GET
// request with the token.
type Account struct {
	URL string `json:"url"`
	At  string `json:"at"`
}

// API describes what all data requests share.
type API struct {
	// BaseURL is the prefix of the paths.
	BaseURL string `json:"base_url"`
	// Headers are sent in addition to Accept and Authorization.
	Headers map[string]string `json:"headers"`
	// MaxBytes is the longest answer that is read. Default 8 MiB, at most 64.
	MaxBytes int `json:"max_bytes"`
	// NothingStatus lists statuses, besides 204, that mean no data.
	NothingStatus []int `json:"nothing_status"`
	// Over lists the answers that mean that the grant has ended.
	Over []Over `json:"over"`
	// Rates lists the headers of rate limits.
	Rates []RateHeaders `json:"rate_headers"`
	// RateScope says whose limit an answer 429 reports: app (the default) or user.
	RateScope string `json:"rate_scope"`
}

// Over describes an answer that means that the grant has ended.
type Over struct {
	Status int `json:"status"`
	// At and Equals select among answers of one status by a value in the body. Empty selects all.
	At     string `json:"at"`
	Equals string `json:"equals"`
	// Type is one of the names healthdata.Failure…. Default deregistered_per_provider.
	Type string `json:"type"`
}

// RateHeaders names the headers of one rate limit.
type RateHeaders struct {
	// Scope is app or user.
	Scope     string `json:"scope"`
	Remaining string `json:"remaining"`
	// Reset is a number of seconds, or with ResetUnix the Unix time.
	Reset     string `json:"reset"`
	ResetUnix bool   `json:"reset_unix"`
}

// Resource maps the items of one request to a resource.
type Resource struct {
	// Resource is the slug in the catalogue.
	Resource string `json:"resource"`
	// Path is appended to the base URL. Path and the values of Query may contain {user_id}, {from} and {to}.
	Path  string            `json:"path"`
	Query map[string]string `json:"query"`
	Range Range             `json:"range"`
	// Paging describes how the next page is requested.
	Paging Paging `json:"paging"`
	// Items is the place of the items in the answer. A list element without it has no items.
	Items string `json:"items"`
	// Where lists conditions; an item must fulfil all of them.
	Where []Where `json:"where"`
	// Owner is the place of the provider's id of the person in an item.
	Owner string `json:"owner"`
	// SourceType is the way in which an item was recorded. Default unknown.
	SourceType *Field `json:"source_type"`
	// Device describes the device that recorded an item.
	Device *Device `json:"device"`
	// Workout is the place of the workout id in a sample of a single workout, with the same value as in the entry for
	// workouts. Sport is the sport of that workout.
	Workout *Field `json:"workout"`
	Sport   *Field `json:"sport"`
	// Combine merges the items of one hour to one sample, for items that people type in and that the provider dates
	// to the start of the hour. Items must be sorted by time, ascending or descending.
	Combine bool `json:"combine"`
	// Exactly one of Sample and Summary maps an item.
	Sample  *Sample  `json:"sample"`
	Summary *Summary `json:"summary"`
}

// Device maps the device of an item. ID is the provider's id of the device; without one, a device is identified by
// manufacturer and model. An absent or non-text value means unknown.
type Device struct {
	ID           *Field `json:"id"`
	Manufacturer *Field `json:"manufacturer"`
	Model        *Field `json:"model"`
	Version      *Field `json:"version"`
}

// Range describes how the bounds {from} and {to} are written.
type Range struct {
	// Format is iso (the default), unix, unix_ms, or date for local days.
	Format string `json:"format"`
	// Inclusive means that the answer includes the day {to}, for the format date.
	Inclusive bool `json:"inclusive"`
	// MaxDays is the longest range of one request; 0 means no limit. With the format date it counts calendar days, else
	// 24 hours.
	MaxDays int `json:"max_days"`
}

// Paging describes how the next page is requested.
type Paging struct {
	// Kind is none (the default), cursor, next_url, link, page or offset.
	Kind string `json:"kind"`
	// Next is the place of the cursor or URL in the answer.
	Next string `json:"next"`
	// Param is the query parameter of the cursor, the page or the offset.
	Param string `json:"param"`
	// SizeParam and Size request pages of a size. A page of kind page or offset is the last one if the outermost
	// list, which the first * in Items selects, has fewer elements.
	SizeParam string `json:"size_param"`
	Size      int    `json:"size"`
	// First is the number of the first page.
	First int `json:"first"`
	// MaxPages is the largest number of pages of an answer. Default 1,000.
	MaxPages int `json:"max_pages"`
}

// Where is a condition on an item.
type Where struct {
	At string `json:"at"`
	// In or NotIn lists texts, numbers and truths as JSON writes them.
	In    []string `json:"in"`
	NotIn []string `json:"not_in"`
}

// Sample maps an item to one measurement.
type Sample struct {
	Timestamp Field `json:"timestamp"`
	// End is the place of the end of an interval; Seconds is the place of its length instead.
	End            *Field `json:"end"`
	Seconds        *Field `json:"seconds"`
	TimezoneOffset *Field `json:"timezone_offset"`
	// Value is the place of a number, or of the text of a note. Systolic and Diastolic are the places of a blood
	// pressure.
	Value     *Field `json:"value"`
	Systolic  *Field `json:"systolic"`
	Diastolic *Field `json:"diastolic"`
	// Unit is the unit of Value, after Times and Plus.
	Unit           Field  `json:"unit"`
	Type           *Field `json:"type"`
	SensorLocation *Field `json:"sensor_location"`
	Intensity      *Field `json:"intensity"`
	DeliveryMode   *Field `json:"delivery_mode"`
	DeliveryForm   *Field `json:"delivery_form"`
	BolusPurpose   *Field `json:"bolus_purpose"`
	// Tags is the place of the tags of a note; it selects a list.
	Tags *Field `json:"tags"`
}

// Summary maps an item to a summary.
type Summary struct {
	// ID is the place of the provider's id of the item.
	ID string `json:"id"`
	// Fields maps the names of published fields to their places. The name of a nested field follows a dot.
	Fields map[string]Field `json:"fields"`
}

// Field describes where a value is and how it is read.
type Field struct {
	// At is the place of the value, and Const a constant value.
	At    string `json:"at"`
	Const string `json:"const"`
	// DateAt is the place of the date, if At has only a time of day.
	DateAt string `json:"date_at"`
	// Format is the format of an instant: iso (the default), unix, unix_ms or floating. All instants of a resource with
	// affinity floating must use floating, and no others.
	Format string `json:"format"`
	// Zone is the zone of local times: UTC (the default), user for the zone of the user, or an IANA name. ZoneAt is the
	// place of such a name or of an offset.
	Zone   string `json:"zone"`
	ZoneAt string `json:"zone_at"`
	// Times and Plus convert a number: number × times + plus.
	Times *float64 `json:"times"`
	Plus  float64  `json:"plus"`
	// Map translates words. A word that is not in Map becomes Else, or the item is refused.
	Map  map[string]string `json:"map"`
	Else *string           `json:"else"`
}

// maxConfig is the largest configuration, in bytes.
const maxConfig = 1 << 20

// ReadConfig reads a configuration. It returns Invalid with every problem: its place in the document, and the rule.
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
		p.Add("json", "must be one JSON document")
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

// comparePaths orders paths, so that equal configurations give equal errors.
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
