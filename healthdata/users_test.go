package healthdata_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/memory"
	"github.com/healthlab-dev/healthlab/healthdata"
)

var team = healthlab.TeamID{UUID: uuid.MustParse("8f14e45f-ceea-467f-9b1c-3d4a0a1b2c3d")}

// fixture is a service on a store in memory, with a clock of its own.
type fixture struct {
	*testing.T
	*healthdata.Service
	store *memory.Store
	now   time.Time
	read  int // how often the clock was read
}

// newFixture begins at noon of a Wednesday.
func newFixture(t *testing.T, opts healthdata.Options) *fixture {
	t.Helper()
	w := &fixture{T: t, now: time.Date(2026, 3, 4, 12, 0, 0, 0, time.UTC)}
	w.store = memory.New(&memory.Options{Now: func() time.Time { return w.now }})
	opts.Environment = cmp.Or(opts.Environment, healthlab.Sandbox)
	opts.Now = func() time.Time {
		w.read++
		return w.now
	}
	providers, err := healthdata.NewProviders([]healthdata.Provider{
		{Slug: "manual", Name: "Manual", Category: "app", Class: "manual"},
		{
			Slug: "apple_health_kit", Name: "Apple HealthKit", Category: "app", Class: "sdk_store", AuthType: "sdk",
			Logo: new("https://example.com/ahk.png"), MultiApp: true,
			Resources: []healthdata.ProviderResource{{Resource: "steps"}, {Resource: "sleep"}},
		},
		{
			Slug: "acme_ring", Name: "Acme Ring", Category: "device", Class: "cloud", AuthType: "oauth", Demo: true,
			Resources: []healthdata.ProviderResource{{Resource: "sleep"}, {Resource: "activity"}},
			Scopes: map[string]healthdata.Scopes{
				"sleep":    {Required: []string{"sleep.read"}, Optional: []string{"spo2.read"}},
				"activity": {Required: []string{"move.read"}},
			},
		},
	})
	require.NoError(t, err)
	w.Service, err = healthdata.New(w.store.Users(), w.store.Data(), providers, &opts)
	require.NoError(t, err)
	return w
}

func (w *fixture) pass(d time.Duration) { w.now = w.now.Add(d) }

func (w *fixture) at() healthlab.Time { return healthlab.At(w.now) }

func (w *fixture) create(name string) healthdata.User {
	w.Helper()
	u, err := w.CreateUser(w.Context(), team, healthdata.NewUser{ClientUserID: name})
	require.NoError(w, err)
	return u
}

// codes returns what is wrong with an input, as field:code.
func codes(t *testing.T, err error) []string {
	t.Helper()
	var invalid *healthlab.InvalidError
	require.ErrorAs(t, err, &invalid)
	var out []string
	for _, p := range invalid.Problems {
		out = append(out, fmt.Sprint(p.Path...)+":"+p.Code)
	}
	return out
}

// requireRule requires a broken rule of this name, which is not a fault of the input.
func requireRule(t *testing.T, name string, err error) {
	t.Helper()
	var rule *healthlab.RuleError
	require.ErrorAs(t, err, &rule)
	require.Equal(t, name, rule.Type)
	require.ErrorIs(t, err, healthlab.Precondition)
}

func day(s string) *healthlab.Date {
	d, err := healthlab.ParseDate(s)
	if err != nil {
		panic(err)
	}
	return &d
}

func ExampleService_CreateOrGet() {
	store := memory.New(nil)
	providers, _ := healthdata.NewProviders(nil)
	service, _ := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})

	// The first sign-up creates the user …
	ann := healthdata.NewUser{ClientUserID: "patient-17", FallbackTimeZone: new("Europe/Vienna")}
	first, created, _ := service.CreateOrGet(ctx, team, ann)
	fmt.Println("created:", created, "in", first.FallbackTimeZone.ID)

	// … the app is reinstalled, the request comes again, and finds the same person.
	second, created, _ := service.CreateOrGet(ctx, team, ann)
	fmt.Println("created:", created, "same:", second.ID == first.ID)

	// Who only creates learns whose the id is.
	_, err := service.CreateUser(ctx, team, ann)
	var taken *healthdata.ClientUserIDError
	fmt.Println(errors.As(err, &taken) && taken.User == first.ID)
	// Output:
	// created: true in Europe/Vienna
	// created: false same: true
	// true
}

func TestCreateUser_storesEveryField(t *testing.T) {
	w := newFixture(t, healthdata.Options{})
	u, err := w.CreateUser(t.Context(), team, healthdata.NewUser{
		ClientUserID: "ann", FallbackTimeZone: new("Etc/GMT+5"), FallbackBirthDate: day("2026-03-04"),
		IngestionStart: day("2026-03-01"), IngestionEnd: day("2026-03-01"),
	})
	require.NoError(t, err)
	require.Equal(t, uuid.Version(4), u.ID.Version())
	require.Equal(t, healthdata.User{
		ID: u.ID, Team: team, ClientUserID: "ann", CreatedOn: w.at(), ConnectedSources: []healthdata.ConnectedSource{},
		FallbackTimeZone:  healthdata.FallbackTimeZone{ID: "Etc/GMT+5", SourceSlug: "manual", UpdatedAt: w.at()},
		FallbackBirthDate: &healthdata.FallbackBirthDate{Value: *day("2026-03-04"), SourceSlug: "manual", UpdatedAt: w.at()},
		IngestionStart:    day("2026-03-01"), IngestionEnd: day("2026-03-01"), Revision: 1,
	}, u)
	got, err := w.User(t.Context(), team, u.ID)
	require.NoError(t, err)
	require.Equal(t, u, got)
	require.Equal(t, 1, w.read, "the clock is read once for an operation")
}

func TestUser_hasTheDocumentedJSON(t *testing.T) {
	w := newFixture(t, healthdata.Options{NewUserID: func() uuid.UUID { return uuid.UUID{15: 7} }})
	b, err := json.Marshal(w.create("ann"))
	require.NoError(t, err)
	require.JSONEq(t, `{
		"user_id": "00000000-0000-0000-0000-000000000007",
		"team_id": "8f14e45f-ceea-467f-9b1c-3d4a0a1b2c3d",
		"client_user_id": "ann",
		"created_on": "2026-03-04T12:00:00+00:00",
		"connected_sources": [],
		"fallback_time_zone": {"id": "UTC", "source_slug": "default", "updated_at": "2026-03-04T12:00:00+00:00"},
		"ingestion_start": null,
		"ingestion_end": null
	}`, string(b))
}

func TestCreateUser_invalidFieldsAreRefusedTogether(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   healthdata.NewUser
		want []string
	}{
		{"nothing", healthdata.NewUser{}, []string{"client_user_id:too_short"}},
		{"zone", healthdata.NewUser{ClientUserID: "a", FallbackTimeZone: new("Mars/Olympus")}, []string{"fallback_time_zone:unknown_zone"}},
		{"zone of the machine", healthdata.NewUser{ClientUserID: "a", FallbackTimeZone: new("Local")}, []string{"fallback_time_zone:unknown_zone"}},
		{"empty zone", healthdata.NewUser{ClientUserID: "a", FallbackTimeZone: new("")}, []string{"fallback_time_zone:unknown_zone"}},
		{"zone that is a path", healthdata.NewUser{ClientUserID: "a", FallbackTimeZone: new("../zone")}, []string{"fallback_time_zone:unknown_zone"}},
		{"born tomorrow", healthdata.NewUser{ClientUserID: "a", FallbackBirthDate: day("2026-03-05")}, []string{"fallback_birth_date:future"}},
		{"start after end", healthdata.NewUser{ClientUserID: "a", IngestionStart: day("2026-03-02"), IngestionEnd: day("2026-03-01")}, []string{"ingestion_end:order"}},
		{"no such day", healthdata.NewUser{ClientUserID: "a", IngestionStart: &healthlab.Date{Year: 2026, Month: 2, Day: 30}}, []string{"ingestion_start:no_such_day"}},
		{"everything", healthdata.NewUser{
			ClientUserID: " ", FallbackTimeZone: new("x"), FallbackBirthDate: &healthlab.Date{Year: 10000, Month: 1, Day: 1},
			IngestionStart: day("2026-03-02"), IngestionEnd: day("2026-03-01"),
		}, []string{
			"client_user_id:white_space", "fallback_time_zone:unknown_zone",
			"fallback_birth_date:no_such_day", "ingestion_end:order",
		}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newFixture(t, healthdata.Options{})
			_, err := w.CreateUser(t.Context(), team, tt.in)
			require.Equal(t, tt.want, codes(t, err))
			page, err := w.Users(t.Context(), team, 0, 0)
			require.NoError(t, err)
			require.Zero(t, page.Total)
		})
	}
}

func TestCreateUser_birthDateIsCheckedInTheUsersZone(t *testing.T) {
	w := newFixture(t, healthdata.Options{}) // noon in UTC is the next day in Kiribati
	_, err := w.CreateUser(t.Context(), team, healthdata.NewUser{
		ClientUserID: "a", FallbackTimeZone: new("Pacific/Kiritimati"), FallbackBirthDate: day("2026-03-05"),
	})
	require.NoError(t, err)
}

func TestClientUserID_withPersonalDataIsRefused(t *testing.T) {
	for _, tt := range []struct {
		name, id, code string
	}{
		{"numeric", "4711", ""},
		{"digits like a phone", "15551234567", ""},
		{"a slash and more", `a/b?c#d%e"f\g`, ""},
		{"contains an address", "user ann@example.com", "personal_data"},
		{"name and address", "Ann <ann@example.com>", "personal_data"},
		{"escaped address", "ann%40example.com", "personal_data"},
		{"phone with spaces", "+1 217 555 0100", "personal_data"},
		{"phone with parentheses", "(217) 555-0100", "personal_data"},
		{"national phone", "217-555-0100", "personal_data"},
		{"telephone URI", "tel:+4915112345678", "personal_data"},
		{"international prefix", "0049 151 1234567", "personal_data"},
		{"six digits", "123456", ""},
		{"sixteen digits", "1234567890123456", ""},
		{"groups of digits", "1234-5678-9012", ""},
		{"zeros in front", "0000123456", ""},
		{"percent sign", "50% off", ""},
		{"two at signs", "a@b@example.com", ""},
		{"at sign without dot", "ann@home", ""},
		{"short plus", "+123456", ""},
		{"long plus", "+1234567890123456", ""},
		{"256 characters", strings.Repeat("é", 256), ""},
		{"space inside", "a b", ""},
		{"empty", "", "too_short"},
		{"257 characters", strings.Repeat("é", 257), "too_long"},
		{"space before", " a", "white_space"},
		{"space after", "a\u00a0", "white_space"},
		{"newline after", "a\n", "white_space"},
		{"tab inside", "a\tb", "control_character"},
		{"NUL inside", "a\x00b", "control_character"},
		{"C1 control", "a\u0085b", "control_character"},
		{"not UTF-8", "a\xff", "encoding"},
		{"address", "ann@example.com", "personal_data"},
		{"short phone", "+1234567", "personal_data"},
		{"long phone", "+123456789012345", "personal_data"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			w := newFixture(t, healthdata.Options{})
			u, err := w.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: tt.id})
			ids := map[bool]string{true: tt.id}[err == nil]
			if tt.code != "" {
				require.Equal(t, []string{"client_user_id:" + tt.code}, codes(t, err))
				patched := w.create("x")
				_, err = w.PatchUser(t.Context(), team, patched.ID, healthdata.UserPatch{ClientUserID: &tt.id})
				require.Equal(t, []string{"client_user_id:" + tt.code}, codes(t, err))
			}
			require.Equal(t, ids, u.ClientUserID)
		})
	}
}

// FuzzClientUserID: an id is either refused, and no user has it, or kept byte for byte.
func FuzzClientUserID(f *testing.F) {
	for _, s := range []string{"ann", "", " ", "a@b.c", "+4912345678", "a\x00", "\xff", "🦊", "a\u2028", "%2e%2e/"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, id string) {
		w := newFixture(t, healthdata.Options{})
		u, err := w.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: id})
		got, found := w.ResolveUser(t.Context(), team, id)
		if err != nil {
			require.ErrorIs(t, err, healthlab.Invalid)
			require.ErrorIs(t, found, healthlab.NotFound)
			return
		}
		require.NoError(t, found)
		require.Equal(t, u, got)
		require.Equal(t, id, got.ClientUserID)
	})
}

func TestCreateUser_takenClientUserIDNamesTheUser(t *testing.T) {
	w := newFixture(t, healthdata.Options{})
	first := w.create("ann")
	w.pass(time.Hour)
	_, err := w.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "ann"})
	var taken *healthdata.ClientUserIDError
	require.ErrorAs(t, err, &taken)
	require.Equal(t, healthdata.ClientUserIDError{User: first.ID, CreatedOn: first.CreatedOn}, *taken)

	got, created, err := w.CreateOrGet(t.Context(), team, healthdata.NewUser{ClientUserID: "ann", FallbackTimeZone: new("Asia/Tokyo")})
	require.NoError(t, err)
	require.False(t, created)
	require.Equal(t, first, got, "as it is")

	got, created, err = w.CreateOrGet(t.Context(), team, healthdata.NewUser{ClientUserID: "Ann"})
	require.NoError(t, err)
	require.True(t, created)
	require.NotEqual(t, first.ID, got.ID)

	_, _, err = w.CreateOrGet(t.Context(), team, healthdata.NewUser{})
	require.ErrorIs(t, err, healthlab.Invalid)
}

func TestUserLimit_appliesToSandboxesAndMaxUsers(t *testing.T) {
	fill := func(t *testing.T, n int, opts healthdata.Options) *fixture {
		w := newFixture(t, opts)
		for i := range n {
			w.create(fmt.Sprint(i))
		}
		return w
	}
	full := func(t *testing.T, w *fixture) {
		_, err := w.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "one more"})
		requireRule(t, healthdata.RuleUserLimit, err)
		_, created, err := w.CreateOrGet(t.Context(), team, healthdata.NewUser{ClientUserID: "7"})
		require.NoError(t, err)
		require.False(t, created, "who is there is found in a full sandbox too")
	}
	t.Run("sandbox", func(t *testing.T) { full(t, fill(t, healthdata.SandboxUsers, healthdata.Options{})) })
	t.Run("set", func(t *testing.T) {
		full(t, fill(t, 8, healthdata.Options{Environment: healthlab.Production, MaxUsers: 8}))
	})
	t.Run("production", func(t *testing.T) {
		fill(t, healthdata.SandboxUsers, healthdata.Options{Environment: healthlab.Production}).create("one more")
	})
}

func TestUsers_pagesAreOrderedByCreationAndBounded(t *testing.T) {
	w := newFixture(t, healthdata.Options{Environment: healthlab.Production})
	for i := range 102 {
		w.create(fmt.Sprintf("%03d", i))
		w.pass(time.Second)
	}
	for _, tt := range []struct {
		name          string
		offset, limit int
		first         string
		n             int
	}{
		{"defaults", 0, 0, "000", 100},
		{"most", 0, 500, "000", 102},
		{"one", 7, 1, "007", 1},
		{"end", 100, 10, "100", 2},
	} {
		t.Run(tt.name, func(t *testing.T) {
			page, err := w.Users(t.Context(), team, tt.offset, tt.limit)
			require.NoError(t, err)
			require.Equal(t, 102, page.Total)
			require.Len(t, page.Users, tt.n)
			require.Equal(t, tt.first, page.Users[0].ClientUserID)
			require.NotNil(t, page.Users[0].ConnectedSources)
		})
	}
	past, err := w.Users(t.Context(), team, 102, 10)
	require.NoError(t, err)
	require.Equal(t, healthdata.UserPage{Users: []healthdata.User{}, Total: 102}, past)
	_, err = w.Users(t.Context(), team, -1, 501)
	require.Equal(t, []string{"offset:too_small", "limit:too_large"}, codes(t, err))
	_, err = w.Users(t.Context(), team, 0, -1)
	require.Equal(t, []string{"limit:too_small"}, codes(t, err))
}

func TestResolveUser_matchesTheClientUserIDExactly(t *testing.T) {
	w := newFixture(t, healthdata.Options{})
	u := w.create("a/b ü")
	got, err := w.ResolveUser(t.Context(), team, "a/b ü")
	require.NoError(t, err)
	require.Equal(t, u, got)
	for _, id := range []string{"A/b ü", "a", "", "a\x00", "\xff"} {
		_, err := w.ResolveUser(t.Context(), team, id)
		require.ErrorIs(t, err, healthlab.NotFound)
	}
	_, err = w.ResolveUser(t.Context(), healthlab.TeamID{UUID: uuid.New()}, "a/b ü")
	require.ErrorIs(t, err, healthlab.NotFound)
}

func TestSearchUsers_findsByClientUserIDPrefixOrID(t *testing.T) {
	w := newFixture(t, healthdata.Options{Environment: healthlab.Production})
	for i := range 51 {
		w.create(fmt.Sprintf("Zed-%02d", i))
		w.pass(time.Second)
	}
	found, err := w.SearchUsers(t.Context(), team, "zE")
	require.NoError(t, err)
	require.Len(t, found, 50)
	require.Equal(t, "Zed-00", found[0].ClientUserID)

	byID, err := w.SearchUsers(t.Context(), team, strings.ToUpper(found[3].ID.String()))
	require.NoError(t, err)
	require.Equal(t, found[3:4], byID)

	for _, q := range []string{"-0", "%%", "a\x00"} {
		none, err := w.SearchUsers(t.Context(), team, q)
		require.NoError(t, err)
		require.Equal(t, []healthdata.User{}, none)
	}
	for _, q := range []string{"", "z", "é"} {
		_, err = w.SearchUsers(t.Context(), team, q)
		require.Equal(t, []string{"query_id:too_short"}, codes(t, err))
	}
}

func TestPatchUser_changesOnlyTheGivenFields(t *testing.T) {
	type patch = healthdata.UserPatch
	w := newFixture(t, healthdata.Options{})
	full := healthdata.NewUser{
		ClientUserID: "ann", FallbackTimeZone: new("Asia/Tokyo"), FallbackBirthDate: day("1980-01-01"),
		IngestionStart: day("2026-01-01"), IngestionEnd: day("2026-12-31"),
	}
	ann, err := w.CreateUser(t.Context(), team, full)
	require.NoError(t, err)
	created := ann.CreatedOn
	w.pass(time.Hour)
	do := func(p patch) healthdata.User {
		t.Helper()
		got, err := w.PatchUser(t.Context(), team, ann.ID, p)
		require.NoError(t, err)
		stored, err := w.User(t.Context(), team, ann.ID)
		require.NoError(t, err)
		require.Equal(t, stored, got)
		return got
	}

	require.Equal(t, ann, do(patch{}), "absent is unchanged, and writes nothing")

	same := do(patch{FallbackTimeZone: healthdata.SetTo("Asia/Tokyo"), FallbackBirthDate: healthdata.SetTo(*day("1980-01-01"))})
	require.Equal(t, ann.FallbackTimeZone, same.FallbackTimeZone, "the same value is not an update")
	require.Equal(t, ann.FallbackBirthDate, same.FallbackBirthDate)

	got := do(patch{FallbackTimeZone: healthdata.SetTo("Europe/Oslo"), FallbackBirthDate: healthdata.SetTo(*day("1980-01-02"))})
	require.Equal(t, healthdata.FallbackTimeZone{ID: "Europe/Oslo", SourceSlug: "manual", UpdatedAt: w.at()}, got.FallbackTimeZone)
	require.Equal(t, &healthdata.FallbackBirthDate{Value: *day("1980-01-02"), SourceSlug: "manual", UpdatedAt: w.at()}, got.FallbackBirthDate)
	require.Equal(t, day("2026-01-01"), got.IngestionStart)

	got = do(patch{
		FallbackTimeZone: healthdata.Cleared[string](), FallbackBirthDate: healthdata.Cleared[healthlab.Date](),
		IngestionStart: healthdata.Cleared[healthlab.Date](), IngestionEnd: healthdata.Cleared[healthlab.Date](),
		ClientUserID: new("anna"),
	})
	require.Equal(t, healthdata.FallbackTimeZone{ID: "UTC", SourceSlug: "default", UpdatedAt: created}, got.FallbackTimeZone)
	require.Nil(t, got.FallbackBirthDate)
	require.Nil(t, got.IngestionStart)
	require.Nil(t, got.IngestionEnd)
	require.Equal(t, "anna", got.ClientUserID)
	w.create("ann") // free again

	do(patch{IngestionEnd: healthdata.SetTo(*day("2026-06-30"))})
	_, err = w.PatchUser(t.Context(), team, ann.ID, patch{
		IngestionStart: healthdata.SetTo(*day("2026-07-01")), FallbackTimeZone: healthdata.SetTo("x"),
	})
	require.Equal(t, []string{"fallback_time_zone:unknown_zone", "ingestion_end:order"}, codes(t, err),
		"the bound that is stored counts")
	_, err = w.PatchUser(t.Context(), team, ann.ID, patch{ClientUserID: new("ann")})
	var taken *healthdata.ClientUserIDError
	require.ErrorAs(t, err, &taken)

	for _, p := range []patch{{}, {ClientUserID: new("x")}} {
		_, err = w.PatchUser(t.Context(), team, healthlab.UserID{UUID: uuid.New()}, p)
		require.ErrorIs(t, err, healthlab.NotFound)
		_, err = w.PatchUser(t.Context(), healthlab.TeamID{UUID: uuid.New()}, ann.ID, p)
		require.ErrorIs(t, err, healthlab.NotFound)
	}
}

func TestTeamMetrics_countUsersAndConnectionsByWeek(t *testing.T) {
	w := newFixture(t, healthdata.Options{})
	m, err := w.TeamMetrics(t.Context(), team)
	require.NoError(t, err)
	require.Equal(t, healthdata.TeamMetrics{Team: team, ConnectedSourcesByWeek: []healthdata.WeekCount{}}, m)

	u := w.create("ann")
	_, err = w.Connections().Connect(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "manual"})
	require.NoError(t, err)
	m, err = w.TeamMetrics(t.Context(), team)
	require.NoError(t, err)
	require.Equal(t, healthdata.TeamMetrics{
		Team: team, Users: 1, ConnectedSources: 1,
		ConnectedSourcesByWeek: []healthdata.WeekCount{{Date: *day("2026-03-02"), Value: 1, All: 1}},
	}, m)
}

// When ingestion has ended, late data of the days before is still taken, and nothing
// of later days.
func TestIngestionEnd_lateDataOfEarlierDaysIsStillAccepted(t *testing.T) {
	w := newFixture(t, healthdata.Options{})
	u, err := w.CreateUser(t.Context(), team, healthdata.NewUser{ClientUserID: "ann", IngestionEnd: day("2026-03-03")})
	require.NoError(t, err)
	_, err = w.Connections().Connect(t.Context(), team, u.ID, healthdata.NewConnection{Provider: "apple_health_kit"})
	require.NoError(t, err)
	send := func(at string) healthdata.Counts {
		t.Helper()
		instant, err := healthlab.ParseTime(at)
		require.NoError(t, err)
		end := healthlab.At(instant.Add(time.Minute))
		counts, err := w.IngestSamples(t.Context(), team, u.ID, "steps", healthdata.Upload{
			Provider: "apple_health_kit", Source: healthdata.Source{Type: healthdata.SourcePhone},
		}, []healthdata.Sample{{Timestamp: instant, Start: &instant, End: &end, Unit: "count", Value: healthdata.Number(7)}})
		require.NoError(t, err)
		return counts
	}
	require.Equal(t, healthdata.Counts{New: 1}, send("2026-03-03T23:00:00Z"))
	require.Equal(t, healthdata.Counts{Dropped: 1}, send("2026-03-04T01:00:00Z"))
	w.pass(healthdata.LateDelivery * 24 * time.Hour)
	require.Equal(t, healthdata.Counts{New: 1}, send("2026-03-02T23:00:00Z"))

	_, err = w.PatchUser(t.Context(), team, u.ID, healthdata.UserPatch{IngestionEnd: healthdata.SetTo(*day("2026-03-04"))})
	require.NoError(t, err)
	require.Equal(t, healthdata.Counts{New: 1}, send("2026-03-04T01:00:00Z"), "what was dropped may be sent again")
}
