package oauthrest

import (
	"fmt"
	"io"
	"reflect"
	"slices"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Config is the complete description of one provider. It is read from JSON, and unknown keys are errors.
// docs/providers.md explains every key with an example, and the additions to JSON pointers (RFC 6901), which select the
// values in answers.
type Config struct {
	// Provider is the provider's record in the catalogue.
	Provider healthdata.Provider `json:"provider"`
	// OAuth describes how people sign in.
	OAuth OAuth `json:"oauth"`
	// API describes what all data requests share.
	API API `json:"api"`
	// Resources maps answers to resources of the catalogue. One catalogue resource may have several entries, which are
	// requested one after the other.
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
	// MinimumScopes lists the scopes that a person must grant for the connection to be established.
	MinimumScopes []string `json:"minimum_scopes"`
	// AuthorizeParams and TokenParams are additional parameters of the authorize and token requests. TokenParams are
	// also sent when a token is renewed.
	AuthorizeParams map[string]string `json:"authorize_params"`
	TokenParams     map[string]string `json:"token_params"`
	// TokenSeconds is the lifetime of an access token in seconds, used if the token response does not state it.
	TokenSeconds int `json:"token_seconds"`
	// OverErrors lists the error codes of the token URL, besides invalid_grant, which mean that the grant has ended.
	OverErrors []string `json:"over_errors"`
	// Account selects the provider's id of the person. Nil: the provider has no such id.
	Account *Account `json:"account"`
	// Setup lists the settings that a team must make at the provider for its own client, besides the redirect URL.
	Setup []Setup `json:"setup"`
}

// Setup is one setting at the provider. Type is one of the values of the constants linking.Setup… or another one, Key
// is the name of the setting, Value its value, and Description an instruction for a person.
type Setup struct {
	Type        string `json:"type"`
	Key         string `json:"key"`
	Value       string `json:"value"`
	Description string `json:"description"`
}

// Account selects the provider's id of the person. At is a JSON pointer into the token response or, if URL is set, into
// the response to a GET request of URL with the access token.
type Account struct {
	URL string `json:"url"`
	At  string `json:"at"`
}

// API describes what all data requests share.
type API struct {
	// BaseURL is prefixed to Resource.Path.
	BaseURL string `json:"base_url"`
	// Headers are sent with every data request, and with the request of OAuth.Account.URL, in addition to Authorization.
	// Accept is application/json unless Headers contains it.
	Headers map[string]string `json:"headers"`
	// MaxBytes is the size of the largest accepted response body, in bytes. Default 8 MiB, at most 64 MiB.
	MaxBytes int `json:"max_bytes"`
	// NothingStatus lists HTTP statuses, besides 204, that mean that the person has no data.
	NothingStatus []int `json:"nothing_status"`
	// Over lists the responses which mean that the grant is no longer valid.
	Over []Over `json:"over"`
	// Rates lists the response headers that state rate limits.
	Rates []RateHeaders `json:"rate_headers"`
	// RateScope is the scope of the rate limit that a response 429 reports: app (the default) or user.
	RateScope string `json:"rate_scope"`
}

// Over describes a response which means that the grant is no longer valid.
type Over struct {
	Status int `json:"status"`
	// At is a JSON pointer into the body, and Equals the text that it must select. If At is empty, every response with
	// Status matches.
	At     string `json:"at"`
	Equals string `json:"equals"`
	// Type is one of the values of the constants healthdata.Failure…. Default deregistered_per_provider.
	Type string `json:"type"`
}

// RateHeaders names the headers of one rate limit.
type RateHeaders struct {
	// Scope is app or user.
	Scope     string `json:"scope"`
	Remaining string `json:"remaining"`
	// Reset is the header with the time until the limit is reset, in seconds or, with ResetUnix, the Unix time of the
	// reset.
	Reset     string `json:"reset"`
	ResetUnix bool   `json:"reset_unix"`
}

// Resource maps the items in the responses to one request to a resource of the catalogue.
type Resource struct {
	// Resource is the slug in the catalogue.
	Resource string `json:"resource"`
	// Path is appended to the base URL. Path and the values of Query may contain {user_id}, {from} and {to}.
	Path  string            `json:"path"`
	Query map[string]string `json:"query"`
	Range Range             `json:"range"`
	// Paging describes how the next page is requested.
	Paging Paging `json:"paging"`
	// Items is the JSON pointer to the items in the response. A list element in which a part of the pointer is missing has
	// no items.
	Items string `json:"items"`
	// Where lists conditions. An item that does not fulfil all of them is ignored.
	Where []Where `json:"where"`
	// Owner is the JSON pointer to the provider's id of the person in an item.
	Owner string `json:"owner"`
	// SourceType reads the source type of an item, such as watch. Default unknown.
	SourceType *Field `json:"source_type"`
	// Device describes the device that recorded an item.
	Device *Device `json:"device"`
	// Workout reads the workout id in a sample of a single workout. Its value must be equal to Summary.ID of the entry for
	// workouts. Sport reads the sport of that workout.
	Workout *Field `json:"workout"`
	Sport   *Field `json:"sport"`
	// Combine merges the items of one hour to one sample, for items that people type in and that the provider dates
	// to the start of the hour. Items must be sorted by time, ascending or descending.
	Combine bool `json:"combine"`
	// Exactly one of Sample and Summary maps an item. For the resource device, neither is set, and Device maps it.
	Sample  *Sample  `json:"sample"`
	Summary *Summary `json:"summary"`
}

// Device maps the device of an item. ID reads the provider's id of the device; without an id, a device is identified by
// manufacturer and model. An absent or non-text value means unknown.
type Device struct {
	ID           *Field `json:"id"`
	Manufacturer *Field `json:"manufacturer"`
	Model        *Field `json:"model"`
	Version      *Field `json:"version"`
}

// Range describes how the bounds of the requested time range are written for the placeholders {from} and {to}.
type Range struct {
	// Format is iso (the default), unix, unix_ms, or date for local days.
	Format string `json:"format"`
	// Inclusive applies to the format date. It means that the provider returns the day {to} too.
	Inclusive bool `json:"inclusive"`
	// MaxDays is the longest range of one request; 0 means no limit. A day is a calendar day for the format date, else 24
	// hours.
	MaxDays int `json:"max_days"`
}

// Paging describes how the next page is requested.
type Paging struct {
	// Kind is none (the default), cursor, next_url, link, page or offset.
	Kind string `json:"kind"`
	// Next is the JSON pointer to the cursor or URL of the next page in the response, for the kinds cursor and next_url.
	Next string `json:"next"`
	// Param is the query parameter of the cursor, the page or the offset.
	Param string `json:"param"`
	// SizeParam is the query parameter for the page size, and Size its value. With the kind page or offset, a page is the
	// last one if the outermost list in the pointer Items has fewer than Size elements.
	SizeParam string `json:"size_param"`
	Size      int    `json:"size"`
	// First is the number of the first page, or the offset of the first item.
	First int `json:"first"`
	// MaxPages is the largest number of pages of one time range; more are an error. Default 1,000.
	MaxPages int `json:"max_pages"`
}

// Where is a condition on the value that the JSON pointer At selects in an item.
type Where struct {
	At string `json:"at"`
	// In lists the accepted values, or NotIn the refused ones: texts, and numbers and booleans as JSON writes them.
	In    []string `json:"in"`
	NotIn []string `json:"not_in"`
}

// Sample maps an item to one measurement.
type Sample struct {
	Timestamp Field `json:"timestamp"`
	// End reads the end of an interval. Alternatively Seconds reads its length in seconds.
	End            *Field `json:"end"`
	Seconds        *Field `json:"seconds"`
	TimezoneOffset *Field `json:"timezone_offset"`
	// Value reads a number, or the text of a note. Systolic and Diastolic read a blood pressure instead.
	Value     *Field `json:"value"`
	Systolic  *Field `json:"systolic"`
	Diastolic *Field `json:"diastolic"`
	// Unit reads the unit of Value. It is the unit after the conversion by Value.Times and Value.Plus.
	Unit           Field  `json:"unit"`
	Type           *Field `json:"type"`
	SensorLocation *Field `json:"sensor_location"`
	Intensity      *Field `json:"intensity"`
	DeliveryMode   *Field `json:"delivery_mode"`
	DeliveryForm   *Field `json:"delivery_form"`
	BolusPurpose   *Field `json:"bolus_purpose"`
	// Tags reads the tags of a note. Its pointer must select a list.
	Tags *Field `json:"tags"`
}

// Summary maps an item to a summary, such as a workout or a night.
type Summary struct {
	// ID is the JSON pointer to the provider's id of the item.
	ID string `json:"id"`
	// Fields maps field names of the summary, as published in JSON, to their values. Nested names are joined with dots.
	Fields map[string]Field `json:"fields"`
}

// Field says which value of an item is read, and how it is converted.
type Field struct {
	// At is the JSON pointer to the value. Alternatively Const is a constant value.
	At    string `json:"at"`
	Const string `json:"const"`
	// DateAt is the JSON pointer to the date, if the value is only a time of day.
	DateAt string `json:"date_at"`
	// Format is the format of an instant: iso (the default), unix, unix_ms or floating. floating is required for all
	// instants of a resource whose affinity in Config.Provider is floating, and not allowed for others.
	Format string `json:"format"`
	// Zone is the zone of times without an offset: UTC (the default), user for the zone of the user, or an IANA name.
	// ZoneAt is the JSON pointer to such a name or to an offset.
	Zone   string `json:"zone"`
	ZoneAt string `json:"zone_at"`
	// Times and Plus convert a number: value × Times + Plus. Times defaults to 1.
	Times *float64 `json:"times"`
	Plus  float64  `json:"plus"`
	// Map maps texts of the provider to values of the field. A text that is not in Map becomes Else. If Else is nil, the
	// item is reported as unreadable.
	Map  map[string]string `json:"map"`
	Else *string           `json:"else"`
}

// maxConfig is the largest configuration, in bytes.
const maxConfig = 1 << 20

// ReadConfig reads a configuration in JSON, and checks it. It returns Invalid with every problem and its path in the
// document.
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
		p.Add("json", errDocument.Error())
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
