package wire_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/shopspring/decimal"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/adapters/httpapi/internal/wire"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// form has a field of every sort that a body may have.
type form struct {
	Name     string                       `json:"name"`
	Count    int8                         `json:"count,omitempty"`
	Size     uint16                       `json:"size,omitempty"`
	Loose    int                          `json:"loose,omitempty" wire:"tolerant"`
	Rate     float64                      `json:"rate,omitempty"`
	Small    float32                      `json:"small,omitempty"`
	On       bool                         `json:"on,omitempty"`
	ID       uuid.UUID                    `json:"id,omitzero"`
	User     healthlab.UserID             `json:"user,omitzero"`
	Born     healthlab.Date               `json:"born,omitzero"`
	At       healthlab.Time               `json:"at,omitzero"`
	Price    decimal.Decimal              `json:"price,omitzero"`
	Literal  json.Number                  `json:"literal,omitempty"`
	Blob     []byte                       `json:"blob,omitempty"`
	Free     json.RawMessage              `json:"free,omitempty"`
	Any      any                          `json:"any,omitempty"`
	Maybe    *string                      `json:"maybe"`
	Patch    wire.Opt[int]                `json:"patch,omitzero"`
	Tags     []string                     `json:"tags,omitempty" wire:"nullable,max=3"`
	Pair     [2]int                       `json:"pair,omitzero"`
	Labels   map[string]int               `json:"labels,omitempty" wire:"max=3"`
	ByUser   map[healthlab.UserID]float64 `json:"by_user,omitempty"`
	Children []form                       `json:"children,omitempty"`
	Inner    *inner                       `json:"inner,omitempty"`
	Must     *string                      `json:"must,omitempty" wire:"notnull"`
	Kind     shade                        `json:"kind,omitempty"`
	base
}

type base struct {
	Deep string `json:"deep,omitempty"`
}

type inner struct {
	A int     `json:"a"`
	B *string `json:"b" wire:"required"`
}

// shade reads its text itself, and speaks in problems.
type shade string

func (s *shade) UnmarshalText(b []byte) error {
	if len(b) > 5 {
		var p healthlab.Problems
		p.Add("too_long", "has at most 5 characters")
		return p.Err()
	}
	*s = shade(b)
	return nil
}

const full = `{"name":"\u00e9\ud83d\ude00\n\"x","count":-128,"size":65535,"loose":78.0,"rate":1.5e3,"small":2.5,"on":true,
"id":"7B9A1B1E-0000-4000-8000-000000000001","user":"7b9a1b1e-0000-4000-8000-000000000002","born":"1980-02-29",
"at":"2026-03-01T08:00:00+01:00","price":12.30,"literal":1e2,"blob":"aGk=","free":{"a":[1,null,"x"],"b":{}},"any":[1,{"k":null}],
"maybe":null,"patch":null,"tags":["a","b"],"pair":[1,2],"labels":{"x":1},"by_user":{"7b9a1b1e-0000-4000-8000-000000000002":2},
"children":[{"name":"c"},{"name":"d","children":[]}],"inner":{"a":1,"b":null},"must":"m","kind":"dark","deep":"down"}`

func TestDecode_readsEveryKindOfField(t *testing.T) {
	var got form
	require.Empty(t, wire.Decode([]byte(full), &got, wire.Options{}))

	var want form
	require.NoError(t, json.Unmarshal([]byte(strings.Replace(full, "78.0", "78", 1)), &want))
	require.Equal(t, want, got)
	require.Equal(t, wire.Opt[int]{Set: true, Null: true}, got.Patch)
}

func TestDecode_keepsNoReferenceToItsInput(t *testing.T) {
	b := []byte(full)
	var got, want form
	require.Empty(t, wire.Decode(b, &got, wire.Options{}))
	require.Empty(t, wire.Decode([]byte(full), &want, wire.Options{}))
	for i := range b {
		b[i] = 'x'
	}
	require.Equal(t, want, got)
}

// said is a problem in short: place, and code.
func said(ps healthlab.Problems) []string {
	out := []string{}
	for _, p := range ps {
		p.Msg = p.Code
		out = append(out, p.String())
	}
	return out
}

func TestDecode_problemsNameTheLimit(t *testing.T) {
	const body = `{"Name":"x","count":128,"size":65536,"loose":9223372036854775808,"rate":1e999,"small":1e39,
		"tags":["a","b","c","d"],"pair":[1],"labels":{"a":1,"b":1,"c":1,"d":1},"any":`
	deep := strings.Repeat("[", 64) + strings.Repeat("]", 64)
	got := []string{}
	for _, p := range wire.Decode([]byte(body+deep+"}"), &form{}, wire.Options{}) {
		p.Path = p.Path[:min(1, len(p.Path))]
		got = append(got, p.String())
	}
	require.Equal(t, []string{
		"Name: must be spelt name: keys are case-sensitive",
		"count: must be a whole number from -128 to 127",
		"size: must be a whole number from 0 to 65535",
		"loose: must be a whole number from -9223372036854775808 to 9223372036854775807",
		"rate: must be a number from -1.7976931348623157e+308 to 1.7976931348623157e+308",
		"small: must be a number from -3.4028235e+38 to 3.4028235e+38",
		"tags: must have at most 3 elements",
		"pair: must have exactly 2 elements",
		"labels: must have at most 3 keys",
		"any: must be nested at most 64 levels deep",
	}, got)
	few := wire.Decode([]byte(`{"count":128,"size":65536}`), &form{}, wire.Options{MaxProblems: 1})
	require.Equal(t, "has 1 or more problems; the rest of the body was not checked", few[1].Msg)
}

func TestDecode_reportsEachProblemByPath(t *testing.T) {
	deep := strings.Repeat("[", 70) + strings.Repeat("]", 70)
	for _, tt := range []struct {
		name, body string
		want       []string
	}{
		{"nothing", ``, []string{"json_invalid"}},
		{"half an object", `{"name":"x"`, []string{"name: json_invalid"}},
		{"half a text", `{"name":"x`, []string{"name: json_invalid"}},
		{"a value missing", `{"name":`, []string{"name: json_invalid"}},
		{"a comma too many", `{"name":"x",}`, []string{"name: json_invalid"}},
		{"a comma too many in a list", `{"name":"x","tags":["a",]}`, []string{"tags[0]: json_invalid"}},
		{"no comma", `{"name":"x" "on":true}`, []string{"name: json_invalid"}},
		{"no colon", `{"name" "x"}`, []string{"json_invalid"}},
		{"bare key", `{name:"x"}`, []string{"json_invalid"}},
		{"bare word", `{"name":"x","free":nope}`, []string{"free: json_invalid"}},
		{"single quotes", `{'name':'x'}`, []string{"json_invalid"}},
		{"comment", `{"name":"x"/*c*/}`, []string{"name: json_invalid"}},
		{"trailing bytes", `{"name":"x"} {}`, []string{"json_trailing"}},
		{"trailing NUL", "{\"name\":\"x\"}\x00", []string{"json_trailing"}},
		{"byte order mark", "\uFEFF{}", []string{"json_invalid"}},
		{"control character", "{\"name\":\"a\tb\"}", []string{"name: json_invalid"}},
		{"bad escape", `{"name":"\x"}`, []string{"name: json_invalid"}},
		{"leading zero", `{"name":"x","rate":01}`, []string{"rate: json_invalid"}},
		{"bare point", `{"name":"x","rate":1.}`, []string{"rate: json_invalid"}},
		{"bare exponent", `{"name":"x","rate":1e}`, []string{"rate: json_invalid"}},
		{"NaN", `{"name":"x","rate":NaN}`, []string{"rate: json_invalid"}},
		{"a list for an object", `[]`, []string{"wrong_type"}},
		{"null for an object", `null`, []string{"null"}},
		{"unknown key", `{"name":"x","nam":1}`, []string{"nam: unknown_key"}},
		{"wrong case", `{"Name":"x"}`, []string{"Name: key_case", "name: missing"}},
		{"duplicate key", `{"name":"x","name":"y"}`, []string{"name: duplicate_key"}},
		{"duplicate key by escape", `{"name":"x","n\u0061me":"y"}`, []string{"name: duplicate_key"}},
		{"missing", `{}`, []string{"name: missing"}},
		{"missing inside", `{"name":"x","inner":{}}`, []string{"inner.a: missing", "inner.b: missing"}},
		{"missing in a list", `{"name":"x","children":[{"name":"y"},{}]}`, []string{"children[1].name: missing"}},
		{"null", `{"name":null}`, []string{"name: null"}},
		{"null that is refused", `{"name":"x","must":null}`, []string{"must: null"}},
		{"null in a list", `{"name":"x","tags":[null]}`, []string{"tags[0]: null"}},
		{"number for text", `{"name":1}`, []string{"name: wrong_type"}},
		{"text for number", `{"name":"x","rate":"1"}`, []string{"rate: wrong_type"}},
		{"text for integer", `{"name":"x","count":"1"}`, []string{"count: wrong_type"}},
		{"text for bool", `{"name":"x","on":"true"}`, []string{"on: wrong_type"}},
		{"object for list", `{"name":"x","tags":{"a":[1]}}`, []string{"tags: wrong_type"}},
		{"list for map", `{"name":"x","labels":[1]}`, []string{"labels: wrong_type"}},
		{"number for time", `{"name":"x","at":1}`, []string{"at: wrong_type"}},
		{"number for date", `{"name":"x","born":1}`, []string{"born: wrong_type"}},
		{"number for base64", `{"name":"x","blob":1}`, []string{"blob: wrong_type"}},
		{"text for json.Number", `{"name":"x","literal":"1"}`, []string{"literal: wrong_type"}},
		{"integer with fraction", `{"name":"x","count":1.5}`, []string{"count: not_integer"}},
		{"integer as 78.0", `{"name":"x","count":78.0}`, []string{"count: not_integer"}},
		{"tolerant integer with fraction", `{"name":"x","loose":78.5}`, []string{"loose: not_integer"}},
		{"tolerant integer with exponent", `{"name":"x","loose":78e0}`, []string{"loose: not_integer"}},
		{"integer too large", `{"name":"x","count":128}`, []string{"count: out_of_range"}},
		{"unsigned below zero", `{"name":"x","size":-1}`, []string{"size: out_of_range"}},
		{"float too large", `{"name":"x","rate":1e400}`, []string{"rate: out_of_range"}},
		{"small float too large", `{"name":"x","small":1e39}`, []string{"small: out_of_range"}},
		{"decimal with a huge exponent", `{"name":"x","price":1e99999999}`, []string{"price: out_of_range"}},
		{"free number too large", `{"name":"x","any":[1e999]}`, []string{"any: out_of_range"}},
		{"bad uuid", `{"name":"x","id":"7b9a"}`, []string{"id: bad_uuid"}},
		{"uuid without hyphens", `{"name":"x","id":"7b9a1b1e000040008000000000000001"}`, []string{"id: bad_uuid"}},
		{"uuid in braces", `{"name":"x","user":"{7b9a1b1e-0000-4000-8000-000000000001}"}`, []string{"user: bad_uuid"}},
		{"no such day", `{"name":"x","born":"2026-02-29"}`, []string{"born: bad_date"}},
		{"time without T", `{"name":"x","at":"yesterday"}`, []string{"at: bad_date_time"}},
		{"bad base64", `{"name":"x","blob":"?"}`, []string{"blob: bad_value"}},
		{"bad decimal", `{"name":"x","price":"twelve"}`, []string{"price: bad_value"}},
		{"own rule", `{"name":"x","kind":"darkest"}`, []string{"kind: too_long"}},
		{"NUL", `{"name":"a\u0000b"}`, []string{"name: nul"}},
		{"NUL in a list", `{"name":"x","tags":["a","\u0000"]}`, []string{"tags[1]: nul"}},
		{"NUL in free JSON", `{"name":"x","free":{"a":["\u0000"]}}`, []string{"free.a[0]: nul"}},
		{"NUL in a key", `{"name":"x","labels":{"\u0000":1}}`, []string{"labels: nul"}},
		{"NUL in a key of free JSON", `{"name":"x","free":{"\u0000":1}}`, []string{"free.\uFFFD: nul"}},
		{"bad UTF-8", "{\"name\":\"a\xff\"}", []string{"name: not_unicode"}},
		{"bad UTF-8 in free JSON", "{\"name\":\"x\",\"free\":\"\xc0\"}", []string{"free: not_unicode"}},
		{"lone surrogate", `{"name":"\ud83d"}`, []string{"name: not_unicode"}},
		{"surrogates in the wrong order", `{"name":"\ude00\ud83d"}`, []string{"name: not_unicode"}},
		{"duplicate key in free JSON", `{"name":"x","free":{"a":{"b":1,"c":2,"\u0062":3}}}`, []string{"free.a.b: duplicate_key"}},
		{"duplicate key in a map", `{"name":"x","labels":{"a":1,"a":2}}`, []string{"labels.a: duplicate_key"}},
		{"one user twice", `{"name":"x","by_user":{"7b9a1b1e-0000-4000-8000-000000000002":1,"7B9A1B1E-0000-4000-8000-000000000002":1}}`,
			[]string{"by_user.7B9A1B1E-0000-4000-8000-000000000002: duplicate_key"}},
		{"bad key of a map", `{"name":"x","by_user":{"me":1}}`, []string{"by_user.me: bad_uuid"}},
		{"array too short", `{"name":"x","pair":[1]}`, []string{"pair: wrong_length"}},
		{"array too long", `{"name":"x","pair":[1,2,"x"]}`, []string{"pair: wrong_length"}},
		{"list too long", `{"name":"x","tags":["a","b","c",1,{}]}`, []string{"tags: too_many_items"}},
		{"map too large", `{"name":"x","labels":{"a":1,"b":1,"c":1,"d":[],"e":1}}`, []string{"labels: too_many_items"}},
		{"too deep", `{"name":"x","free":` + deep + `}`, []string{"free" + strings.Repeat("[0]", 63) + ": json_depth"}},
		{"too deep in a type", strings.Repeat(`{"children":[`, 40), []string{strings.TrimPrefix(strings.Repeat(".children[0]", 32), ".") + ": json_depth"}},
		{"all at once", `{"Name":1,"count":1.5,"inner":{"a":"x","c":1},"children":[{"at":"x"}]}`, []string{
			"Name: key_case", "count: not_integer", "inner.a: wrong_type", "inner.c: unknown_key", "inner.b: missing",
			"children[0].at: bad_date_time", "children[0].name: missing", "name: missing"}},
		{"a long unknown key", `{"name":"x","` + strings.Repeat("k", 100) + `":1}`, []string{strings.Repeat("k", 64) + "…: unknown_key"}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			var got form
			require.Equal(t, tt.want, said(wire.Decode([]byte(tt.body), &got, wire.Options{})))
		})
	}
}

func TestDecode_ignoreUnknownSkipsUnknownKeys(t *testing.T) {
	o := wire.Options{IgnoreUnknown: true}
	var got form
	require.Empty(t, wire.Decode([]byte(`{"x":{"y":[1,{"z":null}]},"name":"n","w":"\u0000"}`), &got, o))
	require.Equal(t, form{Name: "n"}, got)
	require.Equal(t, []string{"NAME: key_case"}, said(wire.Decode([]byte(`{"name":"n","NAME":"m"}`), &got, o)))
}

func TestDecode_stopsAfterMaxProblems(t *testing.T) {
	var got []form
	ps := wire.Decode([]byte("["+strings.Repeat("{},", 5000)+"{}]"), &got, wire.Options{MaxProblems: 10})
	require.Len(t, ps, 11)
	require.Equal(t, "too_many_problems", ps[10].Code)
	require.Empty(t, ps[10].Path)
}

func TestOpt_distinguishesAbsentNullAndValue(t *testing.T) {
	type patch struct {
		Zone wire.Opt[string]         `json:"zone,omitzero"`
		Born wire.Opt[healthlab.Date] `json:"born,omitzero"`
	}
	var got patch
	require.Empty(t, wire.Decode([]byte(`{"zone":"UTC"}`), &got, wire.Options{}))
	require.Equal(t, wire.Opt[string]{Value: "UTC", Set: true}, got.Zone)
	require.False(t, got.Born.Set)
	require.Nil(t, got.Born.Ptr())

	out, err := json.Marshal(got)
	require.NoError(t, err)
	require.JSONEq(t, `{"zone":"UTC"}`, string(out))
}

func TestDecode_problemsNeverContainAValue(t *testing.T) {
	const secret = "Zyx-Secret-42"
	for _, key := range []string{"name", "count", "rate", "on", "id", "born", "at", "price", "literal", "blob", "maybe", "patch", "tags", "inner", "kind"} {
		for _, value := range []string{`"` + secret + `"`, `["` + secret + `"]`, `{"a":"` + secret + `"}`, `"` + secret + `\u0000"`, `"` + secret} {
			var got form
			ps := wire.Decode([]byte(`{"`+key+`":`+value+`}`), &got, wire.Options{})
			b, err := json.Marshal(ps)
			require.NoError(t, err)
			require.NotContains(t, string(b), secret)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(full), false)
	f.Add([]byte(`{"name":"x","maybe":"y","patch":3,"free":[{"a":1}]}`), true)
	f.Add([]byte(`{"name":"x","children":[{"name":"y","tags":null}],"x":1}`), true)
	f.Fuzz(func(t *testing.T, data []byte, ignore bool) {
		type body struct {
			form
			// What only wire accepts stays outside of the law.
			Loose int `json:"loose,omitempty"`
		}
		var got, want body
		if ps := wire.Decode(data, &got, wire.Options{IgnoreUnknown: ignore}); len(ps) > 0 {
			for _, p := range ps {
				require.NotEmpty(t, p.Code)
				require.NotEmpty(t, p.Msg)
			}
			return
		}
		require.NoError(t, json.Unmarshal(data, &want))
		require.Equal(t, want, got)
	})
}

// A field with the rule offset keeps the offset that was written; Z, -00:00, and UTC and GMT alone are no place.
func TestDecode_tagOffsetPreservesTheWrittenOffset(t *testing.T) {
	type body struct {
		TimeZone string         `json:"time_zone,omitempty"`
		Kept     healthlab.Time `json:"kept" wire:"offset"`
		Plain    healthlab.Time `json:"plain"`
	}
	at := time.Date(2026, 3, 1, 15, 30, 0, 0, time.UTC)
	for text, want := range map[string]int{
		`2026-03-02T00:30:00+09:00`: 9 * 3600, `2026-03-02T00:30:00\u002b09:00`: 9 * 3600, `2026-03-01T09:45:00.000-05:45`: -(5*3600 + 45*60),
		`2026-03-01T15:30:00+00:00`: 0, `2026-03-01T15:30:00GMT+0`: 0, `2026-03-02T00:30:00 UTC+9`: 9 * 3600, `2026-03-01T09:45:00−05:45`: -(5*3600 + 45*60),
	} {
		var b body
		require.Empty(t, wire.Decode([]byte(`{"kept":"`+text+`","plain":"`+text+`"}`), &b, wire.Options{}))
		_, offset := b.Kept.Zone()
		require.Equal(t, want, offset, text)
		require.NotEqual(t, time.UTC, b.Kept.Location(), text)
		require.True(t, b.Kept.Equal(at), text)
		require.Equal(t, healthlab.At(at), b.Plain, text)
	}
	for _, text := range []string{`2026-03-01T15:30:00Z`, `2026-03-01t15:30:00z`, `2026-03-01T15:30:00-00:00`, `2026-03-01T15:30:00UTC`, `2026-03-01 15:30:00 GMT`, `2026-03-01T15:30:00Z[Asia/Tokyo]`, `2026-03-01T15:30:00Z[Etc/GMT+0]`, `2026-03-01T15:30:00−00:00`, `2026-03-01T15:30:00-0000`, `2026-03-02T00:30:00`} {
		var b body
		require.Empty(t, wire.Decode([]byte(`{"time_zone":"Asia/Tokyo","kept":"`+text+`","plain":"`+text+`"}`), &b, wire.Options{}))
		require.Equal(t, healthlab.At(at), b.Kept, text)
	}
}

// Of an upload, each item is read as it would be alone: those with problems are left out, named and
// counted, and the others stay in their order.
func FuzzItems(f *testing.F) {
	f.Add([]byte(`[` + full + `,null,7,{"name":"x","x":1},` + full + `]`))
	f.Add([]byte(`[{},{"name":1},[],"a",{"name":"\u0000"},{"name":"x","name":"y"}]`))
	f.Add([]byte(`[` + strings.Repeat(`7,`, 150) + full + `,{}]`))
	f.Fuzz(func(t *testing.T, data []byte) {
		var raw []json.RawMessage
		if json.Unmarshal(data, &raw) != nil || raw == nil {
			t.Skip()
		}
		var got struct {
			Data []form `json:"data" wire:"items"`
		}
		var unparsed healthdata.Unparsed
		if ps := wire.Decode([]byte(`{"data":`+string(data)+`}`), &got, wire.Options{Unparsed: &unparsed}); len(ps) > 0 {
			require.Equal(t, "json_depth", ps[0].Code)
			t.Skip()
		}
		var want []form
		var bad []healthdata.Refusal
		for i, item := range raw {
			var one form
			if ps := wire.Decode(item, &one, wire.Options{}); len(ps) > 0 {
				bad = append(bad, healthdata.Refusal{Index: i, Problems: ps[:min(len(ps), healthdata.MostItemProblems)]})
				continue
			}
			want = append(want, one)
		}
		require.Equal(t, len(bad), unparsed.Count)
		bad = bad[:min(len(bad), healthdata.MostRefusals)]
		require.Len(t, unparsed.First, len(bad))
		for i, r := range bad {
			require.Equal(t, r.Index, unparsed.First[i].Index)
			require.Equal(t, fmt.Sprint(r.Problems), fmt.Sprint(unparsed.First[i].Problems))
		}
		require.Len(t, got.Data, len(want))
		for i := range want {
			require.Equal(t, want[i], got.Data[i])
		}
	})
}

// Items that are left out take no room in the list of the others.
func TestDecode_refusedItemsTakeNoMemory(t *testing.T) {
	good := `{"name":"` + strings.Repeat("x", 90) + `"}`
	var got struct {
		Data []form `json:"data" wire:"items"`
	}
	text := `{"data":[` + strings.Repeat(`{},`, 100_000) + strings.Repeat(good+",", 1000) + strings.Repeat(`{},`, 100_000) + good + `]}`
	var unparsed healthdata.Unparsed
	require.Empty(t, wire.Decode([]byte(text), &got, wire.Options{Unparsed: &unparsed}))
	require.Equal(t, 200_000, unparsed.Count)
	require.Len(t, got.Data, 1001)
	require.Less(t, cap(got.Data), 5000)
}
