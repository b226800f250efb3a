package aggregate_test

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/healthlab-dev/healthlab"
	"github.com/healthlab-dev/healthlab/aggregate"
	"github.com/healthlab-dev/healthlab/healthdata"
	"github.com/healthlab-dev/healthlab/healthdata/series"
	"github.com/healthlab-dev/healthlab/internal/queryoracle"
)

// must fails an example.
type must struct{}

func (must) Errorf(format string, args ...any) { panic(fmt.Sprintf(format, args...)) }
func (must) FailNow()                          { panic("example failed") }

// robin is an invented person with two weeks of invented data: a watch, a phone in the
// pocket, a glucose sensor, a scale.
func robin() *queryoracle.Person {
	p := queryoracle.NewPerson()
	first := time.Date(2026, 3, 2, 0, 0, 0, 0, time.UTC) // a Monday
	for d := range 14 {
		day := first.AddDate(0, 0, d)
		at := func(h, m int) int64 {
			return day.Add(time.Duration(h)*time.Hour + time.Duration(m)*time.Minute).UnixMicro()
		}
		var walk, pocket, heart, sugar []series.Sample
		for h := 8; h < 20; h += 2 {
			walk = append(walk, series.Sample{Time: at(h, 0), End: at(h+1, 0), Value: float64(1000 + 100*(d%7) + 10*h)})
			pocket = append(pocket, series.Sample{Time: at(h, 30), End: at(h+1, 30), Value: 700})
		}
		for h := range 24 {
			heart = append(heart, series.Sample{Time: at(h, 0), Value: float64(52 + 2*min(h, 24-h) + d%3)})
			for m := 0; m < 60; m += 15 {
				sugar = append(sugar, series.Sample{Time: at(h, m), Value: 4.5 + float64((h*7+m/15+d)%9)})
			}
		}
		if d != 9 { // the watch was left at home
			p.Measure(must{}, key("steps", "acme_watch", healthdata.SourceWatch, ""), series.PerMinute, false, walk...)
		}
		p.Measure(must{}, key("steps", "acme_phone", healthdata.SourcePhone, ""), series.PerMinute, false, pocket...)
		p.Measure(must{}, key("heartrate", "acme_watch", healthdata.SourceWatch, ""), series.PerMinute, false, heart...)
		p.Measure(must{}, key("glucose", "acme_cgm", healthdata.SourceAutomatic, ""), series.PerFiveMinutes, false, sugar...)
		robinsNight(p, day, d)
		if d%2 == 0 {
			robinsSport(p, day, d)
		}
		if d%5 == 1 {
			b := &healthdata.Body{MeasuredAt: healthlab.At(day.Add(7 * time.Hour)), CalendarDate: healthlab.DateOf(day), Weight: ptr(72.5 - float64(d)/10)}
			p.Put(must{}, "body", "acme_scale", healthdata.SourceScale, day.Add(7*time.Hour), 0, b)
		}
	}
	return p
}

func robinsNight(p *queryoracle.Person, day time.Time, d int) {
	stop := day.Add(6*time.Hour + time.Duration(d%4)*20*time.Minute)
	s := &healthdata.Sleep{
		BedtimeStart: healthlab.At(stop.Add(-8 * time.Hour)), BedtimeStop: healthlab.At(stop), Type: healthdata.SleepLong,
		CalendarDate: healthlab.DateOf(day), Duration: 8 * 3600, Total: ptr(int64(25200 - 600*(d%5))),
		REM: ptr(int64(5400)), Deep: ptr(int64(4200 + 300*(d%5))), Light: ptr(int64(14400)), Efficiency: ptr(float64(84 + d%8)), Latency: ptr(int64(300 + 120*(d%6))),
		HRResting: ptr(int64(52 + d%3 - d/7)), AverageHRV: ptr(float64(60 + d%4)),
	}
	s.ID = uuid.UUID{byte(d + 1)}
	p.Put(must{}, "sleep", "acme_watch", healthdata.SourceWatch, stop, 0, s)
}

func robinsSport(p *queryoracle.Person, day time.Time, d int) {
	start := day.Add(17 * time.Hour)
	w := &healthdata.Workout{
		TimeStart: healthlab.At(start), TimeEnd: healthlab.At(start.Add(time.Hour)), CalendarDate: healthlab.DateOf(day),
		Sport: healthdata.SportOf([]string{"running", "cycling"}[d/2%2]), MovingTime: ptr(int64(2400 + 60*d)),
		Distance: ptr(float64(8000 + 500*d)), HRZones: []int64{300, 600, 600, 600, 240, 60},
	}
	w.ID = uuid.UUID{byte(d + 101)}
	p.Put(must{}, "workouts", "acme_watch", healthdata.SourceWatch, start, 0, w)
}

// answer asks one question about the two weeks and prints the rows.
func answer(q aggregate.Query) {
	s := service(must{}, robin(), nil)
	out, err := s.Query(context.Background(), team, user, aggregate.Ask(aggregate.Last(14, date("2026-03-15")), q))
	if err != nil {
		panic(err)
	}
	f := &out.Frames[0]
	for i, row := range f.Rows() {
		var words []string
		for k, v := range row {
			if _, number := v.(int64); number && k == 0 {
				continue // a row number
			}
			switch v := v.(type) {
			case healthlab.Date:
				words = append(words, v.At(time.UTC).Format("Mon 2006-01-02"))
			case time.Time:
				words = append(words, v.Format("Mon 2006-01-02"))
			case float64:
				words = append(words, fmt.Sprintf("%.1f", v))
			case nil:
				words = append(words, "-")
			default:
				words = append(words, fmt.Sprint(v))
			}
		}
		if i < 8 {
			fmt.Println(strings.Join(words, "  "))
		}
	}
}

// A question and its answer: the service takes it in Go, and gives columns back.
func Example() {
	s, err := aggregate.New(robin(), nil)
	if err != nil {
		panic(err)
	}
	steps := aggregate.Samples("steps")
	result, err := s.Query(context.Background(), team, user, aggregate.Ask(
		aggregate.Last(3, date("2026-03-12")),
		aggregate.Query{
			Select:  []aggregate.Expr{aggregate.Sum.Of(steps)},
			GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))},
		},
	))
	if err != nil {
		panic(err)
	}
	days, err := result.Frames[0].Column("index")
	if err != nil {
		panic(err)
	}
	sums, err := result.Frames[0].Column("sum")
	if err != nil {
		panic(err)
	}
	for i := range days.Len() {
		fmt.Println(days.Date(i), sums.Float(i))
	}
	// Output:
	// 2026-03-10 9480
	// 2026-03-11 4200
	// 2026-03-12 10680
}

// The same question as it comes over the wire, and the answer as it goes out.
func ExampleService_Decode() {
	s := service(must{}, robin(), nil)
	req, err := s.Decode([]byte(`{
		"timeframe": {"type": "relative", "anchor": "2026-03-12", "past": {"unit": "day", "value": 3}},
		"queries": [{
			"select": [{"func": "sum", "arg": {"timeseries": "steps", "field": "value"}}],
			"group_by": [{"date_trunc": {"unit": "day", "value": 1}, "arg": {"index": "timeseries"}}]
		}]
	}`), false)
	if err != nil {
		panic(err)
	}
	result, err := s.Query(context.Background(), team, user, &req)
	if err != nil {
		panic(err)
	}
	_ = result.WriteJSON(os.Stdout)
	// Output:
	// {"results":[{"table":{"index":["2026-03-10T00:00:00","2026-03-11T00:00:00","2026-03-12T00:00:00"],"sum":[9480,4200,10680]}}]}
}

// Explain says which source was used where. On Wednesday 2026-03-11 the watch was left at
// home, so the phone's intervals count in full.
func ExampleService_Explain() {
	s, err := aggregate.New(robin(), nil)
	if err != nil {
		panic(err)
	}
	result, err := s.Explain(context.Background(), team, user, aggregate.Ask(aggregate.Last(2, date("2026-03-12")), aggregate.Query{
		Select:  []aggregate.Expr{aggregate.Sum.Of(aggregate.Samples("steps"))},
		GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))},
	}))
	if err != nil {
		panic(err)
	}
	for _, s := range result.Explain[0].Merged.Shares {
		fmt.Println(s.From, s.Type, s.Used)
	}
	// Output:
	// 2026-03-12T08:00:00 watch all
	// 2026-03-11T08:30:00 phone all
	// 2026-03-12T08:30:00 phone part
}

// How many steps a day?
func Example_dailySteps() {
	answer(aggregate.Query{
		Select:  []aggregate.Expr{aggregate.Sum.Of(aggregate.Samples("steps"))},
		GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))},
		Where:   "index >= '2026-03-13'",
	})
	// Output:
	// Fri 2026-03-13  11280.0
	// Sat 2026-03-14  11880.0
	// Sun 2026-03-15  12480.0
}

// Is the resting heart rate going down?
func Example_restingHeartRate() {
	answer(aggregate.Query{
		Select:  []aggregate.Expr{aggregate.Mean.Of(aggregate.Col("sleep", "heart_rate_resting"))},
		GroupBy: []aggregate.Expr{aggregate.By(aggregate.Weeks(1))},
		Where:   "type = 'long_sleep'",
	})
	// Output:
	// Mon 2026-03-02  52.9
	// Mon 2026-03-09  52.0
}

// How regular is the sleep? How long it is, and by how many seconds that differs.
func Example_sleepRegularity() {
	answer(aggregate.Query{
		Select: []aggregate.Expr{
			aggregate.Mean.Of(aggregate.Col("sleep", "stage_asleep_second")),
			aggregate.StdDev.Of(aggregate.Col("sleep", "stage_asleep_second")),
			aggregate.Newest.Of(aggregate.Macro{Name: "chronotype"}),
		},
		GroupBy: []aggregate.Expr{aggregate.By(aggregate.Weeks(1))},
	})
	// Output:
	// Mon 2026-03-02  24257.1  907.1  lark
	// Mon 2026-03-09  23914.3  807.1  lark
}

// How much of the day is glucose in range, below it and above it?
func Example_glucoseInRange() {
	v := aggregate.Samples("glucose")
	low, high := 3.9, 10.0
	answer(aggregate.Query{
		Select: []aggregate.Expr{
			aggregate.InRange(v, low, high),
			aggregate.Aggregate{Func: aggregate.TimeInRange, Arg: v, Low: &high},
			aggregate.TimeWeightedMean.Of(v),
			aggregate.Percentile(95).Of(v),
		},
		GroupBy: []aggregate.Expr{aggregate.By(aggregate.Weeks(1))},
	})
	// Output:
	// Mon 2026-03-02  67.0  33.0  8.5  12.5
	// Mon 2026-03-09  67.3  32.7  8.5  12.5
}

// How hard was each week's training?
func Example_weeklyTraining() {
	col := func(name string) aggregate.Expr { return aggregate.Sum.Of(aggregate.Col("workout", name)) }
	answer(aggregate.Query{
		Select: []aggregate.Expr{
			aggregate.Count.Of(aggregate.Index{Table: "workout"}),
			col("distance_meter"), col("duration_active_second"), col("heart_rate_zone_5"),
		},
		GroupBy: []aggregate.Expr{aggregate.By(aggregate.Weeks(1))},
	})
	// Output:
	// Mon 2026-03-02  4  38000.0  10320  960
	// Mon 2026-03-09  3  39000.0  9000  720
}

// Which sport takes the most time?
func Example_sports() {
	answer(aggregate.Query{
		Select: []aggregate.Expr{
			aggregate.Keys(), aggregate.Sum.Of(aggregate.Col("workout", "duration_active_second")),
		},
		GroupBy: []aggregate.Expr{aggregate.Col("workout", "sport_slug")},
	})
	// Output:
	// cycling  8280
	// running  11040
}

// What is the heart rate at each hour of the day?
func Example_heartRateByHour() {
	answer(aggregate.Query{
		Select:  []aggregate.Expr{aggregate.Keys(), aggregate.Median.Of(aggregate.Samples("heartrate"))},
		GroupBy: []aggregate.Expr{aggregate.ByPart(aggregate.HourOfDay)},
		Where:   "index < '2026-03-09'",
	})
	// Output:
	// 0  53.0
	// 1  55.0
	// 2  57.0
	// 3  59.0
	// 4  61.0
	// 5  63.0
	// 6  65.0
	// 7  67.0
}

// What were the best and the worst night?
func Example_nights() {
	answer(aggregate.Query{
		Select: []aggregate.Expr{
			aggregate.Keys(), aggregate.Max.Of(aggregate.Macro{Name: "sleep_score"}), aggregate.Min.Of(aggregate.Macro{Name: "sleep_score"}),
		},
		GroupBy: []aggregate.Expr{aggregate.ByPart(aggregate.Weekday)},
		Where:   "efficiency >= 85",
	})
	// Output:
	// 1  88  88
	// 2  84  84
	// 3  84  82
	// 4  85  85
	// 5  85  85
	// 6  87  86
	// 7  88  86
}

// How does the weight go, with the days between measurements filled in?
func Example_weight() {
	answer(aggregate.Query{
		Select:  []aggregate.Expr{aggregate.Keys(), aggregate.Newest.Of(aggregate.Col("body", "weight_kilogram"))},
		GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))},
		Align:   &aggregate.Align{Mode: aggregate.CarryForward},
	})
	// Output:
	// Tue 2026-03-03  Tue 2026-03-03  72.4
	// Wed 2026-03-04  Wed 2026-03-04  72.4
	// Thu 2026-03-05  Thu 2026-03-05  72.4
	// Fri 2026-03-06  Fri 2026-03-06  72.4
	// Sat 2026-03-07  Sat 2026-03-07  72.4
	// Sun 2026-03-08  Sun 2026-03-08  71.9
	// Mon 2026-03-09  Mon 2026-03-09  71.9
	// Tue 2026-03-10  Tue 2026-03-10  71.9
}

// How ready is the person today?
func Example_readiness() {
	answer(aggregate.Query{
		Select: []aggregate.Expr{
			aggregate.Col("derived_readiness", "recovery_score"), aggregate.Col("derived_readiness", "recovery_zone"),
			aggregate.Col("derived_readiness", "strain_score"),
		},
		Where: "recovery_score IS NOT NULL",
	})
	// Output:
	// Mon 2026-03-09  60  Amber  4
	// Tue 2026-03-10  39  Amber  10
	// Wed 2026-03-11  57  Amber  5
	// Thu 2026-03-12  55  Amber  3
	// Fri 2026-03-13  51  Amber  4
	// Sat 2026-03-14  52  Amber  4
	// Sun 2026-03-15  48  Amber  6
}

// What does the night look like, compared with the evening's sport? Two questions, one
// look at the data.
func Example_twoQuestions() {
	s := service(must{}, robin(), nil)
	result, err := s.Query(context.Background(), team, user, aggregate.Ask(aggregate.Last(14, date("2026-03-15")),
		aggregate.Query{Select: []aggregate.Expr{aggregate.Mean.Of(aggregate.Col("sleep", "stage_deep_second"))}},
		aggregate.Query{Select: []aggregate.Expr{aggregate.Count.Of(aggregate.Index{Table: "workout"})}},
	))
	if err != nil {
		panic(err)
	}
	deep, err := result.Frames[0].Column("mean")
	if err != nil {
		panic(err)
	}
	workouts, err := result.Frames[1].Column("count")
	if err != nil {
		panic(err)
	}
	fmt.Printf("%.0f s of deep sleep, %d workouts\n", deep.Float(0), workouts.Int(0))
	// Output:
	// 4757 s of deep sleep, 7 workouts
}
