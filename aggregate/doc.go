// Package aggregate answers questions over one user's health data: the mean resting
// heart rate per week, steps per day, the share of a night in deep sleep by month.
//
// The names to know:
//
//   - [Request]: one or more questions ([Query]) over a stretch of days. [Decode] reads
//     one from JSON; [Ask] and its neighbours write one in Go.
//   - [Service]: answers requests from a [Reader].
//   - [Result]: one [Frame] of columns per question, in Go, as JSON, or as Parquet by
//     package aggregate/parquet.
//   - [Explanation]: what was read for a result, and which source was used where.
//
// A question in Go, and the same on the wire:
//
//	aggregate.Query{
//		Select:  []aggregate.Expr{aggregate.Sum.Of(aggregate.Samples("steps"))},
//		GroupBy: []aggregate.Expr{aggregate.By(aggregate.Days(1))},
//	}
//
//	{"select":[{"func":"sum","arg":{"timeseries":"steps","field":"value"}}],
//	 "group_by":[{"date_trunc":{"unit":"day","value":1},"arg":{"placeholder":true}}]}
//
// # Time
//
// Buckets and windows are on the clock of the person, not in UTC: every sample and
// summary carries its own offset. So a day is the person's day on a journey, too, and the
// hour that comes twice in autumn is one bucket.
//
// # Sources
//
// The steps of a phone and a watch are not added up: [MergeSources] decides which source
// counts before rows are grouped, so that the days of a result add up to its weeks and to
// the ungrouped total. Of two sources the better one comes first in the overrides of the
// request, else has the better source type, else the larger team preference, else the
// smaller provider slug. A group by both source_provider and source_type keeps all sources
// apart. [OverlapPolicy] lists the other policies.
//
// # Extensions
//
// Beside the functions of the contract there are percentile_0 to percentile_100,
// time_in_range (with low and high) and time_weighted_mean; see [Percentile],
// [TimeInRange] and [TimeWeightedMean]. Measures of glucose are [GMI], [CV], [GRI], [LBGI],
// [HBGI], [MAGE], [MODD], [SensorActive] and [Episodes], and time_in_range with a [Band].
//
// # What it is not
//
// It is not a store and not a general query language: one user, one table, one pass.
// The scores that it derives ([HouseSleepScore], [HouseReadiness]) are no medical
// statements; a host may put its own models in their place.
package aggregate
