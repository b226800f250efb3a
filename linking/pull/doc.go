// Package pull fetches data from providers for people's connections: the history once, and new data as
// long as the connection works.
//
// The work is stored as tasks, one for each user, provider, resource and kind ([History] or
// [News]). Processes claim tasks from a [Store] under a lease, so any number of processes
// share the tasks, and a crash loses none. A process makes one request to the provider for a task, stores the
// items (healthdata.Service stores repeated items once), records the progress of the task, and puts it at the end of
// the queue. So the first page of every user is fetched before the second page of any user.
//
//	pulls, err := pull.New(store.Pulls(), health, refresher, connectors, nil)
//	go pulls.Run(ctx)
//	result, err := pulls.Refresh(ctx, team, user, 10*time.Second)
//
// # Limits
//
// Before each request, the service reserves a slot (the time of the request) in a [Budget] that all processes share.
// The slots are spread over the period of the provider's [Limit], and the request waits for its slot. The service also
// respects the limits in a provider's answers (remaining requests, Retry-After). [Options].Limits has the limits by
// provider; a provider without an entry has those of its record (healthdata.RateLimits).
//
// # What providers send
//
// [Service.Listen] handles a message of a provider: it stores data in the message, and schedules a fetch of the data
// that the message announces. It ignores a repeated message. A puller that supports more than timeseries and summaries
// is a linking.ExtendedPuller. Histories of resources that one request returns (linking.ProviderConnector.Together) are
// fetched together ([Task.Lead]).
//
// # Status
//
// [Service.Progress] returns the progress of the history of one connection. [Service.Histories] and
// [Service.Resources] return the status of fetching for a team's people, with refused items. Each run of a task (the
// fetch of a whole time range) has one trace id in logs and traces.
//
// # Guarantees
//
// History is fetched from the newest day to the oldest. The event about it is written once, when the whole history is
// stored. Each fetch of new data begins some time before the end of the last one ([Options].Overlap), because providers
// deliver late; once a day ([Options].SweepEvery) a fetch begins further back. The first one begins at the time of the
// link, where history ends. Items that healthdata refuses are quarantined with the reason, and the others are stored.
package pull

// Files in the order of reading: each uses those before it.
//
//	times.go blocked_apps.go budget.go options.go task.go worker_limiter.go store.go fingerprint.go rows.go
//	rows_budget.go request_limits.go followers.go planner.go service.go rows_refused.go rows_task.go
//	rows_connection.go progress.go receive.go job.go store_page.go rows_status.go rows_notice.go
//	record_outcome.go notifications.go finish_history.go count_upload.go rows_claim.go maintain.go refresh.go
//	refetch.go status.go run.go
