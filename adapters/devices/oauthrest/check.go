package oauthrest

import (
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// Methods of client authentication.
const (
	authBasic = "basic"
	authBody  = "body"
	authNone  = "none"
)

// Methods to revoke a grant.
const (
	revokeRFC    = "rfc7009"
	revokeBearer = "bearer"
)

// Kinds of paging.
const (
	pageNone   = "none"
	pageCursor = "cursor"
	pageURL    = "next_url"
	pageLink   = "link"
	pageNumber = "page"
	pageOffset = "offset"
)

const (
	rateApp  = "app"
	rateUser = "user"
)

// Limits of a configuration.
const (
	defaultBytes = 8 << 20
	mostBytes    = 64 << 20
	defaultPages = 1000
	mostPages    = 100 * defaultPages
)

// checker collects the problems of a configuration.
type checker struct {
	p healthlab.Problems
	// floating is true if the times of the current resource are local, as the affinity in the provider's record says.
	floating bool
}

func (k *checker) oneOf(v string, path []any, allowed ...string) {
	if v != "" && !slices.Contains(allowed, v) {
		k.p.AddEnum(allowed, path...)
	}
}

func (k *checker) need(ok bool, what string, path ...any) {
	if !ok {
		k.p.Add("missing", what, path...)
	}
}

func (k *checker) needPlace(place, example string, path ...any) {
	k.need(place != "", "must be set to a JSON pointer such as "+example, path...)
}

func (k *checker) needURL(url string, path ...any) {
	k.need(url != "", "must be set to an https URL", path...)
}

func (k *checker) pointer(place string, path ...any) {
	if _, _, ok := steps(place); place != "" && !ok {
		k.p.Add("place", "must be . or a JSON pointer, with any number of ^ before it", path...)
	}
}

// reservedHeaders lists the headers that a configuration must not set.
var reservedHeaders = []string{"Authorization", "Host", "Cookie", "Content-Length"}

// header reports a header that must not be configured, because it is malformed or reserved.
func (k *checker) header(name, value string, path ...any) {
	odd := func(r rune) bool { return r < ' ' || r > '~' }
	switch {
	case strings.Trim(name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-") != "" || name == "":
		k.p.Add("header", "must have a name of letters, digits and hyphens", path...)
	case strings.ContainsFunc(value, odd):
		k.p.Add("header", "must have a value of printable ASCII characters", path...)
	case slices.Contains(reservedHeaders, http.CanonicalHeaderKey(name)):
		k.p.Add("header", "must be none of: "+strings.Join(reservedHeaders, ", "), path...)
	}
}

// check returns the problems of a configuration that was decoded without errors.
func (c *Config) check() healthlab.Problems {
	var k checker
	c.checkProvider(&k)
	c.checkOAuth(&k)
	c.checkAPI(&k)
	k.need(len(c.Resources) > 0, "must have at least one entry", "resources")
	for i := range c.Resources {
		c.checkResource(&k, &c.Resources[i], []any{"resources", i})
	}
	for i, r := range c.Provider.Resources {
		if !slices.ContainsFunc(c.Resources, func(e Resource) bool { return e.Resource == r.Resource }) {
			k.p.Add("no_entry", "resources must have an entry for this resource", "provider", "resources", i, "resource")
		}
	}
	return k.p
}

func (c *Config) checkProvider(k *checker) {
	if _, err := healthdata.NewProviders([]healthdata.Provider{c.Provider}); err != nil {
		for _, q := range problemsOf(err) {
			q.Path = append([]any{"provider"}, q.Path[1:]...)
			k.p = append(k.p, q)
		}
	}
	if c.Provider.AuthType != "oauth" && c.Provider.AuthType != "team_oauth" {
		k.p.AddEnum([]string{"oauth", "team_oauth"}, "provider", "auth_type")
	}
	if c.Provider.Class != "cloud" {
		k.p.Add("enum", "must be cloud for a provider that is pulled", "provider", "class")
	}
}

func (c *Config) checkOAuth(k *checker) {
	o := &c.OAuth
	k.needURL(o.AuthorizeURL, "oauth", "authorize_url")
	k.needURL(o.TokenURL, "oauth", "token_url")
	k.oneOf(o.ClientAuth, []any{"oauth", "client_auth"}, authBasic, authBody, authNone)
	k.oneOf(o.Revocation, []any{"oauth", "revocation"}, revokeRFC, revokeBearer)
	if o.Revocation != "" {
		k.needURL(o.RevocationURL, "oauth", "revocation_url")
	}
	if o.TokenSeconds < 0 {
		k.p.Add("range", "must be at least 0", "oauth", "token_seconds")
	}
	ours := []string{
		"response_type", "client_id", "client_secret", "redirect_uri", "state", "scope", "code", "code_challenge", "code_challenge_method",
		"code_verifier", "grant_type", "refresh_token",
	}
	for group, params := range map[string]map[string]string{"authorize_params": o.AuthorizeParams, "token_params": o.TokenParams} {
		for name := range params {
			if slices.Contains(ours, name) {
				k.p.Add("reserved", "must be absent: the OAuth flow sets this parameter", "oauth", group, name)
			}
		}
	}
	for i, s := range o.Setup {
		for _, part := range []struct{ name, text string }{{"type", s.Type}, {"key", s.Key}, {"value", s.Value}, {"description", s.Description}} {
			k.need(part.text != "", "must not be empty", "oauth", "setup", i, part.name)
		}
	}
	if o.Account != nil {
		k.needPlace(o.Account.At, "/user/id", "oauth", "account", "at")
		k.pointer(o.Account.At, "oauth", "account", "at")
	}
}

func (c *Config) checkAPI(k *checker) {
	a := &c.API
	k.needURL(a.BaseURL, "api", "base_url")
	if strings.ContainsAny(a.BaseURL, "?#") {
		k.p.Add("bad_url", "must be a URL without a query or fragment", "api", "base_url")
	}
	if a.MaxBytes < 0 || a.MaxBytes > mostBytes {
		k.p.Add("range", fmt.Sprintf("must be from 0 to %d bytes; 0 means %d", mostBytes, defaultBytes), "api", "max_bytes")
	}
	for name, value := range a.Headers {
		k.header(name, value, "api", "headers", name)
	}
	for i, s := range a.NothingStatus {
		if s < 400 || s > 499 || s == http.StatusUnauthorized || s == http.StatusTooManyRequests {
			k.p.Add("range", "must be a status of 4xx other than 401 and 429", "api", "nothing_status", i)
		}
	}
	failures := []string{
		healthdata.FailureTokenRefresh, healthdata.FailureWebhook, healthdata.FailureUserNotFound, healthdata.FailureDeregistered,
		healthdata.FailureScopes, healthdata.FailureCredential, healthdata.FailurePasswordExpired, healthdata.FailureUnknown,
	}
	for i, o := range a.Over {
		if o.Status < 400 || o.Status > 499 {
			k.p.Add("range", "must be a status of 4xx", "api", "over", i, "status")
		}
		k.pointer(o.At, "api", "over", i, "at")
		if (o.At == "") != (o.Equals == "") {
			k.p.Add("together", "at and equals must be set together", "api", "over", i)
		}
		k.oneOf(o.Type, []any{"api", "over", i, "type"}, failures...)
	}
	k.oneOf(a.RateScope, []any{"api", "rate_scope"}, rateApp, rateUser)
	for i, r := range a.Rates {
		k.oneOf(r.Scope, []any{"api", "rate_headers", i, "scope"}, rateApp, rateUser)
		k.need(r.Remaining != "" && r.Reset != "", "remaining and reset must both be set", "api", "rate_headers", i)
	}
}

func (c *Config) checkResource(k *checker, e *Resource, at []any) {
	path := func(parts ...any) []any { return append(slices.Clone(at), parts...) }
	r := healthdata.ResourceBySlug(e.Resource)
	switch {
	case r == nil:
		var known []string
		for _, r := range healthdata.Resources() {
			known = append(known, r.Slug)
		}
		k.p.Add("unknown_resource", "must be a resource of the catalogue; the nearest names are "+healthdata.NearestNames(e.Resource, known), path("resource")...)
		return
	case !c.Provider.Supports(e.Resource):
		k.p.Add("unknown_resource", "must be a resource that provider.resources lists", path("resource")...)
		return
	case r.Class != healthdata.ClassTimeseries && r.Class != healthdata.ClassSummary && r.Slug != deviceSlug:
		k.p.Add("unsupported", "must be the slug of a timeseries or a summary, or "+deviceSlug, path("resource")...)
		return
	}
	k.floating = c.Provider.Affinity(e.Resource) == healthdata.AffinityFloating
	e.checkRequest(k, path)
	e.checkPaging(k, path)
	k.needPlace(e.Items, "/data/*", path("items")...)
	k.pointer(e.Items, path("items")...)
	if strings.HasPrefix(e.Items, "^") || strings.Contains(e.Items, "#") {
		k.p.Add("place", "must not start with ^: items are found from the root of the answer", path("items")...)
	}
	for i, w := range e.Where {
		k.needPlace(w.At, "/type", path("where", i, "at")...)
		k.itemPointer(w.At, e, path("where", i, "at"))
		if (w.In == nil) == (w.NotIn == nil) {
			k.p.Add("one_of", "must have exactly one of in, not_in", path("where", i)...)
		}
	}
	if e.Owner != "" {
		k.itemPointer(e.Owner, e, path("owner"))
	}
	k.optional(e.SourceType, word, e, path("source_type"))
	if e.Device != nil {
		k.device(e, path("device"))
	}
	c.checkWorkout(k, e, r, path)
	if e.Combine {
		c.checkCombine(k, e, r, path)
	}
	switch {
	case r.Slug == deviceSlug:
		if e.Sample != nil || e.Summary != nil || e.Device == nil {
			k.p.Add("one_of", "must have device, and neither sample nor summary, in a list of devices", at...)
		}
	case r.Class == healthdata.ClassTimeseries && (e.Sample == nil || e.Summary != nil):
		k.p.Add("one_of", "must have sample and must not have summary, for a timeseries", at...)
	case r.Class == healthdata.ClassSummary && (e.Summary == nil || e.Sample != nil):
		k.p.Add("one_of", "must have summary and must not have sample, for this resource", at...)
	case e.Sample != nil:
		k.sample(e, r, path("sample"))
	default:
		k.summary(e, r, path("summary"))
	}
}

func (k *checker) device(e *Resource, path []any) {
	d := e.Device
	at := func(part any) []any { return append(slices.Clone(path), part) }
	k.need(d.ID != nil || d.Model != nil, "must have an id or a model, because these identify a device", path...)
	k.optional(d.ID, word, e, at("id"))
	k.optional(d.Manufacturer, word, e, at("manufacturer"))
	k.optional(d.Model, word, e, at("model"))
	k.optional(d.Version, word, e, at("version"))
}

// checkWorkout checks that samples of single workouts have the id of the workout, and that other samples have none.
func (c *Config) checkWorkout(k *checker, e *Resource, r *healthdata.Resource, path func(...any) []any) {
	k.optional(e.Workout, word, e, path("workout"))
	k.optional(e.Sport, word, e, path("sport"))
	switch {
	case r.Key != healthdata.KeyWorkout:
		if e.Workout != nil {
			k.p.Add("not_allowed", "must be absent: only samples of workouts have the id of a workout", path("workout")...)
		}
		if e.Sport != nil && r.Slug != "distance" {
			k.notAField(r, path("sport"))
		}
		return
	case e.Workout == nil:
		k.needField(r, path("workout"))
	case e.Sport == nil:
		k.needField(r, path("sport"))
	}
	if !slices.ContainsFunc(c.Resources, func(w Resource) bool {
		return w.Resource == "workouts" && w.Summary != nil && w.Summary.ID != ""
	}) {
		k.need(false, "resources must have an entry for workouts with summary.id, which this id refers to", path("workout")...)
	}
}

// checkCombine checks that the items of one hour can be combined to one sample.
func (c *Config) checkCombine(k *checker, e *Resource, r *healthdata.Resource, path func(...any) []any) {
	entries := 0
	for i := range c.Resources {
		if c.Resources[i].Resource == e.Resource {
			entries++
		}
	}
	switch {
	case !r.Diary():
		k.p.Add("not_allowed", "must be absent: only carbohydrates, insulin_injection and note can be combined", path("combine")...)
	case entries > 1:
		k.p.Add("not_allowed", "a combined resource must have exactly one entry, because a second one would replace its samples", path("combine")...)
	case e.Device != nil:
		k.p.Add("not_allowed", "a combined resource must have a constant source type and no device", path("device")...)
	case k.floating && e.ranged() && e.Range.Format != formatDate:
		k.p.Add("not_allowed", "a combined resource of a provider with affinity floating must be requested by date", path("range", "format")...)
	}
}

// deviceSlug is the resource under which a configuration maps lists of devices.
const deviceSlug = "device"

// checkRequest checks path, query and range of a request.
func (e *Resource) checkRequest(k *checker, path func(...any) []any) {
	if !strings.HasPrefix(e.Path, "/") || strings.ContainsAny(e.Path, "?#") || strings.Contains(e.Path, "..") {
		k.p.Add("path", "must begin with a slash, and have no query, no fragment and no two dots in a row", path("path")...)
	}
	check := func(s string, at []any) {
		for rest := s; ; {
			_, after, found := strings.Cut(rest, "{")
			if !found {
				return
			}
			name, tail, closed := strings.Cut(after, "}")
			if !closed || !slices.Contains([]string{"user_id", "from", "to"}, name) {
				k.p.Add("placeholder", "must have no placeholder other than {user_id}, {from} and {to}", at...)
				return
			}
			rest = tail
		}
	}
	check(e.Path, path("path"))
	for _, name := range slices.Sorted(maps.Keys(e.Query)) {
		check(e.Query[name], path("query", name))
	}
	k.oneOf(e.Range.Format, path("range", "format"), formatISO, formatUnix, formatUnixMS, formatDate)
	if e.Range.Inclusive && e.Range.Format != formatDate {
		k.p.Add("not_allowed", "must be used with the format date", path("range", "inclusive")...)
	}
	if e.Range.MaxDays < 0 {
		k.p.Add("range", "must be at least 0", path("range", "max_days")...)
	}
}

func (e *Resource) checkPaging(k *checker, path func(...any) []any) {
	p := &e.Paging
	k.oneOf(p.Kind, path("paging", "kind"), pageNone, pageCursor, pageURL, pageLink, pageNumber, pageOffset)
	switch p.Kind {
	case pageCursor, pageURL:
		k.needPlace(p.Next, "/next", path("paging", "next")...)
	case pageNumber, pageOffset:
		k.need(p.Size > 0, "must be at least 1 for the kind "+p.Kind, path("paging", "size")...)
	}
	if p.Kind == pageCursor || p.Kind == pageNumber || p.Kind == pageOffset {
		k.need(p.Param != "", "must be the name of a query parameter for the kind "+p.Kind, path("paging", "param")...)
	}
	k.pointer(p.Next, path("paging", "next")...)
	if p.Size < 0 || p.First < 0 || p.MaxPages < 0 || p.MaxPages > mostPages {
		k.p.Add("range", fmt.Sprintf("size and first must be at least 0, and max_pages must be from 0 to %d", mostPages), path("paging")...)
	}
	for _, name := range []string{p.Param, p.SizeParam} {
		if _, twice := e.Query[name]; twice {
			k.p.Add("reserved", "must be absent: paging sets this parameter", path("query", name)...)
		}
	}
}

func (k *checker) needField(r *healthdata.Resource, path []any) {
	k.need(false, "must be set for the resource "+r.Slug, path...)
}

func (k *checker) notAField(r *healthdata.Resource, path []any) {
	k.p.Add("not_allowed", "must be absent: the resource "+r.Slug+" has no such field", path...)
}

func (k *checker) optional(f *Field, to kind, e *Resource, path []any) {
	if f != nil {
		k.field(f, to, false, e, path)
	}
}

// itemPointer checks a JSON pointer (place) inside an item of e: it must be well-formed and select one value.
func (k *checker) itemPointer(place string, e *Resource, path []any) {
	out, _, ok := steps(place)
	_, _, known := steps(e.Items)
	switch {
	case !ok:
		k.pointer(place, path...)
	case known && out > depth(e.Items):
		k.p.Add("place", "must not have more ^ than the item has parents", path...)
	case wildcards(place) > 0:
		k.p.Add("place", "must select one value, not a list", path...)
	}
}

// field checks that f can be read as the kind to, or as a list of values of that kind if list is true.
func (k *checker) field(f *Field, to kind, list bool, e *Resource, path []any) {
	at := func(part any) []any { return append(slices.Clone(path), part) }
	if (f.At == "") == (f.Const == "") {
		k.p.Add("one_of", "must have exactly one of at, const", path...)
		return
	}
	if f.At != "" && list {
		out, _, ok := steps(f.At)
		if !ok || wildcards(f.At) != 1 || out > depth(e.Items) {
			k.p.Add("place", "must have exactly one step *, so that it selects a list", at("at")...)
		}
	} else if f.At != "" {
		k.itemPointer(f.At, e, at("at"))
	}
	if f.DateAt != "" {
		k.itemPointer(f.DateAt, e, at("date_at"))
	}
	if f.ZoneAt != "" {
		k.itemPointer(f.ZoneAt, e, at("zone_at"))
	}
	if list && f.Const != "" {
		k.p.Add("one_of", "must be at, not const, for a list", at("const")...)
	}
	k.format(f, to, at)
	if f.Const != "" && to != word {
		r := reader{it: &item{inside: []any{nil}}, zone: time.UTC}
		_, _ = r.read(f, to, "") // a constant that does not fit is in r.p
		for _, wrong := range r.p {
			k.p.Add("const", wrong.Msg, at("const")...)
		}
	}
}

// format checks the conversion of f: its format, zone, factors and map must be valid and applicable to the kind to. at
// returns the path of a key of f.
func (k *checker) format(f *Field, to kind, at func(any) []any) {
	timed := to == instant
	allowed := map[string]bool{
		"format": timed || to == day, "date_at": timed, "zone": timed, "zone_at": timed,
		"times": to == number || to == whole || to == offset, "plus": to == number || to == whole || to == offset,
		"map": to == word || to == flag, "else": to == word || to == flag,
	}
	set := map[string]bool{
		"format": f.Format != "", "date_at": f.DateAt != "", "zone": f.Zone != "", "zone_at": f.ZoneAt != "",
		"times": f.Times != nil, "plus": f.Plus != 0, "map": f.Map != nil, "else": f.Else != nil,
	}
	for _, name := range slices.Sorted(maps.Keys(set)) {
		if set[name] && !allowed[name] {
			k.p.Add("not_allowed", "must be absent: it does not apply to this field", at(name)...)
		}
	}
	k.oneOf(f.Format, at("format"), formatISO, formatUnix, formatUnixMS, formatFloating)
	if timed && (f.Format == formatFloating) != k.floating {
		k.p.Add("floating", "must be floating exactly if the affinity of the provider's record is floating", at("format")...)
	}
	if f.Zone != "" && f.Zone != zoneUser {
		if _, err := time.LoadLocation(f.Zone); err != nil || f.Zone == "Local" {
			k.p.Add("unknown_zone", "must be user or an identifier of the IANA time zone database", at("zone")...)
		}
	}
	if f.Zone != "" && f.ZoneAt != "" {
		k.p.Add("one_of", "must have only one of zone, zone_at", at("zone_at")...)
	}
	if f.Else != nil && f.Map == nil {
		k.need(false, "must be set, because else applies only to values that are not in map", at("map")...)
	}
}

func (k *checker) sample(e *Resource, r *healthdata.Resource, path []any) {
	s := e.Sample
	at := func(part any) []any { return append(slices.Clone(path), part) }
	k.field(&s.Timestamp, instant, false, e, at("timestamp"))
	k.optional(s.End, instant, e, at("end"))
	k.optional(s.Seconds, number, e, at("seconds"))
	k.optional(s.TimezoneOffset, offset, e, at("timezone_offset"))
	if s.End != nil && s.Seconds != nil {
		k.p.Add("one_of", "must have only one of end, seconds", at("seconds")...)
	}
	if r.Shape == healthdata.Interval && s.End == nil && s.Seconds == nil {
		k.need(false, "end or seconds must be set for the interval resource "+r.Slug, at("end")...)
	}
	pressure := r.Value == healthdata.ValuePressure
	for _, f := range []struct {
		name string
		f    *Field
		to   kind
		need bool
		may  bool
	}{
		{"value", s.Value, map[bool]kind{true: word, false: number}[r.Value == healthdata.ValueText], !pressure, !pressure},
		{"systolic", s.Systolic, number, pressure, pressure},
		{"diastolic", s.Diastolic, number, pressure, pressure},
		{"type", s.Type, word, r.TypeRequired, r.TypeRequired || r.Types != nil},
		{"sensor_location", s.SensorLocation, word, false, slices.Contains(r.Fields, "sensor_location")},
		{"intensity", s.Intensity, word, false, slices.Contains(r.Fields, "intensity")},
		{"delivery_mode", s.DeliveryMode, word, false, slices.Contains(r.Fields, "delivery_mode")},
		{"delivery_form", s.DeliveryForm, word, false, slices.Contains(r.Fields, "delivery_form")},
		{"bolus_purpose", s.BolusPurpose, word, false, slices.Contains(r.Fields, "bolus_purpose")},
	} {
		switch {
		case f.f == nil && f.need:
			k.needField(r, at(f.name))
		case f.f != nil && !f.may:
			k.notAField(r, at(f.name))
		default:
			k.optional(f.f, f.to, e, at(f.name))
		}
	}
	if s.Tags != nil {
		if !slices.Contains(r.Fields, "tags") {
			k.notAField(r, at("tags"))
		} else {
			k.field(s.Tags, word, true, e, at("tags"))
		}
	}
	k.unit(e, r, at("unit"))
}

// unit checks that the units of e, which maps samples, can be converted to the unit of r.
func (k *checker) unit(e *Resource, r *healthdata.Resource, path []any) {
	f := &e.Sample.Unit
	k.field(f, word, false, e, path)
	units := slices.Sorted(maps.Values(f.Map))
	if f.Const != "" {
		units = []string{f.Const}
		if to, ok := f.Map[f.Const]; ok {
			units = []string{to}
		}
	}
	if f.Else != nil {
		units = append(units, *f.Else)
	}
	for _, u := range units {
		kinds := r.Types
		if len(kinds) == 0 {
			kinds = []string{""}
		}
		known := slices.ContainsFunc(kinds, func(t string) bool {
			_, ok := r.Convert(1, u, t)
			return ok
		})
		if !known && r.Value != healthdata.ValueText {
			k.p.Add("unit", "must be a unit that can be converted to "+r.Unit, path...)
		}
	}
}

func (k *checker) summary(e *Resource, r *healthdata.Resource, path []any) {
	known := targets(r)
	k.need(len(e.Summary.Fields) > 0, "must have at least one field", append(slices.Clone(path), "fields")...)
	if e.Summary.ID != "" {
		k.itemPointer(e.Summary.ID, e, append(slices.Clone(path), "id"))
	}
	for _, name := range slices.Sorted(maps.Keys(e.Summary.Fields)) {
		at := append(slices.Clone(path), "fields", name)
		to, ok := known[name]
		if !ok {
			k.p.Add("unknown_key", "must be one of: "+strings.Join(slices.Sorted(maps.Keys(known)), ", "), at...)
			continue
		}
		f := e.Summary.Fields[name]
		k.field(&f, to.kind, to.list, e, at)
	}
}

func orText(s, def string) string {
	if s == "" {
		return def
	}
	return s
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }
