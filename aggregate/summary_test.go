package aggregate_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/uuid"
	"github.com/stretchr/testify/require"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/internal/queryoracle"
)

// night stores a sleep session that ends at a wall-clock time, an hour east of UTC.
func night(t require.TestingT, p *queryoracle.Person, provider string, st healthdata.SourceType, end string, length time.Duration, change func(*healthdata.Sleep)) uuid.UUID {
	stop, err := time.Parse("2006-01-02T15:04:05", end)
	require.NoError(t, err)
	stop = stop.Add(-time.Hour)
	s := &healthdata.Sleep{
		BedtimeStart: healthlab.At(stop.Add(-length)), BedtimeStop: healthlab.At(stop), Type: healthdata.SleepLong,
		CalendarDate: healthlab.DateOf(stop.Add(time.Hour)), Duration: int64(length / time.Second), Total: ptr(int64(length / time.Second)),
	}
	s.ID = uuid.NewSHA1(uuid.Nil, []byte(end+provider+string(st)))
	if change != nil {
		change(s)
	}
	return p.Put(t, "sleep", provider, st, stop, 3600, s)
}

func cycle(t require.TestingT, p *queryoracle.Person, sleep uuid.UUID, end string, stages ...[3]int64) {
	stop, err := time.Parse("2006-01-02T15:04:05", end)
	require.NoError(t, err)
	c := &healthdata.SleepCycle{SleepID: sleep, SessionStart: healthlab.At(stop), SessionEnd: healthlab.At(stop)}
	for _, s := range stages {
		c.StageStartOffsetSecond = append(c.StageStartOffsetSecond, s[0])
		c.StageEndOffsetSecond = append(c.StageEndOffsetSecond, s[1])
		c.StageType = append(c.StageType, healthdata.SleepStage(s[2]))
	}
	p.Put(t, "sleep_cycle", "acme_ring", healthdata.SourceRing, stop.Add(-time.Hour), 3600, c)
}

func TestSleepMacros_areDerivedFromTheSleepSession(t *testing.T) {
	p := queryoracle.NewPerson()
	id := night(t, p, "acme_ring", healthdata.SourceRing, "2026-03-01T07:00:00", 8*time.Hour, func(s *healthdata.Sleep) {
		s.Total, s.REM, s.Deep, s.Light = ptr(int64(25200)), ptr(int64(5400)), ptr(int64(5940)), ptr(int64(13860))
		s.Efficiency, s.Latency = ptr(87.5), ptr(int64(900))
	})
	cycle(t, p, id, "2026-03-01T07:00:00", [3]int64{0, 900, 4}, [3]int64{900, 5000, 2}, [3]int64{5000, 5300, 4},
		[3]int64{5300, 20000, 3}, [3]int64{20000, 20100, -1}, [3]int64{20100, 20200, 4}, [3]int64{20200, 27000, 1}, [3]int64{27000, 28800, 4})
	night(t, p, "acme_ring", healthdata.SourceRing, "2026-03-02T07:00:00", 8*time.Hour, func(s *healthdata.Sleep) { s.Total = nil })
	got := table(t, service(t, p, nil), over("3", "2026-03-02", `{"select":[{"value_macro":"asleep_at"},{"value_macro":"awake_at"},{"value_macro":"awakenings"},`+
		`{"value_macro":"sleep_score"},{"sleep":"stage_unknown_second"},{"sleep":"time_zone"}]}`))
	// The score: 0.5*7/8 + 0.25*27.5/35 + 0.15*1 + 0.1*1, of 100: 88.39….
	require.JSONEq(t, `{"index":["2026-03-01T07:00:00","2026-03-02T07:00:00"],
		"asleep_at":["2026-02-28T23:15:00",null],"awake_at":["2026-03-01T06:30:00",null],"awakenings":[2,null],
		"sleep_score":[88,null],"stage_unknown_second":[100,null],"time_zone":["UTC+01:00","UTC+01:00"]}`, got)
}

// The chronotype depends on the middle of the sleep session.
func TestChronotype_dependsOnTheMiddleOfTheSleep(t *testing.T) {
	rows := map[string]string{
		"03:30:00": "lark", "03:30:01": "third", "06:00:00": "third", "06:00:01": "owl", "16:59:59": "owl", "17:00:00": "lark",
	}
	for middle, want := range rows {
		p := queryoracle.NewPerson()
		m, err := time.Parse("2006-01-02T15:04:05", "2026-03-01T"+middle)
		require.NoError(t, err)
		night(t, p, "acme_ring", healthdata.SourceRing, m.Add(4*time.Hour).Format("2006-01-02T15:04:05"), 8*time.Hour, nil)
		got := table(t, service(t, p, nil), over("3", "2026-03-02", `{"select":[{"func":"newest","arg":{"value_macro":"chronotype"}}]}`))
		require.JSONEq(t, `{"index":[0],"newest":["`+want+`"]}`, got, middle)
	}
}

func TestHouseSleepScore_dependsOnStagesLatencyAndEfficiency(t *testing.T) {
	i := func(v int64) *int64 { return &v }
	rows := []struct {
		name  string
		night aggregate.SleepNight
		score int64
		ok    bool
	}{
		{"perfect", aggregate.SleepNight{Asleep: i(28800), REM: i(7200), Deep: i(7200), Latency: i(600), Efficiency: ptr(96.0)}, 100, true},
		{"only the time asleep", aggregate.SleepNight{Asleep: i(14400)}, 50, true},
		{"time and efficiency", aggregate.SleepNight{Asleep: i(28800), Efficiency: ptr(60.0)}, 67, true},
		{"awake", aggregate.SleepNight{Asleep: i(0), Efficiency: ptr(60.0)}, 0, false},
		{"unknown", aggregate.SleepNight{Efficiency: ptr(60.0)}, 0, false},
	}
	for _, r := range rows {
		score, ok := aggregate.HouseSleepScore(r.night)
		require.Equal(t, r.ok, ok, r.name)
		require.Equal(t, r.score, score, r.name)
	}
}

func TestReadiness_comparesTheNightWithTheNightsBefore(t *testing.T) {
	p := queryoracle.NewPerson()
	for d := 1; d <= 9; d++ {
		end := time.Date(2026, 3, d, 7, 0, 0, 0, time.UTC).Format("2006-01-02T15:04:05")
		night(t, p, "acme_ring", healthdata.SourceRing, end, 8*time.Hour, func(s *healthdata.Sleep) {
			s.HRResting, s.AverageHRV = ptr(int64(50+d%2)), ptr(float64(60+2*(d%2)))
			switch d {
			case 8: // a good one
				s.HRResting, s.AverageHRV, s.Total = nil, ptr(66.0), ptr(int64(7*3600))
				s.HRLowest = ptr(int64(49))
			case 9: // a bad one
				s.HRResting, s.AverageHRV, s.Total = ptr(int64(54)), ptr(54.0), ptr(int64(6*3600))
			}
		})
	}
	// Another source of the last day, which loses; and a nap, which does not count.
	night(t, p, "acme_phone", healthdata.SourcePhone, "2026-03-09T08:00:00", 9*time.Hour, nil)
	night(t, p, "acme_ring", healthdata.SourceRing, "2026-03-09T15:00:00", time.Hour, func(s *healthdata.Sleep) { s.Type = healthdata.SleepNap })
	s := service(t, p, nil)
	cols := `{"derived_readiness":"date"},{"derived_readiness":"recovery_score"},{"derived_readiness":"recovery_zone"},{"derived_readiness":"stress_score"},` +
		`{"derived_readiness":"strain_score"},{"derived_readiness":"strain_zone"},{"derived_readiness":"sleep_score"}`
	// Day 7 has six nights before it, day 8 seven. The scores were worked out by hand.
	got := table(t, s, over("3", "2026-03-09", `{"select":[`+cols+`]}`))
	require.JSONEq(t, `{"index":["2026-03-07T00:00:00","2026-03-08T00:00:00","2026-03-09T00:00:00"],
		"date":["2026-03-07","2026-03-08","2026-03-09"],"recovery_score":[null,76,9],"recovery_zone":[null,"Green","Red"],"stress_score":[null,24,91],
		"strain_score":[null,3,18],"strain_zone":[null,"Low","Very High"],"sleep_score":[100,88,75]}`, got)
	// A condition does not change the days before.
	got = table(t, s, over("3", "2026-03-09", `{"select":[{"func":"mean","arg":{"derived_readiness":"recovery_score"}}],"where":"recovery_score > 50"}`))
	require.JSONEq(t, `{"index":[0],"mean":[76]}`, got)
}

func TestOptions_hostsReplaceSleepScoreAndReadiness(t *testing.T) {
	p := queryoracle.NewPerson()
	night(t, p, "acme_ring", healthdata.SourceRing, "2026-03-01T07:00:00", 8*time.Hour, nil)
	s := service(t, p, &aggregate.Options{
		SleepScore: func(aggregate.SleepNight) (int64, bool) { return 42, true },
		Readiness:  func(aggregate.Night, []aggregate.Night) (*int64, *int64) { return ptr(int64(70)), ptr(int64(18)) },
	})
	got := table(t, s, over("3", "2026-03-02", `{"select":[{"derived_readiness":"sleep_score"},{"derived_readiness":"recovery_zone"},{"derived_readiness":"strain_zone"}]}`))
	require.JSONEq(t, `{"index":["2026-03-01T00:00:00"],"sleep_score":[42],"recovery_zone":["Green"],"strain_zone":["Very High"]}`, got)
}

func TestMenstrualCycle_listColumnsAreCountedAndAveraged(t *testing.T) {
	p := queryoracle.NewPerson()
	flow := func(days ...string) (out []healthdata.FlowDay) {
		for i, f := range days {
			out = append(out, healthdata.FlowDay{Date: date("2026-03-01").AddDays(i), Flow: f})
		}
		return out
	}
	put := func(start string, c *healthdata.MenstrualCycle) {
		c.PeriodStart = date(start)
		p.Put(t, "menstrual_cycle", "acme_app", healthdata.SourceApp, c.PeriodStart.At(time.UTC), 0, c)
	}
	put("2026-03-01", &healthdata.MenstrualCycle{
		MenstrualFlow:         flow("none", "light", "heavy", "medium"),
		BasalBodyTemperatures: []healthdata.TemperatureDay{{Date: date("2026-03-01"), Value: 36.4}, {Date: date("2026-03-02"), Value: 36.6}},
	})
	put("2026-03-29", &healthdata.MenstrualCycle{MenstrualFlow: flow("light", "light")})
	s := service(t, p, nil)
	count := `{"select":{"func":"count","arg":null},"from":{"unnest":{"menstrual_cycle":"menstrual_flow"}},"where":"flow != 'none'"}`
	warm := `{"select":{"func":"mean","arg":{"basal_body_temperature":"value"}},"from":{"unnest":{"menstrual_cycle":"basal_body_temperature"}}}`
	last := `{"select":{"func":"max","arg":{"menstrual_flow":"date"}},"from":{"unnest":{"menstrual_cycle":"menstrual_flow"}}}`
	got := table(t, s, over("60", "2026-04-01", `{"select":[{"menstrual_cycle":"period_start"},`+count+`,`+warm+`,`+last+`]}`))
	require.JSONEq(t, `{"index":["2026-03-01T00:00:00","2026-03-29T00:00:00"],"period_start":["2026-03-01","2026-03-29"],
		"count.menstrual_flow":[3,2],"mean.basal_body_temperature.value":[36.5,null],"max.menstrual_flow.date":["2026-03-04","2026-03-02"]}`, got)
	got = table(t, s, over("60", "2026-04-01", `{"select":[{"func":"mean","arg":`+count+`}],"group_by":[{"date_trunc":{"unit":"year"},"arg":{"index":"menstrual_cycle"}}]}`))
	require.JSONEq(t, `{"index":["2026-01-01T00:00:00"],"mean":[2.5]}`, got)
}

func TestProfile_timesAreInUTC(t *testing.T) {
	p := queryoracle.NewPerson()
	p.Put(t, "profile", "acme_app", healthdata.SourceApp, time.Date(2026, 3, 1, 23, 30, 0, 0, time.UTC), 0, &healthdata.Profile{Height: ptr(int64(171))})
	s := service(t, p, nil)
	got := table(t, s, over("3", "2026-03-02", `{"select":[{"profile":"height_centimeter"},{"profile":"updated_at"}],"where":"updated_at >= '2026-03-01T23:30:00Z' AND index < '2026-03-02 00:00'"}`))
	require.JSONEq(t, `{"index":["2026-03-01T23:30:00+00:00"],"height_centimeter":[171],"updated_at":["2026-03-01T23:30:00+00:00"]}`, got)
	got = table(t, s, over("3", "2026-03-02", `{"select":[{"func":"mean","arg":{"profile":"updated_at"}}],"group_by":[{"date_trunc":{"unit":"day"},"arg":{"index":"profile"}}]}`))
	require.JSONEq(t, `{"index":["2026-03-01T00:00:00+00:00"],"mean":["2026-03-01T23:30:00+00:00"]}`, got)
}

// The functions over zero, one and two values, and over a column of nulls.
func TestFunctions_returnNullForTooFewOrOnlyNullValues(t *testing.T) {
	p := queryoracle.NewPerson()
	s := service(t, p, nil)
	all := func(col string) string {
		q := `{"select":[`
		for i, f := range []string{"count", "sum", "mean", "median", "stddev", "min", "max", "oldest", "newest"} {
			if i > 0 {
				q += ","
			}
			q += `{"func":"` + f + `","arg":{"sleep":"` + col + `"}}`
		}
		return over("5", "2026-03-03", q+`]}`)
	}
	require.JSONEq(t, `{"index":[0],"count":[0],"sum":[null],"mean":[null],"median":[null],"stddev":[null],"min":[null],"max":[null],"oldest":[null],"newest":[null]}`,
		table(t, s, all("score")))
	night(t, p, "acme_ring", healthdata.SourceRing, "2026-03-01T07:00:00", 8*time.Hour, func(s *healthdata.Sleep) { s.Score = ptr(int64(80)) })
	require.JSONEq(t, `{"index":[0],"count":[1],"sum":[80],"mean":[80],"median":[80],"stddev":[null],"min":[80],"max":[80],"oldest":[80],"newest":[80]}`,
		table(t, s, all("score")))
	night(t, p, "acme_ring", healthdata.SourceRing, "2026-03-02T07:00:00", 8*time.Hour, func(s *healthdata.Sleep) { s.Score = ptr(int64(71)) })
	require.JSONEq(t, `{"index":[0],"count":[2],"sum":[151],"mean":[75.5],"median":[75.5],"stddev":[6.363961030678928],"min":[71],"max":[80],"oldest":[80],"newest":[71]}`,
		table(t, s, all("score")))
	require.JSONEq(t, `{"index":[0],"count":[0],"sum":[null],"mean":[null],"median":[null],"stddev":[null],"min":[null],"max":[null],"oldest":[null],"newest":[null]}`,
		table(t, s, all("heart_rate_maximum")))
	// Times and dates.
	require.JSONEq(t, `{"index":[0],"mean.session_end":["2026-03-01T19:00:00"],"min":["2026-03-01T07:00:00"],"median":["2026-03-01T19:00:00"],"mean.asleep_at":[null]}`,
		table(t, s, over("5", "2026-03-03", `{"select":[{"func":"mean","arg":{"sleep":"session_end"}},{"func":"min","arg":{"index":"sleep"}},{"func":"median","arg":{"sleep":"session_end"}},{"func":"mean","arg":{"value_macro":"asleep_at"}}]}`)))
}

func TestSum_overflowIsRefused(t *testing.T) {
	p := queryoracle.NewPerson()
	for _, end := range []string{"2026-03-01T07:00:00", "2026-03-02T07:00:00"} {
		night(t, p, "acme_ring", healthdata.SourceRing, end, 8*time.Hour, func(s *healthdata.Sleep) { s.Score = ptr(int64(1) << 62) })
	}
	s := service(t, p, nil)
	q := aggregate.Ask(aggregate.Last(5, date("2026-03-03")), aggregate.Query{Select: []aggregate.Expr{aggregate.Sum.Of(aggregate.Col("sleep", "score"))}})
	_, err := s.Query(t.Context(), team, user, q)
	require.Equal(t, []string{"numeric_overflow at queries.0"}, faults(t, err))
	q.Queries[0].Select[0] = aggregate.Mean.Of(aggregate.Col("sleep", "score"))
	out, err := s.Query(t.Context(), team, user, q)
	require.NoError(t, err)
	require.InDelta(t, float64(int64(1)<<62), columnOf(t, &out.Frames[0], "mean").Float(0), 0)
}

func TestQuery_tieOfSummariesGoesToTheBetterSource(t *testing.T) {
	p := queryoracle.NewPerson()
	for i, provider := range []string{"zeta", "alpha"} {
		night(t, p, provider, healthdata.SourceRing, "2026-03-01T07:00:00", 8*time.Hour, func(s *healthdata.Sleep) { s.Score = ptr(int64(70 + i)) })
	}
	s := service(t, p, nil)
	want := `{"index":[0],"oldest":[71],"newest":[71]}`
	q := `{"select":[{"func":"oldest","arg":{"sleep":"score"}},{"func":"newest","arg":{"sleep":"score"}}]}`
	require.JSONEq(t, want, table(t, s, over("5", "2026-03-03", q)))
	p.Records[0], p.Records[1] = p.Records[1], p.Records[0]
	require.JSONEq(t, want, table(t, s, over("5", "2026-03-03", q)))
	// Of one source the one that changed last.
	p = queryoracle.NewPerson()
	for i := range 3 {
		night(t, p, "zeta", healthdata.SourceRing, "2026-03-01T07:00:00", 8*time.Hour, func(s *healthdata.Sleep) {
			s.Score = ptr(int64(70 + i))
			s.ID = uuid.UUID{byte(9 - i)}
		})
	}
	p.Records[1].UpdatedAt = p.Records[1].UpdatedAt.Add(time.Hour)
	require.JSONEq(t, `{"index":[0],"oldest":[71],"newest":[71]}`, table(t, service(t, p, nil), over("5", "2026-03-03", q)))
}

func TestAlign_fillsMissingBucketsByCarry(t *testing.T) {
	p := queryoracle.NewPerson()
	for end, score := range map[string]int64{"2026-03-01T07:00:00": 60, "2026-03-04T07:00:00": 70, "2026-03-05T07:00:00": 0} {
		night(t, p, "acme_ring", healthdata.SourceRing, end, 8*time.Hour, func(s *healthdata.Sleep) {
			if score > 0 {
				s.Score = &score
			}
		})
	}
	now := time.Date(2026, 3, 7, 12, 0, 0, 0, time.UTC)
	s := service(t, p, &aggregate.Options{Now: func() time.Time { return now }})
	rows := []struct{ name, carry, index, max string }{
		{"forward", `"mode":"carry_forward"`, `1 2 3 4 5`, `[60,60,60,70,70]`},
		{"forward, two days", `"mode":"carry_forward","max_age":{"unit":"day","value":2}`, `1 2 3 4 5 6 7`, `[60,60,60,70,70,70,null]`},
		{"forward, a week, up to now", `"mode":"carry_forward","max_age":{"unit":"week"}`, `1 2 3 4 5 6 7`, `[60,60,60,70,70,70,70]`},
		{"backward", `"mode":"carry_backward"`, `1 2 3 4 5`, `[60,70,70,70,null]`},
		{"backward, a day", `"mode":"carry_backward","max_age":{"unit":"day"}`, `28 1 2 3 4 5`, `[60,60,null,70,70,null]`},
		{"nearest", `"mode":"carry_nearest"`, `1 2 3 4 5`, `[60,60,70,70,70]`},
		{"nearest, a day", `"mode":"carry_nearest","span":{"unit":"day"}`, `28 1 2 3 4 5 6`, `[60,60,60,70,70,70,null]`},
	}
	for _, r := range rows {
		t.Run(r.name, func(t *testing.T) {
			got := table(t, s, over("10", "2026-03-08", `{"select":[{"group_key":"*"},{"func":"max","arg":{"sleep":"score"}}],`+
				`"group_by":[{"date_trunc":{"unit":"day"},"arg":{"index":"sleep"}}],"align":{"carry":{`+r.carry+`}}}`))
			require.JSONEq(t, `{"index":`+days(r.index)+`,"group_key.0":`+days(r.index)+`,"max":`+r.max+`}`, got)
		})
	}
}

// Between two values that are equally near, the earlier one is carried.
func TestAlign_carryNearestPrefersTheEarlierValue(t *testing.T) {
	p := queryoracle.NewPerson()
	for end, score := range map[string]int64{"2026-03-01T07:00:00": 60, "2026-03-03T07:00:00": 70} {
		night(t, p, "acme_ring", healthdata.SourceRing, end, 8*time.Hour, func(s *healthdata.Sleep) { s.Score = &score })
	}
	got := table(t, service(t, p, nil), over("10", "2026-03-08", `{"select":[{"group_key":"*"},{"func":"max","arg":{"sleep":"score"}}],`+
		`"group_by":[{"date_trunc":{"unit":"day"},"arg":{"index":"sleep"}}],"align":{"carry":{"mode":"carry_nearest"}}}`))
	require.JSONEq(t, `{"index":`+days("1 2 3")+`,"group_key.0":`+days("1 2 3")+`,"max":[60,60,70]}`, got)
}

// days writes days of March (28 is of February) as the index has them.
func days(list string) string {
	out := "["
	for i, d := range strings.Fields(list) {
		if i > 0 {
			out += ","
		}
		month := "03"
		if d == "28" {
			month = "02"
		}
		if len(d) == 1 {
			d = "0" + d
		}
		out += `"2026-` + month + `-` + d + `T00:00:00"`
	}
	return out + "]"
}
