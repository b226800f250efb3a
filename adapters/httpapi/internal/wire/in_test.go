package wire_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
)

func get(query string) *wire.In {
	return wire.From(httptest.NewRequest(http.MethodGet, "/x?"+query, nil))
}

// problems are what is wrong with the request, in short.
func problems(t *testing.T, in *wire.In) []string {
	t.Helper()
	err := in.Err()
	if err == nil {
		return nil
	}
	require.ErrorIs(t, err, healthlab.Invalid)
	var input *wire.InputError
	require.ErrorAs(t, err, &input)
	return said(input.Problems)
}

func TestQuery_readsEveryKindOfParameter(t *testing.T) {
	in := get("s=a&s=b&n=7&f=2.5&b=true&id=7B9A1B1E-0000-4000-8000-000000000001&d=2026-03-01&t=2026-03-01T08:00:00%2B01:00" +
		"&from=2026-03-01&to=2026-03-01&x=hello&one=asc&r=25&space=2026-03-01T08:00:00+01:00&ids=7b9a1b1e-0000-4000-8000-000000000001")
	require.Equal(t, []string{"a", "b"}, in.Strings("s", "a", "b", "c"))
	require.Equal(t, 7, in.Int("n", 1, 1, 10))
	require.Equal(t, 1, in.Int("absent", 1, 1, 10))
	require.InEpsilon(t, 2.5, in.Float("f", 1, 0, 10), 0)
	require.True(t, in.Bool("b", false))
	require.Nil(t, in.OptBool("no_b"))
	require.Equal(t, uuid.MustParse("7b9a1b1e-0000-4000-8000-000000000001"), in.UUID("id"))
	require.Equal(t, []uuid.UUID{uuid.MustParse("7b9a1b1e-0000-4000-8000-000000000001")}, in.UUIDs("ids"))
	require.Equal(t, "2026-03-01", in.Date("d").String())
	require.Equal(t, "2026-03-01T07:00:00+00:00", in.Time("t", wire.StartOfDay).String())
	require.Equal(t, "2026-03-01T07:00:00+00:00", in.Time("space", wire.StartOfDay).String())
	require.Equal(t, "2026-03-01T00:00:00+00:00", in.OptTime("from", wire.StartOfDay).String())
	require.Equal(t, "2026-03-01T23:59:59+00:00", in.OptTime("to", wire.EndOfDay).String())
	require.Equal(t, "hello", in.Text("x", 10))
	require.Equal(t, "asc", in.OneOf("one", "desc", "asc", "desc"))
	require.Equal(t, 25, in.IntOneOf("r", 25, 10, 25))
	require.NoError(t, in.Err())
}

func TestQuery_reportsEachInvalidParameter(t *testing.T) {
	for _, tt := range []struct {
		name, query string
		read        func(*wire.In)
		want        []string
	}{
		{"unknown", "limt=5&a=1", func(in *wire.In) { in.Int("limit", 1, 1, 5) },
			[]string{"query.a: unknown_parameter", "query.limt: unknown_parameter"}},
		{"repeated", "n=1&n=2", func(in *wire.In) { in.Int("n", 1, 1, 5) }, []string{"query.n: repeated"}},
		{"too small", "n=0", func(in *wire.In) { in.Int("n", 1, 1, 5) }, []string{"query.n: too_small"}},
		{"too large", "n=6", func(in *wire.In) { in.Int("n", 1, 1, 5) }, []string{"query.n: too_large"}},
		{"no number", "n=x", func(in *wire.In) { in.Int("n", 1, 1, 5) }, []string{"query.n: wrong_type"}},
		{"beyond int", "n=99999999999999999999", func(in *wire.In) { in.Int("n", 1, 1, 5) }, []string{"query.n: too_large"}},
		{"below int", "n=-99999999999999999999", func(in *wire.In) { in.Int("n", 1, 1, 5) }, []string{"query.n: too_small"}},
		{"fraction", "n=1.0", func(in *wire.In) { in.Int("n", 1, 1, 5) }, []string{"query.n: wrong_type"}},
		{"NaN", "f=NaN", func(in *wire.In) { in.Float("f", 1, 0, 5) }, []string{"query.f: wrong_type"}},
		{"infinite", "f=1e999", func(in *wire.In) { in.Float("f", 1, 0, 5) }, []string{"query.f: wrong_type"}},
		{"hexadecimal", "f=0x1p-2", func(in *wire.In) { in.Float("f", 1, 0, 5) }, []string{"query.f: wrong_type"}},
		{"float out of range", "f=5.1", func(in *wire.In) { in.Float("f", 1, 0, 5) }, []string{"query.f: too_large"}},
		{"bool", "b=yes", func(in *wire.In) { in.Bool("b", true) }, []string{"query.b: wrong_type"}},
		{"uuid", "id=x", func(in *wire.In) { in.UUID("id") }, []string{"query.id: bad_uuid"}},
		{"missing", "", func(in *wire.In) { in.UUID("id"); in.Date("d"); in.Text("x", 5) },
			[]string{"query.id: missing", "query.d: missing", "query.x: missing"}},
		{"uuids", "id=x&id=y", func(in *wire.In) { in.UUIDs("id") }, []string{"query.id[0]: bad_uuid", "query.id[1]: bad_uuid"}},
		{"date", "d=2026-02-30", func(in *wire.In) { in.OptDate("d") }, []string{"query.d: bad_date"}},
		{"moment", "t=yesterday", func(in *wire.In) { in.OptTime("t", wire.StartOfDay) }, []string{"query.t: bad_date_time"}},
		{"moment without an offset", "t=2026-03-01T07:00:00", func(in *wire.In) { in.OptTime("t", wire.StartOfDay) }, []string{"query.t: bad_date_time"}},
		{"moment as a day", "t=2026-02-30", func(in *wire.In) { in.OptTime("t", wire.StartOfDay) }, []string{"query.t: bad_date"}},
		{"list", "s=a&s=z", func(in *wire.In) { in.Strings("s", "a") }, []string{"query.s[1]: not_allowed"}},
		{"one of", "s=z", func(in *wire.In) { in.OneOf("s", "a", "a") }, []string{"query.s: not_allowed"}},
		{"one number of", "s=11", func(in *wire.In) { in.IntOneOf("s", 25, 10, 25) }, []string{"query.s: not_allowed"}},
		{"long", "s=abcdef", func(in *wire.In) { in.Text("s", 5) }, []string{"query.s: too_long"}},
		{"empty", "s=&id=&d=&t=&l=", func(in *wire.In) {
			in.Text("s", 5)
			in.UUID("id")
			in.Date("d")
			in.Time("t", wire.StartOfDay)
			in.Local("l")
		}, []string{"query.s: missing", "query.id: missing", "query.d: missing", "query.t: missing", "query.l: missing"}},
		{"empty and unknown", "limt=", func(*wire.In) {}, []string{"query.limt: unknown_parameter"}},
		{"NUL", "s=%00", func(in *wire.In) { in.OptText("s", 5) }, []string{"query.s: nul"}},
		{"bad UTF-8", "s=%ff", func(in *wire.In) { in.Strings("s") }, []string{"query.s: not_unicode"}},
		{"bad escape", "s=%zz", func(in *wire.In) { in.OptText("s", 5) }, []string{"query: query_invalid"}},
		{"semicolon", "a=1;b=2", func(*wire.In) {}, []string{"query: query_invalid"}},
		{"own problem", "", func(in *wire.In) { in.Problem("order", "must not be after the end", "query", "start") }, []string{"query.start: order"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			in := get(tt.query)
			tt.read(in)
			require.Equal(t, tt.want, problems(t, in))
		})
	}
}

// A parameter without a value is absent, whatever it would hold.
func TestQuery_parameterWithoutAValueIsAbsent(t *testing.T) {
	in := get("i=&oi=&io=&f=&b=&ob=&id=&ids=&ids=&d=&t=&m=&z=&x=&sx=&one=&s=&s=a&s=&n=")
	require.Equal(t, 7, in.Int("i", 7, 1, 10))
	require.Nil(t, in.OptInt("oi", 1, 10))
	require.Equal(t, 25, in.IntOneOf("io", 25, 10, 25))
	require.InEpsilon(t, 2.5, in.Float("f", 2.5, 0, 10), 0)
	require.True(t, in.Bool("b", true))
	require.Nil(t, in.OptBool("ob"))
	require.Nil(t, in.OptUUID("id"))
	require.Nil(t, in.UUIDs("ids"))
	require.Nil(t, in.OptDate("d"))
	require.Nil(t, in.OptTime("t", wire.StartOfDay))
	require.Nil(t, in.OptMoment("m", nil))
	require.Nil(t, in.OptZone("z"))
	require.Nil(t, in.OptText("x", 5))
	require.Empty(t, in.ShortText("sx"))
	require.Equal(t, "desc", in.OneOf("one", "desc", "asc", "desc"))
	require.Equal(t, []string{"a"}, in.Strings("s", "a"))
	require.False(t, in.Null("n"))
	require.False(t, in.Has("n"))
	require.NoError(t, in.Err())
}

// A time without an offset is local time where the request names a zone, as a time in a body is.
func TestQuery_momentWithoutAnOffsetIsLocalTimeOfTheZone(t *testing.T) {
	vienna, err := time.LoadLocation("Europe/Vienna")
	require.NoError(t, err)
	in := get("a=2026-03-01T07:00:00&b=2026-03-01+07:00&c=2026-03-01T07:00:00Z&d=2026-03-01T07:00:00%2B03:00[Europe/Moscow]")
	for name, want := range map[string]string{"a": "06:00", "b": "06:00", "c": "07:00", "d": "04:00"} {
		require.Equal(t, "2026-03-01T"+want+":00+00:00", in.Moment(name, vienna).Instant.String(), name)
	}
	require.NoError(t, in.Err())
}

// The error of a limit says which values are allowed.
func TestQuery_errorOfALimitNamesTheLimits(t *testing.T) {
	in := get("n=0&m=9&f=1.5&s=abcdef&z=Vienna")
	in.Int("n", 1, 1, 5)
	in.Int("m", 1, 1, 5)
	in.Float("f", 0, -1, 1)
	in.Text("s", 5)
	in.OptZone("z")
	var refused *wire.InputError
	require.ErrorAs(t, in.Err(), &refused)
	var texts []string
	for _, p := range refused.Problems {
		texts = append(texts, p.Msg)
	}
	require.Equal(t, []string{"must be 1 to 5", "must be 1 to 5", "must be -1 to 1", "must have at most 5 characters",
		"must be a zone of the IANA time zone database, such as Europe/Vienna or UTC"}, texts)
}

func TestQuery_boolAcceptsTrueFalseOneAndZero(t *testing.T) {
	for text, want := range map[string]bool{"true": true, "True": true, "TRUE": true, "1": true, "false": false, "False": false, "0": false} {
		in := get("b=" + text)
		require.Equal(t, want, in.Bool("b", !want), text)
		require.NoError(t, in.Err())
	}
	for _, text := range []string{"yes", "on", "2", "t", "-1", "null"} {
		in := get("b=" + text)
		in.OptBool("b")
		require.Equal(t, []string{"query.b: wrong_type"}, problems(t, in), text)
		var refused *wire.InputError
		require.ErrorAs(t, in.Err(), &refused)
		require.Equal(t, "must be true, false, 1 or 0", refused.Problems[0].Msg)
	}
}

func TestPathAndHeaders_reportEachInvalidValue(t *testing.T) {
	r := httptest.NewRequest(http.MethodGet, "/x", nil)
	r.SetPathValue("user_id", "me")
	r.SetPathValue("slug", strings.Repeat("x", 9))
	r.Header.Add("idempotency-key", "a")
	r.Header.Add("idempotency-key", "b")
	in := wire.From(r)
	in.PathUUID("user_id")
	in.PathText("slug", 8)
	in.OptHeader("idempotency-key", 64)
	in.Header("x-must", 64)
	require.Equal(t, []string{
		"path.user_id: bad_uuid", "path.slug: too_long", "header.idempotency-key: repeated", "header.x-must: missing",
	}, problems(t, in))
}

func post(body io.Reader, contentType string, s *wire.Settings) *wire.In {
	r := httptest.NewRequest(http.MethodPost, "/x", body)
	if contentType != "" {
		r.Header.Set("Content-Type", contentType)
	}
	if s != nil {
		r.Body = http.MaxBytesReader(nil, r.Body, s.MaxBody)
		r = wire.With(r, s)
	}
	return wire.From(r)
}

func TestBody_reportsInvalidJSONByPath(t *testing.T) {
	for _, tt := range []struct {
		name, body, contentType string
		want                    []string
	}{
		{"good", `{"name":"x"}`, "application/json", nil},
		{"good with charset", `{"name":"x"}`, "Application/JSON; charset=UTF-8", nil},
		{"good after a byte order mark", "\ufeff" + `{"name":"x"}`, "application/json", nil},
		{"a mark alone", "\ufeff", "application/json", []string{"body: missing"}},
		{"two marks", "\ufeff\ufeff{}", "application/json", []string{"body: json_invalid"}},
		{"good with another spelling of UTF-8", `{"name":"x"}`, `application/json; charset="utf8"`, nil},
		{"good in a part of UTF-8", `{"name":"x"}`, "application/json;charset=US-ASCII", nil},
		{"absent", ``, "", []string{"body: missing"}},
		{"absent with type", ``, "application/json", []string{"body: missing"}},
		{"problems", `{"nam":1}`, "application/json", []string{"body.nam: unknown_key", "body.name: missing"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var v form
			in := post(strings.NewReader(tt.body), tt.contentType, nil)
			in.Body(&v)
			require.Equal(t, tt.want, problems(t, in))
		})
	}
}

// Items with problems are left out and named, each time that the body is read. Where the body has
// problems of its own, or cannot be read to its end, it is refused with those of the items.
func TestItems_leavesOutAndNamesInvalidItems(t *testing.T) {
	type body struct {
		Provider string `json:"provider"`
		Data     []struct {
			N int `json:"n"`
		} `json:"data" wire:"items"`
	}
	const items = `"data":[{"n":1},{"n":"x","m":1},{"n":3}]`
	var first, second body
	in := post(strings.NewReader(`{"provider":"a",`+items+`}`), "application/json", &wire.Settings{MaxBody: 1 << 10})
	unparsed := in.Items(&first)
	require.NoError(t, in.Err())
	for range 2 {
		require.Equal(t, 1, unparsed.Count)
		require.Len(t, unparsed.First, 1)
		require.Equal(t, 1, unparsed.First[0].Index)
		require.Equal(t, []any{"m"}, unparsed.First[0].Problems[1].Path)
		second = body{}
		require.NoError(t, in.BodyAgain(&second))
		require.Equal(t, first, second)
		require.Len(t, second.Data, 2)
	}
	for text, want := range map[string][]string{
		`{"provider":7,` + items + `}`: {"body.provider: wrong_type", "body.data[1].n: wrong_type", "body.data[1].m: unknown_key"},
		`{"provider":"a",` + items:     {"body.data: json_invalid", "body.data[1].n: wrong_type", "body.data[1].m: unknown_key"},
	} {
		in := post(strings.NewReader(text), "application/json", &wire.Settings{MaxBody: 1 << 10})
		in.Items(&body{})
		require.Equal(t, want, problems(t, in))
	}
}

func TestBody_wrongTypeSizeOrReadErrorHasItsStatus(t *testing.T) {
	small := func() *wire.Settings { return &wire.Settings{MaxBody: 8} }
	for _, tt := range []struct {
		name, contentType string
		body              io.Reader
		settings          *wire.Settings
		status            int
	}{
		{"form", "application/x-www-form-urlencoded", strings.NewReader("a=1"), nil, 415},
		{"no type", "", strings.NewReader("{}"), nil, 415},
		{"garbled type", "application/", strings.NewReader("{}"), nil, 415},
		{"charset", "application/json; charset=latin1", strings.NewReader("{}"), nil, 415},
		{"large by its length", "application/json", strings.NewReader(`{"name":"x"}`), small(), 413},
		{"large without length", "application/json", io.MultiReader(strings.NewReader(`{"name":"x"}`)), small(), 413},
		{"broken off", "application/json", io.MultiReader(strings.NewReader(`{`), broken{}), nil, 400},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var v form
			in := post(tt.body, tt.contentType, tt.settings)
			in.Int("limit", 1, 1, 5)
			in.Body(&v)
			var f *wire.Fault
			require.ErrorAs(t, in.Err(), &f)
			require.Equal(t, tt.status, f.Status)
		})
	}
}

type broken struct{}

func (broken) Read([]byte) (int, error) { return 0, errors.New("connection reset") }

// A body is read no further than its limit and one byte more, which shows that there
// is more.
func TestBody_isNotReadBeyondItsLimit(t *testing.T) {
	src := &counter{}
	in := post(src, "application/json", &wire.Settings{MaxBody: 1000})
	var v form
	in.Body(&v)
	require.Error(t, in.Err())
	require.LessOrEqual(t, src.n, 1001)
}

type counter struct{ n int }

func (c *counter) Read(b []byte) (int, error) {
	for i := range b {
		b[i] = ' '
	}
	c.n += len(b)
	return len(b), nil
}

func TestIgnoreUnknown_appliesToQueryAndBody(t *testing.T) {
	r := httptest.NewRequest(http.MethodPost, "/x?other=1", strings.NewReader(`{"name":"x","other":1}`))
	r.Header.Set("Content-Type", "application/json")
	in := wire.From(wire.With(r, &wire.Settings{IgnoreUnknown: true}))
	var v form
	in.Body(&v)
	require.NoError(t, in.Err())
}

func TestSettingsPlace_prefixesAFieldWithQueryOrBody(t *testing.T) {
	s := &wire.Settings{}
	r := httptest.NewRequest(http.MethodPost, "/x?start=1", strings.NewReader(`{"name":"x"}`))
	r.Header.Set("Content-Type", "application/json")
	in := wire.From(wire.With(r, s))
	in.OptText("start", 5)
	require.Equal(t, []any{"query", "start"}, s.Place([]any{"start"}))
	require.Equal(t, []any{"query", "name"}, s.Place([]any{"name"}))
	var v form
	in.Body(&v)
	require.Equal(t, []any{"query", "start"}, s.Place([]any{"start"}))
	require.Equal(t, []any{"body", "name"}, s.Place([]any{"name"}))
}

func TestStream_failingBeforeItsFirstByteSendsNothing(t *testing.T) {
	small := httptest.NewRecorder()
	require.NoError(t, wire.Stream(small, 200, func(p *wire.Pieces) error {
		p.B = append(p.B, `[]`...)
		return p.Next()
	}))
	require.Equal(t, "2", small.Header().Get("Content-Length"))

	failed := httptest.NewRecorder()
	require.Error(t, wire.Stream(failed, 200, func(*wire.Pieces) error { return healthlab.Unavailable }))
	require.Empty(t, failed.Body.String())

	large := httptest.NewRecorder()
	require.NoError(t, wire.Stream(large, 200, func(p *wire.Pieces) error {
		p.B = append(p.B, '[')
		for i := range 100_000 {
			if i > 0 {
				p.B = append(p.B, ',')
			}
			p.B = append(p.B, `"xx"`...)
			if err := p.Next(); err != nil {
				return err
			}
		}
		p.B = append(p.B, ']')
		return nil
	}))
	require.Equal(t, 1+100_000*5, large.Body.Len())
	require.Equal(t, "application/json", large.Header().Get("Content-Type"))
}

func TestJSON_writesNothingIfEncodingFails(t *testing.T) {
	w := httptest.NewRecorder()
	require.NoError(t, wire.JSON(w, 201, map[string]string{"a": "<&>"}))
	require.Equal(t, `{"a":"<&>"}`, w.Body.String())
	require.Equal(t, 201, w.Code)

	w = httptest.NewRecorder()
	require.Error(t, wire.JSON(w, 200, func() {}))
	require.Empty(t, w.Body.String())
}
