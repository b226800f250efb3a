// Package aggregate answers questions over one user's health data: the mean resting heart rate per week,
// steps per day, the share of a night in deep sleep by month.
//
//	questions, err := aggregate.New(health, nil)
//	request, err := questions.Decode(body, false)
//	result, err := questions.Query(ctx, team, user, &request)
//
// What a host calls and gets:
//
//   - [Service] answers requests from a [Reader], such as healthdata.Service.
//   - [Request]: one or more questions ([Query], [Join] for a second table) over a stretch of days.
//   - [Result]: one [Frame] of columns per question, in Go, as JSON, or as Parquet by package
//     aggregate/parquet.
//   - [Explanation]: the data that was read for a result, and the source that was used in each place.
//
// A question in Go, and as JSON in the HTTP API:
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
// Buckets and windows are on the clock of the person: every sample and summary carries its own offset. So a
// day is the person's day on a journey, too, and the hour that comes twice in autumn is one bucket.
//
// # Sources
//
// The steps of a phone and a watch are not added up: [MergeSources] decides which source counts before rows
// are grouped, so that the days of a result add up to its weeks. [OverlapPolicy] lists the other policies.
//
// Measures of glucose are [GMI], [CV], [GRI], [LBGI], [HBGI], [MAGE], [MODD], [SensorActive], [Episodes], and
// [TimeInRange] with a [Band].
//
// It is not a store and not a general query language. The scores that it derives ([HouseSleepScore],
// [HouseReadiness]) are no medical statements.
package aggregate

// Files in the order of reading: each uses those before it.
//
//	table.go function.go request.go window.go source.go band.go inorder.go macro.go plan.go merge.go
//	priorities.go explain.go result.go json.go grid.go group.go schema.go rows.go decode.go where.go compile.go
//	resolve.go summary.go sample_set.go bucket.go readiness.go merge_samples.go origins.go merge_summaries.go
//	lab.go service.go join.go encode.go prepared.go hours.go sample.go align.go
