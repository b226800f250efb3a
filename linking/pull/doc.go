// Package pull fetches the data of people's connections: their history once, and new data as
// long as the connection works.
//
// The work is stored as tasks, one for each user, provider, resource and kind ([History] or
// [News]). Processes claim tasks from a [Store] under a lease, so any number of processes
// share them and a crash loses none. A task makes one request to the
// provider at a time, stores the items (healthdata.Service stores repeated items once),
// records its progress, and goes to the end of the queue: so the first page of every user comes
// before the second page of any.
//
//	pulls, err := pull.New(store.Pulls(), health, refresher, connectors, nil)
//	go pulls.Run(ctx)
//	result, err := pulls.Refresh(ctx, team, user, 10*time.Second)
//
// # Limits
//
// A provider's limits ([Limit]) are kept by reserving a slot for every request in a
// [Budget] that all processes share. Slots are spread over the window, and a request
// waits for its slot, so that the limits are kept; limits in a provider's answers
// (remaining requests, Retry-After) are respected in addition. A provider's record may have
// limits (healthdata.RateLimits).
//
// # What providers send
//
// [Service.Listen] handles a message of a provider once, and schedules a fetch of the new data. From the message
// it uses only the account, the resources and the time of the data. A puller that supports more than timeseries and
// summaries is a linking.ExtendedPuller. Histories that one request returns (linking.ProviderConnector.Together)
// are fetched together ([Task.Lead]).
//
// # Status
//
// [Service.Progress] returns the progress of a first import, [Service.Histories] and [Service.Resources] the
// status of fetching for a team's people, with refused items. A run has one trace id in logs and traces.
//
// # Guarantees
//
// History is fetched from the newest day to the oldest; its event is written once, when all of it can be read. News
// begins where history began, looks back a few days every time, because providers deliver late, and once a day looks
// back further. Items that healthdata refuses are quarantined with the reason, and the others are stored.
package pull

// Files in the order of reading: each uses those before it.
//
//	times.go blocked_apps.go budget.go options.go task.go worker_limiter.go store.go fingerprint.go rows.go
//	rows_budget.go request_limits.go followers.go planner.go service.go rows_refused.go rows_task.go
//	rows_connection.go progress.go receive.go job.go store_page.go rows_status.go rows_notice.go
//	record_outcome.go notifications.go finish_history.go count_upload.go rows_claim.go plan.go refresh.go
//	refetch.go status.go run.go
