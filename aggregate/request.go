package aggregate

import (
	"time"

	"github.com/healthlab-dev/healthlab"
)

// Request is questions over one user's data that are answered together, from one
// consistent look at it.
type Request struct {
	Timeframe Timeframe
	// Queries has at least one query. Their results come back in this order.
	Queries []Query
	Config  Config
}

// Timeframe is the stretch of days that all queries of a request look at: Past, up to
// the end of the day Anchor, on the clock of the person.
type Timeframe struct {
	// Anchor is the last day, which counts as a whole.
	Anchor healthlab.Date
	// Past is how far back it reaches from the end of Anchor: 7 days are the seven
	// days that end with it.
	Past Period
}

// Period is a number of units of time.
type Period struct {
	Unit Unit
	// Value is 1 or more; 0 means 1.
	Value int64
}

// Unit is a unit of time on the calendar and the clock of the person.
type Unit string

// The units. Weeks begin on Monday.
const (
	Minute Unit = "minute"
	Hour   Unit = "hour"
	Day    Unit = "day"
	Week   Unit = "week"
	Month  Unit = "month"
	Year   Unit = "year"
)

// units lists them, the shortest first.
var units = []string{string(Minute), string(Hour), string(Day), string(Week), string(Month), string(Year)}

// Minutes returns a period of n minutes, and so on for the others.
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

// Query is one question over one table.
type Query struct {
	// Select is what the answer has, beside its index; at least one.
	Select []Expr
	// GroupBy is what rows are put together by; empty means not at all.
	GroupBy []Expr
	// Where keeps the rows that fit a condition, such as
	//
	//	type = 'long_sleep' AND efficiency >= 85
	//
	// Empty means all rows. Rows that it leaves out cannot make a source win.
	Where string
	// Align fills the gaps of a series of buckets; nil leaves them.
	Align *Align
	// Joins are columns of other tables, by the buckets of a date truncation.
	Joins []Join
}

// Config is what holds for all queries of a request.
type Config struct {
	// ProviderPriorityOverrides are slugs of providers and labs, the best first.
	// They come before everything else where sources are chosen.
	ProviderPriorityOverrides []string
	// ColumnNaming is ShortNames by default.
	ColumnNaming Naming
	// OverlapPolicy is MergeSources by default.
	OverlapPolicy OverlapPolicy
	// Explain adds an [Explanation] to each result, as [Service.Explain] does.
	Explain bool
}

// Naming says how columns of results are named.
type Naming string

const (
	// ShortNames calls a mean "mean" where that is clear, else "mean.efficiency".
	ShortNames Naming = "short"
	// QualifiedNames always says "mean.efficiency".
	QualifiedNames Naming = "qualified"
)

// OverlapPolicy says how several sources of the same thing are put together.
type OverlapPolicy string

const (
	// MergeSources decides which source counts before rows are grouped, so that days add
	// up to weeks and to the ungrouped total: intervals by time, points by local hour,
	// dated summaries by date and column, sessions by overlap. A query that selects
	// source_provider or source_type as a value goes by WinnerOnly.
	MergeSources OverlapPolicy = "merge"
	// WinnerOnly uses the best source of each group and leaves the others out. Totals of
	// longer groups may be smaller than the sum of shorter ones. Ungrouped queries use
	// every row.
	WinnerOnly OverlapPolicy = "winner"
	// FillGaps is WinnerOnly, and uses intervals of the other sources that overlap nothing
	// of a better one.
	FillGaps OverlapPolicy = "fill"
	// AllSources uses every row. Under the other policies, what the origins of one source tell twice
	// counts once.
	AllSources OverlapPolicy = "all"
)

// overlapPolicies are the allowed values.
var overlapPolicies = []string{string(MergeSources), string(WinnerOnly), string(FillGaps), string(AllSources)}

// Align says how the empty buckets of a result are filled.
type Align struct {
	Mode AlignMode
	// Limit is how far a value may be carried; nil means any distance, and that the
	// result is not extended beyond its first and last bucket. It is max_age or, for
	// CarryNearest, span.
	Limit *Period
}

// AlignMode is the direction in which values are carried.
type AlignMode string

// The modes.
const (
	CarryForward  AlignMode = "carry_forward"
	CarryBackward AlignMode = "carry_backward"
	CarryNearest  AlignMode = "carry_nearest"
)

var alignModes = []string{string(CarryForward), string(CarryBackward), string(CarryNearest)}

// Expr is an expression of a query: [Aggregate], [GroupKey], [Macro], [Field],
// [Index], [SourceColumn], [TableColumn], [DateTrunc], [DatePart] or [Subquery]. The set
// is closed.
type Expr interface {
	// append writes the expression as it is on the wire.
	append(b []byte) []byte
}

// Aggregate is a function over the values of a group.
type Aggregate struct {
	Func Func
	// Arg is a TableColumn, Field, Macro, Index or Subquery.
	Arg Expr
	// Low and High bound [TimeInRange], both inclusive; nil is open. Other
	// functions have none.
	Low, High *float64
	// Band is what [Episodes] counts in. [TimeInRange] takes one in place of Low and High.
	Band Band
}

// GroupKey is the key of a group, by its position in GroupBy.
type GroupKey struct {
	// Offset counts from 0.
	Offset int
	// All stands for all keys in order.
	All bool
}

// Macro is a derived value of a sleep session: sleep_score, chronotype, asleep_at,
// awake_at or awakenings.
type Macro struct{ Name string }

// Field is a field of the samples of a timeseries.
type Field struct{ Resource, Field string }

// Index is what rows of a table are found and sorted by. Without a table, inside
// DateTrunc and DatePart, it is that of the query's table.
type Index struct{ Table string }

// SourceColumn is a column that says where a row comes from: source_provider,
// source_type, source_app_id, and for samples source_workout_id and source_sport.
type SourceColumn struct{ Name string }

// TableColumn is a column of a table of summaries, or of derived_readiness.
type TableColumn struct{ Table, Column string }

// DateTrunc is the start of the bucket of time that a row falls into. Buckets of N
// minutes, hours or days are counted from 1970, weeks from Monday 1970-01-05, months
// and years from year 0: three months are calendar quarters.
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

// The parts and their ranges.
const (
	MinuteOfHour Part = "minute"       // 0-59
	HourOfDay    Part = "hour"         // 0-23
	DayOfMonth   Part = "day"          // 1-31
	ISOWeek      Part = "week"         // 1-53, ISO 8601
	WeekOfYear   Part = "week_of_year" // the same
	MonthOfYear  Part = "month"        // 1-12
	CalendarYear Part = "year"
	Weekday      Part = "weekday"     // 1 Monday .. 7 Sunday
	DayOfYear    Part = "day_of_year" // 1-366
)

var parts = []string{
	string(MinuteOfHour), string(HourOfDay), string(DayOfMonth), string(ISOWeek), string(WeekOfYear),
	string(MonthOfYear), string(CalendarYear), string(Weekday), string(DayOfYear),
}

// Subquery makes one value of the elements of a list column.
type Subquery struct {
	Func Func
	// Arg is the field of the elements to take, empty for lists of plain values.
	// Nil counts elements.
	Arg *Element
	// From is the list: a TableColumn, or the tags of the note timeseries.
	From Expr
	// Where keeps the elements that fit; empty means all.
	Where string
}

// Element is what a [Subquery] takes from each element of its list.
type Element struct {
	// Table and List name the list column, Field the field of its structs. All are
	// empty for a list of plain values.
	Table, List, Field string
}

// Helpers to write requests in Go. A request that is built of them goes through the
// same checks as one from the wire.

// Last returns the timeframe of the n days that end with the day anchor.
func Last(n int64, anchor healthlab.Date) Timeframe { return Timeframe{Anchor: anchor, Past: Days(n)} }

// Ask returns a request of one timeframe and some queries, with the default config.
func Ask(t Timeframe, queries ...Query) *Request { return &Request{Timeframe: t, Queries: queries} }

// Col is a column of a table, such as Col("sleep", "efficiency").
func Col(table, column string) TableColumn { return TableColumn{table, column} }

// Samples is the value of a timeseries, such as Samples("heartrate").
func Samples(resource string) Field { return Field{resource, "value"} }

// Of applies the function to an expression: Mean.Of(Samples("heartrate")).
func (f Func) Of(arg Expr) Aggregate { return Aggregate{Func: f, Arg: arg} }

// InRange is percent of the time that a value of samples lay from low to high, both
// inclusive.
func InRange(arg Expr, low, high float64) Aggregate {
	return Aggregate{Func: TimeInRange, Arg: arg, Low: &low, High: &high}
}

// By is the start of the bucket of time that a row falls into: By(Days(1)).
func By(p Period) DateTrunc { return DateTrunc{Period: p} }

// ByPart is a part of the date or clock time of a row: ByPart(Weekday).
func ByPart(p Part) DatePart { return DatePart{Part: p} }

// Keys selects all group keys.
func Keys() GroupKey { return GroupKey{All: true} }

// badExpr stands where an expression could not be read. Its problem is noted already.
type badExpr struct{}

// Limits bound what one request may ask for. A field that is zero has its default.
type Limits struct {
	// Queries, Select, GroupBy and Joins are numbers of items. Defaults 20, 50, 8 and 8.
	Queries, Select, GroupBy, Joins int
	// PastYears is how far a timeframe may reach. Default 10.
	PastYears int
	// Rows is the most rows that one query may return. Default 100,000.
	Rows int
	// Values is the most values that one query may keep to put them in order, for
	// medians and percentiles; repeated ones count once. It bounds memory, 16 bytes
	// each. Default 8 million.
	Values int
	// Time is how long a request may take. Default 30 seconds. Then the error is
	// context.DeadlineExceeded.
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
