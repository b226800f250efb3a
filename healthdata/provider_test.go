package healthdata_test

import (
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/healthdata"
)

// exampleProviders reads the list that the example server starts with.
func exampleProviders(t *testing.T) *healthdata.Providers {
	t.Helper()
	f, err := os.Open("../examples/server/providers.json")
	require.NoError(t, err)
	defer f.Close()
	p, err := healthdata.ReadProviders(f)
	require.NoError(t, err)
	return p
}

func TestExampleProviders_coverEverySignInAndBackfillMode(t *testing.T) {
	p := exampleProviders(t)
	all := p.List("")
	count := func(has func(healthdata.Provider) bool) (n int) {
		for _, v := range all {
			if has(v) {
				n++
			}
		}
		return n
	}
	auth := func(types ...string) int {
		return count(func(v healthdata.Provider) bool { return slices.Contains(types, v.AuthType) })
	}
	require.Len(t, all, 40)
	require.Equal(t, 17, auth("oauth"))
	require.Equal(t, 1, auth("team_oauth"))
	require.Equal(t, 12, auth("password"))
	require.Equal(t, 1, auth("email"))
	require.Equal(t, 9, auth("sdk", ""))
	require.Equal(t, 4, count(func(v healthdata.Provider) bool { return v.Demo }))
	require.Equal(t, 2, count(func(v healthdata.Provider) bool { return v.MultiApp }))
	for _, slug := range []string{
		healthdata.SlugManual, healthdata.SlugAppleHealthKit, healthdata.SlugHealthConnect, healthdata.SlugSamsungHealth,
	} {
		require.NotNil(t, p.Get(slug), slug)
	}
	for _, kind := range []string{"app", "ble", "device", "lab", "provider"} {
		require.NotEmpty(t, p.List(kind), kind)
	}
	for _, r := range healthdata.Resources() {
		require.NotZero(t, count(func(v healthdata.Provider) bool { return v.Supports(r.Slug) }), r.Slug)
	}
	for _, a := range []healthdata.Affinity{
		healthdata.AffinityNative, healthdata.AffinityFallback, healthdata.AffinityFallbackOrAbsent,
		healthdata.AffinityInferred, healthdata.AffinityAbsent, healthdata.AffinityFloating,
	} {
		require.NotZero(t, count(func(v healthdata.Provider) bool {
			return slices.ContainsFunc(v.Resources, func(r healthdata.ProviderResource) bool { return v.Affinity(r.Resource) == a })
		}), a)
	}
	for _, mode := range []string{"pull", "push_incremental", "none"} {
		require.NotZero(t, count(func(v healthdata.Provider) bool { return v.Backfill.Mode == mode }), mode)
	}
}

func TestProviders_listIsSortedFilteredAndACopy(t *testing.T) {
	p := exampleProviders(t)
	all := p.List("")
	require.True(t, slices.IsSortedFunc(all, func(a, b healthdata.Provider) int { return strings.Compare(a.Name, b.Name) }))
	lab := p.List("lab")
	require.Len(t, lab, 1)
	require.Equal(t, "birch_lab", lab[0].Slug)
	require.Empty(t, p.List("nothing"))

	all[0].Slug = "scribbled"
	require.NotEqual(t, "scribbled", p.List("")[0].Slug, "the list is the caller's")
}

func TestReadProviders_refusesInvalidRecords(t *testing.T) {
	for _, tt := range []struct{ name, in, want string }{
		{"no JSON", `[`, ""},
		{"an unknown key", `[{"slug":"a","nam":"A"}]`, ""},
		{"reserved", `[{"slug":"info","name":"A","source_type":"app","class":"cloud"}]`, "0slug:reserved"},
		{"upper case", `[{"slug":"Acme","name":"A","source_type":"app","class":"cloud"}]`, "0slug:pattern"},
		{"no name", `[{"slug":"a","source_type":"app","class":"cloud"}]`, "0name:missing"},
		{"an unknown class", `[{"slug":"a","name":"A","source_type":"app","class":"cloudy"}]`, "0class:enum"},
		{"an unknown resource", `[{"slug":"a","name":"A","source_type":"app","class":"cloud","resources":[{"resource":"x"}]}]`, "0resources0resource:unknown_resource"},
		{
			"a limit of nothing", `[{"slug":"a","name":"A","source_type":"app","class":"cloud","rate_limits":{"app":[{"requests":1,"seconds":1},{"seconds":1}]}}]`,
			"0rate_limitsapp1:range",
		},
		{
			"twice", `[{"slug":"a","name":"A","source_type":"app","class":"cloud"},{"slug":"a","name":"B","source_type":"app","class":"cloud"}]`,
			"1slug:duplicate",
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, err := healthdata.ReadProviders(strings.NewReader(tt.in))
			require.ErrorIs(t, err, healthlab.Invalid)
			if tt.want != "" {
				require.Equal(t, []string{tt.want}, codes(t, err))
			}
		})
	}
}

// A provider that is asked and whose record says nothing of history has some; mode none has none.
func TestBackfill_defaultDaysDependOnClassAndMode(t *testing.T) {
	for name, c := range map[string]struct {
		class string
		plan  healthdata.Backfill
		days  int
	}{
		"nothing":           {"cloud", healthdata.Backfill{}, healthdata.DefaultHistoryDays},
		"pull":              {"cloud", healthdata.Backfill{Mode: "pull"}, healthdata.DefaultHistoryDays},
		"a limit alone":     {"cloud", healthdata.Backfill{MaxDays: 14, Configurable: true}, 14},
		"none":              {"cloud", healthdata.Backfill{Mode: "none"}, 0},
		"push_incremental":  {"cloud", healthdata.Backfill{Mode: "push_incremental"}, 0},
		"days":              {"cloud", healthdata.Backfill{DefaultDays: 7}, 7},
		"days of resources": {"cloud", healthdata.Backfill{Days: map[string]int{"steps": 3}}, 0},
		"a store":           {"sdk_store", healthdata.Backfill{}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			list := []healthdata.Provider{{
				Slug: "acme", Name: "Acme", Category: "device", Class: c.class, Backfill: c.plan,
				Resources: []healthdata.ProviderResource{{Resource: "steps"}, {Resource: "sleep"}},
			}}
			providers, err := healthdata.NewProviders(list)
			require.NoError(t, err)
			days, _ := providers.Get("acme").Backfill.Range("sleep", healthdata.HistoryChoice{})
			require.Equal(t, c.days, days)
			require.Equal(t, c.plan, list[0].Backfill, "the caller's list stays as it is")
		})
	}
}

func TestBackfill_invalidPlanIsRefused(t *testing.T) {
	for name, plan := range map[string]healthdata.Backfill{
		"an unknown mode":                {Mode: "push"},
		"negative days":                  {DefaultDays: -1},
		"a negative limit":               {MaxDays: -1},
		"negative days of a resource":    {Days: map[string]int{"steps": -1}},
		"days of what it does not bring": {Days: map[string]int{"sleep": 3}},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := healthdata.NewProviders([]healthdata.Provider{{
				Slug: "acme", Name: "Acme", Category: "device", Class: "cloud", Backfill: plan, Resources: []healthdata.ProviderResource{{Resource: "steps"}},
			}})
			require.ErrorIs(t, err, healthlab.Invalid)
			require.ErrorContains(t, err, "backfill")
		})
	}
}
