package aggregate

import "github.com/healthlab-dev/healthlab"

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
