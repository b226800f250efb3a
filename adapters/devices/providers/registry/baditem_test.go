package registry_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab/adapters/devices/providers/registry"
	"github.com/healthlab-dev/healthlab/adapters/devices/providers/rest"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/prove"
	"github.com/healthlab-dev/healthlab/linking"
)

// decoded returns a document with its numbers as they are written.
func decoded(t testing.TB, doc []byte) (v any) {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(doc))
	d.UseNumber()
	require.NoError(t, d.Decode(&v))
	return v
}

func encoded(t testing.TB, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	require.NoError(t, err)
	return b
}

// listsIn returns the places of the lists of objects in a document; outer ones stand first.
func listsIn(v any, at []any) (out [][]any) {
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = append(out, listsIn(v[name], append(slices.Clone(at), name))...)
		}
	case []any:
		if len(v) > 0 {
			if _, ok := v[0].(map[string]any); ok {
				out = append(out, at)
			}
		}
		for i := range v {
			out = append(out, listsIn(v[i], append(slices.Clone(at), i))...)
		}
	}
	return out
}

// with returns a document with another value at a place.
func with(v any, at []any, change func(any) any) any {
	if len(at) == 0 {
		return change(v)
	}
	switch name := at[0].(type) {
	case string:
		out := maps.Clone(v.(map[string]any))
		out[name] = with(out[name], at[1:], change)
		return out
	default:
		out := slices.Clone(v.([]any))
		out[name.(int)] = with(out[name.(int)], at[1:], change)
		return out
	}
}

// placesIn returns the places of all members of a value, without the value.
func placesIn(v any, at []any) (out [][]any) {
	if len(at) > 0 {
		out = append(out, at)
	}
	switch v := v.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			out = append(out, placesIn(v[name], append(slices.Clone(at), name))...)
		}
	case []any:
		for i := range v {
			out = append(out, placesIn(v[i], append(slices.Clone(at), i))...)
		}
	}
	return out
}

// bad are values that stand where others are expected.
var bad = []any{
	nil, "", "x", "many", "2026-02-30T25:61:00Z", "0000-00-00", "9999-12-31T23:59:59Z", "1970-01-01T00:00:00Z", true, false,
	json.Number("-1"), json.Number("0"), json.Number("1.5"), json.Number("1e300"), json.Number("99999999999999999999"), json.Number("-9223372036854775808"),
	"NaN", "Infinity", "1e999", "\x00", []any{}, []any{[]any{json.Number("1")}}, []any{nil}, map[string]any{}, map[string]any{"x": map[string]any{"y": nil}},
}

// spoil returns an item with one bad member, or a bad value in its place.
func spoil(random *rand.Rand, item any) any {
	places := placesIn(item, nil)
	if len(places) == 0 || random.IntN(12) == 0 {
		return bad[random.IntN(len(bad))]
	}
	at := places[random.IntN(len(places))]
	if name, ok := at[len(at)-1].(string); ok && random.IntN(6) == 0 {
		return with(item, at[:len(at)-1], func(v any) any {
			out := maps.Clone(v.(map[string]any))
			delete(out, name)
			return out
		})
	}
	return with(item, at, func(any) any { return bad[random.IntN(len(bad))] })
}

// parts returns what was read as texts, without the pages' raw items: samples, where streams have values,
// and summaries as they are or their identities alone.
func parts(data rest.Data, identities bool) map[string]int {
	all := map[string]int{}
	for resource, items := range data {
		for i := range items {
			p := &items[i]
			add := func(one linking.PullItem) {
				one.Source = p.Source
				all[rest.Data{resource: {one}}.String()]++
			}
			for j := range p.Samples {
				add(linking.PullItem{Samples: p.Samples[j : j+1]})
			}
			for j, s := range p.Summaries {
				healthdata.HeadOf(s).Raw = nil
				if !identities {
					add(linking.PullItem{Summaries: p.Summaries[j : j+1]})
					continue
				}
				id := healthdata.HeadOf(s).ExternalID
				if day, ok := s.(*healthdata.Activity); ok {
					id += day.CalendarDate.String()
				}
				all[fmt.Sprint(resource, p.Source.Type, id)] = 1
			}
			for j := range p.Deleted {
				add(linking.PullItem{Deleted: p.Deleted[j : j+1]})
			}
			if resource == "device" && p.Device != nil {
				add(linking.PullItem{Device: p.Device})
			}
			if p.Stream == nil {
				continue
			}
			columns := reflect.ValueOf(*p.Stream)
			for c := range columns.NumField() {
				column, name := columns.Field(c), columns.Type().Field(c).Name
				if column.Kind() != reflect.Slice || column.Len() != len(p.Stream.Time) {
					continue
				}
				for j := range column.Len() {
					if v := column.Index(j); v.Kind() != reflect.Pointer || !v.IsNil() {
						all[fmt.Sprint("stream ", p.Stream.Time[j], name)] = 1
					}
				}
			}
		}
	}
	return all
}

// lost returns what one reading has and another one lacks.
func lost(want, got map[string]int) (out []string) {
	for what, n := range want {
		if got[what] < n {
			out = append(out, what)
		}
	}
	slices.Sort(out)
	return out
}

// wholes are the kinds whose page is one item that has a list.
var wholes = map[string]bool{
	"google_health height": true, "withings height": true, "withings sleep_get": true, "polar heart_rate": true, "polar exercise": true,
	"suunto daily_activity_statistics": true, "suunto workout": true, "suunto sleep": true, "strava streams": true,
}

// parents are lists of parts of an item: a bad one costs the item.
var parents = []string{"heart_rate_zones", "stagesSummary", "nutrients"}

// once are lists of parts of a kind each: another one of its kind is no part more.
var once = []string{"measures"}

// runs are lists whose elements hold until the next: without one, the one before holds longer.
var runs = []string{"steps samples"}

// A recorded page with one bad item more gives what the page gives, and with one of its items spoiled
// what the others give. So does a list inside an item whose elements are samples or points.
func TestPull_skipsOnlyTheInvalidItemOfAPage(t *testing.T) {
	cases := prove.Sequential(300, 300, 10_000)
	for _, slug := range columns {
		t.Run(slug, func(t *testing.T) {
			e, pages := registry.Find(slug), pagesOf(t, slug)
			maps.DeleteFunc(pages, func(_ string, page []byte) bool { return len(listsIn(decoded(t, page), nil)) == 0 })
			if len(pages) == 0 {
				t.Skip("its pages are of one item each")
			}
			kinds := slices.Sorted(maps.Keys(pages))
			for c := range cases {
				random := rand.New(rand.NewPCG(uint64(c), 44))
				kind := kinds[random.IntN(len(kinds))]
				page := decoded(t, pages[kind])
				lists := listsIn(page, nil)
				at := lists[random.IntN(len(lists))]
				inside := slices.ContainsFunc(at, func(part any) bool { _, index := part.(int); return index })
				identities := inside || wholes[slug+" "+kind]
				read := func(page any) map[string]int {
					data, err := e.Read(kind, encoded(t, page))
					require.NoError(t, err, kind)
					return parts(data, identities)
				}
				var spoiled any
				n := 0
				good, mixed := page, with(page, at, func(v any) any {
					list := v.([]any)
					n = random.IntN(len(list))
					spoiled = spoil(random, list[n])
					return slices.Insert(slices.Clone(list), random.IntN(len(list)+1), spoiled)
				})
				of := ""
				for _, part := range at {
					if name, ok := part.(string); ok {
						of += " " + name
					}
				}
				ends := func(list []string) bool {
					return slices.ContainsFunc(list, func(end string) bool { return strings.HasSuffix(of, " "+end) })
				}
				if inPlace := random.IntN(2) == 0; ends(once) || inPlace && !ends(runs) {
					mixed = with(page, at, func(v any) any { return slices.Replace(slices.Clone(v.([]any)), n, n+1, spoiled) })
					good = with(page, at, func(v any) any { return slices.Delete(slices.Clone(v.([]any)), n, n+1) })
				}
				if inside && ends(parents) {
					item := slices.IndexFunc(at, func(part any) bool { _, index := part.(int); return index })
					good = with(page, at[:item], func(v any) any { return slices.Delete(slices.Clone(v.([]any)), at[item].(int), at[item].(int)+1) })
				}
				if missing := lost(read(good), read(mixed)); len(missing) > 0 {
					require.Empty(t, missing, "case %d: %s: %v: %s", c, kind, at, encoded(t, spoiled))
				}
			}
		})
	}
}
