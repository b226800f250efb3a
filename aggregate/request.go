package aggregate

import (
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Request has queries over one user's data. All are evaluated on the same snapshot.
type Request struct {
	Timeframe Timeframe
	// Queries has at least one query. Results have the same order.
	Queries []Query
	Config  Config
}

// Timeframe is the time range of all queries of a request: the period Past up to the end of the day Anchor, in the
// person's local time.
type Timeframe struct {
	// Anchor is the last day. The range includes the entire day.
	Anchor healthlab.Date
	// Past is the length of the range up to the end of Anchor: 7 days are Anchor and the six days before.
	Past Period
}

// Period is a number of units of time.
type Period struct {
	Unit Unit
	// Value is 1 or more; 0 means 1.
	Value int64
}

// Unit is a calendar unit in the person's local time.
type Unit string

// Units of time. Weeks begin on Monday.
const (
	Minute Unit = "minute"
	Hour   Unit = "hour"
	Day    Unit = "day"
	Week   Unit = "week"
	Month  Unit = "month"
	Year   Unit = "year"
)

// units are all units, the shortest first.
var units = []string{string(Minute), string(Hour), string(Day), string(Week), string(Month), string(Year)}

// Minutes returns a period of n minutes.
func Minutes(n int64) Period { return Period{Minute, n} }

// Hours returns a period of n hours.
func Hours(n int64) Period { return Period{Hour, n} }

// Days returns a period of n days.
func Days(n int64) Period { return Period{Day, n} }

// Weeks returns a period of n weeks.
func Weeks(n int64) Period { return Period{Week, n} }

// Months returns a period of n months.
func Months(n int64) Period { return Period{Month, n} }

// Years returns a period of n years.
func Years(n int64) Period { return Period{Year, n} }

func (p Period) count() int64 { return max(p.Value, 1) }

// Query is a query over one table.
type Query struct {
	// Select has the columns of the result, besides its index; at least one.
	Select []Expr
	// GroupBy has the expressions that rows are grouped by; empty for no grouping.
	GroupBy []Expr
	// Where keeps the rows that fit a condition, such as
	//
	//	type = 'long_sleep' AND efficiency >= 85
	//
	// Empty means all rows. Rows that it leaves out cannot make a source win.
	Where string
	// Align fills the gaps of a series of buckets; nil leaves the gaps.
	Align *Align
	// Joins are columns of other tables for the same buckets of a date truncation.
	Joins []Join
}

// Config has the settings of all queries of a request.
type Config struct {
	// ProviderPriorityOverrides are slugs of providers and labs, the preferred first. They take precedence over
	// all other rules between sources.
	ProviderPriorityOverrides []string
	// ColumnNaming is ShortNames by default.
	ColumnNaming Naming
	// OverlapPolicy is MergeSources by default.
	OverlapPolicy OverlapPolicy
	// Explain adds an [Explanation] to each result, as [Service.Explain] does.
	Explain bool
}

// Naming is the way in which result columns are named.
type Naming string

const (
	// ShortNames names a mean "mean" if that is unique, else "mean.efficiency".
	ShortNames Naming = "short"
	// QualifiedNames names a mean "mean.efficiency" in every result.
	QualifiedNames Naming = "qualified"
)

// OverlapPolicy is the way in which several sources of the same data are combined.
type OverlapPolicy string

const (
	// MergeSources chooses between sources before rows are grouped, so that days add up to weeks and to the
	// ungrouped total: intervals by time, samples without a duration by local hour, dated summaries by date and
	// column, sessions by overlap. A query that selects source_provider or source_type as a value uses
	// WinnerOnly.
	MergeSources OverlapPolicy = "merge"
	// WinnerOnly uses the preferred source of each group only. Totals of longer groups may be smaller than the
	// sum of shorter ones. Ungrouped queries use every row.
	WinnerOnly OverlapPolicy = "winner"
	// FillGaps is WinnerOnly with the intervals of other sources that do not overlap the preferred source.
	FillGaps OverlapPolicy = "fill"
	// AllSources uses every row. Under the other policies, data that two origins of one source recorded counts
	// once.
	AllSources OverlapPolicy = "all"
)

// overlapPolicies are the allowed values of OverlapPolicy.
var overlapPolicies = []string{string(MergeSources), string(WinnerOnly), string(FillGaps), string(AllSources)}

// Align fills the empty buckets of a result.
type Align struct {
	Mode AlignMode
	// Limit is the largest distance over which a value is carried; nil means any distance, and no buckets
	// before the first and after the last. In the HTTP API it is max_age or, for CarryNearest, span.
	Limit *Period
}

// AlignMode selects the value that fills an interval without one: the last value before it, the first after it, or the
// nearer of both.
type AlignMode string

// Modes of Align.
const (
	CarryForward  AlignMode = "carry_forward"
	CarryBackward AlignMode = "carry_backward"
	CarryNearest  AlignMode = "carry_nearest"
)

var alignModes = []string{string(CarryForward), string(CarryBackward), string(CarryNearest)}

// Expr is an expression of a query: [Aggregate], [GroupKey], [Macro], [Field], [Index], [SourceColumn],
// [TableColumn], [DateTrunc], [DatePart] or [Subquery]. There are no others.
type Expr interface {
	// append appends the JSON of the expression, as in the HTTP API.
	append(b []byte) []byte
}

// Aggregate is a function over the values of a group.
type Aggregate struct {
	Func Func
	// Arg is a TableColumn, Field, Macro, Index or Subquery.
	Arg Expr
	// Low and High are the limits of [TimeInRange], both inclusive; nil is open. Other functions have none.
	Low, High *float64
	// Band is the band of [Episodes]. [TimeInRange] accepts one in place of Low and High.
	Band Band
}

// GroupKey is the key of a group, selected by its position in GroupBy.
type GroupKey struct {
	// Offset is the position in GroupBy, counted from 0.
	Offset int
	// All selects all keys in order.
	All bool
}

// Macro is a derived value of a sleep session: sleep_score, chronotype, asleep_at,
// awake_at or awakenings.
type Macro struct{ Name string }

// Field is a field of the samples of a timeseries.
type Field struct{ Resource, Field string }

// Index is the index of a table, by which rows are found and sorted. Inside DateTrunc and DatePart the table
// may be left out; it is then that of the query.
type Index struct{ Table string }

// SourceColumn is a column about the origin of a row: source_provider, source_type, source_app_id, and for
// samples source_workout_id and source_sport.
type SourceColumn struct{ Name string }

// TableColumn is a column of a table of summaries, or of derived_readiness.
type TableColumn struct{ Table, Column string }

// DateTrunc is the start of the time bucket of a row. Buckets of N minutes, hours or days are counted from
// 1970, weeks from Monday 1970-01-05, months and years from year 0: three months are calendar quarters.
type DateTrunc struct {
	Period Period
	Of     Index
}

// DatePart is a part of a row's date or clock time, as a number.
type DatePart struct {
	Part Part
	Of   Index
}

// Part is a part of a date and clock time.
type Part string

// Parts of a date and their ranges.
const (
	MinuteOfHour Part = "minute"       // 0-59
	HourOfDay    Part = "hour"         // 0-23
	DayOfMonth   Part = "day"          // 1-31
	ISOWeek      Part = "week"         // 1-53, ISO 8601
	WeekOfYear   Part = "week_of_year" // as ISOWeek
	MonthOfYear  Part = "month"        // 1-12
	CalendarYear Part = "year"
	Weekday      Part = "weekday"     // 1 Monday .. 7 Sunday
	DayOfYear    Part = "day_of_year" // 1-366
)

var parts = []string{
	string(MinuteOfHour), string(HourOfDay), string(DayOfMonth), string(ISOWeek), string(WeekOfYear),
	string(MonthOfYear), string(CalendarYear), string(Weekday), string(DayOfYear),
}

// Subquery computes one value from the elements of a list column.
type Subquery struct {
	Func Func
	// Arg is the field of the elements, empty for lists of plain values. Nil counts elements.
	Arg *Element
	// From is the list: a TableColumn, or the tags of the timeseries note.
	From Expr
	// Where selects the elements that fit; empty selects all.
	Where string
}

// Element is the field of list elements that a [Subquery] reads.
type Element struct {
	// Table and List name the list column, Field the field of its structs. All are empty for a list of plain
	// values.
	Table, List, Field string
}

// Helpers to write requests in Go. Such a request goes through the same checks as a request in JSON.

// Last returns the timeframe of the n days that end with the day anchor.
func Last(n int64, anchor healthlab.Date) Timeframe { return Timeframe{Anchor: anchor, Past: Days(n)} }

// Ask returns a request with a timeframe, queries and the default config.
func Ask(t Timeframe, queries ...Query) *Request { return &Request{Timeframe: t, Queries: queries} }

// Col returns a column of a table, such as Col("sleep", "efficiency").
func Col(table, column string) TableColumn { return TableColumn{table, column} }

// Samples returns the value of a timeseries, such as Samples("heartrate").
func Samples(resource string) Field { return Field{resource, "value"} }

// Of applies the function to an expression: Mean.Of(Samples("heartrate")).
func (f Func) Of(arg Expr) Aggregate { return Aggregate{Func: f, Arg: arg} }

// InRange returns the percentage of the time in which a sample's value is from low to high, both inclusive.
func InRange(arg Expr, low, high float64) Aggregate {
	return Aggregate{Func: TimeInRange, Arg: arg, Low: &low, High: &high}
}

// By returns the start of the time bucket of a row: By(Days(1)).
func By(p Period) DateTrunc { return DateTrunc{Period: p} }

// ByPart returns a part of the date or clock time of a row: ByPart(Weekday).
func ByPart(p Part) DatePart { return DatePart{Part: p} }

// Keys returns an expression that selects all group keys.
func Keys() GroupKey { return GroupKey{All: true} }

// badExpr replaces an expression that could not be read. Its problem is recorded already.
type badExpr struct{}

// Limits are the limits of one request. A zero field has its default.
type Limits struct {
	// Queries, Select, GroupBy and Joins are the highest numbers of items. Defaults 20, 50, 8 and 8.
	Queries, Select, GroupBy, Joins int
	// PastYears is the longest timeframe in years. Default 10.
	PastYears int
	// Rows is the highest number of rows that one query may return. Default 100,000.
	Rows int
	// Values is the highest number of different values that one query may hold in memory for medians and
	// percentiles, 16 bytes each. Default 8 million.
	Values int
	// Time is the time limit of a request. Default 30 seconds. After it the error is context.DeadlineExceeded.
	Time time.Duration
}

func (l *Limits) fill() {
	for _, d := range [...]struct {
		to  *int
		def int
	}{{&l.Queries, 20}, {&l.Select, 50}, {&l.GroupBy, 8}, {&l.Joins, 8}, {&l.PastYears, 10}, {&l.Rows, 100_000}, {&l.Values, 8_000_000}} {
		if *d.to <= 0 {
			*d.to = d.def
		}
	}
	if l.Time <= 0 {
		l.Time = 30 * time.Second
	}
}
