// Package healthdata keeps what people's devices and apps measured: users, the sources they have connected, and the
// data of those sources.
//
//	store := memory.New(&memory.Options{Events: stores.NoEvents}) // or stores.Outbox, and a webhook.Dispatcher
//	health, err := healthdata.New(store.Users(), store.Data(), providers, &healthdata.Options{Environment: healthlab.Sandbox})
//	user, err := health.CreateUser(ctx, team, healthdata.NewUser{ClientUserID: "member-42"})
//	counts, err := health.IngestSamples(ctx, team, user.ID, "steps", upload, samples)
//	page, err := health.Samples(ctx, team, user.ID, healthdata.SampleQuery{Resource: "steps"})
//
// What a host calls and gets:
//
//   - [Service] checks input, applies the rules, and calls the stores. [Connections] are the sources and consents of its
//     users, and [Deletions] deletes and erases users.
//   - [User]: a person whose data a team keeps, under an id of the service and an id of the team.
//   - [Resource]: one kind of data (steps, sleep, glucose). [Resources] is the catalogue; routes, event
//     names, units and aggregate tables derive from it.
//   - [Sample]: one measurement of a timeseries. Samples of one source are a series, kept as columns by
//     package series.
//   - [Summary]: a day of activity, a night of sleep, a workout: an object with an identity, replaced as a
//     whole by its newer version.
//
// # Identity
//
// The id of a summary is derived from its user, its source and the source's own key, such as the start of the night. A
// resend therefore replaces the earlier version. A sample is identified by resource, provider, source type, app, device
// and timestamp. Of several versions with one identity the latest is kept. Writing identical data changes nothing and
// sends no event.
//
// # Time
//
// Instants are UTC. Samples, and summaries with an instant, have the UTC offset of the place where they were recorded.
// If the source does not state it, the user's fallback zone gives it. Days are local days.
//
// # What it is not
//
// It does not merge sources: two devices that record one night give two summaries. Package aggregate chooses between
// them.
package healthdata

// Files in the order of reading: each uses those before it.
//
//	source.go summary.go workout.go activity.go profile.go user.go store.go resource.go rows.go sample.go
//	device.go provider.go upload.go service.go localtime.go connections.go ingest.go read_origins.go
//	read_sample.go rows_rank.go rows_removed.go rows_samples.go rows_view.go source_unit.go rows_sessions.go
//	rows_records.go sleep.go bounds.go meal.go units.go consent.go user_rows.go userchange.go users.go
//	users_over_rows.go deletion.go resend.go ingest_sample.go read_summary.go ingest_device.go read_device.go
//	unmeasured.go stream_points.go eventtype.go remove.go partial.go ingest_summary.go workout_stream.go
//	workout_zones.go
